package gitrepo

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"landfall.build/platform/gitrepo/gitrepotest"
)

// daemon has the mirror ask a git daemon, whose memory is its own.
func (f *fixture) daemon() {
	f.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	free.Close()
	daemon := exec.Command("git", "daemon", "--export-all", "--base-path="+f.remote, "--listen=127.0.0.1", fmt.Sprint("--port=", address.Port))
	daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := daemon.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { killGroup(daemon); daemon.Wait() })
	eventually(f.t, "the daemon listens", func() bool {
		connection, err := net.Dial("tcp", address.String())
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
	f.repo = openMirror(f.t, fmt.Sprintf("git://%s/", address), filepath.Join(f.t.TempDir(), "mirror.git"))
}

// A branch of a kilobyte kept git busy for a quarter of an hour at each try, and no other branch was fetched meanwhile.
func TestAFetchThatTakesLongHoldsNoOtherUp(t *testing.T) {
	f := newFixture(t)
	f.write("a", "one")
	f.commit("one")
	f.publish("main")
	var others []string
	for i := range 4 {
		f.write("a", fmt.Sprint("of", i))
		others = append(others, f.commit("of another"))
		f.git("push", "--quiet", "origin", fmt.Sprintf("HEAD:refs/heads/other%d", i))
	}
	bomb := gitrepotest.Costly(t, f.remote, "costly", 2000, 100<<20)
	gitrepotest.Costly(t, f.remote, "costly2", 2001, 100<<20)
	f.daemon()
	bounds := &f.repo.fetches.bounds
	bounds.together, bounds.apart = 2*time.Second, []time.Duration{2 * time.Second, 4 * time.Second}

	// They meet, so that they are fetched together with it.
	unlock, err := lockFile(t.Context(), f.repo.dir+".lock")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		err := f.repo.Fetch(t.Context(), Wanted{Branches: []string{"main"}})
		if err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the first fetch is under way", func() bool { return waitingFetches(f.repo) == 0 })
	all.Go(func() {
		err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{bomb}, Change: true})
		if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "longer than 4s") {
			t.Errorf("the costly one: %v, want ErrTooLarge", err)
		}
	})
	for _, id := range others {
		all.Go(func() {
			if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{id}, Change: true}); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "they wait", func() bool { return waitingFetches(f.repo) == 1+len(others) })
	unlock()
	all.Wait()
	for _, id := range others {
		if _, err := f.repo.Tree(t.Context(), id); err != nil {
			t.Error(err)
		}
	}

	// A commit that is not there is not looked for in all branches, of which one is costly.
	nowhere := strings.Repeat("1", len(bomb))
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{nowhere}, Change: true}); !errors.Is(err, ErrNoSuchCommit) {
		t.Errorf("a commit that is not there: %v, want ErrNoSuchCommit", err)
	}

	// What is approved is not too large: it takes too long here and now, also if nobody waited for the same commit of a change.
	bounds.whole = 2 * time.Second
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{bomb}}); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTooLarge) {
		t.Errorf("the costly one as the mainline's: %v, want ErrUnreachable", err)
	}

	// Whoever does not wait is told that it takes long, then once that it takes too long.
	bounds.apart = []time.Duration{2 * time.Second, time.Hour}
	some := func(wanted ...string) Missing {
		missing, err := f.repo.FetchSome(t.Context(), Wanted{Branches: wanted, Change: true})
		if err != nil {
			t.Fatal(err)
		}
		return missing
	}
	const costly = "refs/heads/costly"
	if got := some("costly", "other1"); !errors.Is(got[costly], ErrSlow) {
		t.Errorf("%v, want ErrSlow", got)
	}
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/later")
	eventually(t, "it is fetched apart", func() bool {
		f.repo.fetches.mu.Lock()
		defer f.repo.fetches.mu.Unlock()
		a := f.repo.fetches.apart[costly]
		return a != nil && a.tries == 2 && len(f.repo.fetches.apart) == 1
	})
	if got := some("costly", "later"); !errors.Is(got[costly], ErrSlow) || len(got) != 1 {
		t.Errorf("while it is fetched: %v, want ErrSlow of it alone", got)
	}

	// While that goes on, what meets another one is fetched.
	f.write("a", "latest")
	latest := f.commit("latest")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/latest")
	if got := some("costly2", "latest"); !errors.Is(got["refs/heads/costly2"], ErrSlow) || !errors.Is(got["refs/heads/latest"], ErrSlow) {
		t.Errorf("of two that meet: %v, want ErrSlow", got)
	}
	eventually(t, "the other one is there", func() bool {
		_, err := f.repo.Tree(t.Context(), latest)
		return err == nil
	})
	if got := some("costly"); !errors.Is(got[costly], ErrSlow) {
		t.Errorf("the first one: %v, want ErrSlow still", got)
	}
}

