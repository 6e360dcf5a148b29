package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockFile takes the exclusive lock of a file, made if need be, and waits for it as long
// as ctx lets it. The system drops the lock when the process ends, however it ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, syscall.LOCK_EX)
}

// lockShared is lockFile for a lock that any number of holders share.
func lockShared(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, syscall.LOCK_SH)
}

// errLocked is tryLock's error for a lock that another has.
var errLocked = errors.New("another process has the lock")

// tryLock is lockFile that does not wait.
func tryLock(path string) (unlock func(), err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errLocked)
	return lock(ctx, path, syscall.LOCK_EX)
}

func lock(ctx context.Context, path string, how int) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err = syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			// Closing drops the lock. The file stays: removing it would let two holders
			// lock two files of one name.
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}
