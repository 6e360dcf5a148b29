package nodegraph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"path"
	"slices"
	"strings"
)

// lock is what a lock file pins.
type lock struct {
	format lockFormat
	// problem is why the package manager refuses the file; empty for a good one.
	problem string
	line    int
	// settings is what holds for the whole file, in a normal form.
	settings []byte
	entries  map[string]*lockEntry
	// named are the keys of the entries of each package name, in order.
	named map[string][]string
	// archives: it may pin files of the repository.
	archives bool
	// patches are files of the project that change what is installed.
	patches []string
	// importers are the entries that pnpm gives each member, by its folder and then by name.
	importers map[string]map[string]string
}

// lockFormat is what decides how a dependency leads to an entry.
type lockFormat uint8

const (
	// unknownLock: what reaches what is not known, so all of the file matters to everything.
	unknownLock lockFormat = iota
	// npmLock is package-lock.json from version 2 on: entries are by the folder that they are installed in.
	npmLock
	// pnpmLock is pnpm-lock.yaml from version 5.4 on: entries are by name and version, importers name theirs.
	pnpmLock
	// yarnLock is yarn.lock: entries are by name and wanted range.
	yarnLock
)

// lockEntry is one external package, or a link to a folder of the repository.
type lockEntry struct {
	content [sha256.Size]byte
	// deps are the keys of the entries that it reaches.
	deps []string
	// unresolved are names for which the file has no entry: peers that nobody installed, or members.
	unresolved []string
	// folders are folders of the repository that it leads to, relative to the project's.
	folders []string
}

func newLock(format lockFormat) *lock {
	return &lock{format: format, entries: map[string]*lockEntry{}, named: map[string][]string{}}
}

// add notes an entry of that name. What stands under the key already stays: the file is then odd, and its text decides.
func (l *lock) add(key, name string, e *lockEntry) {
	if l.entries[key] != nil {
		return
	}
	l.entries[key] = e
	l.named[name] = append(l.named[name], key)
}

// seal brings a lock that is complete into its normal form.
func (l *lock) seal() *lock {
	for _, keys := range l.named {
		slices.Sort(keys)
	}
	for _, e := range l.entries {
		slices.Sort(e.deps)
		e.deps = slices.Compact(e.deps)
		slices.Sort(e.unresolved)
		e.unresolved = slices.Compact(e.unresolved)
	}
	return l
}

// resolution is where a dependency of a package leads.
type resolution struct {
	// keys are the entries, there or not: what would be found before others comes first.
	keys []string
	// byName: no entry is certain, so all of the name are.
	byName bool
	folder string
}

// find returns where a dependency leads that the package in a folder, relative to the project's, has. An empty range is
// that of a package that is imported and not declared.
func (l *lock) find(dir string, r requirement) resolution {
	switch l.format {
	case npmLock:
		return resolution{keys: l.upwards(dir, r.name)}
	case pnpmLock:
		version, ok := l.importers[dot(dir)][r.name]
		if !ok {
			return resolution{byName: true}
		}
		if folder, ok := strings.CutPrefix(version, "link:"); ok {
			return resolution{folder: path.Join(dir, folder)}
		}
		if key := l.pnpmKey(r.name, version); key != "" {
			return resolution{keys: []string{key}}
		}
		return resolution{byName: true}
	}
	keys := yarnKeys(r.name, r.wanted)
	if r.wanted != "" && slices.ContainsFunc(keys, func(key string) bool { return l.entries[key] != nil }) {
		return resolution{keys: append(keys, l.patched(r.name)...)}
	}
	return resolution{byName: true, keys: keys}
}

// upwards returns the keys under which a package is looked for from a folder up, to the first that is there.
func (l *lock) upwards(dir, name string) []string {
	var keys []string
	for {
		if nameOf(dir) != "node_modules" {
			key := below(below(dir, "node_modules"), name)
			keys = append(keys, key)
			if l.entries[key] != nil || dir == "" {
				return keys
			}
		}
		dir = folderOf(dir)
	}
}

// patched returns the entries of a package that yarn takes in place of those that ranges name.
func (l *lock) patched(name string) []string {
	var keys []string
	for _, key := range l.named[name] {
		if strings.HasPrefix(key, name+"@patch:") {
			keys = append(keys, key)
		}
	}
	return keys
}

// readLocks reads the lock files of all projects.
func (l *loading) readLocks(ctx context.Context, s *survey) error {
	for _, p := range s.projects {
		if p.lockFile == "" {
			continue
		}
		entry := s.entries[s.find(p.lockFile)]
		if entry.Mode&modeType == modeLink || entry.Mode&modeType == modeSubmodule {
			s.noteIncomplete("%s is a symbolic link or submodule; put the file there", p.lockFile)
			continue
		}
		name := nameOf(p.lockFile)
		parsed, err := parseBlobs(ctx, l, &l.loader.locks, []string{name + " " + entry.Object}, maxLockBytes, func(content []byte) *lock {
			return parseLock(name, content)
		})
		if err != nil {
			return err
		}
		if p.lock = parsed[0]; p.lock == nil {
			p.lock = newLock(unknownLock)
		}
		if p.lock.problem != "" {
			s.problems.add(p.lockFile, p.lock.line, "%s", p.lock.problem)
		}
	}
	return nil
}

// parseLock reads a lock file of that name.
func parseLock(name string, content []byte) *lock {
	l := parseLockText(name, content)
	l.archives = holdsArchives(name, content)
	return l
}

// holdsArchives reports whether a lock file may pin archives that lie in the repository. What a text could mean otherwise is one.
func holdsArchives(name string, content []byte) bool {
	marks := []string{"file:", "File:", "FILE:"}
	switch name {
	case "npm-shrinkwrap.json", "package-lock.json":
		marks = append(marks, `\u`) // Nothing needs to be escaped in the names of packages and addresses.
	case "pnpm-lock.yaml":
		marks = append(marks, `\u`, `\x`)
	default:
		marks = append(marks, "@.", "@/", "@~/", `\u`, `\x`)
	}
	return slices.ContainsFunc(marks, func(mark string) bool { return bytes.Contains(content, []byte(mark)) })
}

func parseLockText(name string, content []byte) *lock {
	if line := conflictLine(content); line > 0 {
		return &lock{problem: "holds the marks of a merge that was not finished", line: line}
	}
	switch name {
	case "npm-shrinkwrap.json", "package-lock.json":
		return parseNPMLock(content)
	case "pnpm-lock.yaml":
		return parsePnpmLock(content)
	case "yarn.lock":
		if bytes.Contains(content, []byte("\n__metadata:")) || bytes.HasPrefix(content, []byte("__metadata:")) {
			return parseBerryLock(content)
		}
		return parseClassicLock(content)
	}
	return newLock(unknownLock)
}

// conflictLine returns the line of git's first mark of a conflict; 0 if there is none.
func conflictLine(content []byte) int {
	if bytes.HasPrefix(content, []byte("<<<<<<< ")) {
		return 1
	}
	if i := bytes.Index(content, []byte("\n<<<<<<< ")); i >= 0 {
		return bytes.Count(content[:i], []byte("\n")) + 2
	}
	return 0
}
