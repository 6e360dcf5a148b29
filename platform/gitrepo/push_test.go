package gitrepo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// children writes n different commits on top of one.
func (f *fixture) children(parent string, n int) []string {
	f.t.Helper()
	who := Identity{Name: "Ada", Email: "ada@example.com", Date: "1700000000 +0000"}
	var ids []string
	for i := range n {
		id, err := f.repo.WriteCommit(f.t.Context(), CommitSpec{
			Tree: f.treeOf(parent), Parents: []string{parent}, Author: who, Committer: who, Message: fmt.Sprintf("child %d\n", i),
		})
		if err != nil {
			f.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestOfPushesThatRaceExactlyOneWins(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	head := f.commit("one")
	f.publish("main")
	const rivals = 4
	for round := range 5 {
		ids := f.children(head, rivals)
		errs := make([]error, rivals)
		var all sync.WaitGroup
		for i, id := range ids {
			all.Go(func() { errs[i] = f.repo.Push(t.Context(), "main", head, id) })
		}
		all.Wait()
		winner := ""
		for i, err := range errs {
			switch {
			case err == nil && winner == "":
				winner = ids[i]
			case err == nil:
				t.Fatalf("round %d: two pushes won: %v", round, errs)
			case !errors.Is(err, ErrMoved):
				t.Fatalf("round %d: a loser was told %v, want ErrMoved", round, err)
			}
		}
		if got, err := f.repo.RemoteHead(t.Context(), "main"); err != nil || got != winner || winner == "" {
			t.Fatalf("round %d: main is %s (%v), the winner %q: %v", round, got, err, winner, errs)
		}
		head = winner
	}
}

func TestAPushChangesNothingUnlessTheBranchIsWhereItWasSaidToBe(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	head := f.commit("one")
	f.publish("main")
	ids := f.children(head, 2)
	if err := f.repo.Push(t.Context(), "new", head, ids[0]); !errors.Is(err, ErrMoved) {
		t.Errorf("to a branch that is gone: %v, want ErrMoved", err)
	}
	if err := f.repo.Push(t.Context(), "main", "", ids[0]); !errors.Is(err, ErrMoved) {
		t.Errorf("to a branch that should not exist: %v, want ErrMoved", err)
	}
	if err := f.repo.Push(t.Context(), "main", ids[0], head); !errors.Is(err, ErrInvalid) {
		t.Errorf("backwards: %v, want ErrInvalid", err)
	}
	if err := f.repo.Push(t.Context(), "main", head, strings.Repeat("1", 40)); !errors.Is(err, ErrNoSuchCommit) {
		t.Errorf("of a commit that is not there: %v, want ErrNoSuchCommit", err)
	}
	if got, _ := f.repo.RemoteHead(t.Context(), "main"); got != head {
		t.Fatalf("main is %s", got)
	}
	if err := f.repo.Push(t.Context(), "new/branch", "", ids[0]); err != nil {
		t.Errorf("a new branch: %v", err)
	}
	for range 2 { // a push that is repeated, since nobody heard the answer, has arrived
		if err := f.repo.Push(t.Context(), "main", head, ids[1]); err != nil {
			t.Errorf("main: %v", err)
		}
	}
	if err := f.repo.pushRef(t.Context(), "refs/landfall/x", "", ids[0]); err != nil {
		t.Errorf("another ref: %v", err)
	}
	if err := f.repo.pushRef(t.Context(), "refs/landfall/x", ids[0], ""); err != nil {
		t.Errorf("deleting it: %v", err)
	}
	if got := plainGit(t, f.remote, "for-each-ref", "refs/landfall"); got != "" {
		t.Errorf("left: %s", got)
	}
}

func TestARefusedPushSaysWhatTheRemoteSaid(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	hook := filepath.Join(f.remote, "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(hook), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho no landing on Fridays >&2\nexit 1\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	id := f.children(head, 1)[0]
	err := f.repo.Push(t.Context(), "main", head, id)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no landing on Fridays") {
		t.Errorf("error %v", err)
	}
	if refused, is := errors.AsType[*RefusedError](err); !is || refused.Sentence != "no landing on Fridays" {
		t.Errorf("the remote's sentence is that of %#v", err)
	}
	// A lock that nobody gives up is a refusal as well, not a hang.
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.remote, "refs/heads/main.lock"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.repo.Push(t.Context(), "main", head, id); !errors.Is(err, ErrRefused) {
		t.Errorf("with a lock left behind: %v, want ErrRefused", err)
	}
}

// TestTheSentenceOfARefusalIsTheRemotesAlone, once, in one line.
func TestTheSentenceOfARefusalIsTheRemotesAlone(t *testing.T) {
	for stderr, want := range map[string]string{
		"": "pre-receive hook declined",
		"remote: main is frozen until Monday        \nerror: failed to push some refs to 'x'\n":                                                    "main is frozen until Monday",
		"remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: \nremote: =====\nremote: error: A review is needed.\n": "GH006: Protected branch update failed for refs/heads/main. A review is needed.",
		"remote: twice\nremote: twice\n":                  "twice",
		"remote: " + strings.Repeat("ü", 400) + "\n":      strings.Repeat("ü", 148) + "…",
		"remote: bytes \xff that are no text\nhint: no\n": "bytes \uFFFD that are no text",
		"remote: \x1b[31mred\x07\u202e!\x1b[0m\n":         "[31mred ! [0m",
	} {
		if got := refusal("[remote rejected] (pre-receive hook declined)", &CommandError{Stderr: stderr}).Sentence; got != want {
			t.Errorf("%q says %q, want %q", stderr, got, want)
		}
	}
}

// TestARefusalWhoseBranchCannotBeReadIsUnknown: the hook refuses, and takes the repository along.
func TestARefusalWhoseBranchCannotBeReadIsUnknown(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	hook := filepath.Join(f.remote, "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(hook), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nmv HEAD HEAD.away\nexit 1\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	err := f.repo.Push(t.Context(), "main", head, f.children(head, 1)[0])
	if errors.Is(err, ErrRefused) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("error %v, want ErrUnreachable", err)
	}
}

func TestARemoteThatIsGoneIsUnreachableAndABranchThatIsGoneIsNot(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	f.publish("decoy/refs/heads/ghost") // git matches the ends of names
	id := f.children(head, 1)[0]
	if _, err := f.repo.RemoteHead(t.Context(), "ghost"); !errors.Is(err, ErrNoBranch) {
		t.Errorf("head of a branch that is not there: %v", err)
	}
	if err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{"main", "ghost"}}); !errors.Is(err, ErrNoBranch) {
		t.Errorf("fetch of a branch that is not there: %v", err)
	}
	if err := os.Rename(f.remote, f.remote+".away"); err != nil {
		t.Fatal(err)
	}
	_, headErr := f.repo.RemoteHead(t.Context(), "main")
	for what, err := range map[string]error{
		"head": headErr, "push": f.repo.Push(t.Context(), "main", head, id),
		"fetch": f.repo.Fetch(t.Context(), Wanted{Branches: []string{"main"}}), "fetch of all": f.repo.Fetch(t.Context(), Wanted{}),
	} {
		if !errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want ErrUnreachable", what, err)
		}
	}
}
