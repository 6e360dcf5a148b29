package execution

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nest makes folders within each other, below a folder, as any step can: by going into each.
func nest(t *testing.T, folder, name string, levels int) {
	t.Helper()
	t.Chdir(folder)
	for range levels {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chdir(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("last", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAStepNestsWithoutBoundIsRemoved(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	for name, levels := range map[string]int{"d": 3000, strings.Repeat("d", 250): 100} {
		dir := filepath.Join(t.TempDir(), "scratch")
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "read-only", "below"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "read-only", "below", "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "read-only", "below"), 0); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, "read-only"), 0o500); err != nil {
			t.Fatal(err)
		}
		nest(t, dir, name, levels)
		if err := os.Chdir("/"); err != nil {
			t.Fatal(err)
		}
		few := limit
		few.Cur = 500
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		err := RemoveAll(dir)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Errorf("%d levels: %.100v", levels, err)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%d levels: it is there still: %.100v", levels, err)
		}
		if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
			t.Errorf("what a link leads to is gone: %v", err)
		}
		if err := RemoveAll(dir); err != nil {
			t.Errorf("what is not there: %v", err)
		}
	}
}
