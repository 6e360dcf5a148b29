package gitrepo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// later moves a mirror's clock.
func (r *Repo) later(d time.Duration) {
	clock := r.clock
	r.clock = func() time.Time { return clock().Add(d) }
}

func random(t testing.TB, bytes int) string {
	t.Helper()
	b := make([]byte, bytes)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pushed commits a file to a branch of the remote that begins at main.
func (f *fixture) pushed(branch, path, content string) string {
	f.t.Helper()
	f.git("checkout", "--quiet", "-B", branch, "main")
	f.write(path, content)
	id := f.commit(branch)
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/"+branch)
	f.git("checkout", "--quiet", "main")
	return id
}

func (f *fixture) begin() string {
	f.t.Helper()
	f.write("a.txt", "a\n")
	f.write("dir/b.txt", "b\n")
	id := f.commit("first")
	f.publish("main")
	return id
}

func diskSize(t testing.TB, dir string) (size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}

func mustPrune(t testing.TB, r *Repo, o PruneOptions) Pruned {
	t.Helper()
	done, err := r.Prune(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// contents reads all files of a tree.
func contents(ctx context.Context, r *Repo, tree string) error {
	entries, err := r.Tree(ctx, tree)
	for _, e := range entries {
		if _, berr := r.Blob(ctx, e.Object, 1<<30); berr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", e.Path, berr))
		}
	}
	return err
}

const mib = 1 << 20

var ofMain = PruneOptions{Age: time.Hour, Branches: []string{"main"}}

// A change with a large file was fetched by its branch and by its commit, merged and committed, and is gone.
func TestALargeFileOfAChangeThatIsGoneIsFreed(t *testing.T) {
	f := newFixture(t)
	main := f.begin()
	large := f.pushed("large", "large.bin", random(t, 20*mib))
	ctx := t.Context()
	if err := f.repo.Fetch(ctx, Wanted{Branches: []string{"large"}, Commits: []string{large}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.repo.WriteCommit(ctx, CommitSpec{Tree: f.git("rev-parse", large+"^{tree}"), Parents: []string{main},
		Author: Identity{Date: "0 +0000"}, Committer: Identity{Date: "0 +0000"}}); err != nil {
		t.Fatal(err)
	}
	o := ofMain
	o.Waste = mib
	if done := mustPrune(t, f.repo, o); done.Refs+int(done.Bytes) != 0 || done.Size < 20*mib {
		t.Fatalf("pruned %+v of what was used a moment ago", done)
	}
	f.repo.later(2 * time.Hour)
	o.Commits = []string{large} // the change is still pending
	if done := mustPrune(t, f.repo, o); done.Bytes != 0 || done.Refs != 1 {
		t.Fatalf("pruned %+v of what a pending change needs", done)
	}
	if err := contents(ctx, f.repo, large); err != nil {
		t.Fatal(err)
	}
	f.repo.later(2 * time.Hour)
	o.Commits = nil
	done := mustPrune(t, f.repo, o)
	if size := diskSize(t, f.repo.Dir()); done.Bytes < 20*mib || done.Size > mib || size > mib {
		t.Fatalf("pruned %+v, and the mirror has %d bytes", done, size)
	}
	if out, err := tryGit(f.repo.Dir(), "fsck", "--full", "--strict"); err != nil {
		t.Fatalf("git fsck: %v\n%s", err, out)
	}
	if err := contents(ctx, f.repo, main); err != nil {
		t.Error(err)
	}
	// It is submitted again.
	if err := f.repo.Fetch(ctx, Wanted{Commits: []string{large}}); err != nil {
		t.Fatal(err)
	}
	if err := contents(ctx, f.repo, large); err != nil {
		t.Error(err)
	}
}

func TestLessWasteThanItsBoundIsLeft(t *testing.T) {
	f := newFixture(t)
	f.begin()
	large := f.pushed("large", "large.bin", random(t, mib))
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{large}}); err != nil {
		t.Fatal(err)
	}
	f.repo.later(2 * time.Hour)
	o := ofMain
	o.Waste = 2 * mib
	if done := mustPrune(t, f.repo, o); done.Refs != 1 || done.Bytes != 0 {
		t.Errorf("pruned %+v", done)
	}
	o.Waste = mib / 2
	if done := mustPrune(t, f.repo, o); done.Bytes < mib {
		t.Errorf("pruned %+v", done)
	}
}

// What the queue makes has no ref: it stays for as long as it may be in use, and is made again afterwards.
func TestMergedTreesAndCommitsStayWhileTheyMayBeUsed(t *testing.T) {
	f := newFixture(t)
	main := f.begin()
	one, two := f.pushed("one", "one.txt", "1\n"), f.pushed("two", "two.txt", "2\n")
	ctx := t.Context()
	if err := f.repo.Fetch(ctx, Wanted{Commits: []string{one, two}}); err != nil {
		t.Fatal(err)
	}
	tree := func(commit string) string { return f.git("rev-parse", commit+"^{tree}") }
	merged, conflict, err := f.repo.MergeTrees(ctx, tree(main), tree(one), tree(two))
	if err != nil || conflict != nil {
		t.Fatal(conflict, err)
	}
	who := Identity{Name: "x", Email: "x", Date: "0 +0000"}
	landed, err := f.repo.WriteCommit(ctx, CommitSpec{Tree: merged, Parents: []string{main}, Author: who, Committer: who})
	if err != nil {
		t.Fatal(err)
	}
	there := func(id string) bool {
		_, err := tryGit(f.repo.Dir(), "cat-file", "-e", id)
		return err == nil
	}
	for range 3 {
		mustPrune(t, f.repo, ofMain)
	}
	if !there(merged) || !there(landed) || !there(one) {
		t.Fatal("what was made a moment ago is gone")
	}
	if err := contents(ctx, f.repo, landed); err != nil {
		t.Fatal(err)
	}
	// Half an hour later it is used again, without being made again.
	f.repo.later(50 * time.Minute)
	if _, err := f.repo.CommitInfo(ctx, landed); err != nil {
		t.Fatal(err)
	}
	f.repo.later(50 * time.Minute)
	if mustPrune(t, f.repo, ofMain); !there(landed) {
		t.Fatal("what was used 50 minutes ago is gone")
	}
	f.repo.later(50 * time.Minute)
	if mustPrune(t, f.repo, ofMain); there(merged) || there(landed) || there(one) {
		t.Fatal("what nobody has used for an hour is there")
	}
	if err := f.repo.Fetch(ctx, Wanted{Commits: []string{one, two}}); err != nil {
		t.Fatal(err)
	}
	again, _, err := f.repo.MergeTrees(ctx, tree(main), tree(one), tree(two))
	if err != nil || again != merged || !there(again) {
		t.Errorf("the merge gives %s, %v; it was %s", again, err, merged)
	}
}

// A queue's branch may have stood still for long.
func TestBranchesOfQueuesAreKept(t *testing.T) {
	f := newFixture(t)
	main := f.begin()
	f.pushed("other", "other.txt", "o\n")
	f.repo.Fetch(t.Context(), Wanted{Branches: []string{"other"}})
	f.repo.later(1000 * time.Hour)
	if done := mustPrune(t, f.repo, ofMain); done.Refs != 1 {
		t.Errorf("pruned %+v", done)
	}
	if got, err := f.repo.Resolve(t.Context(), "main"); got != main || err != nil {
		t.Error(got, err)
	}
	if _, err := f.repo.Resolve(t.Context(), "other"); !errors.Is(err, ErrNoSuchCommit) {
		t.Error("the other branch is there:", err)
	}
	if err := contents(t.Context(), f.repo, main); err != nil {
		t.Error(err)
	}
}

// A process was killed while it deleted: a commit is left whose files are not.
func TestAPruneThatWasKilledIsFinished(t *testing.T) {
	f := newFixture(t)
	f.begin()
	gone := f.pushed("gone", "gone.txt", "g\n")
	ctx := t.Context()
	if err := f.repo.Fetch(ctx, Wanted{Commits: []string{gone}}); err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(f.repo.Dir(), "objects")
	packs, _ := filepath.Glob(filepath.Join(objects, "pack", "*.pack"))
	var list []string
	for _, pack := range packs { // loose, so that half of it can be deleted
		moved := filepath.Join(t.TempDir(), "pack")
		if err := os.Rename(pack, moved); err != nil {
			t.Fatal(err)
		}
		if err := removePack(strings.TrimSuffix(pack, ".pack")); err != nil {
			t.Fatal(err)
		}
		unpack := "exec git unpack-objects -q < " + moved
		if out, err := tryGit(f.repo.Dir(), "-c", "alias.u=!"+unpack, "u"); err != nil {
			t.Fatal(err, out)
		}
	}
	names, _, err := f.repo.objectFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		id := strings.ReplaceAll(name, "/", "")
		if out, _ := tryGit(f.repo.Dir(), "rev-list", "--objects", gone, "^refs/remote/heads/main"); strings.Contains(out, id) {
			list = append(list, name)
			if id != gone {
				if err := os.Remove(filepath.Join(objects, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if len(list) != 3 {
		t.Fatalf("the change has the objects %q", list)
	}
	plainGit(t, f.repo.Dir(), "update-ref", "-d", keptRefs+gone)
	if err := os.WriteFile(filepath.Join(f.repo.Dir(), pruneList), []byte(strings.Join(list, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	heir := openMirror(t, f.remote, f.repo.Dir())
	if err := heir.Fetch(ctx, Wanted{Commits: []string{gone}}); err != nil {
		t.Fatal(err)
	}
	if err := contents(ctx, heir, gone); err != nil {
		t.Error(err)
	}
}

func TestWhatKilledFetchesLeftIsDeleted(t *testing.T) {
	f := newFixture(t)
	f.begin()
	large := f.pushed("large", "large.bin", random(t, 100<<10))
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{large}}); err != nil {
		t.Fatal(err)
	}
	pack := filepath.Join(f.repo.Dir(), "objects", "pack")
	for _, name := range []string{"tmp_pack_a1b2c3", "pack-" + strings.Repeat("ab", 20) + ".pack"} {
		if err := os.WriteFile(filepath.Join(pack, name), make([]byte, mib), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	f.repo.later(2 * time.Hour)
	mustPrune(t, f.repo, ofMain)
	if size := diskSize(t, f.repo.Dir()); size > mib {
		t.Errorf("the mirror has %d bytes", size)
	}
}

// A process has found something in the mirror, and has not yet said so.
func TestNothingIsDeletedUnderAUseThatIsNotWrittenDown(t *testing.T) {
	f := newFixture(t)
	f.begin()
	change := f.pushed("change", "c.txt", "c\n")
	if err := f.repo.Fetch(t.Context(), Wanted{Commits: []string{change}}); err != nil {
		t.Fatal(err)
	}
	pruner := openMirror(t, f.remote, f.repo.Dir())
	pruner.later(2 * time.Hour)
	err := f.repo.using(t.Context(), func() ([]string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if done, err := pruner.Prune(ctx, ofMain); err == nil {
			t.Errorf("pruned %+v meanwhile", done)
		}
		return nil, contents(t.Context(), f.repo, change)
	})
	if err != nil {
		t.Error(err)
	}
	if done := mustPrune(t, pruner, ofMain); done.Bytes == 0 {
		t.Errorf("pruned %+v afterwards", done)
	}
}

func TestOneProcessPrunesAtATime(t *testing.T) {
	f := newFixture(t)
	f.begin()
	f.pushed("other", "other.txt", "o\n")
	f.repo.Fetch(t.Context(), Wanted{Branches: []string{"other"}})
	f.repo.later(2 * time.Hour)
	unlock, err := tryLock(filepath.Join(f.repo.Dir(), pruneLock))
	if err != nil {
		t.Fatal(err)
	}
	if done := mustPrune(t, f.repo, ofMain); done != (Pruned{}) {
		t.Errorf("pruned %+v beside another", done)
	}
	unlock()
	if done := mustPrune(t, f.repo, ofMain); done.Refs != 1 {
		t.Errorf("pruned %+v", done)
	}
}

func TestAnAgeThatIsTooShortIsRefused(t *testing.T) {
	f := newFixture(t)
	if _, err := f.repo.Prune(t.Context(), PruneOptions{Age: time.Minute}); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

// One process prunes all the time. One makes things and says so with a clock that is far behind, so that they are nothing but
// waste at once. The third comes upon the same things a moment later, and whatever it fetches, merges or commits
// has to be whole from then on.
func TestWhatIsTakenUpAgainWhilePruningStaysWhole(t *testing.T) {
	f := newFixture(t)
	main := f.begin()
	const changes = 40
	var heads, trees []string
	for i := range changes {
		heads = append(heads, f.pushed(fmt.Sprint("c", i), fmt.Sprint("dir/", i, "/f.txt"), random(t, 1000)))
		trees = append(trees, f.git("rev-parse", heads[i]+"^{tree}"))
	}
	base := f.git("rev-parse", main+"^{tree}")
	behind, user, pruner := f.repo, openMirror(t, f.remote, f.repo.Dir()), openMirror(t, f.remote, f.repo.Dir())
	behind.later(-10 * time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	who := Identity{Name: "x", Email: "x", Date: "0 +0000"}
	pair := func(r *Repo, i, with int) (string, error) {
		if err := r.Fetch(ctx, Wanted{Commits: []string{heads[i], heads[with]}}); err != nil {
			return "", err
		}
		merged, _, err := r.MergeTrees(ctx, base, trees[i], trees[with])
		if err != nil {
			return "", err
		}
		return r.WriteCommit(ctx, CommitSpec{Tree: merged, Parents: []string{heads[i]}, Author: who, Committer: who})
	}
	produce := func(r *Repo, i int) (string, error) { return pair(r, i, (i+1)%changes) }
	var others sync.WaitGroup
	var rounds, freed atomic.Int64
	others.Go(func() {
		for ; ctx.Err() == nil; rounds.Add(1) {
			done, err := pruner.Prune(ctx, ofMain)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			if done.Bytes > 0 {
				freed.Add(1)
			}
		}
	})
	ahead := make(chan int, changes)
	others.Go(func() {
		defer close(ahead)
		for i := range changes {
			for try := 0; ctx.Err() == nil; try++ {
				// What it uses goes under its hands.
				if _, err := produce(behind, i); err == nil || try == 20 {
					break
				}
			}
			ahead <- i
		}
	})
	var commits []string
	for i := range ahead {
		commit, err := produce(user, i)
		if err != nil {
			t.Errorf("change %d: %v", i, err)
			break
		}
		commits = append(commits, commit)
	}
	for _, commit := range commits {
		if err := contents(ctx, openMirror(t, f.remote, f.repo.Dir()), commit); err != nil {
			t.Error(err)
		}
	}
	// On a busy machine no prune may have freed anything so far. The next one frees objects that nobody uses again.
	for i := 0; freed.Load() == 0 && i < changes && !t.Failed(); i++ {
		if _, err := pair(behind, i, (i+2)%changes); err != nil {
			t.Log(err) // what it uses goes under its hands
		}
		for begun := rounds.Load(); rounds.Load() < begun+2 && !t.Failed(); time.Sleep(time.Millisecond) {
		}
	}
	stop()
	others.Wait()
	if freed.Load() == 0 {
		t.Error("nothing was ever freed")
	}
	if out, err := tryGit(f.repo.Dir(), "fsck", "--full", "--connectivity-only"); err != nil {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
	t.Logf("%d prunes freed something", freed.Load())
}
