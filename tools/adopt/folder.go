package adopt

import (
	"errors"
	"io/fs"
	"os"
)

// folder is where files are written: those of a clone are never written through a link of the repository that leads out of it.
type folder struct {
	path string
	root *os.Root // nil without a clone
}

func openFolder(clone string) (folder, error) {
	if clone == "" {
		return folder{}, nil
	}
	root, err := os.OpenRoot(clone)
	return folder{clone, root}, err
}

func (f folder) close() {
	if f.root != nil {
		f.root.Close()
	}
}

// has reports whether a file is there.
func (f folder) has(file string) (bool, error) {
	var err error
	if name, below := f.below(file); below {
		_, err = f.root.Stat(name)
	} else {
		_, err = os.Stat(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (f folder) open(file string, mode int) (*os.File, error) {
	if name, below := f.below(file); below {
		return f.root.OpenFile(name, mode, 0o644)
	}
	return os.OpenFile(file, mode, 0o644)
}

func (f folder) below(file string) (string, bool) {
	if f.root == nil {
		return "", false
	}
	return relativeTo(f.path, file)
}
