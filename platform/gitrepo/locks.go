package gitrepo

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A git that is killed leaves a file X.lock beside each file X that it was about to write, and no other git writes X until somebody removes
// it. Those of the mirror are this package's own to remove; those of a remote are not, since others push there.

// lockInTheWay are git's words where a lock is in its way.
var lockInTheWay = regexp.MustCompile(`Unable to create '([^'\n]+\.lock)': File exists`)

// lockAge is how old a lock of the mirror is at least that nobody holds: no command that takes one on the mirror alone takes longer, and a
// fetch takes locks at its end. What Prune has more time for takes none of git's locks.
const lockAge = localLimit

// freeLocks removes the locks of the mirror that an error is about if nobody holds them, and reports whether there were any. What the remote
// says is not believed, and this package's own lock files are none of git's: they stay.
func (r *Repo) freeLocks(err error) (freed bool) {
	failed, is := errors.AsType[*CommandError](err)
	if !is {
		return false
	}
	for line := range strings.Lines(failed.Stderr) {
		found := lockInTheWay.FindStringSubmatch(line)
		if found == nil || strings.HasPrefix(line, "remote:") {
			continue
		}
		lock := found[1]
		name, err := filepath.Rel(r.dir, lock)
		if err != nil || !filepath.IsLocal(name) || slices.Contains([]string{apartLock, pruneLock, usesLock}, name) {
			continue
		}
		info, err := os.Lstat(lock)
		if err != nil || r.clock().Sub(info.ModTime()) < lockAge {
			continue
		}
		if os.Remove(lock) == nil {
			r.log.Warn("a lock is removed that a git has left which was killed", "file", lock, "age", r.clock().Sub(info.ModTime()).Round(time.Second))
			freed = true
		}
	}
	return freed
}
