package gograph

import (
	"strings"

	"landfall.build/engine/targets"
)

// maxLinkHops is how many symbolic links one path may lead through, as on Linux.
const maxLinkHops = 40

// links are the texts of a tree's symbolic links, by entry.
type links map[int32]string

// way is where a path leads.
type way struct {
	// end is where it ends, which need not exist.
	end string
	// via are the links that it leads through.
	via []int32
	// passed are the paths that are no links: one that is not there can become one.
	passed []string
	// ok is false for a loop and for a path that leaves the repository.
	ok bool
}

// follow walks a path as a file system does.
func (s *snapshot) follow(file string, all links) way {
	if len(all) == 0 {
		return way{end: file, ok: true}
	}
	var w way
	at, rest := "", file
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := below(at, name)
		i := s.find(next)
		text, isLink := all[i]
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

// eachOnPath yields the nodes that decide where a path leads. It is only asked about
// paths that lead through links: for others, what they rest on is known otherwise.
func (a *assembler) eachOnPath(w way, add func(targets.Node)) {
	for _, link := range w.via {
		add(a.files[link])
	}
	for _, path := range w.passed {
		add(a.builder.Ref(targets.KindFile, path))
	}
}

// addPlace makes a node depend on no symbolic link or submodule standing on the
// way to a folder. It does not ask whether the folder is there: two changes can
// make and unmake that together.
func (a *assembler) addPlace(from targets.Node, dir string) {
	for at := dir; at != ""; at = folderOf(at) {
		a.edge(from, a.builder.Ref(targets.KindFile, at))
	}
}

// moduleAt returns the module that a folder holds itself, or nil.
func (s *snapshot) moduleAt(dir string) *repoModule {
	if f := s.folders[dir]; f != nil && f.module != nil && f.module.folder == f {
		return f.module
	}
	return nil
}

// linkedFolder names what an unresolved folder is, if it leads through symbolic
// links: which module stands there is then not examined into.
func (s *survey) linkedFolder(file, what, dir string) {
	if s.folders[dir] != nil {
		return
	}
	if w := s.follow(dir, s.links); len(w.via) > 0 {
		s.noteIncomplete("%s: %s %s leads through a symbolic link", file, what, dir)
	}
}

// linkedVendor names the links by which a vendor folder, or something below it, is another folder: which packages
// stand there is not examined into. Nor is modules.txt behind one.
func (s *survey) linkedVendor(dir string) {
	vendor := below(dir, "vendor")
	for i := range s.links {
		at := s.entries[i].Path
		if at != vendor && !strings.HasPrefix(at, vendor+"/") {
			continue
		}
		if at == below(vendor, "modules.txt") {
			s.noteIncomplete("%s is a symbolic link; put the file there", at)
		} else if w := s.follow(at, s.links); !w.ok || s.find(w.end) < 0 {
			s.noteIncomplete("%s: it leads to a folder, and the go command finds no vendored packages behind links", at)
		}
	}
}
