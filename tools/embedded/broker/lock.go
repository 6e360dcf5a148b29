package broker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ErrDirInUse is returned by Start while another process (or another broker of this one) has the
// data directory. Its text names the process.
var ErrDirInUse = errors.New("another landfall uses this data directory")

// lockDir takes the directory for as long as the file stays open; the kernel releases it however
// the process ends. The file keeps the holder's process id, for people.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	_ = f.Chmod(0o600) // an earlier release has made it for all, and whoever can open it can lock it
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("embedded broker: lock %s: %w", path, err)
		}
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		pid := strings.TrimSpace(string(holder))
		if pid == "" {
			pid = "unknown"
		}
		return nil, fmt.Errorf("%w (pid %s): %s", ErrDirInUse, pid, dir)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("embedded broker: lock %s: %w", path, err)
	}
	return f, nil
}

// unlockDir releases the directory. Closing alone does not, while a child that this process is just starting still
// has a copy of the file: it keeps that until its own program begins.
func unlockDir(f *os.File) {
	// Only a file that is closed already cannot be unlocked.
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	f.Close()
}
