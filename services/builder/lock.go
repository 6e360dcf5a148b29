package builder

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockInstance waits until no other process has the name of this instance, and takes it. The system drops the lock when the
// process ends, however it ends.
func lockInstance(ctx context.Context, dir, instance string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("instance lock: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, fileName(instance)+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("instance lock: %w", err)
	}
	_ = file.Chmod(0o600) // an earlier release has made it for all, and whoever can open it can lock it
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("another process runs as builder instance %q in %s: %w", instance, dir, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fileName returns a name as one element of a path.
func fileName(name string) string {
	escaped := url.PathEscape(name)
	if escaped == "" || escaped == "." || escaped == ".." {
		return "_" + escaped
	}
	return escaped
}
