package cargograph

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/gittree"
)

// git's modes of what is not an ordinary file.
const (
	modeType      = 0o170000
	modeLink      = 0o120000
	modeSubmodule = 0o160000
)

const manifestName = "Cargo.toml"

// snapshot is a tree's entries arranged by folder.
type snapshot struct {
	entries []gittree.Entry // by path
	folders map[string]*folder
	all     []*folder // by path, each after the one above it
	links   map[int32]string
}

// folder is what stands in one folder.
type folder struct {
	path   string
	parent *folder
	subs   []*folder // by name
	files  []int32   // indexes of entries, by name
	// manifest is the entry of the folder's Cargo.toml, or -1.
	manifest int32
	// target is set for the folder of a package that is a target: its files are no other package's.
	target bool
}

// newSnapshot arranges the entries. It does not change them.
func newSnapshot(entries []gittree.Entry) *snapshot {
	byPath := func(x, y gittree.Entry) int { return strings.Compare(x.Path, y.Path) }
	isFolder := func(e gittree.Entry) bool { return e.Kind == "tree" }
	if !slices.IsSortedFunc(entries, byPath) || slices.ContainsFunc(entries, isFolder) {
		entries = slices.DeleteFunc(slices.Clone(entries), isFolder)
		slices.SortFunc(entries, byPath)
	}
	root := &folder{manifest: -1}
	s := &snapshot{entries: entries, folders: map[string]*folder{"": root}}
	last := root
	for i := range entries {
		if dir := folderOf(entries[i].Path); dir != last.path {
			last = s.make(dir)
		}
		last.files = append(last.files, int32(i))
		if nameOf(entries[i].Path) == manifestName {
			last.manifest = int32(i)
		}
	}
	// Entries come by whole path, where a-b/x stands before a/x: names of files are in order within a folder, names of
	// folders need not be. Not by recursion: a path can be of any depth.
	pending := []*folder{root}
	for len(pending) > 0 {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		s.all = append(s.all, f)
		slices.SortFunc(f.subs, func(x, y *folder) int { return strings.Compare(x.path, y.path) })
		for _, sub := range slices.Backward(f.subs) {
			pending = append(pending, sub)
		}
	}
	return s
}

func (s *snapshot) make(dir string) *folder {
	if f, ok := s.folders[dir]; ok {
		return f
	}
	above := s.make(folderOf(dir))
	f := &folder{path: dir, parent: above, manifest: -1}
	s.folders[dir] = f
	above.subs = append(above.subs, f)
	return f
}

// find returns the index of a file's entry, or -1.
func (s *snapshot) find(file string) int32 {
	f := s.folders[folderOf(file)]
	if f == nil {
		return -1
	}
	at, ok := slices.BinarySearchFunc(f.files, file, func(i int32, file string) int {
		return strings.Compare(s.entries[i].Path, file)
	})
	if !ok {
		return -1
	}
	return f.files[at]
}

// Five listings per folder. What each holds is a function of a set of files alone.
const (
	// everything has all names in and below the folder.
	everything = "**"
	// ofPackage stops at folders with a Cargo.toml: of these it has no more than that.
	ofPackage = "** of a package"
	// ofCode is ofPackage without the folders of tests, examples and benchmarks.
	ofCode = "** of its code"
	// ofFolders has the names of the folders in the folder, and of symbolic links, which can lead to some.
	ofFolders = "*/"
	// ofManifests has where in and below the folder a Cargo.toml stands.
	ofManifests = "**/" + manifestName
)

func listing(dir, which string) string { return "cargo:" + below(dir, which) }

