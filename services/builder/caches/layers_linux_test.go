package caches

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"landfall.build/engine/lineup"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
)

// inLayers is a cache of a hundred files of the tests.
var inLayers = configuration.Cache{Variable: "X", MaxSize: 100 * unit, Share: configuration.ShareMainline, Trim: configuration.TrimFiles}

func ref(change string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: change, Revision: 1} }

// became answers for changes as a map has them.
func became(states map[string]lineup.State) func(*eventsv1.ChangeRef) lineup.State {
	return func(c *eventsv1.ChangeRef) lineup.State { return states[c.GetChange()] }
}

// layeredStore gives steps layers; steps of these tests write to their upper layers themselves.
func layeredStore(t testing.TB, dir string) *Store {
	s := newStore(t, dir)
	s.Layers = true
	return s
}

// write puts files into a step's upper layer.
func write(t testing.TB, use *Use, names ...string) {
	t.Helper()
	for _, name := range names {
		put(t, upper(use), name, time.Now())
	}
}

func upper(use *Use) string { return filepath.Join(use.Overlay.Dir, use.Overlay.Upper) }

// seen returns the names of the files that a step finds, sorted. They are plain files, so the first layer that has one counts.
func seen(t testing.TB, use *Use) []string {
	t.Helper()
	all := map[string]bool{}
	for _, lower := range use.Overlay.Lower {
		for _, name := range names(t, filepath.Join(use.Overlay.Dir, lower)) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func settle(s *Store, states map[string]lineup.State) {
	if s.Judge("q", became(states)) {
		s.Settle()
	}
}

func TestAStepReadsWhatLandedChangesLeftAndNothingElse(t *testing.T) {
	s := layeredStore(t, t.TempDir())
	states := map[string]lineup.State{"a": lineup.Pending, "b": lineup.Pending, "c": lineup.Pending}
	leave := func(file string, passed bool, by ...string) {
		use := acquire(t, s, "1", inLayers)
		write(t, use, file)
		var refs []*eventsv1.ChangeRef
		for _, c := range by {
			refs = append(refs, ref(c))
		}
		use.End(passed, refs)
		settle(s, states)
	}
	expect := func(want ...string) {
		t.Helper()
		use := acquire(t, s, "2", inLayers)
		defer use.End(false, nil)
		if got := seen(t, use); !slices.Equal(got, want) {
			t.Errorf("a step finds %q, want %q", got, want)
		}
	}
	leave("of the mainline", true)
	expect("of the mainline")
	leave("by a", true, "a")
	leave("by a and b", true, "a", "b")
	leave("by b", true, "b")
	leave("by c", true, "c")
	leave("by a, failed", false, "a")
	expect("of the mainline")
	states["a"] = lineup.Landed
	settle(s, states)
	expect("by a", "of the mainline")
	states["b"], states["c"] = lineup.Landed, lineup.Rejected
	settle(s, states)
	expect("by a", "by a and b", "by b", "of the mainline")
	leave("by a, later", true, "a")
	expect("by a", "by a and b", "by a, later", "by b", "of the mainline")
	if left := names(t, filepath.Join(s.Dir, "q", "c@mainline", "runs")); len(left) > 0 {
		t.Errorf("of steps %q are left", left)
	}
	// What waits is forgotten by a restart, what was landed is kept.
	states["d"] = lineup.Pending
	leave("by d", true, "d")
	s = layeredStore(t, s.Dir)
	states["d"] = lineup.Landed
	settle(s, states)
	expect("by a", "by a and b", "by a, later", "by b", "of the mainline")
	if left := names(t, filepath.Join(s.Dir, "q", "c@mainline", "runs")); len(left) > 0 {
		t.Errorf("of steps of the former process %q are left", left)
	}
}

func TestWithoutLayersAStepBeginsWithAnEmptyFolder(t *testing.T) {
	s := newStore(t, t.TempDir())
	for range 2 {
		use := acquire(t, s, "1", inLayers)
		if use.Overlay != nil || len(names(t, use.Dir)) > 0 {
			t.Fatalf("%+v", use)
		}
		put(t, use.Dir, "left", time.Now())
		use.End(true, nil)
		settle(s, nil)
	}
}

func TestTheCacheOfAChangeIsItsAloneAndGoesWithIt(t *testing.T) {
	cache := small
	cache.Share = configuration.ShareChange
	dir := t.TempDir()
	s := newStore(t, dir)
	of := func(s *Store, by ...*eventsv1.ChangeRef) *Use {
		t.Helper()
		use, err := s.Acquire(Step{Queue: "q", By: by}, "c", cache)
		if err != nil {
			t.Fatal(err)
		}
		return use
	}
	a, b, m := of(s, ref("a")), of(s, ref("a"), ref("b")), of(s)
	for _, use := range []*Use{a, b, m} {
		put(t, use.Dir, "left", time.Now())
	}
	if again := of(s, ref("b")); again.Dir != b.Dir || a.Dir == b.Dir || a.Dir == m.Dir {
		t.Errorf("%s, %s, %s, again %s", a.Dir, b.Dir, m.Dir, again.Dir)
	} else {
		again.End(true, nil)
	}
	b.End(true, nil)
	settle(s, map[string]lineup.State{"a": lineup.Landed, "b": lineup.Pending})
	if len(names(t, a.Dir)) != 1 {
		t.Error("the folder of a change that has left is gone under a step")
	}
	a.End(true, nil)
	m.End(true, nil)
	if len(names(t, a.Dir)) != 0 || len(names(t, b.Dir)) != 1 || len(names(t, m.Dir)) != 1 {
		t.Error("not just the folder of the change that has left is gone")
	}
	if s = newStore(t, dir); len(names(t, of(s, ref("b")).Dir)) != 0 {
		t.Error("a change finds what a former process left")
	}
}

func TestAStackOfLayersStaysShortAndWithinItsBound(t *testing.T) {
	for _, trim := range []string{configuration.TrimFiles, "all"} {
		cache := inLayers
		cache.Trim = trim
		s := layeredStore(t, t.TempDir())
		old := acquire(t, s, "1", cache)
		for i := range 300 {
			use := acquire(t, s, "1", cache)
			if len(use.Overlay.Lower) > maxStack {
				t.Fatalf("%d layers", len(use.Overlay.Lower))
			}
			if len(seen(t, use)) > 100 {
				t.Fatalf("%d files, %s", len(seen(t, use)), trim)
			}
			put(t, upper(use), fmt.Sprint(i), time.Now().Add(time.Duration(i)*time.Second))
			use.End(true, nil)
			settle(s, nil)
		}
		last := acquire(t, s, "1", cache)
		if got := seen(t, last); !slices.Contains(got, "299") || trim == configuration.TrimFiles && len(got) < 79 {
			t.Errorf("%s: %d files are left: %q", trim, len(got), got)
		}
		for _, lower := range old.Overlay.Lower {
			if _, err := os.Stat(filepath.Join(old.Overlay.Dir, lower)); err != nil {
				t.Errorf("a layer is gone under a step: %v", err)
			}
		}
		old.End(true, nil)
		last.End(true, nil)
		if left := names(t, filepath.Join(s.Dir, "q", "c@mainline", "layers")); len(left) > maxStack {
			t.Errorf("layers %q are left", left)
		}
	}
}

// A path that is as long as may be is too long where layers are merged.
func TestLayersThatCannotBeMergedGo(t *testing.T) {
	s := layeredStore(t, t.TempDir())
	for i := range 3 * mostStack {
		use := acquire(t, s, "1", inLayers)
		if n := len(use.Overlay.Lower); n > mostStack {
			t.Fatalf("after %d steps there are %d layers", i, n)
		}
		write(t, use, fmt.Sprint(i))
		if i == 0 {
			root, err := os.OpenRoot(upper(use))
			if err != nil {
				t.Fatal(err)
			}
			deep := strings.Repeat(strings.Repeat("d", 99)+"/", 50)[:4093-len(upper(use))] + "d"
			if err := root.MkdirAll(filepath.Dir(deep), 0o700); err != nil {
				t.Fatal(err)
			}
			file, err := root.Create(deep)
			if err != nil {
				t.Fatal(err)
			}
			file.Close()
			root.Close()
		}
		use.End(true, nil)
		settle(s, nil)
	}
	last := acquire(t, s, "1", inLayers)
	if got := seen(t, last); !slices.Contains(got, fmt.Sprint(3*mostStack-1)) {
		t.Errorf("there are %q", got)
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	s := layeredStore(t, t.TempDir())
	pending := map[string]lineup.State{"a": lineup.Pending}
	for i := range 150 {
		use := acquire(t, s, "1", inLayers)
		write(t, use, fmt.Sprint(i))
		use.End(true, []*eventsv1.ChangeRef{ref("a")})
		settle(s, pending)
	}
	if left := names(t, filepath.Join(s.Dir, "q", "c@mainline", "runs")); len(left) != 100 {
		t.Errorf("%d layers wait, of which a hundred fit", len(left))
	}
	settle(s, map[string]lineup.State{"a": lineup.Landed})
	use := acquire(t, s, "1", inLayers)
	if got := seen(t, use); len(got) != 100 || !slices.Contains(got, "149") || slices.Contains(got, "0") {
		t.Errorf("of these %d files were landed: %q", len(got), got)
	}
}

// mounted lists a tree as overlayfs shows it: names, with the content of files and the targets of links.
func mounted(t testing.TB, lower []string) string {
	t.Helper()
	view := t.TempDir()
	runtime.LockOSThread() // it ends with the test
	if err := unix.Mount("overlay", view, "overlay", 0, "userxattr,lowerdir="+strings.Join(lower, ":")); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(view, 0)
	return listing(t, view)
}

func listing(t testing.TB, dir string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `cd "$1" && find . \( -type f -printf '%m %P: ' -exec cat {} \; -printf '\n' \) -o -printf '%m %P %y %l\n' | sort`, "sh", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// scribble does to a tree what steps do.
func scribble(t testing.TB, r *rand.Rand, view string) {
	t.Helper()
	path := func() string {
		parts := []string{view}
		for range 1 + r.IntN(3) {
			parts = append(parts, string(rune('a'+r.IntN(3))))
		}
		return filepath.Join(parts...)
	}
	for range 12 {
		at := path()
		switch r.IntN(6) {
		case 0, 1:
			_ = os.MkdirAll(filepath.Dir(at), 0o755)
			_ = os.WriteFile(at, fmt.Appendf(nil, "%d", r.IntN(1000)), 0o644)
		case 2:
			_ = os.RemoveAll(at)
		case 3:
			_ = os.RemoveAll(at)
			_ = os.MkdirAll(at, 0o700+os.FileMode(r.IntN(2))*0o55)
		case 4:
			_ = os.Symlink("target", at)
		case 5:
			_ = os.Rename(at, path())
		}
	}
}

// Layers that are merged hold what the kernel shows of them.
func TestMergedLayersAreWhatTheKernelShows(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	r := seedtest.Random(t)
	for range 25 {
		dir := t.TempDir()
		var layers []string // the uppermost first
		for i := range 1 + r.IntN(5) {
			upper, work, view := filepath.Join(dir, fmt.Sprint("u", i)), filepath.Join(dir, fmt.Sprint("w", i)), filepath.Join(dir, "view")
			for _, path := range []string{upper, work, view} {
				if err := os.MkdirAll(path, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			empty := filepath.Join(dir, "empty")
			_ = os.Mkdir(empty, 0o755)
			// A layer is written over those below it, or, as by steps that run at the same time, over some of them.
			below := append(slices.Clone(layers[r.IntN(len(layers)+1):]), empty)
			if err := unix.Mount("overlay", view, "overlay", 0, "userxattr,lowerdir="+strings.Join(below, ":")+",upperdir="+upper+",workdir="+work); err != nil {
				t.Fatal(err)
			}
			scribble(t, r, view)
			if err := unix.Unmount(view, 0); err != nil {
				t.Fatal(err)
			}
			layers = slices.Insert(layers, 0, upper)
		}
		empty := filepath.Join(dir, "empty")
		want := mounted(t, append(slices.Clone(layers), empty))
		whole := filepath.Join(dir, "whole")
		if err := merge(whole, layers); err != nil {
			t.Fatal(err)
		}
		if got := listing(t, whole); got != want {
			t.Fatalf("merged:\n%s\nwant:\n%s", got, want)
		}
		if err := execution.RemoveAll(whole); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatTheMainlineLaysIsSeenAtOnce(t *testing.T) {
	s := layeredStore(t, t.TempDir())
	if !s.Cold("q", "c") {
		t.Error("a cache with nothing in it is not cold")
	}
	first, before := acquire(t, s, "1", inLayers), acquire(t, s, "1", inLayers)
	write(t, first, "std")
	first.Lay()
	if got := seen(t, acquire(t, s, "1", inLayers)); !slices.Equal(got, []string{"std"}) {
		t.Errorf("the next step finds %q", got)
	}
	if got := seen(t, before); len(got) > 0 {
		t.Errorf("a step that ran meanwhile finds %q", got)
	}
	if s.Cold("q", "c") {
		t.Error("a cache with a layer is cold")
	}
	if again := layeredStore(t, s.Dir); again.Cold("q", "c") {
		t.Error("a cache with a layer is cold after a restart")
	}
}
