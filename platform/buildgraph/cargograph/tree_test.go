package cargograph

import (
	"context"
	"crypto/sha1"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// memoryTree is a repository by path. A text that begins "mode NNNNNN " has that mode; an empty text given to with deletes.
type memoryTree map[string]string

func objectOf(content string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(content))) }

func (m memoryTree) id() string {
	var all strings.Builder
	for _, path := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&all, "%q %q\n", path, m[path])
	}
	return objectOf(all.String())
}

func (m memoryTree) Entries(context.Context) ([]gittree.Entry, error) {
	var entries []gittree.Entry
	for path, content := range m {
		e := gittree.Entry{Path: path, Mode: 0o100644, Kind: "blob"}
		if rest, ok := strings.CutPrefix(content, "mode "); ok {
			fmt.Sscanf(rest, "%o", &e.Mode)
			_, content, _ = strings.Cut(rest, " ")
		}
		if e.Mode == modeSubmodule {
			e.Kind = "commit"
		}
		e.Object = objectOf(content)
		entries = append(entries, e)
	}
	return entries, nil
}

func (m memoryTree) Blob(_ context.Context, object string, max int64) ([]byte, error) {
	for _, content := range m {
		if rest, ok := strings.CutPrefix(content, "mode "); ok {
			_, content, _ = strings.Cut(rest, " ")
		}
		if objectOf(content) == object {
			if int64(len(content)) > max {
				return nil, gittree.ErrTooLarge
			}
			return []byte(content), nil
		}
	}
	return nil, fmt.Errorf("no blob %s", object)
}

func (m memoryTree) with(edits ...memoryTree) memoryTree {
	all := maps.Clone(m)
	for _, edit := range edits {
		for path, content := range edit {
			if content == "" {
				delete(all, path)
			} else {
				all[path] = content
			}
		}
	}
	return all
}

func newEntry(path, content string) gittree.Entry {
	return gittree.Entry{Path: path, Mode: 0o100644, Kind: "blob", Object: objectOf(content)}
}

// diskTree is a folder as a tree, by the ids of its blobs.
type diskTree struct {
	entries []gittree.Entry
	blobs   map[string][]byte
}

func (d diskTree) Entries(context.Context) ([]gittree.Entry, error) { return d.entries, nil }

func (d diskTree) Blob(_ context.Context, object string, max int64) ([]byte, error) {
	content, ok := d.blobs[object]
	switch {
	case !ok:
		return nil, fmt.Errorf("no blob %s", object)
	case int64(len(content)) > max:
		return nil, gittree.ErrTooLarge
	}
	return content, nil
}

// readFolder returns a folder as a tree, but for what cargo has built in it.
func readFolder(t testing.TB, dir string) diskTree {
	t.Helper()
	tree := diskTree{blobs: map[string][]byte{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "target" || d.Name() == ".git") {
				return filepath.SkipDir
			}
			return err
		}
		e := gittree.Entry{Mode: 0o100644, Kind: "blob"}
		rel, _ := filepath.Rel(dir, path)
		e.Path = filepath.ToSlash(rel)
		var content []byte
		if d.Type()&fs.ModeSymlink != 0 {
			e.Mode = modeLink
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			content = []byte(text)
		} else if content, err = os.ReadFile(path); err != nil {
			return err
		}
		e.Object = objectOf(string(content))
		tree.blobs[e.Object] = content
		tree.entries = append(tree.entries, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func newLoader(t testing.TB, o Options) *Loader {
	t.Helper()
	l, err := NewLoader(o, Memory{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func loadWith(t testing.TB, o Options, tree gittree.Tree) *targets.Graph {
	t.Helper()
	graph, err := newLoader(t, o).Load(t.Context(), "", tree)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

func load(t testing.TB, tree gittree.Tree) *targets.Graph {
	t.Helper()
	return loadWith(t, Options{}, tree)
}

// namesOf returns what a difference affects: names of targets, those deleted with a minus, and "all" if it conflicts with
// everything.
func namesOf(d targets.Analysis) string {
	var names []string
	for _, v := range d.Affected {
		names = append(names, v.Name)
	}
	for _, name := range d.Deleted {
		names = append(names, "-"+name)
	}
	if d.All {
		names = []string{"all"}
	}
	return strings.Join(names, ", ")
}

func delta(t testing.TB, o Options, base, head gittree.Tree) string {
	t.Helper()
	return namesOf(targets.Delta(loadWith(t, o, base), loadWith(t, o, head)))
}

// sorted puts names in the order of namesOf.
func sorted(names string) string {
	list := strings.Split(names, ", ")
	slices.SortFunc(list, func(x, y string) int {
		if d := strings.HasPrefix(x, "-"); d != strings.HasPrefix(y, "-") {
			if d {
				return 1
			}
			return -1
		}
		return strings.Compare(x, y)
	})
	return strings.Join(list, ", ")
}
