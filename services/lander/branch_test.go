package lander_test

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/lander"
)

// git runs plain git in a folder.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// branchOf is main of a remote as one lander sees it, with a mirror of its own.
func branchOf(t *testing.T, remote string) *lander.Branch {
	t.Helper()
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: remote, Dir: filepath.Join(t.TempDir(), "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	return &lander.Branch{Queue: "main", Name: "main", Repo: repo, Graphs: buildgraph.NewLoader(configuration.Queue{Analysis: configuration.Analysis{}}, nil), Timeout: time.Minute}
}

// world is a remote with a mainline, and a clone that pushes to it.
type world struct {
	*testing.T
	remote, work string
}

func newWorld(t *testing.T) *world {
	w := &world{t, filepath.Join(t.TempDir(), "remote.git"), t.TempDir()}
	git(t, w.work, "init", "--quiet", "--bare", "--initial-branch=main", w.remote)
	git(t, w.work, "clone", "--quiet", w.remote, ".")
	return w
}

// commit adds a file, and pushes it to a branch.
func (w *world) commit(file, branch string) string {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.work, file), []byte(file+"\n"), 0o644); err != nil {
		w.Fatal(err)
	}
	git(w.T, w.work, "add", ".")
	git(w.T, w.work, "commit", "--quiet", "-m", "Add "+file)
	git(w.T, w.work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	return git(w.T, w.work, "rev-parse", "HEAD")
}

// TestALanderMakesAgainWhatAnotherOneHasMadeInItsOwnMirror: the same arguments give the same commits, on real git, so
// that the one can push what the other one intended.
func TestALanderMakesAgainWhatAnotherOneHasMadeInItsOwnMirror(t *testing.T) {
	w := newWorld(t)
	base := w.commit("first", "main")
	head := w.commit("second", "ada/second")
	died, heir := branchOf(t, w.remote), branchOf(t, w.remote)
	a := &eventsv1.Admission{Change: "second", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}
	const stamp = 1_700_000_000_000_000
	for _, b := range []*lander.Branch{died, heir} {
		if at, err := b.Head(t.Context()); err != nil || at != base {
			t.Fatalf("the head is %s, %v", at, err)
		}
	}
	intended, err := died.Make(t.Context(), base, a, stamp, nil)
	if err != nil || len(intended.Commits) != 1 {
		t.Fatalf("%+v, %v", intended, err)
	}
	tip := intended.Commits[0]
	if err := heir.Push(t.Context(), base, tip); !errors.Is(err, lander.ErrUnknownCommit) {
		t.Fatalf("the push of a commit that it does not have: %v", err)
	}
	if arrived, err := heir.Contains(t.Context(), base, tip); err != nil || arrived {
		t.Fatalf("before anybody pushed it, it is said to be on the mainline: %v, %v", arrived, err)
	}
	again, err := heir.Make(t.Context(), base, a, stamp, nil)
	if err != nil || !slices.Equal(again.Commits, intended.Commits) || again.Tree != intended.Tree {
		t.Fatalf("made again it is %+v, %v; it was %+v", again, err, intended)
	}
	if err := heir.Push(t.Context(), base, tip); err != nil {
		t.Fatal(err)
	}
	if got := git(t, w.work, "ls-remote", "origin", "refs/heads/main"); !strings.HasPrefix(got, tip) {
		t.Fatalf("main is at %s, want %s", got, tip)
	}
	// And the one that comes back sees that it has landed.
	if at, err := died.Head(t.Context()); err != nil || at != tip {
		t.Fatalf("the head is %s, %v", at, err)
	}
	if arrived, err := died.Contains(t.Context(), tip, tip); err != nil || !arrived {
		t.Fatalf("%v, %v", arrived, err)
	}
}

