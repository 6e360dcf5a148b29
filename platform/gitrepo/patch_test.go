package gitrepo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPatchIsTextWithinABound: it runs no program that the trees name, and what is no text is named alone.
func TestAPatchIsTextWithinABound(t *testing.T) {
	f := newFixture(t)
	ran := filepath.Join(t.TempDir(), "ran")
	f.write(".gitattributes", "*.txt diff=evil\n")
	f.write("a.txt", "one\ntwo\n")
	f.write("picture", "\x00\x01")
	f.write("old", strings.Repeat("the same line\n", 20))
	before := f.commit("before")
	f.write("a.txt", "one\n2\n")
	f.write("picture", "\x00\x02")
	f.git("mv", "old", "new")
	after := f.commit("after")
	f.publish("main")
	for _, setting := range []string{"diff.evil.command", "diff.evil.textconv", "diff.external"} {
		plainGit(t, f.repo.Dir(), "config", "--file", filepath.Join(f.repo.Dir(), "config"), setting, "touch "+ran+"; cat")
	}
	a, errA := f.repo.TreeOf(t.Context(), before)
	b, errB := f.repo.TreeOf(t.Context(), after)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	text, cut, err := f.repo.Patch(t.Context(), a, b, 1<<20)
	if err != nil || cut {
		t.Fatal(cut, err)
	}
	for _, want := range []string{"-two\n+2\n", "Binary files a/picture and b/picture differ", "rename from old\nrename to new\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the patch lacks %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Error("a program ran")
	}
	first, cut, err := f.repo.Patch(t.Context(), a, b, 40)
	if err != nil || !cut || string(first) != string(text[:40]) {
		t.Errorf("of 40 bytes: %q, cut: %t, %v", first, cut, err)
	}
	if same, cut, err := f.repo.Patch(t.Context(), a, a, 40); err != nil || cut || len(same) > 0 {
		t.Errorf("of the same: %q, cut: %t, %v", same, cut, err)
	}
	if _, _, err := f.repo.Patch(t.Context(), "--output="+ran, b, 40); !errors.Is(err, ErrInvalid) {
		t.Errorf("an option for a tree: %v", err)
	}
}
