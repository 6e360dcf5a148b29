package bazelgraph

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
)

// files are the files of a tree by path. A text that begins with "link:" is a symbolic link, one that begins
// with "#!" an executable; "-" takes a file away.
type files map[string]string

// with returns the files with some changed.
func (f files) with(edits ...files) files {
	all := maps.Clone(f)
	for _, edit := range edits {
		for path, text := range edit {
			if text == "-" {
				delete(all, path)
			} else {
				all[path] = text
			}
		}
	}
	return all
}

// world is a repository, a mirror of it, and a loader that works beside that.
type world struct {
	dir    string
	repo   *gitrepo.Repo
	loader *Loader
	// mainline is the tree of the mainline, if there is one.
	mainline string
}

func newWorld(t testing.TB, options Options) *world {
	t.Helper()
	w, err := makeWorld(t.TempDir(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func makeWorld(dir string, options Options) (*world, error) {
	w := &world{dir: filepath.Join(dir, "remote")}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := w.git(nil, "init", "--quiet", "--bare", "."); err != nil {
		return nil, err
	}
	var err error
	if w.repo, err = gitrepo.Open(context.Background(), gitrepo.Options{Remote: w.dir, Dir: filepath.Join(dir, "mirror.git")}); err != nil {
		return nil, err
	}
	w.loader, err = NewLoader(options, func(ctx context.Context) (Place, error) {
		place := filepath.Join(dir, "place")
		if err := os.MkdirAll(place, 0o755); err != nil {
			return Place{}, err
		}
		tree, err := w.repo.AddWorktree(ctx, filepath.Join(place, "tree"))
		return Place{Checkout: tree, Dir: place, IsMainline: func(_ context.Context, tree string) bool { return tree == w.mainline }}, err
	})
	return w, err
}

func (w *world) close() {
	w.loader.Close()
	w.repo.Close()
}

func (w *world) git(stdin []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = w.dir, strings.NewReader(string(stdin))
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0100",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com", "GIT_COMMITTER_DATE=1700000100 +0000",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %q: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// tree makes a tree of files and has the mirror hold it.
func (w *world) tree(t testing.TB, all files) string {
	t.Helper()
	var in strings.Builder
	for _, path := range slices.Sorted(maps.Keys(all)) {
		text, mode := all[path], "100644"
		if target, is := strings.CutPrefix(text, "link:"); is {
			text, mode = target, "120000"
		} else if strings.HasPrefix(text, "#!") {
			mode = "100755"
		}
		fmt.Fprintf(&in, "M %s inline %s\ndata %d\n%s\n", mode, path, len(text), text)
	}
	commit := fmt.Sprintf("commit refs/heads/made\ncommitter Bob <bob@example.com> 1700000100 +0000\ndata 0\n\ndeleteall\n%s\n", in.String())
	if _, err := w.git([]byte(commit), "fast-import", "--quiet", "--force"); err != nil {
		t.Fatal(err)
	}
	id, err := w.git(nil, "rev-parse", "refs/heads/made")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.repo.Fetch(t.Context(), gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	tree, err := w.repo.TreeOf(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// load returns the graph of files, which has to be known.
func (w *world) load(t testing.TB, all files) *targets.Graph {
	t.Helper()
	graph, err := w.loader.Load(t.Context(), w.repo, w.tree(t, all))
	if err != nil {
		t.Fatal(err)
	}
	if reasons := graph.Unknown(); len(reasons) > 0 {
		t.Fatalf("the targets are not known: %v", reasons)
	}
	return graph
}

// The Bazel of this machine, one server for all tests.
var (
	shared     *world
	sharedOnce sync.Once
	sharedDir  string
)

func TestMain(m *testing.M) {
	sandbox.MaybeEnter()
	outbound.MaybeCarry()
	code := m.Run()
	if shared != nil {
		shared.close()
	}
	if sharedDir != "" {
		os.RemoveAll(sharedDir)
	}
	os.Exit(code)
}

// realBazel returns a world with the Bazel of this machine. Without one the test is skipped, loudly, and fails where
// LANDFALL_TEST_BAZEL says that there has to be one.
func realBazel(t testing.TB) *world {
	t.Helper()
	if _, err := exec.LookPath("bazel"); err != nil {
		const missing = "there is no Bazel on this machine: run tools/bazel/install (Debian: apt-get install bazel-bootstrap)"
		if os.Getenv("LANDFALL_TEST_BAZEL") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	sharedOnce.Do(func() {
		var err error
		if sharedDir, err = os.MkdirTemp("", "landfall-bazel-"); err == nil {
			shared, err = makeWorld(sharedDir, Options{
				Env: []string{"PATH=" + os.Getenv("PATH")}, Limit: 8 * time.Minute, Heap: 512 << 20, Idle: time.Minute,
				StartupFlags: []string{"--host_jvm_args=-XX:+UseSerialGC", "--host_jvm_args=-XX:TieredStopAtLevel=1"},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	if shared == nil {
		t.Fatal("the shared Bazel could not be made")
	}
	return shared
}

// touched lists what a difference affects and deletes.
func touched(base, head *targets.Graph) string {
	return strings.Join(targets.Delta(base, head).Touched(), " ")
}
