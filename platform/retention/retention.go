// Package retention decides which files and folders of a data directory have been kept for long enough, and remembers of logs
// that they were deleted.
package retention

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"landfall.build/platform/folders"
)

// Item is a file or a folder that may be deleted.
type Item struct {
	Path string
	// Size is in bytes on the disk.
	Size int64
	// Used is when it was last written or used, Age how long it is kept after that.
	Used time.Time
	Age  time.Duration
	// Setting is what Age is called in the configuration.
	Setting string
	// InUse is set if it is kept whatever its age and the size of all.
	InUse bool
}

// Bound is a limit of the configuration that an item goes beyond, as people are told.
type Bound string

// Victim is an item to be deleted, and why.
type Victim struct {
	Item
	Bound Bound
}

// Excess returns the items that are to be deleted: all that are older than their age, and of the others, while all together have
// more bytes than size, those that come to their age next. setting is what size is called in the configuration.
func Excess(items []Item, size int64, setting string, now time.Time) []Victim {
	total := int64(0)
	var free []Item
	for _, i := range items {
		total += i.Size
		if !i.InUse {
			free = append(free, i)
		}
	}
	slices.SortFunc(free, func(a, b Item) int {
		return cmp.Or(a.Used.Add(a.Age).Compare(b.Used.Add(b.Age)), cmp.Compare(a.Path, b.Path))
	})
	var list []Victim
	for _, i := range free {
		switch {
		case now.Sub(i.Used) > i.Age:
			list = append(list, Victim{i, Bound("older than " + Shown(i.Age) + " (" + i.Setting + ")")})
		case total > size:
			list = append(list, Victim{i, Bound("there was no more room for it (" + setting + ")")})
		default:
			return list
		}
		total -= i.Size
	}
	return list
}

// Shown writes a duration without the zeros at its end: 720h, and not 720h0m0s.
func Shown(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Measure returns how many bytes a folder has on the disk, with all below it. What cannot be read counts for nothing.
func Measure(ctx context.Context, dir string) (size int64) {
	count := func(info fs.FileInfo, err error) {
		if err == nil {
			size += SizeOf(info)
		}
	}
	count(os.Lstat(dir))
	_ = folders.Each(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			count(e.Info())
		}
		return context.Cause(ctx)
	})
	return size
}

// SizeOf returns how many bytes a file has on the disk.
func SizeOf(info fs.FileInfo) int64 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Blocks * 512
	}
	return info.Size()
}

// ErrLocked is TryLock's error for a lock that another has.
var ErrLocked = errors.New("another process has the lock")

// TryLock takes the lock of a file, made if need be. The system drops it when the process ends.
func TryLock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, err
	}
	return func() { file.Close() }, nil
}

// missing reports whether an error is that something is not there.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
