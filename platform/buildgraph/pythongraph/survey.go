package pythongraph

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

const (
	initFile      = "__init__.py"
	pyprojectFile = "pyproject.toml"
	// maxFileBytes bounds a file that defines projects, maxLockBytes a lock file.
	maxFileBytes = 4 << 20
	maxLockBytes = 64 << 20
)

// survey is what a tree's projects are.
type survey struct {
	*snapshot
	projects []*project // by folder
	// markers are the files that make projects, by folder: each by its own name.
	markers map[string][]string

	pyprojects map[string]*pyproject // by folder
	// These are by path: setup.cfg, setup.py, requirements files, lock files, settings of pytest.
	configs, scripts map[string]*setup
	requirements     map[string]*requirementsFile
	locks            map[string]*lock
	pytests          map[string]*pytestSettings
	// testPaths are by the path of the file that names them.
	testPaths map[string]testPaths

	links      map[int32]string // texts of symbolic links, by entry
	examples   map[int32]bool   // texts that pytest makes tests of, by entry
	facts      []*facts         // by entry; nil: no Python file
	incomplete []string
	problems   problems
}

// project is a folder with a distribution, or with what is installed together.
type project struct {
	index  int
	folder *folder
	// name is the first of names, which are those that its files give, or that of its folder.
	name  string
	names []string
	py    *pyproject // nil: none
	// needs are what it needs where it is used, develops what only work on it needs. Paths are relative to the root.
	needs, develops []requirement
	// uses are the projects of the repository that it needs, usesAll those that work on it needs too.
	uses, usesAll []*project
	// lock is the path of the lock file that holds for it, empty for none.
	lock    string
	kind    projectKind
	native  bool
	plugins []string
	// roots are folders in which its modules are looked for whatever stands in them.
	roots []string
	// patterns are those of the names of its test files.
	patterns []string
	// testPaths are patterns of files and folders with tests. bound: some stand in the project's own folder, so there are no others
	// where pytest is started there. passedBy are patterns of names of folders without.
	testPaths []glob.Pattern
	bound     bool
	passedBy  []string
	// loads are modules that the settings of pytest name.
	loads []string
	// options are what the settings of pytest have in addopts.
	options pytestOptions
	// collects: its tests are not those of modules alone, so that all of them are one target.
	collects bool
	// reach are the projects that its modules can import, itself among them.
	reach []bool
}

// projectKind is what runs the steps of a project.
type projectKind uint8

const (
	plainProject projectKind = iota
	uvProject
	poetryProject
)

// dir is the project's folder.
func (p *project) dir() string { return p.folder.path }

// fixtureNames are folders in and below which a file that makes a project is data of a test.
var fixtureNames = map[string]bool{
	"tests": true, "test": true, "testing": true, "testdata": true, "test_data": true, "fixtures": true,
	"node_modules": true, "site-packages": true, ".venv": true, "venv": true, ".tox": true, ".nox": true,
}

// searched reports whether projects are looked for in a folder.
func (l *loading) searched(dir string) bool {
	for _, ignored := range l.loader.options.IgnoreFolders {
		if within(dir, ignored) {
			return false
		}
	}
	for name := range strings.SplitSeq(dir, "/") {
		if fixtureNames[name] {
			return false
		}
	}
	return true
}

// survey reads what defines projects.
func (l *loading) survey(ctx context.Context) (*survey, error) {
	s := &survey{snapshot: newSnapshot(l.entries), markers: map[string][]string{}, testPaths: map[string]testPaths{}}
	if err := l.readDefinitions(ctx, s); err != nil {
		return nil, err
	}
	s.findProjects()
	if len(s.projects) == 0 && len(s.problems) == 0 {
		return nil, ErrNoProject
	}
	for _, find := range []func(){s.findNeeds, s.findLocks, func() { s.findSettings(l.loader.options.Env) }, s.findUses} {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		find()
	}
	if err := s.problems.invalid(); err != nil {
		return nil, err
	}
	if err := l.readTexts(ctx, s); err != nil {
		return nil, err
	}
	return s, l.readFacts(ctx, s)
}

// readDefinitions reads all files that define projects, and the symbolic links.
func (l *loading) readDefinitions(ctx context.Context, s *survey) error {
	var err error
	read := func(failed error) {
		if err == nil {
			err = failed
		}
	}
	known := l.loader
	pyprojects, failed := readKind(ctx, l, s, &known.pyprojects, maxFileBytes, l.definitions(s, named(pyprojectFile)), parsePyproject)
	read(failed)
	s.pyprojects = map[string]*pyproject{}
	for file, p := range pyprojects {
		if p.problem != nil {
			s.problems.add(file, p.line, "%v", p.problem)
		}
		s.pyprojects[folderOf(file)] = p
	}
	s.configs, failed = readKind(ctx, l, s, &known.setupConfigs, maxFileBytes, l.definitions(s, named("setup.cfg")), parseSetupConfig)
	read(failed)
	s.scripts, failed = readKind(ctx, l, s, &known.setupScripts, maxFileBytes, l.definitions(s, named("setup.py")), parseSetupScript)
	read(failed)
	s.requirements, failed = readKind(ctx, l, s, &known.requirements, maxFileBytes, l.definitions(s, isRequirements), parseRequirements)
	read(failed)
	s.locks, failed = readKind(ctx, l, s, &known.locks, maxLockBytes, l.definitions(s, isLock), parseLock)
	read(failed)
	for file, k := range s.locks {
		if k.problem != nil {
			s.problems.add(file, k.line, "%v", k.problem)
		}
	}
	var settings, links []int32
	for i := range s.entries {
		if name := nameOf(s.entries[i].Path); slices.Contains(pytestFiles, name) || name == "setup.cfg" {
			settings = append(settings, int32(i))
		}
		if s.isLink(int32(i)) {
			links = append(links, int32(i))
		}
	}
	s.pytests, failed = readKind(ctx, l, s, &known.pytests, maxFileBytes, settings, parsePytest)
	read(failed)
	read(l.readLinks(ctx, s, links))
	return err
}

