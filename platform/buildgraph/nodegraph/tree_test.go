package nodegraph

import (
	"context"
	"crypto/sha1"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// memoryTree is a repository by path. A text that begins "mode NNNNNN " has that mode; an empty text given to with
// deletes.
type memoryTree map[string]string

func objectOf(content string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(content))) }

func modeOf(content string) (mode uint32, rest string) {
	after, ok := strings.CutPrefix(content, "mode ")
	if !ok {
		return 0o100644, content
	}
	fmt.Sscanf(after, "%o", &mode)
	_, rest, _ = strings.Cut(after, " ")
	return mode, rest
}

func (m memoryTree) Entries(context.Context) ([]gittree.Entry, error) {
	var entries []gittree.Entry
	for path, text := range m {
		mode, content := modeOf(text)
		e := gittree.Entry{Path: path, Mode: mode, Kind: "blob", Object: objectOf(content)}
		if mode == modeSubmodule {
			e.Kind = "commit"
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (m memoryTree) Blob(_ context.Context, object string, max int64) ([]byte, error) {
	for _, text := range m {
		if _, content := modeOf(text); objectOf(content) == object {
			if int64(len(content)) > max {
				return nil, gittree.ErrTooLarge
			}
			return []byte(content), nil
		}
	}
	return nil, fmt.Errorf("no blob %s", object)
}

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

// replaced returns the edit of one file that replaces a text in it.
func (m memoryTree) replaced(t testing.TB, file, old, new string) memoryTree {
	t.Helper()
	if !strings.Contains(m[file], old) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	return memoryTree{file: strings.Replace(m[file], old, new, 1)}
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

// delta returns what turning one tree into another affects: names of targets without "node://", those deleted with a
// minus, and "all" if it conflicts with everything.
func delta(t testing.TB, base, head gittree.Tree) string {
	t.Helper()
	return affected(targets.Delta(load(t, base), load(t, head)))
}

func affected(d targets.Analysis) string {
	if d.All {
		return "all"
	}
	var names []string
	for _, v := range d.Affected {
		names = append(names, strings.TrimPrefix(v.Name, "node://"))
	}
	for _, name := range d.Deleted {
		names = append(names, "-"+strings.TrimPrefix(name, "node://"))
	}
	return strings.Join(names, ", ")
}

// same reports whether two graphs agree in every node and edge.
func same(x, y *targets.Graph) bool {
	d := targets.Delta(x, y)
	xNodes, xEdges := x.Size()
	yNodes, yEdges := y.Size()
	return xNodes == yNodes && xEdges == yEdges && !d.All && len(d.Affected)+len(d.Deleted)+len(d.Leaves)+len(d.Added) == 0
}

func targetNames(g *targets.Graph) string {
	var names []string
	for t := range g.Targets() {
		names = append(names, strings.TrimPrefix(t.Name, "node://"))
	}
	return strings.Join(names, ", ")
}

// sound reports whether a tree can exist: no file is a folder as well.
func (m memoryTree) sound() bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(m)), func(path string) bool {
		for dir := folderOf(path); dir != ""; dir = folderOf(dir) {
			if _, ok := m[dir]; ok {
				return true
			}
		}
		return false
	})
}
