package manifest

import "errors"

// errTooMuch stops a load whose globs look at more names than any real
// repository needs.
var errTooMuch = errors.New("globs look at too many names")

// walker evaluates patterns on a snapshot.
type walker struct {
	snapshot *snapshot
	work     int

	// What a walk finds: paths of files and names of listings. Files and
	// listings that do not exist are among them where the pattern looks for
	// them: should they appear, the target is another.
	file    func(path string)
	listing func(name string)
}

// walk visits everything that a pattern selects or looks at.
func (w *walker) walk(p *pattern) error { return w.folder(p, "", p.start()) }

func (w *walker) folder(p *pattern, dir string, s states) error {
	names := w.snapshot.folders[dir]
	if names == nil {
		names = &folder{}
	}
	if w.work += 1 + len(p.segments); w.work > maxGlobWork {
		return errTooMuch
	}
	last := len(p.segments) - 1
	search := false
	for i, seg := range p.segments {
		switch {
		case s&(1<<i) == 0:
		case i == last && !seg.any && !seg.meta:
			w.file(join(dir, seg.text))
		case i == last:
			if err := w.selectFiles(p, dir, s, names); err != nil {
				return err
			}
			search = search || seg.any
		default:
			search = search || seg.any || seg.meta
		}
	}
	if search {
		return w.searchFolders(p, dir, s, names)
	}
	// Without a wildcard the way leads through folders by name, there or not.
	for i, seg := range p.segments[:last] {
		if s&(1<<i) != 0 {
			return w.folder(p, join(dir, seg.text), p.enter(s, seg.text))
		}
	}
	return nil
}

// searchFolders enters the folders that fit. Those that do not exist need no
// visit: when one appears, the listing changes.
func (w *walker) searchFolders(p *pattern, dir string, s states, names *folder) error {
	w.listing(subsListing(dir))
	w.work += len(names.subs) * len(p.segments)
	for _, name := range names.subs {
		if next := p.enter(s, name); next != 0 {
			if err := w.folder(p, join(dir, name), next); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectFiles visits the folder's files that fit a pattern's last segment.
func (w *walker) selectFiles(p *pattern, dir string, s states, names *folder) error {
	w.listing(filesListing(dir))
	if w.work += len(names.files); w.work > maxGlobWork {
		return errTooMuch
	}
	for _, name := range names.files {
		if p.accepts(s, name) {
			w.file(join(dir, name))
		}
	}
	return nil
}
