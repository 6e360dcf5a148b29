package caches

import (
	"io/fs"
	"syscall"
	"time"
)

// lastUse returns when a file was last read or written, as far as the file system keeps it.
func lastUse(info fs.FileInfo) time.Time {
	used := info.ModTime()
	if stat, is := info.Sys().(*syscall.Stat_t); is {
		if read := time.Unix(int64(stat.Atim.Sec), int64(stat.Atim.Nsec)); read.After(used) {
			return read
		}
	}
	return used
}
