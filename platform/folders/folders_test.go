package folders

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"landfall.build/platform/folders/folderstest"
)

// filled makes some files in a folder, and in folders below it.
func filled(t *testing.T, folder string, files int) (all []string) {
	t.Helper()
	for _, below := range []string{".", "a", "a/b"} {
		if err := os.MkdirAll(filepath.Join(folder, below), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range files {
			path := filepath.Join(folder, below, fmt.Sprintf("file-%d", i))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

func rootOf(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestAllIsVisitedOnce(t *testing.T) {
	for _, files := range []int{0, 1, AtOnce, 3*AtOnce + 7} {
		dir := t.TempDir()
		want := filled(t, dir, files)
		var each, walked []string
		err := Each(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				each = append(each, path)
			}
			return err
		})
		if slices.Sort(each); err != nil || !slices.Equal(each, want) {
			t.Errorf("of %d files in each folder it visits %d, %v", files, len(each), err)
		}
		err = fs.WalkDir(Bounded(rootOf(t, dir), 1<<20), ".", func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				walked = append(walked, filepath.Join(dir, path))
			}
			return err
		})
		if slices.Sort(walked); err != nil || !slices.Equal(walked, want) {
			t.Errorf("of %d files in each folder a walk visits %d, %v", files, len(walked), err)
		}
	}
}

func TestNamesAreListedUpToTheirBound(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, 10)
	long := filepath.Join(dir, "a", strings.Repeat("n", 200))
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	least := 0
	for bytes := 0; ; bytes += 50 {
		err := fs.WalkDir(Bounded(rootOf(t, dir), bytes), ".", func(_ string, _ fs.DirEntry, err error) error { return err })
		if err == nil {
			least = bytes
			break
		}
		if !errors.Is(err, ErrTooMany) {
			t.Fatal(err)
		}
	}
	if entries := 33; least < entries*perEntry+200 || least > entries*(perEntry+20)+400 {
		t.Errorf("%d entries take %d bytes", entries, least)
	}
}

func TestAnErrorEndsIt(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, 3*AtOnce)
	visited, stop := 0, errors.New("enough")
	if err := Each(dir, func(string, fs.DirEntry, error) error { visited++; return stop }); !errors.Is(err, stop) || visited != 1 {
		t.Errorf("it visits %d after the error, %v", visited-1, err)
	}
	if err := Each(filepath.Join(dir, "none"), func(string, fs.DirEntry, error) error { return stop }); err != nil {
		t.Errorf("what is not there has the error %v", err)
	}
	if err := Each(filepath.Join(dir, "file-0"), func(path string, e fs.DirEntry, err error) error { return err }); err == nil {
		t.Error("a file is a folder")
	}
}

// open returns how many files are open.
func open() int {
	list, _ := os.ReadDir("/proc/self/fd") // there is none elsewhere than on Linux
	return len(list)
}