func TestWhatAFetchCostsOfMemoryIsBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system bounds no memory of others")
	}
	f := newFixture(t)
	f.write("a", "one")
	other := f.commit("one")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/other")
	bomb := gitrepotest.Costly(t, f.remote, "costly", 1, 400<<20)
	f.daemon()
	f.repo.gitMemory = 300 << 20
	missing, err := f.repo.FetchSome(t.Context(), Wanted{Commits: []string{bomb, other}, Change: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{bomb, other} {
		if !errors.Is(missing[id], ErrSlow) {
			t.Errorf("%s: %v, want ErrSlow", id, missing[id])
		}
	}
	eventually(t, "the other one is there", func() bool {
		_, err := f.repo.Tree(t.Context(), other)
		return err == nil
	})
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{bomb}, Change: true}); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "300 MiB of memory") {
		t.Errorf("the costly one: %v, want ErrTooLarge", err)
	}
}

// What a change brings may be small in a pack and large in memory: git takes it whole to read it, and to check it out.
func TestWhatReadingAndCheckingOutCostOfMemoryIsBounded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system bounds no memory of others")
	}
	f := newFixture(t)
	bomb := gitrepotest.Costly(t, f.remote, "costly", 1, 400<<20)
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{bomb}}); err != nil {
		t.Fatal(err)
	}
	f.repo.gitMemory = 300 << 20
	f.repo.readers.renew()
	entries, err := f.repo.Tree(t.Context(), bomb)
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}
	if _, err := f.repo.Blob(t.Context(), entries[2].Object, 1); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "300 MiB of memory") {
		t.Errorf("reading it: %v, want ErrTooLarge", err)
	}
	w, err := f.repo.AddWorktree(t.Context(), filepath.Join(t.TempDir(), "tree"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Checkout(t.Context(), bomb); err == nil || !strings.Contains(err.Error(), "ut of memory") {
		t.Errorf("checking it out: %v", err)
	}
	f.repo.gitMemory = mostMemory
	if err := w.Checkout(t.Context(), bomb); err != nil {
		t.Errorf("within the bound: %v", err)
	}
}

// One author's branches took git as long as each may, one after another, before it fetched what had met them; and each new one was fetched
// together with what others asked for.
func TestWhoAsksForMuchThatTakesLongWaitsForItself(t *testing.T) {
	f := newFixture(t)
	f.write("a", "one")
	f.commit("one")
	f.publish("main")
	f.write("a", "of another")
	other := f.commit("of another")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/other")
	whose := map[string][]string{other: {"alice"}}
	var costly []string
	bomb := gitrepotest.Costly(t, f.remote, "costly", 2000, 100<<20)
	for i := range 9 {
		id := f.git("--git-dir", f.remote, "commit-tree", "-m", fmt.Sprint(i), bomb+"^{tree}")
		f.git("--git-dir", f.remote, "update-ref", fmt.Sprintf("refs/heads/costly%d", i), id)
		costly, whose[id] = append(costly, id), []string{"mallory"}
	}
	f.daemon()
	bounds := &f.repo.fetches.bounds
	bounds.together, bounds.apart = time.Second, []time.Duration{time.Second, time.Hour}
	ask := func(ids ...string) Missing {
		missing, err := f.repo.FetchSome(t.Context(), Wanted{Commits: ids, Change: true, Whose: whose})
		if err != nil {
			t.Fatal(err)
		}
		return missing
	}
	tries := func() (all int) {
		f.repo.fetches.mu.Lock()
		defer f.repo.fetches.mu.Unlock()
		for _, a := range f.repo.fetches.apart {
			all += a.tries
		}
		return all
	}
	ask(append([]string{other}, costly[:8]...)...)
	eventually(t, "what met them is there", func() bool {
		_, err := f.repo.Tree(t.Context(), other)
		return err == nil
	})
	if got := tries(); got > 2 {
		t.Errorf("it came after %d costly fetches", got)
	}
	eventually(t, "one of them was found to take long", func() bool { return tries() > 0 })
	if got := ask(costly[8]); !errors.Is(got[costly[8]], ErrSlow) {
		t.Fatal(got)
	}
	f.repo.fetches.mu.Lock()
	defer f.repo.fetches.mu.Unlock()
	a := f.repo.fetches.apart[costly[8]]
	if a == nil || a.tries > 0 || a.who != "mallory" {
		t.Fatalf("another one of theirs: %+v, want it to be fetched alone", a)
	}
	// Whoever else asks for it does not wait for theirs.
	f.repo.fetches.join(a, &fetchRequest{change: true, missing: Missing{}, whose: map[string][]string{a.name: {"mallory", "bob"}}})
	if a.who != "bob" {
		t.Errorf("it counts for %s", a.who)
	}
	// Nobody has asked for the others for long: they are given up.
	for _, a := range f.repo.fetches.apart {
		a.asked = time.Now().Add(-2 * apartKept)
	}
	f.repo.fetches.mu.Unlock()
	next, _ := f.repo.fetches.turn(mostMemory)
	f.repo.fetches.mu.Lock()
	if next != nil || len(f.repo.fetches.turns) > 0 {
		t.Errorf("what nobody asks for: %+v and %d more", next, len(f.repo.fetches.turns))
	}
}

// An author's commit was too large. The small one after it was queued to be fetched alone, and nothing fetched it until somebody else asked
// for something.
func TestWhoseCommitWasTooLargeIsFetchedThoughNobodyElseAsks(t *testing.T) {
	f := newFixture(t)
	f.write("a", "one")
	f.commit("one")
	f.publish("main")
	large := strings.Repeat("1", 40)
	whose := map[string][]string{large: {"ada"}}
	push := func(text string) string {
		f.write("a", text)
		id := f.commit(text)
		f.git("push", "--quiet", "origin", "HEAD:refs/heads/topic")
		whose[id] = []string{"ada"}
		return id
	}
	q := &f.repo.fetches
	q.mu.Lock()
	q.apart[large] = &apartFetch{name: large, change: true, who: "ada", ended: time.Now(), err: ErrTooLarge}
	q.taken["ada"] = time.Hour
	q.mu.Unlock()
	ask := func(id string) error {
		missing, err := f.repo.FetchSome(t.Context(), Wanted{Commits: []string{id}, Change: true, Whose: whose})
		if err != nil {
			t.Fatal(err)
		}
		return missing[id]
	}
	small := push("small")
	if err := ask(small); !errors.Is(err, ErrSlow) {
		t.Errorf("while the large one is kept: %v, want ErrSlow", err)
	}
	eventually(t, "the small one is fetched", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.apart[small] == nil
	})
	if _, err := f.repo.Tree(t.Context(), small); err != nil {
		t.Error(err)
	}
	if err := ask(large); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the large one: %v, want ErrTooLarge", err)
	}
	if err := ask(push("another")); err != nil {
		t.Errorf("once nothing takes long: %v", err)
	}
}

// A fetch that waited for another process's counted as costly.
func TestWaitingForTheMirrorIsNoCostOfAFetch(t *testing.T) {
	f := newFixture(t)
	f.write("a", "one")
	id := f.commit("one")
	f.publish("main")
	const held = 100 * time.Millisecond
	bound := fetchBound{time: time.Minute}
	for name, fetch := range map[string]func() (Missing, time.Duration, error){
		"alone": func() (Missing, time.Duration, error) { return f.repo.fetchLocked(t.Context(), []string{id}, bound) },
		"apart": func() (Missing, time.Duration, error) { return f.repo.fetchApart(t.Context(), id, bound) },
	} {
		unlock, err := lockFile(t.Context(), f.repo.dir+".lock")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		time.AfterFunc(held, unlock)
		_, took, err := fetch()
		if all := time.Since(begin); err != nil || took <= 0 || took > all-held {
			t.Errorf("%s: it took %v of %v, %v", name, took, all, err)
		}
	}
}
