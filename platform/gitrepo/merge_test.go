package gitrepo

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// editLines changes, renames, adds and removes files of many lines.
func (f *fixture) editLines(random *rand.Rand, edits int) {
	f.t.Helper()
	for range edits {
		name := fmt.Sprintf("dir%d/file %d", random.IntN(2), random.IntN(4))
		full := filepath.Join(f.work, name)
		data, err := os.ReadFile(full)
		switch {
		case err != nil:
			var text strings.Builder
			for i := range 30 {
				fmt.Fprintf(&text, "line %d of %s\n", i, name)
			}
			f.write(name, text.String())
		case random.IntN(8) == 0:
			f.git("rm", "--quiet", "--force", "--", name)
		case random.IntN(8) == 0:
			to := fmt.Sprintf("moved%d", random.IntN(5))
			if err := os.Rename(full, filepath.Join(f.work, to)); err != nil {
				f.t.Fatal(err)
			}
		default:
			lines := strings.Split(string(data), "\n")
			lines[random.IntN(len(lines))] += fmt.Sprintf(" %d", random.IntN(100))
			f.write(name, strings.Join(lines, "\n"))
		}
		f.git("add", "--all")
	}
}

func TestAMergeIsWhatPlainGitMakesOfIt(t *testing.T) {
	random := seeded(t)
	f := newFixture(t)
	clean, conflicts, marked := 0, 0, 0
	for round := range 25 {
		f.git("checkout", "--quiet", "--orphan", fmt.Sprintf("base%d", round))
		f.editLines(random, 8)
		base := f.commit("base")
		f.editLines(random, 1+random.IntN(4))
		ours := f.commit("ours")
		f.git("checkout", "--quiet", "-b", fmt.Sprintf("theirs%d", round), base)
		f.editLines(random, 1+random.IntN(4))
		theirs := f.commit("theirs")
		f.git("push", "--quiet", "origin", ours+":refs/heads/o"+fmt.Sprint(round), theirs+":refs/heads/t"+fmt.Sprint(round))
		if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{ours, theirs}}); err != nil {
			t.Fatal(err)
		}
		var trees []string
		for _, id := range []string{base, ours, theirs} {
			tree, err := f.repo.TreeOf(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			trees = append(trees, tree)
		}
		got, conflict, err := f.repo.MergeTrees(t.Context(), trees[0], trees[1], trees[2])
		if err != nil {
			t.Fatal(err)
		}

		f.git("checkout", "--quiet", "--detach", ours)
		out, failed := tryGit(f.work, "-c", "merge.directoryRenames=false", "merge", "--no-edit", "--no-ff", "-m", "m", theirs)
		if (failed != nil) != (conflict != nil) {
			t.Fatalf("round %d: git merge: %v\n%s\nwe: %q, conflict %v", round, failed, out, got, conflict)
		}
		if failed == nil {
			clean++
			if want := f.git("rev-parse", "HEAD^{tree}"); got != want {
				t.Fatalf("round %d: tree %s, git's %s", round, got, want)
			}
			continue
		}
		conflicts++
		want := strings.Split(f.git("diff", "--name-only", "--diff-filter=U"), "\n")
		if !slices.Equal(conflict.Paths, want) {
			t.Fatalf("round %d: conflict in %q, git's %q", round, conflict.Paths, want)
		}
		if len(conflict.Messages) == 0 || !strings.HasPrefix(conflict.Messages[0], "CONFLICT") {
			t.Errorf("round %d: messages %q", round, conflict.Messages)
		}
		for i, line := range conflict.Lines {
			if want := f.markedLine(want[i]); line != want {
				t.Errorf("round %d: the first conflict of %s in line %d, git's in %d", round, conflict.Paths[i], line, want)
			} else if want > 0 {
				marked++
			}
		}
		f.git("merge", "--abort")
	}
	t.Logf("%d clean merges, %d conflicts, %d files with marks", clean, conflicts, marked)
	if clean == 0 || conflicts == 0 {
		t.Error("the random edits met only one outcome")
	}
}

// markedLine returns the first line of a file with git's mark of a conflict, 0 if it has none.
func (f *fixture) markedLine(name string) int {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.work, name))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	return 1 + slices.IndexFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "<<<<<<< ") })
}

func (f *fixture) treeOf(commit string) string {
	f.t.Helper()
	tree, err := f.repo.TreeOf(f.t.Context(), commit)
	if err != nil {
		f.t.Fatal(err)
	}
	return tree
}

// threeWay makes one conflicting merge of a file: base, ours, theirs as tree ids.
func (f *fixture) threeWay(file, base, ours, theirs string) (b, o, h string) {
	f.t.Helper()
	f.write(file, base)
	at := f.commit("base")
	f.write(file, ours)
	mine := f.commit("ours")
	f.publish("ours")
	f.git("checkout", "--quiet", "--detach", at)
	f.write(file, theirs)
	other := f.commit("theirs")
	f.publish("theirs")
	return f.treeOf(at), f.treeOf(mine), f.treeOf(other)
}

