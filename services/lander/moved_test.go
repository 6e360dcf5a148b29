package lander_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/lander"
)

// TestBranchesUnderReviewAreMovedByCompareAndSwap, on real git: what somebody has pushed is never lost, and the host is waited for.
func TestBranchesUnderReviewAreMovedByCompareAndSwap(t *testing.T) {
	w := newWorld(t)
	base := w.commit("first", "main")
	head := w.commit("second", "ada/second")
	git(t, w.work, "push", "--quiet", "origin", "HEAD:refs/pull/7/head", "HEAD:refs/heads/tools")
	b := branchOf(t, w.remote)
	b.Mainlines, b.HeadPatience = []string{"main", "tools"}, time.Minute
	if _, err := b.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := b.Make(t.Context(), base, &eventsv1.Admission{Change: "second", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}, 1_700_000_000_000_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := made.Commits[0]
	at := func(want string) {
		t.Helper()
		if got := git(t, w.work, "ls-remote", "origin", "refs/heads/ada/second"); !strings.HasPrefix(got, want) {
			t.Fatalf("the branch is at %q, want %s", got, want)
		}
	}
	heads := []*eventsv1.ReviewHead{{Review: &eventsv1.Review{Branch: "refs/heads/ada/second", Shown: "refs/pull/7/head"}, From: head, To: to}}
	shown := make(chan error, 1)
	go func() { // the host follows
		for t.Context().Err() == nil {
			if at, err := b.Repo.RemoteHead(t.Context(), "ada/second"); err != nil || at == to {
				shown <- errors.Join(err, exec.Command("git", "-C", w.remote, "update-ref", "refs/pull/7/head", to).Run())
				return
			}
		}
	}()
	if err := b.MoveHeads(t.Context(), heads); err != nil {
		t.Fatal(err)
	}
	if err := <-shown; err != nil {
		t.Fatal(err)
	}
	at(to)
	if got := git(t, w.work, "ls-remote", "origin", "refs/pull/7/head"); !strings.HasPrefix(got, to) {
		t.Errorf("it goes on while the host shows %q", got)
	}
	if err := b.MoveHeads(t.Context(), heads); err != nil {
		t.Fatalf("moved again: %v", err)
	}
	for range 2 {
		if err := b.TakeBackHeads(t.Context(), heads); err != nil {
			t.Fatal(err)
		}
		at(head)
	}

	// What somebody has pushed stays, before it is moved and after.
	mine := w.commit("third", "ada/second")
	if err := b.MoveHeads(t.Context(), heads); err == nil {
		t.Error("it is moved from where somebody has pushed it")
	}
	if err := b.TakeBackHeads(t.Context(), heads); err != nil {
		t.Errorf("it was never moved, and taken back it says %v", err)
	}
	at(mine)

	// A branch that a queue lands on is none under review.
	if err := b.MoveHeads(t.Context(), []*eventsv1.ReviewHead{{Review: &eventsv1.Review{Branch: "refs/heads/tools"}, From: head, To: to}}); err == nil {
		t.Error("a mainline is moved")
	}
	if got := git(t, w.work, "ls-remote", "origin", "refs/heads/tools"); !strings.HasPrefix(got, head) {
		t.Errorf("tools is at %q", got)
	}

	// Another lander's mirror has neither T nor the commit that was asked for.
	git(t, w.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/bob/keeps-it")
	git(t, w.remote, "update-ref", "refs/heads/ada/second", to)
	heir := branchOf(t, w.remote)
	if err := heir.TakeBackHeads(t.Context(), heads); err != nil {
		t.Error(err)
	}
	at(head)
	if err := heir.MoveHeads(t.Context(), heads); !errors.Is(err, lander.ErrUnknownCommit) {
		t.Errorf("without T: %v", err)
	}
}

// TestAHostThatIsLateIsWaitedForAMoment, until it is in time again: other landings wait meanwhile.
func TestAHostThatIsLateIsWaitedForAMoment(t *testing.T) {
	w := newWorld(t)
	base := w.commit("first", "main")
	head := w.commit("second", "ada/second")
	git(t, w.work, "push", "--quiet", "origin", "HEAD:refs/pull/7/head")
	b := branchOf(t, w.remote)
	if _, err := b.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	made, err := b.Make(t.Context(), base, &eventsv1.Admission{Change: "second", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: head, Base: base}}}, 1_700_000_000_000_000, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.HeadPatience = 500 * time.Millisecond
	heads := []*eventsv1.ReviewHead{{Review: &eventsv1.Review{Branch: "refs/heads/ada/second", Shown: "refs/pull/7/head"}, From: head, To: made.Commits[0]}}
	for _, patience := range []string{"500ms", "50ms"} {
		if err := b.MoveHeads(t.Context(), heads); err == nil || !strings.HasSuffix(err.Error(), "after "+patience) {
			t.Errorf("of a host that shows nothing it says %v", err)
		}
	}
	git(t, w.remote, "update-ref", "refs/pull/7/head", made.Commits[0])
	if err := b.MoveHeads(t.Context(), heads); err != nil {
		t.Error(err)
	}
	git(t, w.remote, "update-ref", "refs/pull/7/head", head)
	if err := b.MoveHeads(t.Context(), heads); err == nil || !strings.HasSuffix(err.Error(), "after 500ms") {
		t.Errorf("of one that was in time again it says %v", err)
	}
}
