package manifest

import "errors"

// errTooMuch stops a load whose globs look at more names than any real
// repository needs.
var errTooMuch = errors.New("globs look at too many names")

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

// walk visits everything that a pattern selects and looks at.
func (w *walker) walk(p *pattern) error {
	dir := ""
	for i, seg := range p.segments {
		switch last := i == len(p.segments)-1; {
		case !seg.any && !seg.meta && last:
			path := join(dir, seg.text)
			w.file(path)
			// A folder of that name would be a mistake (checkSources), so its
			// appearance counts too.
			w.listing(allBelow(path))
			return nil
		case !seg.any && !seg.meta:
			dir = join(dir, seg.text)
		case last && !seg.any:
			w.listing(filesIn(dir))
			return w.search(p, dir, 1<<i)
		default:
			w.listing(allBelow(dir))
			return w.search(p, dir, p.close(1<<i))
		}
	}
	return nil
}

// search visits the files in and below a folder that fit.
func (w *walker) search(p *pattern, dir string, s states) error {
	folder := w.snapshot.folders[dir]
	if folder == nil {
		return nil
	}
	w.work += 1 + len(p.segments) + len(folder.files) + len(folder.subs)*len(p.segments)
	if w.work > maxGlobWork {
		return errTooMuch
	}
	for _, name := range folder.files {
		if p.accepts(s, name) {
			w.file(join(dir, name))
		}
	}
	for _, name := range folder.subs {
		if next := p.enter(s, name); next != 0 {
			if err := w.search(p, join(dir, name), next); err != nil {
				return err
			}
		}
	}
	return nil
}
