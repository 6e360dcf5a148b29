//go:build !linux

package caches

import (
	"io/fs"
	"time"
)

// lastUse returns when a file was last written.
func lastUse(info fs.FileInfo) time.Time { return info.ModTime() }
