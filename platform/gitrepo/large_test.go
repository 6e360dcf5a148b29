package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// feed runs git in the work tree with standard input, and returns what it prints.
func (f *fixture) feed(input string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", f.work}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		f.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// A pack holds a tree that is nearly like another one in a few bytes: one of 5 MB had 40 trees of a million entries each read, and a
// gigabyte of memory taken for each ten of them, before their files were counted.
func TestTreesThatAreNearlyAlikeAreReadUpToABound(t *testing.T) {
	f := newFixture(t)
	f.write("leaf", "x")
	blob := f.git("rev-parse", f.commit("leaf")+":leaf")
	var same, root strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&same, "100644 blob %s\tf%04d\n", blob, i)
	}
	for i := range 20 {
		tree := f.feed(fmt.Sprintf("%s100644 blob %s\tg%04d\n", same.String(), blob, i), "mktree")
		fmt.Fprintf(&root, "040000 tree %s\td%04d\n", tree, i)
	}
	bomb := f.git("commit-tree", "-m", "bomb", f.feed(root.String(), "mktree"))
	f.git("reset", "--quiet", "--soft", bomb)
	f.publish("main")
	ask := func() map[string]error {
		_, tree := f.repo.Tree(t.Context(), bomb)
		differences, difference := f.repo.DiffTrees(t.Context(), emptyTree, bomb)
		if difference == nil {
			_, difference = f.repo.Holds(t.Context(), bomb, differences)
		}
		return map[string]error{"listing": tree, "comparing": difference}
	}
	for name, room := range map[string]treeRoom{"entries": {10_000, maxTreeBytes}, "bytes": {maxTreeEntries, 300_000}} {
		for range 2 { // the second time some are in the cache
			f.repo.treeRoom = room
			for what, err := range ask() {
				if !errors.Is(err, ErrTooLarge) {
					t.Errorf("%s beyond the bound of %s: %v, want ErrTooLarge", what, name, err)
				}
			}
		}
	}
	f.repo.treeRoom = treeRoom{20_040, 20_040 * 40}
	for what, err := range ask() {
		if err != nil {
			t.Errorf("%s within the bounds: %v", what, err)
		}
	}
}

// A pack of 7 MB held 200 commits with messages of 32 MiB each.
func TestCommitsAreReadUpToABound(t *testing.T) {
	f := newFixture(t)
	f.write("leaf", "x")
	ids := []string{f.commit("leaf")}
	message := strings.Repeat("long ", 200_000)
	for i := range 8 {
		ids = append(ids, f.feed(fmt.Sprint(i, message), "commit-tree", "-p", ids[i], ids[0]+"^{tree}"))
	}
	f.git("reset", "--quiet", "--soft", ids[len(ids)-1])
	f.publish("main")
	f.repo.commitBytes = 4 << 20
	if _, err := f.repo.CommitInfos(t.Context(), ids); !errors.Is(err, ErrTooLarge) {
		t.Errorf("reading 8 MB with a bound of 4: %v, want ErrTooLarge", err)
	}
	if got, err := f.repo.CommitInfos(t.Context(), ids[:4]); err != nil || len(got) != 4 || !strings.HasPrefix(got[3].Message, fmt.Sprint(2, message)) {
		t.Errorf("reading 3 MB with a bound of 4: %v", err)
	}
}

// git takes sixty times as much memory to merge or compare a file as it is long, if its lines are short, and a pack holds a file of
// newlines in little: two of 100 MB took more than 6 GB.
func TestFilesOfManyLinesAreMergedAndComparedWithinABound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system bounds no memory of others")
	}
	f := newFixture(t)
	f.write("leaf", "x")
	f.commit("leaf")
	f.publish("main")
	newlines := strings.Repeat("\n", 18<<20)
	tree := func(content string) string {
		return f.feed(fmt.Sprintf("100644 blob %s\tmany\n", f.feed(content, "hash-object", "-w", "--stdin")), "mktree")
	}
	base, one, other := f.git("rev-parse", "main^{tree}"), tree(newlines+"one\n"), tree("other\n"+newlines)
	for name, id := range map[string]string{"one": one, "other": other} {
		f.git("push", "--quiet", "origin", f.git("commit-tree", "-m", name, id)+":refs/heads/"+name)
	}
	if err := f.repo.Fetch(t.Context(), Wanted{}); err != nil {
		t.Fatal(err)
	}
	f.repo.gitMemory = 300 << 20
	_, conflict, err := f.repo.MergeTrees(t.Context(), base, one, other)
	if err != nil || conflict == nil || !strings.Contains(conflict.String(), "300 MiB of memory") {
		t.Errorf("merging them: %v, %v", conflict, err)
	}
	text, cut, err := f.repo.Patch(t.Context(), one, other, 1<<20)
	if err != nil || cut || !strings.Contains(string(text), "Binary files") {
		t.Errorf("comparing them: %.200q, %v, %v", text, cut, err)
	}
}

