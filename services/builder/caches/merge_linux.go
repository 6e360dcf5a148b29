package caches

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// opaqueName is the attribute of a folder that hides what lies below it. Other than this and whiteouts, layers have files and
// folders only.
const opaqueName = "user.overlay.opaque"

// merge makes a folder of the files of several, the uppermost first, as overlayfs shows them with nothing below: by hard links,
// so layers must never be written to.
func merge(to string, layers []string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, layer := range layers {
		entries, err := os.ReadDir(layer)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := e.Name()
			if seen[name] {
				continue
			}
			seen[name] = true
			path := filepath.Join(to, name)
			switch {
			case isWhiteout(e):
			case e.IsDir():
				var folders []string
				if folders, err = foldersOf(name, layers[i:]); err == nil {
					err = merge(path, folders)
				}
			default:
				err = os.Link(filepath.Join(layer, name), path)
			}
			if err != nil {
				return err
			}
		}
		if isOpaque(layer) {
			break
		}
	}
	info, err := os.Lstat(layers[0])
	if err != nil {
		return err
	}
	if owner, is := info.Sys().(*syscall.Stat_t); is && os.Geteuid() == 0 {
		if err := os.Lchown(to, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return os.Chmod(to, info.Mode())
}

// foldersOf returns the folders of one name that are shown as one. The first layer has one.
func foldersOf(name string, layers []string) (folders []string, err error) {
	for _, layer := range layers {
		path := filepath.Join(layer, name)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case !info.IsDir():
			return folders, nil // it hides what lies further below
		default:
			folders = append(folders, path)
		}
		if isOpaque(layer) {
			break
		}
	}
	return folders, nil
}

// isWhiteout reports whether an entry stands for a name that is removed.
func isWhiteout(e os.DirEntry) bool {
	if e.Type()&fs.ModeCharDevice == 0 {
		return false
	}
	info, err := e.Info()
	if err != nil {
		return false
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && stat.Rdev == 0
}

func isOpaque(dir string) bool {
	value := make([]byte, 1)
	n, err := unix.Lgetxattr(dir, opaqueName, value)
	return err == nil && n == 1 && value[0] == 'y'
}
