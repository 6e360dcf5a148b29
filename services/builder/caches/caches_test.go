package caches

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"landfall.build/events/seedtest"
	"landfall.build/platform/configuration"
)

// small is a cache of ten files of the tests.
var small = configuration.Cache{Variable: "X", MaxSize: 10 * unit, Share: configuration.ShareQueue, Trim: configuration.TrimFiles}

const unit = 1000

func newStore(t testing.TB, dir string) *Store {
	return &Store{Dir: dir, Every: time.Nanosecond}
}

func acquire(t testing.TB, s *Store, worker string, cache configuration.Cache) *Use {
	t.Helper()
	use, err := s.Acquire(Step{Queue: "q", Worker: worker}, "c", cache)
	if err != nil {
		t.Fatal(err)
	}
	return use
}

func put(t testing.TB, dir, name string, used time.Time) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, make([]byte, unit), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, used, used.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestTheFilesThatWereNotUsedForTheLongestTimeGo(t *testing.T) {
	s := newStore(t, t.TempDir())
	use := acquire(t, s, "1", small)
	now := time.Now()
	for i := range 12 {
		put(t, use.Dir, fmt.Sprintf("%02d", i), now.Add(-time.Duration((i*7)%12)*time.Minute)) // 00, 07, 02, 09 … are the newest
	}
	use.End(true, nil)
	// Eight of ten are kept.
	if got, want := names(t, use.Dir), []string{"00", "01", "02", "04", "06", "07", "09", "11"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
}

func TestAllGoesWhereFilesBelongTogether(t *testing.T) {
	cache := small
	cache.Trim = "all"
	s := newStore(t, t.TempDir())
	use := acquire(t, s, "1", cache)
	deep := filepath.Join(use.Dir, "module@v1")
	if err := os.Mkdir(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 11 {
		put(t, deep, fmt.Sprint(i), time.Now())
	}
	if err := os.Chmod(deep, 0o555); err != nil {
		t.Fatal(err)
	}
	use.End(true, nil)
	if got := names(t, use.Dir); len(got) > 0 {
		t.Errorf("left are %q", got)
	}
	if again := acquire(t, s, "1", cache); again.Dir != use.Dir {
		t.Errorf("the next step is given %s, had %s", again.Dir, use.Dir)
	}
}

func TestAWorkersOwnCacheIsNobodyElses(t *testing.T) {
	cache := small
	cache.Share = configuration.ShareWorker
	dir := t.TempDir()
	s := newStore(t, dir)
	one, two := acquire(t, s, "1", cache), acquire(t, s, "2", cache)
	if one.Dir == two.Dir {
		t.Error("two workers have one folder")
	}
	if shared := acquire(t, s, "1", small); shared.Dir == one.Dir {
		t.Error("a worker's folder is the shared one")
	}
	put(t, one.Dir, "kept", time.Now())
	if again := acquire(t, newStore(t, dir), "1", cache); again.Dir != one.Dir || len(names(t, again.Dir)) != 1 {
		t.Errorf("after a restart the folder is %s, was %s", again.Dir, one.Dir)
	}
}

// Steps come and go, and write. Whatever they do, no file of a folder in use is removed, a folder that was given back by
// its last step is within its bound, and no more than two generations are there with more than twice of it.
func TestNothingIsRemovedFromAFolderInUse(t *testing.T) {
	r := seedtest.Random(t)
	for range 40 {
		cache := small
		if r.IntN(2) == 0 {
			cache.Trim = "all"
		}
		s := newStore(t, t.TempDir())
		type step struct {
			use    *Use
			before []string
		}
		var running []step
		users := map[string]int{}
		for n := range 120 {
			switch k := r.IntN(3); {
			case k == 0 || len(running) == 0:
				use := acquire(t, s, "1", cache)
				running = append(running, step{use, names(t, use.Dir)})
				users[use.Dir]++
			case k == 1:
				at := running[r.IntN(len(running))]
				for i := range 1 + r.IntN(4) {
					put(t, at.use.Dir, fmt.Sprintf("%d-%d", n, i), time.Now())
				}
			default:
				at := r.IntN(len(running))
				done := running[at]
				running = slices.Delete(running, at, at+1)
				left := names(t, done.use.Dir)
				for _, name := range done.before {
					if !slices.Contains(left, name) {
						t.Fatalf("%s vanished while the step ran", name)
					}
				}
				done.use.End(true, nil)
				if users[done.use.Dir]--; users[done.use.Dir] == 0 && len(names(t, done.use.Dir)) > int(cache.MaxSize/unit) {
					t.Fatalf("%d files in a folder that nobody uses", len(names(t, done.use.Dir)))
				}
			}
		}
		for _, rest := range running {
			rest.use.End(true, nil)
		}
		if left := names(t, filepath.Join(s.Dir, "q", "c")); len(left) > 1 {
			t.Fatalf("generations %q are left", left)
		}
	}
}