// TestTheFirstConflictOfAFileHasItsLine, also where the file itself holds what looks like a mark.
func TestTheFirstConflictOfAFileHasItsLine(t *testing.T) {
	f := newFixture(t)
	base, ours, theirs := f.threeWay("a (b): c", "<<<<<<< old\na\nb\nc\n", "<<<<<<< old\na\nours\nc\n", "<<<<<<< old\na\ntheirs\nc\n")
	_, conflict, err := f.repo.MergeTrees(t.Context(), base, ours, theirs)
	if err != nil || conflict == nil || !slices.Equal(conflict.Lines, []int{3}) {
		t.Errorf("%+v, %v", conflict, err)
	}
}

// TestAConflictNamesFilesOfTheTrees, not those that git makes up for what it moves aside.
func TestAConflictNamesFilesOfTheTrees(t *testing.T) {
	f := newFixture(t)
	f.write("x", "x\n")
	base := f.commit("base")
	f.write("data", "file\n")
	ours := f.commit("ours")
	f.publish("ours")
	f.git("checkout", "--quiet", "-b", "theirs", base)
	f.write("data/y.txt", "y\n")
	theirs := f.commit("theirs")
	f.publish("theirs")
	_, conflict, err := f.repo.MergeTrees(t.Context(), f.treeOf(base), f.treeOf(ours), f.treeOf(theirs))
	if err != nil || conflict == nil || !slices.Equal(conflict.Paths, []string{"data"}) {
		t.Errorf("%+v, %v", conflict, err)
	}
}

