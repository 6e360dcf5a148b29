package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
)

// TestAFullDiskOfTheGatewaysIsNotTheRepositorysFault, on a file system that is full, where one may be mounted.
func TestAFullDiskOfTheGatewaysIsNotTheRepositorysFault(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("nothing may be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	repo := newRepository(t)
	mirror, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: repo.remote, Dir: filepath.Join(small, "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mirror.Close() })
	if err := os.WriteFile(filepath.Join(small, "filler"), make([]byte, 2<<20), 0o644); err == nil {
		t.Fatal("the file system holds more than it was made for")
	}
	commit := repo.branch("change")
	g, err := New(Options{
		Log: newLog(1), Config: testConfiguration(t, repo.remote), Instance: "g1",
		Mirrors: func(context.Context, string) (*gitrepo.Repo, error) { return mirror, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	q := g.queues[testQueue]
	for _, entry := range []*eventsv1.Entry{{Ref: "change"}, {Commit: commit}} {
		a := &asked{Request: admission.Request{ID: "r", Land: &eventsv1.LandRequest{Queue: testQueue, Entries: []*eventsv1.Entry{entry}}}}
		if err := q.pinFar(t.Context(), []*asked{a}); err != nil {
			t.Fatal(err)
		}
		if a.unreachable == nil {
			t.Fatalf("%v: pinned on a full disk", entry)
		}
		a.problem = q.unreachable(a.unreachable)
		if a.problem == nil || a.problem.Code != "repository_unreachable" || !strings.Contains(a.problem.Message, "no space left on device") || !strings.Contains(a.problem.Message, "gateway's") {
			t.Errorf("%v: %v", entry, a.problem)
		}
	}
}
