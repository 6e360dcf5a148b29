package gograph

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/gitrepo"
)

// memoryTree is a repository by path. A text that begins "mode NNNNNN " has that
// mode; an empty text given to with deletes.
type memoryTree map[string]string

func objectOf(content string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(content))) }

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
	l, err := NewLoader(o, Memory{}, nil)
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

// verified has every package and module verified: a target that nothing verifies covers no file.
var verified = Options{Commands: Commands{
	Library: []Template{{Name: "build", Argv: []string{"go", "build"}}}, Test: []Template{{Name: "test", Argv: []string{"go", "test"}}},
	Module: []Template{{Name: "verify", Argv: []string{"go", "mod", "verify"}}},
}}

func load(t testing.TB, tree gittree.Tree) *targets.Graph {
	t.Helper()
	return loadWith(t, Options{}, tree)
}

// delta returns what turning one tree into another affects: names of targets, those
// deleted with a minus, and "all" if it conflicts with everything.
func deltaWith(t testing.TB, o Options, base, head gittree.Tree) string {
	t.Helper()
	d := targets.Delta(loadWith(t, o, base), loadWith(t, o, head))
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

func delta(t testing.TB, base, head gittree.Tree) string {
	t.Helper()
	return deltaWith(t, Options{}, base, head)
}

// repository is a git repository with a mirror, read as the services read it.
type repository struct {
	testing.TB
	dir  string
	repo *gitrepo.Repo
}

func newRepository(t testing.TB) *repository {
	r := &repository{TB: t, dir: t.TempDir()}
	r.git("init", "--quiet", "--initial-branch=main", ".")
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: r.dir, Dir: filepath.Join(t.TempDir(), "mirror")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	r.repo = repo
	return r
}

func (r *repository) git(args ...string) string {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// write changes files of the working folder; an empty text deletes.
func (r *repository) write(edit map[string]string) {
	r.Helper()
	for path, content := range edit {
		full := filepath.Join(r.dir, path)
		if content == "" {
			os.Remove(full)
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o777), os.WriteFile(full, []byte(content), 0o666)); err != nil {
			r.Fatal(err)
		}
	}
}

// commit commits the working folder and gives the tree.
func (r *repository) commit() gitTree {
	r.Helper()
	r.git("add", "--all", "--force")
	r.git("commit", "--quiet", "--allow-empty", "-m", "edit")
	if err := r.repo.Fetch(r.Context(), gitrepo.Wanted{}); err != nil {
		r.Fatal(err)
	}
	return treeOf(r.repo, r.git("rev-parse", "HEAD^{tree}"))
}

// newFolder returns a repository without git, for tests that compare with the go
// command: only snapshot gives its trees.
func newFolder(t testing.TB) *repository { return &repository{TB: t, dir: t.TempDir()} }

// files returns the paths of the working folder, in order.
func (r *repository) files() []string {
	r.Helper()
	var files []string
	err := filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(r.dir, path)
			files = append(files, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return files
}

// snapshot returns the working folder as a tree.
func (r *repository) snapshot() gittree.Tree {
	r.Helper()
	tree := diskTree{blobs: map[string][]byte{}}
	for _, file := range r.files() {
		content, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			r.Fatal(err)
		}
		object := objectOf(string(content))
		tree.blobs[object] = content
		tree.entries = append(tree.entries, gittree.Entry{Path: file, Mode: 0o100644, Kind: "blob", Object: object})
	}
	return tree
}

// diskTree is a tree by the ids of its blobs.
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

// gitTree is a tree of a mirror, as the services give it to the adapter.
type gitTree struct {
	gittree.Tree
	id string
}

func treeOf(repo *gitrepo.Repo, id string) gitTree { return gitTree{gittree.New(repo, id), id} }

// dependsOn reports whether a node depends directly on another.
func dependsOn(g *targets.Graph, from, to string) bool {
	return slices.Contains(g.Dependencies(from), to)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
