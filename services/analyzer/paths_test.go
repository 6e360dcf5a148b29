package analyzer

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// Each commit of a change may alter as many files as are compared at most, and a pack holds a thousand such commits in little: their
// differences took a fifth of a gigabyte each.
func TestDifferencesOfManyCommitsAreKeptUpToABound(t *testing.T) {
	w := newWorld(t, files{"leaf": "x"})
	blob := strings.TrimSpace(w.git("rev-parse", w.main+":leaf"))
	var list strings.Builder
	for i := range gitrepo.MaxCompared/2 + 1 {
		fmt.Fprintf(&list, "100644 blob %s\tf%07d\n", blob, i)
	}
	mktree := exec.Command("git", "-C", w.dir+"/clone", "mktree")
	mktree.Stdin = strings.NewReader(list.String())
	tree, err := mktree.Output()
	if err != nil {
		t.Fatal(err)
	}
	head := strings.TrimSpace(w.git("commit-tree", "-m", "many files", "-p", w.main, strings.TrimSpace(string(tree))))
	w.git("push", "--quiet", "origin", head+":refs/heads/many")
	if err := w.repo.Fetch(t.Context(), gitrepo.Wanted{Commits: []string{head}}); err != nil {
		t.Fatal(err)
	}
	there, back := landing.Pick{Base: w.main, Head: head}, landing.Pick{Base: head, Head: w.main}
	if _, kept, err := touchedBy(t.Context(), w.repo, []landing.Pick{there}); err != nil || len(kept) == 0 {
		t.Errorf("of one commit %d differences are kept: %v", len(kept), err)
	}
	if touched, kept, err := touchedBy(t.Context(), w.repo, []landing.Pick{there, back}); err != nil || len(kept) > 0 || !touched.everything {
		t.Errorf("of two commits %d differences are kept: %v", len(kept), err)
	}
}