// One change made a file of 3,000 lines one of millions that compresses to nothing, and each change of a line of it took two minutes to merge
// with it, again and again, in its analysis and in each build.
func TestAMergeTakesBoundedWorkOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system bounds no processor time of others")
	}
	f := newFixture(t)
	lines := func(times int) string {
		var b strings.Builder
		for i := range 3000 {
			b.WriteString(strings.Repeat(fmt.Sprintf("l%d\n", i), times))
		}
		return b.String()
	}
	tree := func(content string) string {
		return f.feed(fmt.Sprintf("100644 blob %s\tmany\n", f.feed(content, "hash-object", "-w", "--stdin")), "mktree")
	}
	base, costly, victim := tree(lines(1)), tree(lines(1000)), tree(strings.Replace(lines(1), "l1500\n", "mine\n", 1))
	for name, id := range map[string]string{"base": base, "costly": costly, "victim": victim} {
		f.git("push", "--quiet", "origin", f.git("commit-tree", "-m", name, id)+":refs/heads/"+name)
	}
	if err := f.repo.Fetch(t.Context(), Wanted{}); err != nil {
		t.Fatal(err)
	}
	f.repo.mergeWork = time.Second
	for range 2 {
		_, conflict, err := f.repo.MergeTrees(t.Context(), base, victim, costly)
		if err != nil || conflict == nil || !strings.Contains(conflict.String(), "more than 1s of processor time") {
			t.Errorf("merging them: %v, %v", conflict, err)
		}
		f.repo.mergeWork = 0 // it is known
	}
}

// What git lacks memory for is a conflict only where it met its bound: a machine that is short of memory for a while says the same.
func TestAShortageOfMemoryIsAConflictOnlyAtTheBound(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.write("leaf", "x")
	base := f.commit("leaf")
	f.write("one", "x")
	one := f.commit("one")
	f.git("reset", "--quiet", "--hard", base)
	f.write("other", "x")
	other := f.commit("other")
	f.git("push", "--quiet", "origin", one+":refs/heads/one", other+":refs/heads/other")
	f.publish("main")
	if err := f.repo.Fetch(t.Context(), Wanted{}); err != nil {
		t.Fatal(err)
	}
	trees := make([]string, 3)
	for i, id := range []string{base, one, other} {
		trees[i] = f.git("rev-parse", id+"^{tree}")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	const enough, tooMuch = 256 << 20, 1 << 60 // of memory, for the machine
	for _, c := range []struct {
		name, does string
		memory     uint64
		conflict   bool
	}{
		{"no bound", "echo 'fatal: Out of memory, malloc failed' >&2; exit 128", 0, false},
		{"a short machine", "echo 'fatal: Out of memory, malloc failed' >&2; exit 128", tooMuch, false},
		{"a short machine in zlib", "echo 'fatal: inflate: out of memory' >&2; exit 128", tooMuch, false},
		{"no shortage", `exec "$git" "$@"`, enough, false}, // nothing was cached
		{"the bound", "echo 'fatal: Out of memory, malloc failed' >&2; exit 128", enough, true},
		{"the bound in zlib", "echo 'fatal: inflate: out of memory' >&2; exit 128", enough, true},
	} {
		if c.conflict && runtime.GOOS != "linux" {
			continue
		}
		script := fmt.Sprintf("#!/bin/sh\ngit='%s'\ncase \"$*\" in *merge-tree*) %s;; esac\nexec \"$git\" \"$@\"\n", git, c.does)
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		f.repo.gitMemory = c.memory
		if c.conflict {
			f.repo.merges = newCache[mergeKey, mergeOutcome](maxMerges)
		}
		tree, conflict, err := f.repo.MergeTrees(t.Context(), trees[0], trees[1], trees[2])
		if (conflict != nil) != c.conflict || (err != nil) == (c.conflict || c.name == "no shortage") {
			t.Errorf("%s: %q, %v, %v", c.name, tree, conflict, err)
		}
	}
}
