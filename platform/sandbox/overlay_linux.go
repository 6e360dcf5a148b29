package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// resolved returns the overlay with the path of Dir that leads through no link.
func (o Overlay) resolved() (Overlay, error) {
	path, err := filepath.EvalSymlinks(o.Path)
	if err != nil {
		return o, err
	}
	if path != o.Path {
		return o, fmt.Errorf("%s leads through a link to %s", o.Path, path)
	}
	o.Dir, err = filepath.EvalSymlinks(o.Dir)
	return o, err
}

// mount mounts the overlay of a folder of the old root. The names of its layers have to fit a page, so they are relative.
func (o Overlay) mount() error {
	if err := os.Chdir(outside + o.Dir); err != nil {
		return err
	}
	defer func() { _ = os.Chdir("/") }()
	// userxattr: a user's own namespace can have no others. volatile: otherwise the end of each step would write the whole
	// disk's buffers out.
	options := "userxattr,volatile,lowerdir=" + strings.Join(o.Lower, ":") + ",upperdir=" + o.Upper + ",workdir=" + o.Work
	if err := unix.Mount("overlay", o.Path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("lay %s over %d layers: %w", o.Upper, len(o.Lower), err)
	}
	return nil
}
