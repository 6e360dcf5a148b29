package lander_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	return &lander.Branch{Queue: "main", Name: "main", Repo: repo, Graphs: buildgraph.NewLoader(configuration.Queue{Analysis: configuration.Analysis{}}, nil)}
}

// TestALanderMakesAgainWhatAnotherOneHasMadeInItsOwnMirror: the same arguments give the same commits, on real git, so
// that the one can push what the other one intended.
func TestALanderMakesAgainWhatAnotherOneHasMadeInItsOwnMirror(t *testing.T) {
	remote, work := filepath.Join(t.TempDir(), "remote.git"), t.TempDir()
	git(t, work, "init", "--quiet", "--bare", "--initial-branch=main", remote)
	git(t, work, "clone", "--quiet", remote, ".")
	commit := func(file string) string {
		if err := os.WriteFile(filepath.Join(work, file), []byte(file+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		git(t, work, "add", ".")
		git(t, work, "commit", "--quiet", "-m", "Add "+file)
		return git(t, work, "rev-parse", "HEAD")
	}
	base := commit("first")
	git(t, work, "push", "--quiet", "origin", "HEAD:main")
	head := commit("second")
	git(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/ada/second")

	died, heir := branchOf(t, remote), branchOf(t, remote)
	a := &eventsv1.Admission{Change: "second", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}
	const stamp = 1_700_000_000_000_000
	for _, b := range []*lander.Branch{died, heir} {
		if at, err := b.Head(t.Context()); err != nil || at != base {
			t.Fatalf("the head is %s, %v", at, err)
		}
	}
	intended, err := died.Make(t.Context(), base, a, stamp)
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
	again, err := heir.Make(t.Context(), base, a, stamp)
	if err != nil || !slices.Equal(again.Commits, intended.Commits) || again.Tree != intended.Tree {
		t.Fatalf("made again it is %+v, %v; it was %+v", again, err, intended)
	}
	if err := heir.Push(t.Context(), base, tip); err != nil {
		t.Fatal(err)
	}
	if got := git(t, work, "ls-remote", "origin", "refs/heads/main"); !strings.HasPrefix(got, tip) {
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
