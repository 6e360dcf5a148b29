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
		}
	}
}

// testPaths are the testpaths of one file.
type testPaths struct {
	patterns []glob.Pattern
	// found: something is there. If not, pytest looks everywhere.
	found bool
}

// findSettings finds what pytest's settings say about where modules and tests are.
func (s *survey) findSettings() {
	for _, p := range s.projects {
		p.patterns = []string{"test_*.py", "*_test.py"}
		p.passedBy = []string{"*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}", "site-packages"}
		p.roots = []string{p.dir(), below(p.dir(), "src")}
		s.eachSettings(p.dir(), func(file string, one *pytestSettings) {
			dir := folderOf(file)
			p.patterns, p.loads, p.passedBy = append(p.patterns, one.files...), append(p.loads, one.names...), append(p.passedBy, one.passedBy...)
			p.options.doctestModules = p.options.doctestModules || one.options.doctestModules
			p.options.coverage = p.options.coverage || one.options.coverage
			p.options.importlib = p.options.importlib || one.options.importlib
			p.options.doctestGlobs = append(p.options.doctestGlobs, one.options.doctestGlobs...)
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
		for _, list := range []*[]string{&p.patterns, &p.roots, &p.loads, &p.passedBy, &p.options.doctestGlobs} {
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

// eachSettings visits all settings of pytest in a folder and those above it, with the file that has them.
func (s *survey) eachSettings(dir string, visit func(file string, settings *pytestSettings)) {
	above(dir, func(dir string) {
		if p := s.pyprojects[dir]; p != nil {
			visit(below(dir, pyprojectFile), &p.pytest)
		}
		for _, name := range append(slices.Clone(pytestFiles), "setup.cfg") {
			if settings := s.pytests[below(dir, name)]; settings != nil {
				visit(below(dir, name), settings)
			}
		}
	})
}

// isTest reports whether a file of that name holds tests.
func (p *project) isTest(name string) bool {
	for _, pattern := range p.patterns {
		// A pattern without a wildcard is the name's beginning.
		if !strings.ContainsAny(pattern, "*?[") {
			pattern += "*"
		}
		if ok, err := path.Match(pattern, name); ok && err == nil && strings.HasSuffix(name, ".py") {
			return true
		}
	}
	return false
}