// named returns a test for files of one name.
func named(name string) func(string) bool {
	return func(file string) bool { return nameOf(file) == name }
}

// definitions returns the entries with such names where projects are looked for.
func (l *loading) definitions(s *survey, is func(file string) bool) []int32 {
	var found []int32
	for _, f := range s.all {
		for _, i := range f.files {
			if is(s.entries[i].Path) && l.searched(f.path) {
				found = append(found, i)
			}
		}
	}
	return found
}

// readKind returns what files mean, by path.
func readKind[V any](ctx context.Context, l *loading, s *survey, m *memo[V], max int64, files []int32, parse func([]byte) *V) (map[string]*V, error) {
	var objects, paths []string
	for _, i := range files {
		e := &s.entries[i]
		if !s.isFile(i) {
			s.noteIncomplete("%s is a symbolic link or a submodule; put the file there", e.Path)
			continue
		}
		l.read[e.Path] = true
		objects, paths = append(objects, e.Object), append(paths, e.Path)
	}
	values, err := parseBlobs(ctx, l, m, objects, max, func(content []byte) (*V, int64) {
		return parse(content), int64(len(content))*3 + 500
	})
	found := make(map[string]*V, len(values))
	for i, v := range values {
		if v == nil && err == nil {
			s.noteIncomplete("%s is larger than %d MiB", paths[i], max>>20)
		} else if v != nil {
			found[paths[i]] = v
		}
	}
	return found, err
}

// readLinks reads what symbolic links say.
func (l *loading) readLinks(ctx context.Context, s *survey, links []int32) error {
	objects := make([]string, len(links))
	for i, at := range links {
		objects[i] = s.entries[at].Object
		l.read[s.entries[at].Path] = true
	}
	texts, err := parseBlobs(ctx, l, &l.loader.linkTexts, objects, 4096, func(content []byte) (*string, int64) {
		text := string(content)
		return &text, int64(len(text)) + 100
	})
	s.links = make(map[int32]string, len(links))
	for i, text := range texts {
		if text != nil {
			s.links[links[i]] = *text
		}
	}
	return err
}

// readTexts reads the texts that pytest makes tests of unless it is told of others, as far as they have examples.
func (l *loading) readTexts(ctx context.Context, s *survey) error {
	var objects []string
	var files []int32
	for i := range s.entries {
		e := &s.entries[i]
		if ok, _ := path.Match("test*.txt", nameOf(e.Path)); !ok || !s.isFile(int32(i)) || s.requirements[e.Path] != nil {
			continue
		}
		l.read[e.Path] = true
		objects, files = append(objects, e.Object), append(files, int32(i))
	}
	found, err := parseBlobs(ctx, l, &l.loader.texts, objects, maxFileBytes, func(content []byte) (*bool, int64) {
		has := bytes.Contains(content, []byte(">>>"))
		return &has, 100
	})
	s.examples = map[int32]bool{}
	for i, has := range found {
		s.examples[files[i]] = has == nil || *has
	}
	return err
}

// readFacts reads what the Python files of projects say.
func (l *loading) readFacts(ctx context.Context, s *survey) error {
	var objects []string
	var files []int32
	for i := range s.entries {
		if e := &s.entries[i]; strings.HasSuffix(e.Path, ".py") && s.isFile(int32(i)) {
			objects, files = append(objects, e.Object), append(files, int32(i))
		}
	}
	found, err := l.factsOf(ctx, objects)
	s.facts = make([]*facts, len(s.entries))
	for i, f := range found {
		s.facts[files[i]] = f
	}
	return err
}

// factsOf returns what Python files say.
func (l *loading) factsOf(ctx context.Context, objects []string) ([]*facts, error) {
	found, err := parseBlobs(ctx, l, &l.loader.facts, objects, maxPythonBytes, func(content []byte) (*facts, int64) {
		if len(content) > largeBytes {
			l.loader.large.Lock()
			defer l.loader.large.Unlock()
		}
		f := parseFacts(content)
		return f, f.weight()
	})
	for i, f := range found {
		if f == nil {
			found[i] = &facts{unread: true}
		}
	}
	return found, err
}

// maxReasons bounds how many reasons a graph gives for being incomplete.
const maxReasons = 20

func (s *survey) noteIncomplete(format string, args ...any) {
	reason := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	if len(s.incomplete) < maxReasons && !slices.Contains(s.incomplete, reason) {
		s.incomplete = append(s.incomplete, reason)
	}
}
