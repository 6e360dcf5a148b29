package broker

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestTheDirectoryIsFreeAtOnceThoughAChildHasACopyOfTheLock: between fork and exec, a child has all files of its
// parent; a copy of the descriptor is the same.
func TestTheDirectoryIsFreeAtOnceThoughAChildHasACopyOfTheLock(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := syscall.Dup(int(lock.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited)
	unlockDir(lock)
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlockDir(again)
}

// TestOtherUsersCannotTakeTheLock: who can open the file can lock it, which keeps the broker from starting. An older release
// left it readable by everybody.
func TestOtherUsersCannotTakeTheLock(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	for range 2 { // made, and found
		lock, err := lockDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		unlockDir(lock)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