// TestFoldersAreHeldOpenUpToABound: a step can nest folders of many entries, and each is open while what is below it is visited.
func TestFoldersAreHeldOpenUpToABound(t *testing.T) {
	dir := t.TempDir()
	below := dir
	for range mostOpen + 5 {
		below = filepath.Join(below, "d")
		if err := os.Mkdir(below, 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range AtOnce {
			if err := os.Symlink("x", filepath.Join(below, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, most, deep := open(), 0, 0
	err := Each(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, ErrTooDeep) {
			deep++
			return nil
		}
		if err == nil && e.IsDir() {
			most = max(most, open())
		}
		return err
	})
	if most > before+mostOpen+1 || deep != 1 || err != nil {
		t.Errorf("%d folders are open at a time, %d are too deep, %v", most-before, deep, err)
	}
}

// A step that still runs can put a pipe, or a link that leads elsewhere, in the place of a folder after it is listed and before it is opened.
// Opening a pipe waits for a writer, for ever.
func TestWhatTakesThePlaceOfAFolderIsNotLookedInto(t *testing.T) {
	outside := t.TempDir()
	filled(t, outside, 1)
	swaps := map[string]func(path string) error{
		"a pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link": func(path string) error { return os.Symlink(outside, path) },
	}
	for how, swap := range swaps {
		for by, walk := range map[string]func(dir string, do func(name string, e fs.DirEntry, err error) error) error{
			"Each": func(dir string, do func(string, fs.DirEntry, error) error) error { return Each(dir, do) },
			"Bounded": func(dir string, do func(string, fs.DirEntry, error) error) error {
				return fs.WalkDir(Bounded(rootOf(t, dir), 1<<20), ".", do)
			},
		} {
			t.Run(how+" by "+by, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "folder")
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
				var seen []string
				var failed error
				err := walk(dir, func(name string, e fs.DirEntry, err error) error {
					switch {
					case err != nil:
						failed = err
						return nil
					case filepath.Base(name) != "folder":
						seen = append(seen, name)
						return nil
					}
					return errors.Join(os.Remove(path), swap(path))
				})
				if err != nil || failed == nil || len(seen) > 1 { // the top folder itself
					t.Errorf("it visits %q, %v, %v", seen, failed, err)
				}
			})
		}
	}
}

// A folder of few entries is closed before what is in it is visited, so what is put in its place then is on the way to all below it.
func TestNoLinkInThePlaceOfAParentIsFollowed(t *testing.T) {
	for how, to := range map[string]string{"out": "", "within": "other"} {
		t.Run(how, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			if to != "" {
				outside = filepath.Join(dir, to)
			}
			parent := filepath.Join(dir, "a")
			for _, path := range []string{filepath.Join(outside, "b", "secret"), filepath.Join(parent, "b", "mine")} {
				if err := os.MkdirAll(path, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var asked fs.FileInfo
			err := Each(dir, func(path string, e fs.DirEntry, _ error) (err error) {
				if strings.HasPrefix(path, filepath.Join(parent, "b", "secret")) {
					t.Errorf("it visits %s", path)
				}
				if path != filepath.Join(parent, "b") || e == nil {
					return nil
				}
				err = errors.Join(os.Rename(parent, filepath.Join(t.TempDir(), "a")), os.Symlink(outside, parent))
				if err != nil {
					return err
				}
				asked, err = e.Info()
				return err
			})
			other, failed := os.Lstat(filepath.Join(outside, "b"))
			if err != nil || failed != nil || asked == nil || os.SameFile(asked, other) {
				t.Errorf("it asked for %v, %v, %v", asked, err, failed)
			}
		})
	}
}

// TestAnEntryWhosePathIsTooLongIsAnError: most callers could do nothing with it.
func TestAnEntryWhosePathIsTooLongIsAnError(t *testing.T) {
	for _, name := range []string{"d", strings.Repeat("d", 200)} {
		dir := t.TempDir()
		folderstest.Nest(t, dir, name, 4200/len(name))
		before, most, long := open(), 0, 0
		err := Each(dir, func(path string, e fs.DirEntry, err error) error {
			most = max(most, open())
			if errors.Is(err, syscall.ENAMETOOLONG) && len(path) > longest && e == nil {
				long++
				return nil
			}
			return err
		})
		if most > before+mostOpen+1 || long != 1 || err != nil {
			t.Errorf("%d folders are open at a time, %d paths are too long, %v", most-before, long, err)
		}
	}
}

// BenchmarkEach asks for what is known of 50,000 files, as those who measure a folder do.
func BenchmarkEach(b *testing.B) {
	dir := b.TempDir()
	for i := range 50_000 {
		folder := filepath.Join(dir, fmt.Sprint(i%5), fmt.Sprint(i%50), fmt.Sprint(i%2500))
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), nil, 0o600)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		err := Each(dir, func(_ string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				_, err = e.Info()
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
