package pythongraph

import (
	"regexp"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// collectors are names in Python files by which pytest finds tests in another way than by the names of modules: hooks, and settings
// that a hook alters.
var collectors = map[string]bool{
	"pytest_collect_file": true, "pytest_collect_directory": true, "pytest_pycollect_makemodule": true, "pytest_ignore_collect": true,
	"pytest_load_initial_conftests": true, "pytest_cmdline_preparse": true, "python_files": true, "doctestmodules": true, "doctestglob": true,
}

// collectingOptions match options of plugins that make tests of other files than modules, or of all modules.
var collectingOptions = regexp.MustCompile(`^--(doctest|xdoc(test)?|nb(val|make)?|notebook|ipynb|markdown|md|readme|codeblocks|check-links|ruff|mypy|pyright|basedpyright|` +
	`pyrefly|ty|pytype|flake8?|flakes|pyflakes|pylint|isort|black|yapf|pep8|pep257|pycodestyle|codestyle|pydocstyle|docstyle|mccabe|bandit|` +
	`codespell|yamllint|eslint|cython-lint|robot|gherkin|collect-in-virtualenv|override-ini|pyargs)(-|$)`)

// collectingKeys are settings that do so.
var collectingKeys = []string{"doctest_plus", "doctest_rst", "nb_test_files"}

// collectingPackages are distributions that do so wherever they are installed.
var collectingPackages = []string{
	"pytest-ansible", "pytest-checkdocs", "pytest-cpp", "pytest-enabler", "pytest-mypy-plugins", "pytest-mypy-testing", "pytest-perf",
	"pytest-robotframework", "pytest-rst", "pytest-sphinx", "pytest-workflow", "tavern",
}

// collectedByName matches names of files that such a distribution makes tests of, which may be on the PATH without being required.
var collectedByName = regexp.MustCompile(`^test_.+\.tavern\.ya?ml$`)

// valuedOptions are options of pytest in addopts whose next word is no file with tests.
var valuedOptions = map[string]bool{
	"--cov": true, "--cov-config": true, "--cov-report": true, "--ignore": true, "--ignore-glob": true, "--deselect": true, "--rootdir": true,
	"--confcutdir": true, "--basetemp": true, "--doctest-glob": true, "--junitxml": true, "--junit-xml": true, "--log-file": true, "--html": true,
	"-c": true, "--config-file": true, "-k": true, "-m": true, "-p": true, "-n": true, "-W": true, "--ds": true,
}

// findCollectors finds the projects in which pytest finds tests in another way than by the names of modules, and defines what says so.
func (a *assembler) findCollectors() {
	inProject, inFolder, texts := map[*project][]string{}, map[string]bool{}, map[*project][]string{}
	for _, f := range a.all {
		for _, i := range f.files {
			name, said := a.name(f, i), a.facts[i]
			if a.examples[i] && f.project != nil {
				texts[f.project] = append(texts[f.project], a.entries[i].Path)
			}
			if (said == nil || !said.collects) && !collectedByName.MatchString(name) {
				continue
			}
			inProject[f.project] = append(inProject[f.project], a.entries[i].Path)
			if name == "conftest.py" && !inFolder[f.path] {
				inFolder[f.path] = true
				a.builder.Listing(collectorsIn(f.path), []string{name})
			}
		}
	}
	for p, files := range inProject {
		a.builder.Listing(collectorsOf(p), files)
	}
	for p, files := range texts {
		a.builder.Listing(examplesOf(p), files)
	}
	for _, p := range a.projects {
		p.collects = p.options.collects || len(inProject[p]) > 0 || slices.ContainsFunc(inProject[nil], isPlugin) || requiresCollector(p.develops) ||
			slices.ContainsFunc(p.options.named, func(word string) bool { return a.isThere(p.dir(), word) })
		above(p.dir(), func(dir string) { p.collects = p.collects || inFolder[dir] })
		for i, reached := range p.reach {
			p.collects = p.collects || reached && (slices.ContainsFunc(inProject[a.projects[i]], isPlugin) || requiresCollector(a.projects[i].needs))
		}
		if k := a.locks[p.lock]; k != nil {
			p.collects = p.collects || slices.ContainsFunc(k.packages, func(l *locked) bool { return slices.Contains(collectingPackages, l.name) })
		}
	}
}

// isPlugin reports whether a file that collects can do so for other projects than its own.
func isPlugin(file string) bool {
	return strings.HasSuffix(file, ".py") && nameOf(file) != "conftest.py"
}

// requiresCollector reports whether a list of requirements has a distribution that collects.
func requiresCollector(needs []requirement) bool {
	return slices.ContainsFunc(needs, func(r requirement) bool { return slices.Contains(collectingPackages, r.name) })
}

// isThere reports whether a path from a folder leads to something in the tree, maybe through a symbolic link.
func (s *survey) isThere(dir, word string) bool {
	at, ok := join(dir, word)
	if !ok {
		return false
	}
	if s.folders[at] != nil {
		return true
	}
	for ; at != ""; at = folderOf(at) {
		if s.find(at) >= 0 {
			return true
		}
	}
	return false
}

// addCollectors adds what decides whether a project's tests are those of modules alone.
func (a *assembler) addCollectors(node, develop targets.Node, p *project) {
	a.refListing(node, collectorsOf(p))
	a.refListing(node, collectorsOf(nil))
	a.refListing(node, examplesOf(p))
	above(p.dir(), func(dir string) { a.refListing(node, collectorsIn(dir)) })
	for _, word := range p.options.named {
		if at, ok := join(p.dir(), word); ok {
			a.edge(develop, a.outside(at))
		}
	}
	for _, name := range collectingPackages {
		if p.lock != "" {
			a.ref(develop, targets.KindExternal, lockedName(p.lock, name))
		}
	}
}

// addWhole defines the one target of all tests of a project: what they are, and what they read, can be anything in its folder.
func (a *assembler) addWhole(p *project) {
	s := a.siteOf(p, p.dir())
	s.tests = a.apart(p)
	target := a.builder.Target(targetName(p.dir(), " [test]"), "test", expand(a.steps(p).Whole, s))
	a.addTestNeeds(target, p, p.dir(), nil)
	a.edge(target, a.wholeProject(p))
	a.addFolder(target, p.dir())
}
