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
	"landfall.build/platform/folders/folderstest"
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

// TestACacheOfUnknownSizeGoes: a step can leave folders that cannot be measured. Such a cache could take any room.
func TestACacheOfUnknownSizeGoes(t *testing.T) {
	nest := func(folder string) { folderstest.Nest(t, folder, "dd", 2500) } // deeper than any path may be long
	for _, trim := range []string{configuration.TrimFiles, "all"} {
		cache := small
		cache.Trim = trim
		s := newStore(t, t.TempDir())
		one, two := acquire(t, s, "1", cache), acquire(t, s, "2", cache)
		nest(one.Dir)
		one.End(true, nil)
		if got := names(t, two.Dir); len(got) != 1 {
			t.Errorf("%s: a step that uses it finds %q", trim, got)
		}
		next := acquire(t, s, "1", cache)
		if next.Dir == one.Dir {
			t.Errorf("%s: the next step is given it", trim)
		}
		two.End(true, nil)
		if _, err := os.Lstat(one.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: it is left by its last step: %v", trim, err)
		}
		nest(next.Dir)
		next.End(true, nil)
		if got := names(t, next.Dir); len(got) > 0 {
			t.Errorf("%s: left are %q", trim, got)
		}
		layer := t.TempDir()
		nest(layer)
		if size, err := shrink(layer, cache); size != 0 || err != nil || len(names(t, layer)) > 0 {
			t.Errorf("%s: of a layer %q are left, %d bytes, %v", trim, names(t, layer), size, err)
		}
	}
}

func TestWhatVanishesDoesNotEndTrimming(t *testing.T) {
	if err := trim(filepath.Join(t.TempDir(), "none"), 2, 1); err != nil {
		t.Error(err)
	}
}
