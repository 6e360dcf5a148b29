package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Store keeps files by their names, which are paths with slashes.
type Store interface {
	// Names returns the names of all files below a folder, which is "" or ends with a slash.
	Names(ctx context.Context, folder string) ([]string, error)
	// Get returns a file of at most mostBytes.
	Get(ctx context.Context, name string) ([]byte, error)
	// Put keeps a file. It is there as a whole or not at all, and stays there once Put has returned.
	Put(ctx context.Context, name string, file []byte) error
	// String names the store for people.
	String() string
}

// Folder is a store in a folder, of this machine or of a file server.
type Folder string

func (f Folder) String() string { return string(f) }

// newFiles begins the names of files that are being written.
const newFiles = ".new-"

// Names is of [Store].
func (f Folder) Names(ctx context.Context, folder string) ([]string, error) {
	if info, err := os.Stat(string(f)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no folder %s: make it, or mount it: %w", f, fs.ErrNotExist)
	}
	var names []string
	err := filepath.WalkDir(filepath.Join(string(f), filepath.FromSlash(folder)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), newFiles) {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(string(f), path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// Get is of [Store].
func (f Folder) Get(_ context.Context, name string) ([]byte, error) {
	file, err := os.Open(filepath.Join(string(f), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readBounded(file, name)
}

func readBounded(r io.Reader, name string) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err == nil && len(content) > mostBytes {
		err = fmt.Errorf("%w: %s is larger than any segment", ErrDamaged, name)
	}
	return content, err
}

// Put is of [Store].
func (f Folder) Put(_ context.Context, name string, content []byte) (err error) {
	if info, err := os.Stat(string(f)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s: make it, or mount it", f)
	}
	path := filepath.Join(string(f), filepath.FromSlash(name))
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, newFiles)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	// Services that read it may be of other users, in one group.
	if err = file.Chmod(0o640); err != nil {
		return err
	}
	if _, err = file.Write(content); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if err = syncFolder(at); err != nil || at == filepath.Clean(string(f)) {
			return err
		}
	}
}

// syncFolder makes what was renamed into a folder outlive the machine's crash.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
