package pythongraph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// memoryTree is a tree by path. A content "mode 120000 text" has another mode.
type memoryTree map[string]string

func objectOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:20])
}

func (m memoryTree) id() string { return objectOf(fmt.Sprint(m)) }

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

// with returns the tree after an edit; an empty content deletes.
func (m memoryTree) with(edit memoryTree) memoryTree {
	all := maps.Clone(m)
	for path, content := range edit {
		if content == "" {
			delete(all, path)
		} else {
			all[path] = content
		}
	}
	return all
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

// delta returns what turning one tree into another affects: names of targets without what all share, those deleted with a
// minus, and "all" if it conflicts with everything.
func delta(t testing.TB, base, head gittree.Tree) string {
	t.Helper()
	d := targets.Delta(load(t, base), load(t, head))
	var names []string
	for _, v := range d.Affected {
		names = append(names, strings.TrimPrefix(v.Name, "python://"))
	}
	for _, name := range d.Deleted {
		names = append(names, "-"+strings.TrimPrefix(name, "python://"))
	}
	if d.All {
		names = []string{"all"}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// folderTree is a folder of the machine as a tree, by the ids of its blobs.
type folderTree struct {
	entries []gittree.Entry
	blobs   map[string][]byte
}

func (d folderTree) Entries(context.Context) ([]gittree.Entry, error) { return d.entries, nil }

func (d folderTree) Blob(_ context.Context, object string, max int64) ([]byte, error) {
	content, ok := d.blobs[object]
	switch {
	case !ok:
		return nil, fmt.Errorf("no blob %s", object)
	case int64(len(content)) > max:
		return nil, gittree.ErrTooLarge
	}
	return content, nil
}

// readFolder returns a folder as a tree, without what Python and its tools leave there.
func readFolder(t testing.TB, dir string) folderTree {
	t.Helper()
	tree := folderTree{blobs: map[string][]byte{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "__pycache__" || name == ".venv" || name == ".pytest_cache" || name == ".git") {
			return filepath.SkipDir
		}
		rel, _ := filepath.Rel(dir, path)
		var content []byte
		mode := uint32(0o100644)
		switch {
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			text, err := os.Readlink(path)
			if err != nil {
				return err
			}
			content, mode = []byte(text), modeLink
		default:
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		object := objectOf(string(content))
		tree.blobs[object] = content
		tree.entries = append(tree.entries, gittree.Entry{Path: filepath.ToSlash(rel), Mode: mode, Kind: "blob", Object: object})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// reaches returns the labels of all that a node depends on, directly or through others.
func reaches(g *targets.Graph, from string) map[string]bool {
	seen := map[string]bool{from: true}
	for pending := []string{from}; len(pending) > 0; {
		last := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, dep := range g.Dependencies(last) {
			if !seen[dep] {
				seen[dep] = true
				pending = append(pending, dep)
			}
		}
	}
	return seen
}
