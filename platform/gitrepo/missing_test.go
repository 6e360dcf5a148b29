package gitrepo

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/platform/gitrepo/gitrepotest"
)

// TestManyMissingCommitsCostAsManyConnectionsAsFew, and what meets them is fetched.
func TestManyMissingCommitsCostAsManyConnectionsAsFew(t *testing.T) {
	f := newFixture(t)
	f.commit("one")
	f.publish("main")
	f.write("a", "on a branch")
	branched := f.commit("two")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/topic")
	f.write("a", "by its id alone")
	lost := f.commit("three")
	f.git("push", "--quiet", "origin", "HEAD:refs/for/review")
	plainGit(t, f.remote, "update-ref", "-d", "refs/for/review")

	remote := gitrepotest.New(t, f.remote, 0)
	repo, err := Open(t.Context(), Options{Remote: remote.URL, RemoteEnv: remote.Env, Dir: filepath.Join(t.TempDir(), "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	// All of them wait while a first fetch is under way.
	unlock, err := lockFile(t.Context(), repo.dir+".lock")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	fetch := func(wanted Wanted, want error) {
		all.Go(func() {
			if err := repo.Fetch(t.Context(), wanted); !errors.Is(err, want) {
				t.Errorf("%v: %v, want %v", wanted, err, want)
			}
		})
	}
	fetch(Wanted{Branches: []string{"main"}}, nil)
	eventually(t, "the first fetch is under way", func() bool {
		repo.fetches.mu.Lock()
		defer repo.fetches.mu.Unlock()
		return repo.fetches.running && len(repo.fetches.waiting) == 0
	})
	fetch(Wanted{Commits: []string{lost}}, nil)
	fetch(Wanted{Branches: []string{"topic"}}, nil)
	fetch(Wanted{Branches: []string{"ghost"}}, ErrNoBranch)
	eventually(t, "these wait", func() bool { return waitingFetches(repo) == 3 })
	for i := range 200 {
		fetch(Wanted{Commits: []string{fmt.Sprintf("%040x", i+1)}}, ErrNoSuchCommit)
	}
	fetch(Wanted{Commits: []string{strings.Repeat("ab", 20), branched}}, ErrNoSuchCommit)
	fetch(Wanted{Commits: []string{branched}}, nil)
	eventually(t, "all wait", func() bool { return waitingFetches(repo) == 205 })
	unlock()
	all.Wait()
	if n := remote.Connections(); n > maxSuspects+maxAlone+6 {
		t.Errorf("%d connections", n)
	}
	for _, id := range []string{branched, lost} {
		if _, err := repo.Tree(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

func waitingFetches(r *Repo) int {
	r.fetches.mu.Lock()
	defer r.fetches.mu.Unlock()
	return len(r.fetches.waiting)
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
