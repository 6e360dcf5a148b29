package gograph

import (
	"path"
	"slices"
	"strings"
)

// pattern is a pattern cut at its slashes.
type pattern []string

// parsePattern gives nil for a pattern that cannot select anything.
func parsePattern(text string) pattern {
	if text == "" || text == "." || path.Clean(text) != text || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "../") || text == ".." {
		return nil
	}
	p := strings.Split(text, "/")
	for _, segment := range p {
		if _, err := path.Match(segment, ""); err != nil {
			return nil
		}
	}
	return p
}

func hasMeta(segment string) bool { return strings.ContainsAny(segment, `*?[\`) }

// matches tells whether a path of names fits. ** at the end takes in what it
// stands below as well.
func (p pattern) matches(names []string) bool {
	for len(p) > 0 {
		if p[0] == "**" {
			if len(p) == 1 {
				return true
			}
			for i := range len(names) + 1 {
				if p[1:].matches(names[i:]) {
					return true
				}
			}
			return false
		}
		if len(names) == 0 {
			return false
		}
		if ok, _ := path.Match(p[0], names[0]); !ok {
			return false
		}
		p, names = p[1:], names[1:]
	}
	return len(names) == 0
}

// input is Input, with its patterns parsed.
type input struct{ folders, files []pattern }

func inputsOf(o Options) []input {
	var inputs []input
	for _, given := range o.Inputs {
		var one input
		for _, text := range given.Folders {
			one.folders = append(one.folders, parsePattern(text))
		}
		for _, text := range given.Files {
			one.files = append(one.files, parsePattern(text))
		}
		inputs = append(inputs, one)
	}
	return inputs
}

// forFolder tells whether the targets of a folder depend on the input.
func (in input) forFolder(dir string) bool {
	var names []string
	if dir != "" {
		names = strings.Split(dir, "/")
	}
	return slices.ContainsFunc(in.folders, func(p pattern) bool { return p != nil && p.matches(names) })
}

// matcher finds what patterns select and what the answer rests on, which are
// sets of files alone: a folder is there because of any file in it, so two
// changes can each leave it alone and together make it vanish.
type matcher struct {
	s    *survey
	work int
	// file is called for each file that is selected.
	file func(i int32)
	// looked is called for what was looked at: a path that may be there or not, and
	// the names in and below it.
	looked func(path string, isFile bool)
	// all: in folders that are selected, names that begin with . or _ count too.
	all bool
}

// walk selects by a pattern that starts in a folder.
func (m *matcher) walk(dir string, p pattern) {
	if p == nil {
		return
	}
	for len(p) > 0 && !hasMeta(p[0]) {
		dir, p = below(dir, p[0]), p[1:]
	}
	m.looked(dir, len(p) == 0)
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
func (m *matcher) search(f *folder, p pattern) {
	if f == nil || m.work > maxMatchWork {
		return
	}
	m.work += len(f.files) + len(f.subs) + 1
	segment, rest := p[0], p[1:]
	if segment == "**" {
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
		if ok, _ := path.Match(segment, m.s.name(f, i)); ok && len(rest) == 0 {
			m.file(i)
		}
	}
	for _, sub := range f.subs {
		switch ok, _ := path.Match(segment, nameOf(sub.path)); {
		case !ok:
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
