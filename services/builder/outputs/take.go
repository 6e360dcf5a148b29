package outputs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"landfall.build/platform/folders"
)

// Fault is what is wrong with what a step has left at an output, for its author: a clause that ends a sentence.
type Fault struct{ Output, Message string }

// Error returns the message.
func (f *Fault) Error() string { return f.Message }

func faulty(output, format string, arguments ...any) error {
	return &Fault{output, fmt.Sprintf(format, arguments...)}
}

func tooManyNames(output string) error {
	return faulty(output, "left outputs whose files have names of more than %d MiB together", mostEntry>>20)
}

// Keep keeps the outputs of a target version that are in a workspace, in which nothing runs any more. The error is a *Fault if they
// may not be kept; any other one is this machine's.
func (f *Folder) Keep(ctx context.Context, id, workspace string, outputs []string, b Bounds) (Entry, error) {
	if b.Each == 0 {
		b.Each = math.MaxInt64
	}
	if b.Total == 0 {
		b.Total = math.MaxInt64
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return Entry{}, err
	}
	defer root.Close()
	t := &taking{folder: f, root: root, files: folders.Bounded(root, mostEntry), outputs: outputs, bounds: b}
	for _, output := range outputs {
		if err := t.take(ctx, output); err != nil {
			return Entry{}, err
		}
	}
	slices.SortFunc(t.entry.Files, func(x, y File) int { return strings.Compare(x.Path, y.Path) })
	if err := t.checkLinks(); err != nil {
		return Entry{}, err
	}
	err = f.putEntry(id, t.entry)
	if errors.Is(err, errTooLarge) {
		return Entry{}, tooManyNames(outputs[0])
	}
	return t.entry, err
}

// taking keeps the outputs in one workspace.
type taking struct {
	folder *Folder
	root   *os.Root
	// files are those of root, whose names are bounded.
	files   fs.FS
	outputs []string
	bounds  Bounds
	entry   Entry
	total   int64
	visited int
}

// take keeps one output: a file, or a folder with all below it.
func (t *taking) take(ctx context.Context, output string) error {
	for above := path.Dir(output); above != "."; above = path.Dir(above) {
		if info, err := t.root.Lstat(filepath.FromSlash(above)); err == nil && !info.IsDir() {
			return faulty(output, "left %s below %s, which is no folder but %s", output, above, kindOf(info.Mode()))
		}
	}
	info, err := t.root.Lstat(filepath.FromSlash(output))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return faulty(output, "did not leave %s", output)
	case err == nil && info.Mode()&fs.ModeSymlink != 0: // the walk would follow it
		link, err := t.file(output, fs.FileInfoToDirEntry(info), 0)
		if err == nil {
			t.entry.Files = append(t.entry.Files, link) // it leads to itself: checkLinks refuses it
		}
		return err
	}
	size, files := int64(0), 0
	err = fs.WalkDir(t.files, output, func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if t.visited++; t.visited > mostVisited || len(t.entry.Files) >= mostFiles {
			return faulty(output, "left more than %d files in its outputs", mostFiles)
		}
		switch {
		case errors.Is(err, folders.ErrTooMany):
			return tooManyNames(output)
		case errors.Is(err, fs.ErrPermission):
			return faulty(output, "left %s unreadable", name)
		case err != nil:
			return err
		case !utf8.ValidString(name):
			return faulty(output, "left %q, whose name is no UTF-8", name)
		case entry.IsDir() && strings.Count(name, "/") >= mostDeep:
			return faulty(output, "left folders nested deeper than %d", mostDeep)
		case entry.IsDir():
			return nil
		}
		one, err := t.file(name, entry, min(t.bounds.Each-size, t.bounds.Total-t.total))
		if errors.Is(err, errTooLarge) {
			if t.bounds.Each-size <= t.bounds.Total-t.total {
				return faulty(output, "left more than %s in %s (steps.outputs.max_size)", shown(t.bounds.Each), output)
			}
			return faulty(output, "left more than %s in its outputs (steps.outputs.max_total)", shown(t.bounds.Total))
		}
		if err != nil {
			return err
		}
		size, t.total, files = size+one.Size, t.total+one.Size, files+1
		t.entry.Files = append(t.entry.Files, one)
		return nil
	})
	if err == nil && files == 0 {
		return faulty(output, "left no file in %s", output)
	}
	return err
}

// file keeps one file or link.
func (t *taking) file(name string, entry fs.DirEntry, most int64) (File, error) {
	local, output := filepath.FromSlash(name), outputOf(name, t.outputs)
	switch {
	case entry.Type() == fs.ModeSymlink:
		link, err := t.root.Readlink(local)
		if err != nil {
			return File{}, err
		}
		one := File{Path: name, Link: filepath.ToSlash(link)}
		if !utf8.ValidString(link) {
			return File{}, faulty(output, "left %s, a link to %q, which is no UTF-8", name, link)
		}
		if !staysWithin(one, output) {
			return File{}, faulty(output, "left %s, a link to %q, which leads out of the output %s", name, link, output)
		}
		return one, nil
	case !entry.Type().IsRegular():
		return File{}, faulty(output, "left %s, which is neither file nor folder but %s", name, kindOf(entry.Type()))
	}
	file, err := t.root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) {
		return File{}, faulty(output, "left %s unreadable", name)
	}
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return File{}, err
	}
	if info.Size() > most {
		return File{}, errTooLarge
	}
	digest, err := t.folder.add(file, most, nil)
	return File{Path: name, Digest: digest, Executable: info.Mode()&0o111 != 0}, err
}

// checkLinks refuses links that point to nothing.
func (t *taking) checkLinks() error {
	for _, f := range t.entry.Files {
		if f.Link == "" {
			continue
		}
		if _, err := t.root.Stat(filepath.FromSlash(f.Path)); err != nil {
			return faulty(outputOf(f.Path, t.outputs), "left %s, a link to %q, where there is nothing", f.Path, f.Link)
		}
	}
	return nil
}

// kindOf names a kind of file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
