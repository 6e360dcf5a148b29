package gitrepo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// git calls itself for each macro within another one, and ended by SIGSEGV: no step of the change could be run, and all workers
// rested after each.
func TestACheckoutIsNotReadForAttributes(t *testing.T) {
	random := seeded(t)
	f := newFixture(t)
	f.write("a", "a\n")
	f.write("b/c", "c\n")
	plain := f.commit("plain")
	var macros strings.Builder
	for i := range 400_000 {
		fmt.Fprintf(&macros, "[attr]m%d m%d\n", 400_000-i, 400_001-i)
	}
	files := map[string]string{".gitattributes": macros.String() + "* m1\n", "b/.gitattributes": "* ident\n", "only/here/.gitattributes": "* eol=crlf\n"}
	list := f.git("ls-tree", "-r", plain) + "\n"
	for name, content := range files {
		list += fmt.Sprintf("100755 blob %s\t%s\n", f.feed(content, "hash-object", "-w", "--stdin"), name)
	}
	link := f.feed("../../a", "hash-object", "-w", "--stdin")
	list += fmt.Sprintf("120000 blob %s\tlinked/there/.gitattributes\n160000 commit %s\tmodule/.gitattributes\n", link, plain)
	f.git("read-tree", "--empty")
	f.feed(list, "update-index", "--index-info")
	odd := f.git("commit-tree", "-p", plain, "-m", "odd", f.git("write-tree"))
	f.git("push", "--quiet", "origin", plain+":refs/heads/main", odd+":refs/heads/odd")
	if err := f.repo.Fetch(t.Context(), Wanted{}); err != nil {
		t.Fatal(err)
	}
	w := f.worktree()
	for _, id := range []string{odd, plain, odd, odd} {
		f.checkout(w, id)
		f.checkoutSome(w, id, random)
	}
	f.checkout(w, odd)
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(w.Dir(), name)); string(got) != want {
			t.Errorf("%s has %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	// A step may leave anything there.
	if err := os.RemoveAll(filepath.Join(w.Dir(), "only")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(w.Dir(), "only")); err != nil {
		t.Fatal(err)
	}
	f.checkout(w, odd)
}
