package gograph

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
)

// ownHistory returns the last trees of this product's mainline, oldest first; the test is skipped where there is no
// history, as in an archive of the sources.
func ownHistory(t testing.TB, most int) []gitTree {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", root, "rev-list", "--first-parent", "--max-count="+strconv.Itoa(most), "HEAD").Output()
	if err != nil {
		t.Skipf("%s has no history: %v", root, err)
	}
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: root, Dir: filepath.Join(t.TempDir(), "mirror")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	ids := strings.Fields(string(out))
	slices.Reverse(ids)
	if err := repo.Fetch(t.Context(), gitrepo.Wanted{Commits: ids[len(ids)-1:]}); err != nil {
		t.Fatal(err)
	}
	var trees []gitTree
	for _, id := range ids {
		tree, err := repo.TreeOf(t.Context(), id)
		if err != nil {
			t.Skipf("the history ends before %s: %v", id, err)
		}
		trees = append(trees, treeOf(repo, tree))
	}
	return trees
}

// TestIncrementalEqualsFullAtEveryCommitOfThisProduct goes through the last commits, all of them with
// LANDFALL_GOGRAPH_COMMITS=100000. What a commit affects is what the graphs made from nothing differ in.
func TestIncrementalEqualsFullAtEveryCommitOfThisProduct(t *testing.T) {
	most := 12
	if text := os.Getenv("LANDFALL_GOGRAPH_COMMITS"); text != "" {
		var err error
		if most, err = strconv.Atoi(text); err != nil {
			t.Fatalf("LANDFALL_GOGRAPH_COMMITS: %v", err)
		}
	}
	loader := newLoader(t, Options{})
	facts := NewFacts(256 << 20)
	var before, freshBefore *targets.Graph
	compared, affected := 0, 0
	for _, tree := range ownHistory(t, most) {
		next, err := loader.Load(t.Context(), "", tree)
		if err != nil {
			before = nil // a tree before there was a module, or with a broken one
			continue
		}
		// Parse results are of blobs, whoever reads them; all else is made anew.
		fromNothing, err := NewLoader(Options{}, Memory{}, facts)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := fromNothing.Load(t.Context(), "", tree)
		if err != nil || !same(next, fresh) {
			t.Fatalf("tree %s: incremental and full differ (%v)", tree.id, err)
		}
		if before != nil {
			d := targets.Delta(before, next)
			if !slices.Equal(d.Touched(), targets.Delta(freshBefore, fresh).Touched()) {
				t.Errorf("tree %s: what the commit affects depends on how the graphs were made", tree.id)
			}
			affected += len(d.Touched())
			compared++
		}
		before, freshBefore = next, fresh
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
	t.Logf("%d commits compared, which affect %d targets", compared, affected)
}

// versionsOf returns the folders of versions of a module, fetched if they are not in the module cache. The test is skipped
// where they cannot be had, unless LANDFALL_TEST_MODULES=required.
func versionsOf(t *testing.T, versions ...string) []string {
	cmd := exec.Command("go", append([]string{"mod", "download", "-json"}, versions...)...)
	cmd.Dir = t.TempDir() // outside any module: what this product requires has no say
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local")
	out, err := cmd.Output()
	var folders []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); err == nil; {
		var one struct{ Dir string }
		if err = decoder.Decode(&one); err == nil {
			folders = append(folders, one.Dir)
		}
	}
	if len(folders) < len(versions) {
		if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
			t.Fatalf("%q cannot be had: %v", versions, err)
		}
		t.Skipf("no module proxy: %q cannot be had (%v)", versions, err)
	}
	return folders
}

// TestVersionsOfARealModule takes versions of one module as its history: a few small ones, or those in the folders of
// LANDFALL_GOGRAPH_VERSIONS=folder:folder:…, oldest first; what these need has to be in the module cache.
func TestVersionsOfARealModule(t *testing.T) {
	folders := filepath.SplitList(os.Getenv("LANDFALL_GOGRAPH_VERSIONS"))
	if len(folders) == 0 {
		folders = versionsOf(t, "golang.org/x/mod@v0.20.0", "golang.org/x/mod@v0.24.0", "golang.org/x/mod@v0.28.0")
	}
	r := newRepository(t)
	loader := newLoader(t, Options{})
	var base *targets.Graph
	var before map[string]string
	for _, folder := range folders {
		r.clear()
		copyFolder(t, r.dir, folder, codeOnly)
		tree := r.commit()
		head, err := loader.Load(t.Context(), "", tree)
		if err != nil {
			t.Fatal(err)
		}
		if fresh := load(t, tree); !same(head, fresh) {
			t.Errorf("%s: incremental and full differ", folder)
		}
		listed := goList(t, r.dir, "./...")
		c := &truth{TB: t, graph: head, root: r.dir}
		c.compare(listed)
		c.report()
		after := inputs(t, r.dir, listed)
		nodes, edges := head.Size()
		t.Logf("%s: %d nodes, %d edges", filepath.Base(folder), nodes, edges)
		if base != nil {
			affected := targets.Delta(base, head).Touched()
			changed, missed := 0, 0
			for name, sum := range after {
				// A folder of tests alone has no library, and one below testdata is a definition: compare has
				// examined for the files of both.
				if _, is := head.Target(name); !is || sum == before[name] {
					continue
				}
				changed++
				if _, found := slices.BinarySearch(affected, name); !found {
					missed++
					t.Errorf("%s: %s is not affected", folder, name)
				}
			}
			t.Logf("%s: %d changed in go list, %d affected, %d missed", filepath.Base(folder), changed, len(affected), missed)
		}
		base, before = head, after
	}
}

// clear removes all but git's own folder.
func (r *repository) clear() {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
			r.Fatal(err)
		}
	}
}
