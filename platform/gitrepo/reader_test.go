package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestADeadReaderIsReplaced(t *testing.T) {
	f := newFixture(t)
	f.write("a", "content\n")
	id := f.commit("one")
	f.publish("main")
	entries, err := f.repo.Tree(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		pool := f.repo.readers
		pool.mu.Lock()
		if len(pool.idle) == 0 {
			t.Fatal("no reader is idle")
		}
		for _, one := range pool.idle {
			if err := syscall.Kill(one.cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		pool.mu.Unlock()
		body, err := f.repo.Blob(t.Context(), entries[0].Object, 100)
		if err != nil || string(body) != "content\n" {
			t.Fatalf("round %d: %q, %v", round, body, err)
		}
	}
}

func TestACancelledReadEndsAndHarmsNoOther(t *testing.T) {
	f := newFixture(t)
	f.write("a", strings.Repeat("x", 4<<20))
	id := f.commit("one")
	f.publish("main")
	entries, err := f.repo.Tree(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			if i%2 == 0 {
				go cancel()
			}
			defer cancel()
			body, err := f.repo.Blob(ctx, entries[0].Object, 8<<20)
			if err != nil && (i%2 == 1 || !errors.Is(err, context.Canceled)) {
				t.Errorf("reader %d: %v", i, err)
			}
			if err == nil && len(body) != 4<<20 {
				t.Errorf("reader %d: %d bytes", i, len(body))
			}
		})
	}
	all.Wait()
}

func TestABlobHasItsBoundAndItsKind(t *testing.T) {
	f := newFixture(t)
	f.write("a", "12345")
	id := f.commit("one")
	f.publish("main")
	blob := f.git("rev-parse", id+":a")
	if body, err := f.repo.Blob(t.Context(), blob, 5); err != nil || string(body) != "12345" {
		t.Errorf("five bytes: %q, %v", body, err)
	}
	if _, err := f.repo.Blob(t.Context(), blob, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("bound of four: %v", err)
	}
	for _, other := range []string{id, strings.Repeat("0", 40), "a", "--help", blob + "\nflush", ""} {
		if _, err := f.repo.Blob(t.Context(), other, 100); !errors.Is(err, ErrInvalid) {
			t.Errorf("blob %q: %v, want ErrInvalid", other, err)
		}
	}
}

func TestReadersSeeWhatCameAfterThem(t *testing.T) {
	f := newFixture(t)
	f.write("a", "0")
	f.commit("zero")
	f.publish("main")
	for i := range maxPacks + 5 { // past the point at which packs are rolled up
		f.write("a", fmt.Sprint(i+1))
		id := f.commit("next")
		f.publish("main")
		if _, err := f.repo.Tree(t.Context(), id); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if got, err := f.repo.Resolve(t.Context(), "main"); got != id || err != nil {
			t.Fatalf("main is %s (%v), want %s", got, err, id)
		}
	}
	packs := plainGit(t, f.repo.Dir(), "count-objects", "-v")
	if n := 0; strings.Contains(packs, "packs: ") {
		fmt.Sscanf(packs[strings.Index(packs, "packs: "):], "packs: %d", &n)
		if n > maxPacks {
			t.Errorf("%d packs", n)
		}
	}
}

func TestAClosedMirrorAnswersWithAnError(t *testing.T) {
	f := newFixture(t)
	id := f.commit("one")
	f.publish("main")
	f.repo.Close()
	if _, err := f.repo.CommitInfo(t.Context(), id); err == nil {
		t.Error("it read a commit")
	}
	if err := f.repo.Fetch(t.Context(), Wanted{}); err == nil {
		t.Error("it fetched")
	}
}
