package cargograph

import (
	"maps"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// findMembers lists the members of a workspace.
func (s *survey) findMembers(w *workspace) {
	seen := map[*crate]bool{}
	var add func(c *crate, byPath bool)
	add = func(c *crate, byPath bool) {
		explicit := w.manifest.workspace != nil
		if seen[c] || c != w.crate && explicit && w.excludes(c.path) || byPath && !explicit {
			return // A package without a [workspace] is alone in its own.
		}
		if c.root != w && byPath && !within(w.path, c.path) {
			return // An entry of members may still name it.
		}
		seen[c] = true
		switch {
		case c.root != w: // What it needs may be in this workspace all the same.
			w.wrong = append(w.wrong, relative(w.path, c.path)+" is in another workspace")
			w.foreign = append(w.foreign, c)
		case c.manifest.pkg != nil:
			w.members = append(w.members, c)
		}
		for _, dep := range c.deps {
			if next := s.crates[dep.dir]; dep.inFolder && next != nil {
				add(next, true)
			}
		}
	}
	add(w.crate, false)
	w.walked = nil // They are walked once more.
	if w.manifest.workspace != nil {
		for _, text := range w.manifest.workspace.members {
			for _, dir := range s.expand(w, text) {
				if c := s.crates[dir]; c != nil {
					add(c, false)
				}
			}
		}
	}
	slices.SortFunc(w.members, func(x, y *crate) int { return strings.Compare(x.path, y.path) })
}

// expand returns the folders with a Cargo.toml that an entry of members names.
func (s *survey) expand(w *workspace, text string) []string {
	dir, rest := w.path, strings.TrimSuffix(strings.TrimPrefix(text, "./"), "/")
	for strings.HasPrefix(rest, "../") && dir != "" {
		dir, rest = folderOf(dir), rest[3:]
	}
	// In cargo's patterns [!a] is what [^a] is here.
	segments, err := glob.Parse(strings.ReplaceAll(rest, "[!", "[^"))
	if !strings.ContainsAny(rest, "*?[") || err != nil {
		at, ok := join(w.path, text)
		switch {
		case !ok:
			s.noteIncomplete("%s: member %s is outside the repository", below(w.path, manifestName), text)
		case s.crates[at] == nil:
			w.wrong = append(w.wrong, "there is no member "+text)
			s.checkWay(below(w.path, manifestName), at)
		default:
			return []string{at}
		}
		return nil
	}
	var found []string
	matches := 0
	var search func(dir string, states glob.States)
	search = func(dir string, states glob.States) {
		w.walked = append(w.walked, dir)
		f := s.folders[dir]
		if f == nil {
			return
		}
		s.work += len(f.subs) + 1
		for i := range s.linksIn(f) {
			name := nameOf(s.entries[i].Path)
			if segments.Accepts(states, name) || segments.Enter(states, name) != 0 {
				s.noteIncomplete("%s: member %s leads through the symbolic link %s", below(w.path, manifestName), text, s.entries[i].Path)
			}
		}
		for _, sub := range f.subs {
			name := nameOf(sub.path)
			if segments.Accepts(states, name) {
				matches++
				if sub.manifest >= 0 {
					found = append(found, sub.path)
				} else if !w.excludes(sub.path) {
					w.wrong = append(w.wrong, "member "+relative(w.path, sub.path)+" has no "+manifestName)
					w.hollow = append(w.hollow, sub.path)
				}
			}
			if next := segments.Enter(states, name); next != 0 && s.work < maxWork {
				search(sub.path, next)
			}
		}
	}
	at := 0
	for ; at < len(segments) && segments[at].Kind == glob.Literal; at++ {
		dir = below(dir, segments[at].Text)
	}
	s.checkWay(below(w.path, manifestName), dir)
	search(dir, segments.From(at))
	if matches == 0 {
		w.wrong = append(w.wrong, "there is no member "+text)
	}
	return found
}

// linksIn yields the symbolic links of a folder.
func (s *survey) linksIn(f *folder) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		if len(s.links) == 0 {
			return
		}
		for _, i := range f.files {
			if _, is := s.links[i]; is && !yield(i) {
				return
			}
		}
	}
}

// chooseTargets decides which packages are targets and in which workspace each is.
func (s *survey) chooseTargets() {
	s.placed = map[*crate]*workspace{}
	place := func(w *workspace) {
		s.findMembers(w)
		s.workspaces = append(s.workspaces, w)
		for _, c := range w.members {
			s.placed[c] = w
		}
	}
	dirs := slices.Sorted(maps.Keys(s.crates))
	for _, dir := range dirs {
		c := s.crates[dir]
		if s.plain(dir) && c.root.crate == c && (c.manifest.workspace != nil || !s.enclosed(c)) {
			place(c.root)
		}
	}
	// What these reach by paths and is in no workspace is a target, too, though it stands within another package.
	pending := slices.Collect(maps.Keys(s.placed))
	seen := map[*crate]bool{}
	for len(pending) > 0 {
		c := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if seen[c] {
			continue
		}
		seen[c] = true
		if c.root.crate == c && s.placed[c] == nil && c.manifest.workspace == nil && s.plain(c.path) {
			place(c.root)
		}
		for _, d := range c.deps {
			if next := s.crates[d.dir]; d.inFolder && next != nil && next.manifest.pkg != nil {
				pending = append(pending, next)
			}
		}
	}
	slices.SortFunc(s.workspaces, func(x, y *workspace) int { return strings.Compare(x.path, y.path) })
	for c := range s.placed {
		c.target = true
		for f := c.parent; f != nil; f = f.parent {
			if around := s.crates[f.path]; around != nil {
				around.nests = true
			}
		}
	}
}

// enclosed reports whether a package stands in the folder of another, and no workspace leaves it out: it may as well be data
// of that one's tests.
func (s *survey) enclosed(c *crate) bool {
	inPackage := false
	for f := c.parent; f != nil; f = f.parent {
		around := s.crates[f.path]
		if around == nil {
			continue
		}
		if around.manifest.workspace != nil {
			return inPackage // Found, it would be the crate's root, had it not left the crate out.
		}
		inPackage = inPackage || around.manifest.pkg != nil
	}
	return inPackage
}
