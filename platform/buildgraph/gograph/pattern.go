package gograph

import (
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// input is an Input whose patterns are parsed.
type input struct{ folders, files []glob.Pattern }

func inputsOf(o Options) []input {
	var inputs []input
	for _, in := range o.Inputs {
		// Options.check has refused what is no pattern.
		folders, _ := glob.ParseAll(in.Folders)
		files, _ := glob.ParseAll(in.Files)
		inputs = append(inputs, input{folders, files})
	}
	return inputs
}

// holdsFor reports whether the targets of a folder depend on the input.
func (in input) holdsFor(dir string) bool {
	return slices.ContainsFunc(in.folders, func(p glob.Pattern) bool { return p.MatchesFolder(dir) })
}

// matcher finds what patterns select and what the answer rests on, which are
// sets of files alone: a folder is there because of any file in it, so two
// changes can each leave it alone and together make it vanish.
type matcher struct {
	s    *survey
	work int
	// file is called for each file that is selected.
	file func(i int32)
	// examined is called for what decides the answer: a path that may be there or not, and
	// the names in and below it.
	examined func(path string, isFile bool)
	// all: in folders that are selected, names that begin with . or _ count too.
	all bool
}

// walk selects by a pattern that starts in a folder.
func (m *matcher) walk(dir string, p glob.Pattern) {
	if p == nil {
		return
	}
	for len(p) > 0 && p[0].Kind == glob.Literal {
		dir, p = below(dir, p[0].Text), p[1:]
	}
	m.examined(dir, len(p) == 0)
	if len(p) == 0 {
		if i := m.s.find(dir); i >= 0 {
			m.file(i)
		}
		m.below(m.s.folders[dir])
		return
	}
	m.search(m.s.folders[dir], p)
}

// search selects in a folder by a pattern that begins with a wildcard, or is
// past one.
func (m *matcher) search(f *folder, p glob.Pattern) {
	if f == nil || m.work > maxMatchWork {
		return
	}
	m.work += len(f.files) + len(f.subs) + 1
	segment, rest := p[0], p[1:]
	if segment.Kind == glob.Deep {
		if len(rest) == 0 {
			m.below(f)
			return
		}
		m.search(f, rest)
		for _, sub := range f.subs {
			m.search(sub, p)
		}
		return
	}
	for _, i := range f.files {
		if len(rest) == 0 && segment.Matches(m.s.name(f, i)) {
			m.file(i)
		}
	}
	for _, sub := range f.subs {
		switch {
		case !segment.Matches(nameOf(sub.path)):
		case len(rest) == 0:
			m.below(sub)
		default:
			m.search(sub, rest)
		}
	}
}

// below selects everything in and below a folder.
func (m *matcher) below(top *folder) {
	if top == nil {
		return
	}
	pending := []*folder{top}
	for len(pending) > 0 && m.work <= maxMatchWork {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		m.work += len(f.files) + len(f.subs) + 1
		for _, i := range f.files {
			if m.all || !isDotted(m.s.name(f, i)) {
				m.file(i)
			}
		}
		for _, sub := range f.subs {
			if m.all || !isDotted(nameOf(sub.path)) {
				pending = append(pending, sub)
			}
		}
	}
}

func isDotted(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }
