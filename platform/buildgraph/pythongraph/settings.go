package pythongraph

import (
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// maxSettings bounds each list of pytest's settings that counts for a project: every file is compared with every pattern.
const maxSettings = 1000

// pytestOptions are options of pytest in addopts.
type pytestOptions struct {
	// doctestModules: examples in modules are tests; doctestGlobs are patterns of names of texts whose examples are.
	doctestModules bool
	doctestGlobs   []string
	// coverage is measured, by pytest-cov.
	coverage bool
	// importlib: test modules of one name can stand in several folders.
	importlib bool
	// collects: there is an option or a setting by which a plugin makes tests of what is no test module.
	collects bool
	// named are words that are no options: they can be files and folders with tests, from where pytest is started.
	named []string
}

// doctests reports whether examples are tests.
func (o *pytestOptions) doctests() bool { return o.doctestModules || len(o.doctestGlobs) > 0 }

// add notes options.
func (o *pytestOptions) add(words []string) {
	for i, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if value == "" && i+1 < len(words) {
			value = words[i+1]
		}
		switch name {
		case "--doctest-modules":
			o.doctestModules = true
		case "--doctest-glob":
			o.doctestGlobs = append(o.doctestGlobs, path.Base(value))
		case "--cov":
			o.coverage = true
		case "--import-mode":
			o.importlib = value == "importlib"
		case "--doctest-continue-on-failure", "--doctest-ignore-import-errors", "--doctest-report":
		default:
			switch {
			case collectingOptions.MatchString(name) || strings.HasPrefix(name, "-o"):
				o.collects = true
			case !strings.HasPrefix(word, "-") && (i == 0 || !valuedOptions[words[i-1]]):
				file, _, _ := strings.Cut(word, "::")
				o.named = append(o.named, file)
			}
		}
	}
}

// addAll notes those of another file.
func (o *pytestOptions) addAll(other pytestOptions) {
	o.doctestModules, o.coverage = o.doctestModules || other.doctestModules, o.coverage || other.coverage
	o.importlib, o.collects = o.importlib || other.importlib, o.collects || other.collects
	o.doctestGlobs, o.named = append(o.doctestGlobs, other.doctestGlobs...), append(o.named, other.named...)
}

// testPaths are the testpaths of one file.
type testPaths struct {
	patterns []glob.Pattern
	// found: something is there. If not, pytest looks everywhere.
	found bool
}

// findSettings finds what pytest's settings, with the variables that it runs with, say about where modules and tests are.
func (s *survey) findSettings(variables []string) {
	var given pytestOptions
	for _, v := range variables {
		if text, is := strings.CutPrefix(v, "PYTEST_ADDOPTS="); is {
			given.add(listed(text))
		}
	}
	for _, p := range s.projects {
		p.patterns = []string{"test_*.py", "*_test.py"}
		p.passedBy = []string{"*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}", "site-packages"}
		var used *pytestSettings // Pytest goes by the first file alone.
		p.roots = []string{p.dir(), below(p.dir(), "src")}
		s.eachSettings(p.dir(), func(file string, one *pytestSettings) {
			dir := folderOf(file)
			if used == nil && one.hold(file) {
				used = one
				if one.passes {
					p.passedBy = slices.Clone(one.passedBy)
				}
			}
			p.patterns, p.loads = append(p.patterns, one.files...), append(p.loads, one.names...)
			p.options.addAll(one.options)
			if paths := s.testPathsIn(file, one); paths.found {
				p.testPaths = append(p.testPaths, paths.patterns...)
				p.bound = p.bound || dir == p.dir()
			}
			for _, folder := range one.folders {
				if at, ok := join(dir, folder); ok {
					p.roots = append(p.roots, at)
				}
			}
		})
		p.options.addAll(given)
		for _, list := range []*[]string{&p.patterns, &p.roots, &p.loads, &p.passedBy, &p.options.doctestGlobs, &p.options.named} {
			if *list = unique(*list); len(*list) > maxSettings {
				s.noteIncomplete("the settings of pytest for %s list more than %d files, folders or modules", p.label(), maxSettings)
				*list = (*list)[:maxSettings]
			}
		}
	}
}

// testPathsIn returns the testpaths of a file.
func (s *survey) testPathsIn(file string, settings *pytestSettings) testPaths {
	if paths, ok := s.testPaths[file]; ok {
		return paths
	}
	var paths testPaths
	for _, text := range settings.paths {
		if len(paths.patterns) == maxSettings {
			s.noteIncomplete("%s has more than %d testpaths", file, maxSettings)
			break
		}
		at := path.Clean(below(folderOf(file), text))
		if pattern, err := glob.Parse(at); err == nil {
			paths.patterns = append(paths.patterns, pattern)
		}
		paths.found = paths.found || s.folders[folderPath(at)] != nil || s.find(at) >= 0
	}
	for _, f := range s.all {
		if paths.found || len(paths.patterns) == 0 {
			break
		}
		paths.found = slices.ContainsFunc(paths.patterns, func(t glob.Pattern) bool {
			return f.path != "" && t.MatchesFolder(f.path) ||
				slices.ContainsFunc(f.files, func(i int32) bool { return t.MatchesFile(s.entries[i].Path) })
		})
	}
	s.testPaths[file] = paths
	return paths
}

// eachSettings visits all settings of pytest in a folder and those above it, with the file that has them, in the order in which pytest
// looks for one.
func (s *survey) eachSettings(dir string, visit func(file string, settings *pytestSettings)) {
	above(dir, func(dir string) {
		for _, name := range append(slices.Clone(pytestFiles), "setup.cfg") {
			if p := s.pyprojects[dir]; p != nil && name == "tox.ini" {
				visit(below(dir, pyprojectFile), &p.pytest)
			}
			if settings := s.pytests[below(dir, name)]; settings != nil {
				visit(below(dir, name), settings)
			}
		}
	})
}

// isTest reports whether a file, by its path from the root, holds tests.
func (p *project) isTest(file string) bool {
	if !strings.HasSuffix(file, ".py") {
		return false
	}
	for _, pattern := range p.patterns {
		// A pattern without a wildcard is the name's beginning.
		if !strings.ContainsAny(pattern, "*?[") {
			pattern += "*"
		}
		if matchesPath(pattern, file) {
			return true
		}
	}
	return false
}
