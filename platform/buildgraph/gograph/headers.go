package gograph

import (
	"context"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// headers finds what the C code of one package needs: it follows each name that a file includes to the files that it can
// mean, and these to what they include, wherever that leads. Which of several the compiler takes is not asked.
type headers struct {
	survey *survey
	pkg    *pkg
	// bases are the folders that names are examined for in, besides that of the file that has them.
	bases []string
	// area holds the folders that the package has everything of, in and below.
	area map[string]bool
	// examined are the paths that were examined for, named the names that were examined for in the bases.
	examined, named map[string]bool
	// next are files that were found and not yet examined into.
	next []header
}

// header is a file with the folder from which its own includes start.
type header struct {
	dir string
	source
	// included: another file has its name.
	included bool
}

// followHeaders finds what the C code of packages needs, round by round, so that files are read in few goes.
func (l *loading) followHeaders(ctx context.Context, s *survey, packages []*pkg) error {
	var active []*headers
	for _, p := range packages {
		if p.native {
			active = append(active, s.headersOf(p, &l.loader.cgoFlags))
		}
	}
	for len(active) > 0 {
		if err := l.readHeaders(ctx, s, active); err != nil {
			return err
		}
		rest := active[:0]
		for _, h := range active {
			if h.round(); len(h.next) > 0 {
				rest = append(rest, h)
			}
		}
		if active = rest; s.headerWork > maxHeaderWork {
			s.noteIncomplete("C code includes files from more places than are followed")
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// headersOf starts at the files of a package, whose facts are known. flags are those of the environment.
func (s *survey) headersOf(p *pkg, flags *facts) *headers {
	h := &headers{
		survey: s, pkg: p, bases: []string{p.folder.path}, area: map[string]bool{p.folder.path: true}, examined: map[string]bool{}, named: map[string]bool{},
	}
	h.takeFlags(flags)
	for _, list := range [][]source{p.sources, p.tests} {
		for _, one := range list {
			if one.facts != nil {
				h.takeFlags(one.facts)
				h.next = append(h.next, header{p.folder.path, one, false})
			}
		}
	}
	return h
}

// takeFlags notes what flags name: folders to look in, libraries, files.
func (h *headers) takeFlags(f *facts) {
	for _, relative := range f.reaches {
		if reached, ok := join(h.pkg.folder.path, relative); ok && !h.examined[reached] {
			h.bases = append(h.bases, reached)
			h.visit(reached)
		}
	}
}

// readHeaders finds out what the files say that come next.
func (l *loading) readHeaders(ctx context.Context, s *survey, active []*headers) error {
	var keys []factKey
	var found []*source
	for _, h := range active {
		for i := range h.next {
			if one := &h.next[i].source; one.facts == nil {
				keys = append(keys, factKey{object: s.object(one.content), foreign: true})
				found = append(found, one)
			}
		}
	}
	all, err := l.factsOf(ctx, keys)
	if err != nil {
		return err
	}
	for i, one := range found {
		if one.facts = all[i]; one.facts.unread {
			s.noteUnread(one.content)
		}
	}
	return nil
}

// round looks for what the files name that come next.
func (h *headers) round() {
	files := h.next
	h.next = nil
	for _, file := range files {
		h.pkg.unhashed = h.pkg.unhashed || file.facts.computed || file.facts.unread || h.isHidden(file)
		for _, name := range file.facts.includes {
			h.resolve(file.dir, name)
			if h.named[name] {
				continue
			}
			h.named[name] = true
			for _, base := range h.bases {
				h.resolve(base, name)
			}
		}
	}
}

func (h *headers) resolve(dir, name string) {
	h.survey.headerWork++
	if file, ok := join(dir, name); ok && !h.examined[file] && h.survey.headerWork <= maxHeaderWork {
		h.visit(file)
	}
}

// headerSuffixes are those of files that go hashes with the package in whose folder they are, if a build takes them.
var headerSuffixes = []string{".h", ".hh", ".hpp", ".hxx"}

// isHidden reports whether go leaves out of a package's hash what that includes: all but headers of its own folder that every
// build takes.
func (h *headers) isHidden(file header) bool {
	if !file.included {
		return false
	}
	name := h.survey.entries[file.entry].Path
	base := nameOf(name)
	anywhere := platform{}.fits(base)
	return folderOf(name) != h.pkg.folder.path || classOf(base) != foreignFile || !slices.Contains(headerSuffixes, path.Ext(base)) ||
		!anywhere || file.facts.constraint != ""
}

// visit notes a path, there or not, and has it read if it is a file.
func (h *headers) visit(file string) {
	h.survey.headerWork += newPathWork
	h.examined[file] = true
	h.place(file)
	w := h.survey.follow(file, h.survey.links)
	if !w.ok {
		return
	}
	end := w.end
	if len(w.via) > 0 {
		h.place(end)
		h.pkg.unhashed = true
	}
	entry := h.survey.find(end)
	if entry < 0 {
		h.pkg.unhashed = h.pkg.unhashed || h.survey.folders[end] != nil && end != h.pkg.folder.path
		return
	}
	// Names that were not understood mostly mean what lies beside it, or below.
	h.place(folderOf(end))
	if entry = h.survey.resolveLinks(entry); h.survey.object(entry) == "" || isObjectCode(nameOf(h.survey.entries[entry].Path)) {
		h.pkg.unhashed = true
		return
	}
	h.survey.followed[entry] = true
	h.next = append(h.next, header{folderOf(end), source{entry: entry, content: entry}, true})
}

// What a path counts that was not examined for yet, and one that is not in the package's area: so much more time and
// memory they take than a name.
const (
	newPathWork = 10
	placeWork   = 100
)

// isObjectCode reports whether a file's name shows that it includes nothing: libraries are of any size.
func isObjectCode(name string) bool {
	switch path.Ext(name) {
	case ".a", ".o", ".so", ".lib", ".dll", ".dylib", ".syso":
		return true
	}
	return strings.Contains(name, ".so.")
}

// place makes a path part of what the package needs, unless it is.
func (h *headers) place(file string) {
	for at := file; ; at = folderOf(at) {
		if h.area[at] {
			return
		}
		if at == "" {
			break
		}
	}
	if h.survey.folders[file] != nil {
		h.area[file] = true
	}
	h.survey.headerWork += placeWork
	h.pkg.reached = append(h.pkg.reached, file)
}

// cgoFlagsOf returns what the flags for C in a queue's environment name, in each package's folder.
func cgoFlagsOf(o Options) facts {
	var f facts
	for _, name := range []string{"CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_FFLAGS", "CGO_LDFLAGS"} {
		f.cgoFlags(o.variable(name))
	}
	f.finish()
	return f
}

// addReached makes a node depend on what a package's C code needs beyond its folder.
func (a *assembler) addReached(node targets.Node, p *pkg) {
	for _, file := range p.reached {
		a.addPath(node, file)
		if w := a.follow(file, a.links); len(w.via) > 0 {
			a.eachOnPath(w, func(on targets.Node) { a.edge(node, on) })
		}
	}
}