// listings yields the names in each listing that is not empty. Those of a folder below are given by their digest.
func (s *snapshot) listings(yield func(name string, names []string)) {
	digests := make(map[*folder][3]string, len(s.all))
	kinds := [3]string{everything, ofPackage, ofManifests}
	for _, f := range slices.Backward(s.all) {
		var own, subs []string
		for _, i := range f.files {
			name := nameOf(s.entries[i].Path)
			own = append(own, name)
			if s.entries[i].Mode&modeType == modeLink {
				subs = append(subs, name)
			}
		}
		names := [3][]string{slices.Clone(own), slices.Clone(own), nil}
		code := slices.Clone(own)
		if f.manifest >= 0 {
			names[2] = append(names[2], manifestName)
		}
		for _, sub := range f.subs {
			name, digest := nameOf(sub.path)+"/", digests[sub]
			subs = append(subs, name)
			for k := range kinds {
				line := name + digest[k]
				switch {
				case k == 1 && sub.manifest >= 0:
					line = name + manifestName
				case digest[k] == "":
					continue
				}
				names[k] = append(names[k], line)
				if k == 1 && !slices.Contains(besides, nameOf(sub.path)) {
					code = append(code, line)
				}
			}
			delete(digests, sub)
		}
		var made [3]string
		for k, kind := range kinds {
			if len(names[k]) > 0 {
				yield(listing(f.path, kind), names[k])
				made[k] = digestOf(names[k])
			}
		}
		if len(code) > 0 {
			yield(listing(f.path, ofCode), code)
		}
		if len(subs) > 0 {
			yield(listing(f.path, ofFolders), subs)
		}
		digests[f] = made
	}
}

func digestOf(names []string) string {
	digest := sha256.New()
	for _, name := range names {
		// No name holds a NUL, so it separates.
		digest.Write(append([]byte(name), 0))
	}
	return fmt.Sprintf("%x", digest.Sum(nil))
}

// maxLinkHops is how many symbolic links one path may lead through, as on Linux.
const maxLinkHops = 40

// way is where a path leads.
type way struct {
	// end is where it ends, which need not exist.
	end string
	// via are the links that it leads through; passed are the paths that are no links: one that is not there can become one.
	via    []int32
	passed []string
	// ok is false for a loop and for a path that leaves the repository.
	ok bool
}

// follow walks a path as a file system does.
func (s *snapshot) follow(file string) way {
	if len(s.links) == 0 {
		return way{end: file, ok: true}
	}
	var w way
	at, rest := "", file
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := below(at, name)
		i := s.find(next)
		text, isLink := s.links[i]
		if i < 0 || !isLink {
			w.passed = append(w.passed, next)
			at = next
			continue
		}
		if w.via = append(w.via, i); len(w.via) > maxLinkHops {
			return w
		}
		target, inside := join(at, strings.TrimRight(text, "/"))
		if !inside || text == "" {
			return w
		}
		// What the link names can be behind links itself, so the walk begins again.
		at, rest = "", below(target, rest)
	}
	w.end, w.ok = at, true
	return w
}

// folderOf cuts the last name off a path; "" is the root.
func folderOf(file string) string { return file[:max(strings.LastIndexByte(file, '/'), 0)] }

func nameOf(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

// join puts a relative path below a folder and cleans it. ok is false when the result is outside the repository.
func join(dir, relative string) (_ string, ok bool) {
	if strings.HasPrefix(relative, "/") {
		return "", false
	}
	joined := path.Join(dir, relative)
	switch {
	case joined == "." || joined == "":
		return "", true
	case joined == ".." || strings.HasPrefix(joined, "../"):
		return "", false
	}
	return joined, true
}

// below joins two clean paths, each of which may be empty.
func below(dir, rest string) string {
	switch {
	case dir == "":
		return rest
	case rest == "":
		return dir
	}
	return dir + "/" + rest
}

// within reports whether a path is a folder or something below it.
func within(dir, file string) bool {
	return dir == "" || file == dir || len(file) > len(dir) && file[len(dir)] == '/' && file[:len(dir)] == dir
}

// relative returns where a path is as seen from a folder.
func relative(dir, file string) string {
	up := ""
	for !within(dir, file) {
		dir, up = folderOf(dir), up+"../"
	}
	switch {
	case file == dir:
		return up + "."
	case dir == "":
		return up + file
	}
	return up + file[len(dir)+1:]
}

// around yields a folder and those around it, the innermost first.
func around(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(dir) && dir != "" {
			dir = folderOf(dir)
		}
	}
}