// TestAMergeThatIsCancelledIsNotRememberedWithoutItsLines: the contexts end at many moments of a merge.
func TestAMergeThatIsCancelledIsNotRememberedWithoutItsLines(t *testing.T) {
	f := newFixture(t)
	for i := range 60 {
		base, ours, theirs := f.threeWay("f", fmt.Sprint(i, "\nb\n"), fmt.Sprint(i, "\nours\n"), fmt.Sprint(i, "\ntheirs\n"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
		_, _, _ = f.repo.MergeTrees(ctx, base, ours, theirs)
		cancel()
		_, conflict, err := f.repo.MergeTrees(t.Context(), base, ours, theirs)
		if err != nil || conflict == nil || !slices.Equal(conflict.Lines, []int{2}) {
			t.Fatalf("cancelled after %d half milliseconds: %+v, %v", i, conflict, err)
		}
	}
}

func TestTheBaseIsForcedWhateverHistorySays(t *testing.T) {
	f := newFixture(t)
	base, ours, theirs := f.threeWay("f", "1\n", "2\n", "3\n")
	// With theirs as the base, the "change" from theirs to base is put on ours.
	if _, conflict, err := f.repo.MergeTrees(t.Context(), theirs, ours, base); err != nil || conflict == nil {
		t.Errorf("conflict %v, error %v; want a conflict", conflict, err)
	}
	for name, c := range map[string][4]string{
		"ours did not change":   {base, base, theirs, theirs},
		"theirs did not change": {base, ours, base, ours},
		"both are the same":     {base, ours, ours, ours},
	} {
		if got, conflict, err := f.repo.MergeTrees(t.Context(), c[0], c[1], c[2]); got != c[3] || conflict != nil || err != nil {
			t.Errorf("%s: %s, %v, %v", name, got, conflict, err)
		}
	}
	if _, conflict, err := f.repo.MergeTrees(t.Context(), emptyTree, ours, theirs); err != nil || conflict == nil {
		t.Errorf("with nothing as the base: conflict %v, error %v; want a conflict", conflict, err)
	}
}

func TestAMergeRunsNoProgramAndReadsNoConfiguration(t *testing.T) {
	f := newFixture(t)
	marker := filepath.Join(t.TempDir(), "ran")
	home := t.TempDir()
	config := fmt.Sprintf("[merge \"evil\"]\n\tdriver = touch %s; true\n[core]\n\tattributesFile = %s/attributes\n", marker, home)
	for name, text := range map[string]string{".gitconfig": config, "attributes": "* merge=evil\n"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": home, "GIT_CONFIG_GLOBAL": home + "/.gitconfig", "GIT_DIR": f.work + "/.git",
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "merge.directoryRenames", "GIT_CONFIG_VALUE_0": "true",
		"GIT_OBJECT_DIRECTORY": home, "GIT_INDEX_FILE": home + "/index", "GIT_EXTERNAL_DIFF": "touch " + marker,
	} {
		t.Setenv(name, value)
	}
	f.write(".gitattributes", "* merge=evil filter=evil\n")
	base, ours, theirs := f.threeWay("f", "1\n", "2\n", "3\n")
	_, conflict, err := f.repo.MergeTrees(t.Context(), base, ours, theirs)
	if err != nil || conflict == nil {
		t.Errorf("conflict %v, error %v; want a conflict", conflict, err)
	}
	if _, err := os.Lstat(marker); err == nil {
		t.Error("a merge driver ran")
	}
}

func TestAMergeIsRememberedWithItsConflict(t *testing.T) {
	f := newFixture(t)
	base, ours, theirs := f.threeWay("-f\nx", "1\n", "2\n", "3\n")
	for range 2 {
		_, conflict, err := f.repo.MergeTrees(t.Context(), base, ours, theirs)
		if err != nil || conflict == nil || !slices.Equal(conflict.Paths, []string{"-f\nx"}) {
			t.Fatalf("conflict %+v, error %v", conflict, err)
		}
		if strings.Contains(conflict.String(), "commit") {
			t.Errorf("message %q", conflict)
		}
	}
	if _, _, err := f.repo.MergeTrees(t.Context(), base, ours, "--help"); err == nil {
		t.Error("a tree called --help was taken")
	}
}

func FuzzConflictsParseOrAreRefused(f *testing.F) {
	f.Add([]byte("a\x00b\x00\x001\x00a\x00CONFLICT (contents)\x00text\n\x00"))
	f.Add([]byte("\x00-1\x00\x00\x00"))
	f.Add([]byte("\x009223372036854775807\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, out []byte) {
		conflict, err := parseConflict(out)
		if err == nil && (len(conflict.Paths) > maxConflictPaths || len(conflict.Messages) > maxConflictMessages) {
			t.Fatalf("%d paths, %d messages", len(conflict.Paths), len(conflict.Messages))
		}
	})
}

// TestATreeThatGitCannotMergeIsAConflict that names it: git push lets an entry "c/d" through, and git merge-tree breaks off.
func TestATreeThatGitCannotMergeIsAConflict(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	f.write("b", "1")
	base := f.commit("base")
	f.write("b", "2")
	ours := f.commit("ours")
	f.publish("main")
	blob := f.git("rev-parse", base+":a")
	raw, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(mode, name string) string { return mode + " " + name + "\x00" + string(raw) }
	for name, entries := range map[string]string{
		"a name with a slash": entry("100644", "a") + entry("100644", "b") + entry("100644", "c/d"),
		"no name":             entry("100644", "") + entry("100644", "a"),
		"a mode of letters":   entry("100644", "a") + entry("10x644", "c"),
		"cut short":           entry("100644", "a") + "100644 c\x00abc",
	} {
		cmd := exec.Command("git", "-C", f.repo.dir, "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
		cmd.Stdin = strings.NewReader(entries)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		tree := strings.TrimSpace(string(out))
		merged, conflict, err := f.repo.MergeTrees(t.Context(), f.treeOf(base), f.treeOf(ours), tree)
		if err != nil || conflict == nil || !strings.Contains(conflict.String(), tree) {
			t.Errorf("%s: merged to %q, conflict %v, error %v", name, merged, conflict, err)
		}
	}
	// What fails for another reason is none.
	if err := os.RemoveAll(filepath.Join(f.repo.dir, "objects")); err != nil {
		t.Fatal(err)
	}
	if merged, conflict, err := f.repo.MergeTrees(t.Context(), ours, base, f.treeOf(ours)); err == nil {
		t.Errorf("without its objects the mirror merges to %q, conflict %v", merged, conflict)
	}
}

// git ends by an assertion where it merges onto a tree with a name twice, as it does for two changes of which one brings such a tree: the
// analysis of whoever met it failed, and that change conflicted with everything.
func TestAMalformedTreeOnEitherSideIsAConflict(t *testing.T) {
	f := newFixture(t)
	f.write("a/file", "x")
	f.write("b", "x")
	base := f.git("rev-parse", f.commit("base")+"^{tree}")
	f.write("c", "x")
	other := f.git("rev-parse", f.commit("other")+"^{tree}")
	blob := f.git("rev-parse", base+":b")
	id, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	var raw strings.Builder
	for _, name := range []string{"z", "a", "a"} {
		raw.WriteString("100644 " + name + "\x00" + string(id))
	}
	bad := f.feed(raw.String(), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	f.git("reset", "--quiet", "--soft", f.git("commit-tree", "-p", "HEAD", "-m", "bad", bad))
	f.publish("main")
	for _, merge := range [][3]string{{base, bad, other}, {base, other, bad}} {
		if _, conflict, err := f.repo.MergeTrees(t.Context(), merge[0], merge[1], merge[2]); err != nil || conflict == nil {
			t.Errorf("base %s, ours %s, theirs %s: %v, %v, want a conflict", merge[0], merge[1], merge[2], conflict, err)
		}
	}
}
