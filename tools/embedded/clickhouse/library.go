package clickhouse

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Version of the library that this landfall runs; the script install pins the same.
const Version = "26.7.3-stable.1"

// ErrNotInstalled is returned while the library or its host is not on this machine. Everything else runs
// without: the log keeps what the history would hold, and it is filled in once there is a server.
var ErrNotInstalled = errors.New("the embedded ClickHouse is not installed (make clickhouse installs it; clickhouse.dsn in the configuration names a server instead)")

// library is where the two files are.
type library struct{ host, shared string }

// Installed returns nil, or ErrNotInstalled with what is missing.
func Installed() error {
	_, err := installed()
	return err
}

func installed() (library, error) {
	folder, err := Folder()
	if err != nil {
		return library{}, err
	}
	l := library{host: filepath.Join(folder, "landfall-clickhouse"), shared: filepath.Join(folder, "libchdb.so")}
	for _, file := range []string{l.host, l.shared} {
		if _, err := os.Stat(file); err != nil {
			return library{}, fmt.Errorf("%w: %w", ErrNotInstalled, err)
		}
	}
	return l, nil
}

// Folder returns where install puts the library and its host: they may be missing. The error is ErrNotInstalled.
func Folder() (string, error) {
	if home := os.Getenv("LANDFALL_CLICKHOUSE_HOME"); home != "" {
		return filepath.Join(home, Version), nil
	}
	data := os.Getenv("XDG_DATA_HOME")
	if data == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w: %w", ErrNotInstalled, err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "landfall", "clickhouse", Version), nil
}
