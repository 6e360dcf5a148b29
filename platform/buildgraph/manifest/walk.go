package manifest

import (
	"errors"

	"landfall.build/platform/buildgraph/glob"
)

// errTooMuch stops a load whose patterns compare more names than any real
// repository needs.
var errTooMuch = errors.New("the patterns are compared with too many names")

// walker evaluates patterns on a snapshot. What it reports must rest on sets of
// files only: a folder is there because of any file in it, so two changes can
// each leave it alone and together make it vanish.
type walker struct {
	snapshot *snapshot
	work     int

	// What a walk finds: paths of files, and names of listings that the answer
	// rests on. Both may name what does not exist: should it appear, the target
	// is another.
	file    func(path string)
	listing func(name string)
}

// walk visits everything that a pattern selects, and all that this depends on.
func (w *walker) walk(p *pattern) error {
	dir := ""
	for i, seg := range p.Pattern {
		switch last := i == len(p.Pattern)-1; {
		case seg.Kind == glob.Literal && last:
			path := join(dir, seg.Text)
			w.file(path)
			// A folder of that name would be a mistake (checkSources), so its
			// appearance counts too.
			w.listing(allBelow(path))
			return nil
		case seg.Kind == glob.Literal:
			dir = join(dir, seg.Text)
		case last && seg.Kind != glob.Deep:
			w.listing(filesIn(dir))
			return w.search(p, dir, p.From(i))
		default:
			w.listing(allBelow(dir))
			return w.search(p, dir, p.From(i))
		}
	}
	return nil
}

// search visits the files in and below a folder that fit.
func (w *walker) search(p *pattern, dir string, s glob.States) error {
	folder := w.snapshot.folders[dir]
	if folder == nil {
		return nil
	}
	w.work += 1 + len(p.Pattern) + len(folder.files) + len(folder.subs)*len(p.Pattern)
	if w.work > maxGlobWork {
		return errTooMuch
	}
	for _, name := range folder.files {
		if p.Accepts(s, name) {
			w.file(join(dir, name))
		}
	}
	for _, name := range folder.subs {
		if next := p.Enter(s, name); next != 0 {
			if err := w.search(p, join(dir, name), next); err != nil {
				return err
			}
		}
	}
	return nil
}