// TestAFailureToMakeTIsTheChangesOrTheMachines: a change that cannot be made while others can is said to be that; a panic
// and an analysis that does not end are contained.
func TestAFailureToMakeTIsTheChangesOrTheMachines(t *testing.T) {
	w := newWorld(t)
	base := w.commit("first", "main")
	head := w.commit("second", "ada/second")
	change := func(id string) *eventsv1.Admission {
		return &eventsv1.Admission{Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}
	}
	for name, c := range map[string]struct {
		spoil  func(*lander.Branch)
		change string
		own    bool
		says   string
	}{
		"a change that no trailer can name":   {func(*lander.Branch) {}, "a\nb", true, "cannot stand in a trailer"},
		"an analysis that takes too long":     {func(b *lander.Branch) { b.Timeout = time.Nanosecond }, "a", false, "took longer than 1ns"},
		"an analysis that panics always":      {func(b *lander.Branch) { b.Graphs = nil }, "a", false, "panic"},
		"a mirror that has lost its objects":  {func(b *lander.Branch) { b.Repo.Close() }, "a\nb", false, "closed"},
		"a change whose title is all control": {func(*lander.Branch) {}, "a", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := branchOf(t, w.remote)
			if _, err := b.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
			a := change(c.change)
			a.Title = "\x00\x01\r\n"
			c.spoil(b)
			made, err := b.Make(t.Context(), base, a, 1_700_000_000_000_000, nil)
			if c.says == "" {
				if err != nil || len(made.Commits) != 1 {
					t.Fatalf("%+v, %v", made, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, lander.ErrUnmakeable) != c.own {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestATreeThatGitCannotMergeIsAnObstacle, with a sentence that names it.
func TestATreeThatGitCannotMergeIsAnObstacle(t *testing.T) {
	w := newWorld(t)
	base := w.commit("first", "main")
	blob := git(t, w.work, "rev-parse", base+":first")
	raw, err := hex.DecodeString(blob)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "-C", w.work, "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
	cmd.Stdin = strings.NewReader("100644 first\x00" + string(raw) + "100644 x/y\x00" + string(raw))
	tree, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	head := git(t, w.work, "commit-tree", "-p", base, "-m", "odd", strings.TrimSpace(string(tree)))
	git(t, w.work, "push", "--quiet", "origin", head+":refs/heads/odd")
	onto := w.commit("second", "main")
	b := branchOf(t, w.remote)
	if at, err := b.Head(t.Context()); err != nil || at != onto {
		t.Fatalf("the head is %s, %v", at, err)
	}
	made, err := b.Make(t.Context(), onto, &eventsv1.Admission{Change: "odd", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}, 1, nil)
	if err != nil || made.Obstacle.GetClass() != eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT || !strings.Contains(made.Obstacle.GetMessage(), `"x/y"`) {
		t.Errorf("%+v, %v", made, err)
	}
}

// TestBehindACommitWithoutChangesNoOtherPushArrives, and every lander makes the same one.
func TestBehindACommitWithoutChangesNoOtherPushArrives(t *testing.T) {
	w := newWorld(t)
	base := w.commit("first", "main")
	head := w.commit("second", "ada/second")
	b, other := branchOf(t, w.remote), branchOf(t, w.remote)
	for _, b := range []*lander.Branch{b, other} {
		if _, err := b.Head(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	made, err := b.Make(t.Context(), base, &eventsv1.Admission{Change: "second", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*lander.Branch{b, other} {
		if err := b.PushNothing(t.Context(), base, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Push(t.Context(), base, made.Commits[0]); !errors.Is(err, lander.ErrMoved) {
		t.Errorf("the push behind it: %v", err)
	}
	at, err := b.Head(t.Context())
	if err != nil || git(t, w.remote, "rev-parse", at+"^") != base || git(t, w.remote, "rev-parse", at+":") != git(t, w.remote, "rev-parse", base+":") {
		t.Errorf("main is at %s, %v", at, err)
	}
}

// TestAMergeConflictNamesWhomTheChangeMeets, and not whoever altered the same file last.
func TestAMergeConflictNamesWhomTheChangeMeets(t *testing.T) {
	w := newWorld(t)
	lines := strings.Split("abcdefghijklmnopqrst", "")
	edit := func(at int, text, message, branch string) string {
		lines[at] = text
		if err := os.WriteFile(filepath.Join(w.work, "f"), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, w.work, "add", ".")
		git(t, w.work, "commit", "--quiet", "-m", message)
		git(t, w.work, "push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
		return git(t, w.work, "rev-parse", "HEAD")
	}
	base := edit(0, "a", "Begin", "main")
	edit(4, "met", "Edit\n\nLandfall-Change: met", "main")
	head := edit(15, "other", "Edit\n\nLandfall-Change: other", "main")
	git(t, w.work, "checkout", "--quiet", "-b", "mine", base)
	lines[15] = "p"
	mine := edit(4, "mine", "Mine", "mine")
	b := branchOf(t, w.remote)
	if at, err := b.Head(t.Context()); err != nil || at != head {
		t.Fatalf("the head is %s, %v", at, err)
	}
	made, err := b.Make(t.Context(), head, &eventsv1.Admission{Change: "mine", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: mine, Base: base}}}, 1_700_000_000_000_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := made.Candidate.Obstacle; r.GetOther() != "met" || !strings.Contains(r.GetMessage(), "f:5 was changed by met, landed as ") {
		t.Errorf("the reason is %v", r)
	}
}
