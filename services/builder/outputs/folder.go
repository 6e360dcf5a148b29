package outputs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"landfall.build/platform/retention"
)

// Folder keeps outputs in a folder of this machine. Several processes may share one, and files may be deleted at any time.
// A file's time is that of its last use.
type Folder struct {
	dir string

	mu sync.Mutex
	// grown is how many bytes were kept since the folder was last trimmed.
	grown int64
}

// OpenFolder makes the folder if it is not there.
func OpenFolder(dir string) (*Folder, error) {
	for _, part := range []string{entriesPart, filesPart, newPart} {
		if err := os.MkdirAll(filepath.Join(dir, part), 0o700); err != nil {
			return nil, fmt.Errorf("the folder of outputs: %w", err)
		}
	}
	return &Folder{dir: dir}, nil
}

// Parts of a folder. What is being written is in new, and a process that is killed leaves it there.
const (
	entriesPart = "entries"
	filesPart   = "files"
	newPart     = "new"
)

// place returns the path of an entry or a file.
func (f *Folder) place(part, name string) string { return filepath.Join(f.dir, part, name[:2], name) }

// use opens an entry or a file, and notes that it is used. The error is ErrMissing if it is not kept.
func (f *Folder) use(part, name string) (*os.File, error) {
	path := f.place(part, name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // it is deleted a little earlier
	return file, nil
}

// add keeps content of at most so many bytes, and returns its digest. If want is set, content of another digest is not kept.
func (f *Folder) add(content io.Reader, most int64, want *Digest) (Digest, error) {
	file, err := os.CreateTemp(filepath.Join(f.dir, newPart), "file-")
	if err != nil {
		return Digest{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, hash), limited(content, most))
	if err != nil {
		return Digest{}, err
	}
	got := Digest{Hash: hex.EncodeToString(hash.Sum(nil)), Size: size}
	switch {
	case want != nil && got != *want:
		return got, fmt.Errorf("%w: the content of %s is another", ErrMissing, want.Hash)
	case size > most:
		return got, errTooLarge
	}
	return got, f.install(file, f.place(filesPart, got.Hash), size)
}

// limited bounds content to one byte more than most, which shows that it is too long.
func limited(content io.Reader, most int64) io.Reader {
	if most == math.MaxInt64 {
		return content
	}
	return io.LimitReader(content, most+1)
}

var errTooLarge = errors.New("it is too large")

// install gives a file that is written its name.
func (f *Folder) install(file *os.File, path string, size int64) error {
	if err := errors.Join(file.Chmod(0o600), file.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	f.mu.Lock()
	f.grown += size
	f.mu.Unlock()
	return nil
}

// has reports whether a file is kept. It need not be what it was.
func (f *Folder) has(d Digest) bool {
	info, err := os.Lstat(f.place(filesPart, d.Hash))
	return err == nil && info.Mode().IsRegular() && info.Size() == d.Size
}

// putEntry keeps an entry, in the place of any other one of its id. The first line of its file is the digest of the rest.
func (f *Folder) putEntry(id string, e Entry) error {
	content, err := e.encode()
	if err != nil {
		return err
	}
	if len(content) > mostEntry-digestLine {
		return errTooLarge
	}
	file, err := os.CreateTemp(filepath.Join(f.dir, newPart), "entry-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := fmt.Fprintf(file, "%x\n%s", sha256.Sum256(content), content); err != nil {
		return err
	}
	return f.install(file, f.place(entriesPart, id), int64(len(content)))
}

// mostEntry bounds an entry with the line of its digest, in bytes.
const (
	mostEntry  = 64 << 20
	digestLine = 2*sha256.Size + 1
)

// entry returns the entry of a target version with these outputs.
func (f *Folder) entry(id string, outputs []string) (Entry, error) {
	file, err := f.use(entriesPart, id)
	if err != nil {
		return Entry{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, mostEntry))
	if err != nil {
		return Entry{}, err
	}
	sum, content, _ := bytes.Cut(content, []byte("\n"))
	if want := sha256.Sum256(content); string(sum) != hex.EncodeToString(want[:]) {
		return Entry{}, errors.Join(ErrMissing, f.drop(entriesPart, id))
	}
	e, err := decode(content, outputs)
	if err != nil {
		return Entry{}, errors.Join(err, f.drop(entriesPart, id))
	}
	return e, nil
}

// drop removes what is not as it was kept.
func (f *Folder) drop(part, name string) error {
	if err := os.Remove(f.place(part, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Lay copies the files of an entry into a workspace, where nothing may be in their places. The error is ErrMissing if a file is not
// kept, or not as it was kept; then some of the others may be there.
func (f *Folder) Lay(ctx context.Context, workspace string, e Entry) error {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, file := range e.Files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := filepath.FromSlash(file.Path)
		if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		if file.Link != "" {
			err = root.Symlink(filepath.FromSlash(file.Link), name)
		} else {
			err = f.layFile(root, name, file)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) layFile(root *os.Root, name string, file File) error {
	from, err := f.use(filesPart, file.Hash)
	if err != nil {
		return err
	}
	defer from.Close()
	mode := fs.FileMode(0o666)
	if file.Executable {
		mode = 0o777
	}
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer to.Close()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(from, file.Size+1))
	if err != nil {
		return err
	}
	if got := (Digest{hex.EncodeToString(hash.Sum(nil)), size}); got != file.Digest {
		return errors.Join(fmt.Errorf("%w: the content of %s is another", ErrMissing, file.Path), f.drop(filesPart, file.Hash))
	}
	return to.Close()
}

// Limits bound what a folder keeps.
type Limits struct {
	// Age is how long something is kept after its last use.
	Age time.Duration
	// Size is how many bytes all may have together. Above it what was not used for the longest time is deleted first.
	Size int64
}

// Names of the limits in the configuration.
const (
	ageSetting  = "retention.outputs.age"
	sizeSetting = "retention.outputs.size"
)

// full reports whether so much was kept since the last trim that it is time for one.
func (f *Folder) full(l Limits) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.grown > l.Size/8
}

// Trim deletes what goes beyond the limits, and returns what it has deleted and how many bytes are left.
func (f *Folder) Trim(ctx context.Context, l Limits, now time.Time) (deleted []retention.Victim, left int64, err error) {
	f.mu.Lock()
	f.grown = 0
	f.mu.Unlock()
	var items []retention.Item
	err = filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return nil // another process has trimmed it
		case err != nil:
			return err
		case d.IsDir():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		item := retention.Item{Path: path, Size: retention.SizeOf(info), Used: info.ModTime(), Age: l.Age, Setting: ageSetting}
		if filepath.Base(filepath.Dir(path)) == newPart {
			item.Age = min(l.Age, time.Hour) // whoever wrote it was killed
		}
		items, left = append(items, item), left+item.Size
		return nil
	})
	if err != nil {
		return nil, left, err
	}
	for _, v := range retention.Excess(items, l.Size, sizeSetting, now) {
		if ctx.Err() != nil {
			return deleted, left, context.Cause(ctx)
		}
		failure := os.Remove(v.Path)
		if failure == nil {
			deleted = append(deleted, v)
		} else if !errors.Is(failure, fs.ErrNotExist) {
			err = errors.Join(err, failure)
			continue
		}
		left -= v.Size
	}
	return deleted, left, err
}
