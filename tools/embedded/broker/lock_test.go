package broker

import (
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
