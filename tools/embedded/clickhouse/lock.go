package clickhouse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrDirInUse is returned by Start while another landfall has the data directory.
var ErrDirInUse = errors.New("another landfall runs the embedded ClickHouse of this data directory")

// lockDir takes the directory for as long as the file stays open.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded ClickHouse: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrDirInUse, dir)
		}
		return nil, fmt.Errorf("embedded ClickHouse: lock %s: %w", path, err)
	}
	return f, nil
}
