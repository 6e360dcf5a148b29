package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// hostileNames are names that a careless reader, parser or command line trips over.
var hostileNames = []string{
	"plain", "with space", " lead", "trail ", "-rf", "--help", "a\nb", "tab\there", `quo"te`, "it's", `back\slash`,
	"\xff\xfe", "ünïcode", "$(id)", "`id`", "*", "?", "[a]", "~", "#x", "!x", ":(glob)x", "HEAD", "a.lock", "@{u}", "...", "\x01\x7f",
}

// editRandomly writes, changes and removes random files of the clone.
func (f *fixture) editRandomly(random *rand.Rand, edits int) {
	f.t.Helper()
	for range edits {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = hostileNames[random.IntN(len(hostileNames))]
		}
		full := f.work + "/" + strings.Join(parts, "/")
		dir := full[:strings.LastIndex(full, "/")]
		if os.MkdirAll(dir, 0o777) != nil { // a file is where a directory is wanted
			continue
		}
		if info, err := os.Lstat(full); err == nil {
			if info.IsDir() && random.IntN(4) > 0 {
				continue
			}
			if err := os.RemoveAll(full); err != nil {
				f.t.Fatal(err)
			}
			if random.IntN(2) == 0 {
				continue
			}
		}
		var err error
		switch random.IntN(6) {
		case 0:
			err = os.Symlink("/etc/"+parts[0], full)
		case 1:
			err = os.WriteFile(full, []byte("#!/bin/sh\n"), 0o777)
		default:
			err = os.WriteFile(full, fmt.Appendf(nil, "%d\n", random.IntN(20)), 0o666)
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

func seeded(t *testing.T) *rand.Rand {
	return seedtest.Random(t)
}

// rawGit is plainGit without trimming: names may begin or end in white space.
func (f *fixture) rawGit(args ...string) string {
	f.t.Helper()
	out, err := tryGit(f.work, args...)
	if err != nil {
		f.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func TestTreesAndDifferencesAreGitsOwn(t *testing.T) {
	random := seeded(t)
	f := newFixture(t)
	var ids []string
	for range 12 {
		f.editRandomly(random, 25)
		ids = append(ids, f.commit("edit"))
	}
	f.publish("main")
	for i, id := range ids {
		entries, err := f.repo.Tree(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, e := range entries {
			fmt.Fprintf(&got, "%06o blob %s\t%s\x00", e.Mode, e.Object, e.Path)
		}
		if want := f.rawGit("ls-tree", "-r", "-z", id); got.String() != want {
			t.Fatalf("tree of %s:\n%q\ngit's:\n%q", id, got.String(), want)
		}
		other := ids[random.IntN(len(ids))]
		changes, err := f.repo.DiffTrees(t.Context(), other, id)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSortedFunc(changes, func(a, b Changed) int { return strings.Compare(a.Path, b.Path) }) {
			t.Errorf("changes are not sorted: %v", changes)
		}
		if got, want := shownChanges(changes), gitChanges(f, other, id); !slices.Equal(got, want) {
			t.Fatalf("difference of %s (%d) and %s:\n%q\ngit's:\n%q", other, i, id, got, want)
		}
	}
}

// TestATreeHoldsAChangeIfNoneOfItsPathsDiffers compares with the difference to what the change leads to, on
// changes as a whole and on parts of them.
func TestATreeHoldsAChangeIfNoneOfItsPathsDiffers(t *testing.T) {
	random := seeded(t)
	f := newFixture(t)
	var ids []string
	for range 12 {
		f.editRandomly(random, 6)
		ids = append(ids, f.commit("edit"))
	}
	f.publish("main")
	pick := func() string { return ids[random.IntN(len(ids))] }
	seen := map[bool]int{}
	for range 300 {
		base, head, in := pick(), pick(), pick()
		changes, err := f.repo.DiffTrees(t.Context(), base, head)
		if err != nil {
			t.Fatal(err)
		}
		changes = slices.DeleteFunc(changes, func(Changed) bool { return random.IntN(3) == 0 })
		differing, err := f.repo.DiffTrees(t.Context(), in, head)
		if err != nil {
			t.Fatal(err)
		}
		want := !slices.ContainsFunc(changes, func(c Changed) bool {
			return slices.ContainsFunc(differing, func(d Changed) bool { return d.Path == c.Path })
		})
		got, err := f.repo.Holds(t.Context(), in, changes)
		if err != nil || got != want {
			t.Fatalf("%s holds %v of %s to %s: %v, want %v (%v)", in, shownChanges(changes), base, head, got, want, err)
		}
		seen[got]++
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("always the same: %v", seen)
	}
}

func shownChanges(changes []Changed) []string {
	shown := make([]string, 0, len(changes))
	for _, c := range changes {
		side := func(e Entry) string {
			if e.Kind == NoEntry {
				return "000000 " + strings.Repeat("0", 40)
			}
			if e.Path != c.Path {
				return "wrong path"
			}
			return fmt.Sprintf("%06o %s", e.Mode, e.Object)
		}
		shown = append(shown, side(c.Old)+" "+side(c.New)+" "+c.Path)
	}
	slices.Sort(shown)
	return shown
}

func gitChanges(f *fixture, a, b string) []string {
	fields := strings.Split(f.rawGit("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", a, b), "\x00")
	shown := make([]string, 0)
	for i := 0; i+1 < len(fields); i += 2 {
		head := strings.Fields(fields[i]) // :oldmode newmode oldid newid status
		shown = append(shown, strings.Join([]string{head[0][1:], head[2], head[1], head[3], fields[i+1]}, " "))
	}
	slices.Sort(shown)
	return shown
}

// treeBody encodes entries "mode name" as a tree object, in the order given.
func treeBody(entries ...string) []byte {
	var b bytes.Buffer
	for _, entry := range entries {
		b.WriteString(entry)
		b.WriteByte(0)
		b.Write(make([]byte, 20))
	}
	return b.Bytes()
}

func TestTreesThatNoCheckoutMayFollowAreRefused(t *testing.T) {
	for name, body := range map[string][]byte{
		"dot dot":             treeBody("100644 .."),
		"dot":                 treeBody("40000 ."),
		"git directory":       treeBody("40000 .GIT"),
		"slash":               treeBody("100644 a/b"),
		"empty name":          treeBody("100644 "),
		"twice":               treeBody("100644 a", "100644 a"),
		"file and directory":  treeBody("120000 a", "100644 a.b", "40000 a"),
		"unsorted":            treeBody("100644 b", "100644 a"),
		"unknown kind":        treeBody("010644 a"),
		"mode is no number":   treeBody("10x644 a"),
		"cut short":           treeBody("100644 a")[:15],
		"no separator at all": []byte("garbage"),
	} {
		if _, err := parseTree("x", body); !errors.Is(err, ErrBadObject) {
			t.Errorf("%s: error %v, want ErrBadObject", name, err)
		}
	}
	if _, err := parseTree("x", treeBody("100644 a", "100644 a.b", "40000 b", "100644 b.c")[:0]); err != nil {
		t.Errorf("the empty tree: %v", err)
	}
}

func TestATreeOfUnboundedSizeIsRefused(t *testing.T) {
	f := newFixture(t)
	f.write("leaf", "x")
	tree := f.git("rev-parse", f.commit("leaf")+"^{tree}")
	for range 8 { // each level holds the one below ten times
		var list strings.Builder
		for i := range 10 {
			fmt.Fprintf(&list, "040000 tree %s\td%d\n", tree, i)
		}
		cmd := exec.Command("git", "-C", f.work, "mktree")
		cmd.Stdin = strings.NewReader(list.String())
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		tree = strings.TrimSpace(string(out))
	}
	bomb := f.git("commit-tree", "-m", "bomb", tree)
	f.git("reset", "--quiet", "--soft", bomb)
	f.publish("main")
	if _, err := f.repo.Tree(t.Context(), bomb); !errors.Is(err, ErrTooLarge) {
		t.Errorf("listing it: %v, want ErrTooLarge", err)
	}
	if _, err := f.repo.DiffTrees(t.Context(), emptyTree, bomb); !errors.Is(err, ErrTooLarge) {
		t.Errorf("comparing it: %v, want ErrTooLarge", err)
	}
}

// A chain of folders with long names costs its files the length of it each, and its author almost nothing.
func TestATreeOfPathsOfUnboundedSizeIsRefused(t *testing.T) {
	f := newFixture(t)
	f.write("leaf", "x")
	blob := f.git("rev-parse", f.commit("leaf")+":leaf")
	var list strings.Builder
	for i := range 22_000 {
		fmt.Fprintf(&list, "100644 blob %s\t%05d\n", blob, i)
	}
	written := func(list string) string {
		cmd := exec.Command("git", "-C", f.work, "mktree")
		cmd.Stdin = strings.NewReader(list)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	tree := written(list.String())
	for range 100 {
		tree = written(fmt.Sprintf("040000 tree %s\t%s\n", tree, strings.Repeat("d", maxName)))
	}
	commit := f.git("commit-tree", "-m", "long", tree)
	f.git("reset", "--quiet", "--soft", commit)
	f.publish("main")
	if _, err := f.repo.Tree(t.Context(), commit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("listing it: %v, want ErrTooLarge", err)
	}
	f.repo.pathBytes = 1 << 20
	if _, err := f.repo.DiffTrees(t.Context(), emptyTree, commit); !errors.Is(err, ErrTooLarge) {
		t.Errorf("comparing it: %v, want ErrTooLarge", err)
	}
}

func FuzzATreeParsesOrIsRefused(f *testing.F) {
	f.Add(treeBody("100644 a", "40000 b"))
	f.Add([]byte("100644 a\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		node, err := parseTree("x", body)
		if (node == nil) == (err == nil) {
			t.Fatalf("node %v, error %v", node, err)
		}
		if err == nil {
			for _, e := range node.entries {
				if !isEntryName(e.Path) || !IsID(e.Object) || e.Kind == NoEntry {
					t.Fatalf("entry %+v", e)
				}
			}
		}
	})
}
