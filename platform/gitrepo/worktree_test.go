package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"landfall.build/platform/folders"
	"landfall.build/platform/folders/folderstest"
)

func (f *fixture) worktree() *Worktree {
	f.t.Helper()
	w, err := f.repo.AddWorktree(f.t.Context(), filepath.Join(f.t.TempDir(), "tree"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			f.t.Error(err)
		}
	})
	return w
}

// mustHold compares the directory with the tree, path by path and byte by byte; with the files of it that are in only, unless that is nil.
func (f *fixture) mustHold(w *Worktree, treeish string, only map[string]bool) {
	f.t.Helper()
	entries, err := f.repo.Tree(f.t.Context(), treeish)
	if err != nil {
		f.t.Fatal(err)
	}
	want := map[string]string{}
	folder := (fs.ModeDir | w.dirMode).String()
	for _, e := range entries {
		whole, in := only[e.Path]
		if only != nil && !in {
			continue
		}
		for dir := filepath.Dir(e.Path); dir != "."; dir = filepath.Dir(dir) {
			want[dir] = folder
		}
		if e.Kind == Submodule {
			want[e.Path] = folder
			continue
		}
		body, err := f.repo.Blob(f.t.Context(), e.Object, 10<<20)
		if err != nil {
			f.t.Fatal(err)
		}
		if only != nil && !whole && e.Kind != Symlink {
			body = nil
		}
		mode := map[Kind]string{File: (w.dirMode & 0o666).String(), Executable: w.dirMode.Perm().String(), Symlink: "L"}[e.Kind]
		want[e.Path] = mode + " " + string(body)
	}
	got := map[string]string{}
	err = filepath.WalkDir(w.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.Dir() {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(w.Dir(), path)
		switch {
		case info.IsDir():
			got[name] = info.Mode().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			got[name] = "L " + target
			return err
		default:
			body, err := os.ReadFile(path)
			got[name] = info.Mode().String() + " " + string(body)
			return err
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for path, what := range want {
		if got[path] != what {
			f.t.Errorf("%q holds %.80q, want %.80q", path, got[path], what)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			f.t.Errorf("%q does not belong there", path)
		}
	}
}

func (f *fixture) checkout(w *Worktree, treeish string) {
	f.t.Helper()
	if err := w.Checkout(f.t.Context(), treeish); err != nil {
		f.t.Fatal(err)
	}
	f.mustHold(w, treeish, nil)
}

// checkoutSome checks out some files of a tree.
func (f *fixture) checkoutSome(w *Worktree, treeish string, random *rand.Rand) {
	f.t.Helper()
	entries, err := f.repo.Tree(f.t.Context(), treeish)
	if err != nil {
		f.t.Fatal(err)
	}
	only, share := map[string]bool{"no/such/file": true}, random.Float64()
	for _, e := range entries {
		if random.Float64() < share {
			only[e.Path] = random.IntN(4) > 0
		}
	}
	if err := w.CheckoutOnly(f.t.Context(), treeish, func([]Entry) map[string]bool { return only }); err != nil {
		f.t.Fatal(err)
	}
	f.mustHold(w, treeish, only)
}

// wreck does to a directory what a careless or hostile step could do.
func wreck(t *testing.T, random *rand.Rand, dir, outside string) {
	var paths []string
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if path != dir {
			paths = append(paths, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	for _, path := range paths[:min(6, len(paths))] {
		info, err := os.Lstat(path)
		if err != nil {
			continue // a wrecked parent took it along
		}
		switch random.IntN(7) {
		case 0:
			os.RemoveAll(path)
		case 1:
			os.RemoveAll(path)
			os.Symlink(outside, path)
		case 2:
			os.RemoveAll(path)
			os.MkdirAll(filepath.Join(path, "deep", ".git"), 0o700)
			os.WriteFile(filepath.Join(path, "deep", "x.o"), []byte("x"), 0o400)
			os.Chmod(filepath.Join(path, "deep"), 0o500)
		case 3:
			os.RemoveAll(path)
			syscall.Mkfifo(path, 0o600)
		case 4:
			if info.Mode()&fs.ModeSymlink == 0 {
				os.Chmod(path, fs.FileMode(random.IntN(0o1000)))
			}
		case 5:
			if info.Mode().IsRegular() {
				os.WriteFile(path, []byte("other"), 0o666)
			}
		case 6:
			os.WriteFile(filepath.Join(filepath.Dir(path), "leftover \xff.o"), nil, 0o666)
		}
	}
}

func TestACheckoutLeavesExactlyTheTreeWhateverWasThere(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("as root, permissions hinder nothing")
	}
	random := seeded(t)
	f := newFixture(t)
	f.write(".gitignore", "*.o\nignored/\n")
	f.write(".gitattributes", "* text eol=crlf ident\n")
	f.write("ident", "$Id$\r\nline\n")
	var ids []string
	for range 8 {
		f.editRandomly(random, 15)
		ids = append(ids, f.commit("edit"))
	}
	f.publish("main")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "precious"), []byte("keep"), 0o400); err != nil {
		t.Fatal(err)
	}
	w := f.worktree()
	for range 40 {
		if id := ids[random.IntN(len(ids))]; random.IntN(2) == 0 {
			f.checkout(w, id)
		} else {
			f.checkoutSome(w, id, random)
		}
		wreck(t, random, w.Dir(), outside)
		if t.Failed() {
			return
		}
	}
	f.checkout(w, emptyTree)
	left, err := os.ReadDir(outside)
	if err != nil || len(left) != 1 {
		t.Errorf("outside: %v, %v", left, err)
	}
	if info, err := os.Lstat(filepath.Join(outside, "precious")); err != nil || info.Mode() != 0o400 {
		t.Errorf("outside: %v, %v", info, err)
	}
}

func TestAChangeThatKeepsSizeAndTimeIsUndone(t *testing.T) {
	f := newFixture(t)
	f.write("a", "aaaa")
	id := f.commit("one")
	f.publish("main")
	w := f.worktree()
	for range 50 {
		f.checkout(w, id)
		path := filepath.Join(w.Dir(), "a")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("bbbb"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	f.checkout(w, id)
}

func TestWhatIsRightAlreadyIsNotWrittenAgain(t *testing.T) {
	f := newFixture(t)
	f.write("same", "1")
	if err := os.Symlink("same", filepath.Join(f.work, "link")); err != nil {
		t.Fatal(err)
	}
	f.write("other", "1")
	one := f.commit("one")
	f.write("other", "2")
	two := f.commit("two")
	f.publish("main")
	w := f.worktree()
	f.checkout(w, one)
	for _, name := range []string{"same", "link"} {
		before, err := os.Lstat(filepath.Join(w.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		f.checkout(w, two)
		after, err := os.Lstat(filepath.Join(w.Dir(), name))
		if err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was written again (%v)", name, err)
		}
		if err := w.CheckoutOnly(t.Context(), one, func([]Entry) map[string]bool { return map[string]bool{"same": true, "link": true} }); err != nil {
			t.Fatal(err)
		}
		alone, err := os.Lstat(filepath.Join(w.Dir(), name))
		if err != nil || !os.SameFile(before, alone) {
			t.Errorf("%s was written again without others (%v)", name, err)
		}
		f.checkout(w, one)
	}
}

// TestAllFilesHaveTheTimeOfTheCheckout, else make and its like take what was made of another tree for newer than its source.
func TestAllFilesHaveTheTimeOfTheCheckout(t *testing.T) {
	f := newFixture(t)
	f.write("a/deep/source", "1")
	f.write("made", "1")
	if err := os.Symlink("../made", filepath.Join(f.work, "a/link")); err != nil {
		t.Fatal(err)
	}
	one := f.commit("one")
	f.write("made", "2")
	two := f.commit("two")
	f.publish("main")
	w := f.worktree()
	last := time.Time{}
	for _, id := range []string{one, two, one, one} {
		cached := filepath.Join(t.TempDir(), "cached")
		if err := os.WriteFile(cached, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(cached)
		if err != nil {
			t.Fatal(err)
		}
		f.checkout(w, id)
		times := map[time.Time][]string{}
		err = filepath.WalkDir(w.Dir(), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				times[info.ModTime()] = append(times[info.ModTime()], path)
			}
			return err
		})
		if err != nil || len(times) != 1 {
			t.Fatalf("times: %v, %v", times, err)
		}
		for at := range times {
			if at.Before(info.ModTime()) || !at.After(last) {
				t.Errorf("the time is %v; a cache was made at %v, the checkout before at %v", at, info.ModTime(), last)
			}
			last = at
		}
		if err := os.WriteFile(cached, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if info, err = os.Stat(cached); err != nil || !info.ModTime().After(last) {
			t.Errorf("what is made then has %v, and its sources have %v", info.ModTime(), last)
		}
	}
}

func TestDirectoriesNestedWithoutBoundAreCleared(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	id := f.commit("one")
	f.publish("main")
	w := f.worktree()
	f.checkout(w, id)
	folderstest.Nest(t, w.Dir(), "dd", 3000) // deeper than any path may be long
	f.checkout(w, id)
}

// A directory is read in parts, and changed meanwhile.
func TestDirectoriesWithAnyNumberOfEntriesHoldTheTree(t *testing.T) {
	f := newFixture(t)
	const count = 3*folders.AtOnce + 7
	for i := range count {
		f.write(fmt.Sprintf("wide/own-%d", i), "1")
	}
	id := f.commit("one")
	f.publish("main")
	w := f.worktree()
	f.checkout(w, id)
	for i := range count {
		for name, text := range map[string]string{fmt.Sprintf("wide/left-%d", i): "left", fmt.Sprintf("left/%d/%d", i%5, i): "left", fmt.Sprintf("wide/own-%d", i): "changed"} {
			if strings.HasPrefix(name, "wide/own") && i%2 == 0 {
				continue
			}
			path := filepath.Join(w.Dir(), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.checkout(w, id)
}

// Somebody may make files as fast as they are removed.
func TestClearingEndsWhereNamesAppear(t *testing.T) {
	dir := t.TempDir()
	for i := range folders.AtOnce {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	removed := 0
	s := sweeper{dir: dir, top: root, dirMode: 0o700, remove: func(at *os.Root, name string) error {
		if removed++; removed > 100_000 {
			return errors.New("there is no end")
		}
		return errors.Join(at.Remove(name), at.WriteFile(fmt.Sprintf("again-%d", removed), nil, 0o600))
	}}
	if err := s.sweep(root, "", nowhere, 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("after %d files: %v", removed, err)
	}
}

// What lies too deep is moved up to the top, where names appear by that.
func TestDeepDirectoriesBelowAWideOneAreCleared(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 * folders.AtOnce {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folderstest.Nest(t, dir, "d", (maxPasses+3)*peelDepth)
	if err := sweep(dir, nil, nowhere, 0o700, "", nil); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("%d entries are left, %v", len(left), err)
	}
}

func TestAWorktreeSurvivesALostOrLockedIndex(t *testing.T) {
	f := newFixture(t)
	f.write("d/a", "1")
	one := f.commit("one")
	f.write("d/a", "2")
	two := f.commit("two")
	f.publish("main")
	w := f.worktree()
	f.checkout(w, one)
	for name, damage := range map[string]func() error{
		"locked":  func() error { return os.WriteFile(w.index+".lock", nil, 0o666) },
		"lost":    func() error { return os.Remove(w.index) },
		"garbled": func() error { return os.WriteFile(w.index, []byte("garbage"), 0o666) },
		"no dir":  func() error { return os.RemoveAll(w.Dir()) },
		"a file": func() error {
			return errors.Join(os.RemoveAll(w.Dir()), os.WriteFile(w.Dir(), nil, 0o666))
		},
	} {
		for _, id := range []string{two, one} {
			if err := damage(); err != nil {
				t.Fatal(name, err)
			}
			f.checkout(w, id)
		}
	}
}

func TestAWorktreeIsTakenUpAgainButNotByTwo(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	id := f.commit("one")
	f.publish("main")
	dir := filepath.Join(t.TempDir(), "tree")
	first, err := f.repo.AddWorktree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	f.checkout(first, id)
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.repo.AddWorktree(hasty, dir); err == nil {
		t.Error("two have the same directory")
	}
	first.Release()
	if err := first.Checkout(t.Context(), id); err == nil {
		t.Error("a worktree that was given up is used")
	}
	second, err := f.repo.AddWorktree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	f.checkout(second, id)
	if err := second.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("left: %v", err)
	}
	if registered := plainGit(t, f.repo.Dir(), "worktree", "list"); strings.Count(registered, "\n") != 0 {
		t.Errorf("the mirror knows of worktrees: %s", registered)
	}
}

func TestSubmodulesAreEmptyDirectories(t *testing.T) {
	f := newFixture(t)
	f.write("a", "1")
	id := f.commit("one")
	f.git("update-index", "--add", "--cacheinfo", "160000,"+id+",sub/module")
	f.git("commit", "--quiet", "-m", "submodule")
	id = f.git("rev-parse", "HEAD")
	f.publish("main")
	w := f.worktree()
	f.checkout(w, id)
	if err := os.MkdirAll(filepath.Join(w.Dir(), "sub/module/x"), 0o500); err != nil {
		t.Fatal(err)
	}
	f.checkout(w, id)
}

func TestATreeWhoseLinkLeadsOutsideWritesNothingThere(t *testing.T) {
	f := newFixture(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(f.work, "d")); err != nil {
		t.Fatal(err)
	}
	link := f.commit("a link")
	if err := os.Remove(filepath.Join(f.work, "d")); err != nil {
		t.Fatal(err)
	}
	f.write("d/file", "x")
	folder := f.commit("a folder")
	f.publish("main")
	w := f.worktree()
	for i := range 6 {
		f.checkout(w, []string{link, folder}[i%2])
		if i%3 == 2 { // and the index knows nothing of it
			if err := os.Remove(w.index); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
}
