package gitrepo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A git that was killed left a lock in the mirror, as on a machine that lost its power, and the branch was never fetched again.
func TestLocksThatAKilledGitLeftInTheMirrorGo(t *testing.T) {
	f := newFixture(t)
	f.write("a", "one")
	f.commit("one")
	f.publish("main")
	f.write("a", "two")
	two := f.commit("two")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/main")
	left := []string{filepath.Join(f.repo.dir, mirrorRef("refs/heads/main")+".lock"), filepath.Join(f.repo.dir, "packed-refs.lock")}
	for _, lock := range left {
		if err := os.WriteFile(lock, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{"main"}}); err == nil {
		t.Error("one that may be held does not count")
	}
	if _, err := os.Stat(left[0]); err != nil {
		t.Errorf("one that may be held: %v", err)
	}
	now := time.Now()
	f.repo.clock = func() time.Time { return now.Add(lockAge + time.Second) }
	if err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{"main"}}); err != nil {
		t.Error(err)
	}
	if got, err := f.repo.Resolve(t.Context(), "refs/heads/main"); got != two || err != nil {
		t.Errorf("main is at %s, %v", got, err)
	}
	if _, err := f.repo.git(t.Context(), "pack-refs", "--all"); err != nil {
		t.Error(err)
	}
}

// Each change was rejected in turn where a push that was killed had left its lock in the remote, after two minutes of tries.
func TestALockOfTheRemoteIsNoFaultOfAChange(t *testing.T) {
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	id := f.children(head, 1)[0]
	for _, name := range []string{"refs/heads/main.lock", "HEAD.lock"} {
		lock := filepath.Join(f.remote, name)
		if err := os.WriteFile(lock, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		refused, is := errors.AsType[*RefusedError](f.repo.Push(t.Context(), "main", head, id))
		if !is || !refused.Everybody || !strings.Contains(refused.Sentence, lock) || !strings.Contains(refused.Sentence, "remove") {
			t.Errorf("%s: %#v", name, refused)
		}
		if err := os.Remove(lock); err != nil {
			t.Errorf("it was removed, though somebody may hold it: %v", err)
		}
	}
}

// On a busy machine git takes its time to end. Killed before, it left the branch of the remote locked.
func TestAPushThatIsEndedLeavesNoLock(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("it waits longer than killDelay: set LANDFALL_TEST_SLOW, as make test-all does")
	}
	f := newFixture(t)
	head := f.commit("one")
	f.publish("main")
	id := f.children(head, 1)[0]
	lock, program := filepath.Join(t.TempDir(), "main.lock"), filepath.Join(t.TempDir(), "receive-pack")
	text := "#!/bin/sh\ntrap 'sleep 6; rm " + lock + "; exit 1' TERM\n: > " + lock + "\nwhile :; do sleep 0.1; done\n"
	if err := os.WriteFile(program, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
	f.repo.remote, f.repo.networkEnv = "ssh://remote/r.git", []string{"GIT_SSH_COMMAND=" + program, "GIT_SSH_VARIANT=ssh"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- f.repo.Push(ctx, "main", head, id) }()
	eventually(t, "it holds the lock", func() bool { _, err := os.Stat(lock); return err == nil })
	cancel()
	if err := <-ended; err == nil {
		t.Error("it was not ended")
	}
	if _, err := os.Stat(lock); err == nil {
		t.Error("the lock is left")
	}
}

// A remote could have a lock of the mirror removed, by its own words in what git prints, and git's words any file that ends so.
func TestNoOtherLockOfTheMirrorGoes(t *testing.T) {
	f := newFixture(t)
	f.repo.clock = func() time.Time { return time.Now().Add(2 * lockAge) }
	words := func(name string) string {
		return "Unable to create '" + filepath.Join(f.repo.dir, name) + "': File exists.\n"
	}
	for name, stderr := range map[string]string{
		"packed-refs.lock": "remote: fatal: " + words("packed-refs.lock"),
		apartLock:          "fatal: " + words(apartLock),
		pruneLock:          "fatal: " + words(pruneLock),
		usesLock:           "fatal: " + words(usesLock),
	} {
		lock := filepath.Join(f.repo.dir, name)
		if err := os.WriteFile(lock, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if f.repo.freeLocks(&CommandError{Stderr: "error: of git\n" + stderr}) {
			t.Errorf("%q frees a lock", stderr)
		}
		if _, err := os.Stat(lock); err != nil {
			t.Error(err)
		}
	}
	if !f.repo.freeLocks(&CommandError{Stderr: "remote: of the remote\nfatal: " + words("packed-refs.lock")}) {
		t.Error("git's own words free none")
	}
}
