package gitrepo

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// A git that is killed leaves a file X.lock beside each file X that it was about to write, and no other git writes X until somebody removes
// it. Those of the mirror are this package's own to remove; those of a remote are not, since others push there.

// lockInTheWay are git's words where a lock is in its way.
var lockInTheWay = regexp.MustCompile(`Unable to create '([^'\n]+\.lock)': File exists`)

// lockAge is how old a lock of the mirror is at least that nobody holds: no command on the mirror alone takes longer, and a fetch takes
// locks at its end.
const lockAge = localLimit

// freeLocks removes the locks of the mirror that an error is about if nobody holds them, and reports whether there were any.
func (r *Repo) freeLocks(err error) (freed bool) {
	failed, is := errors.AsType[*CommandError](err)
	if !is {
		return false
	}
	for _, found := range lockInTheWay.FindAllStringSubmatch(failed.Stderr, -1) {
		name, err := filepath.Rel(r.dir, found[1])
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		info, err := os.Lstat(found[1])
		if err != nil || r.clock().Sub(info.ModTime()) < lockAge {
			continue
		}
		if os.Remove(found[1]) == nil {
			r.log.Warn("a lock is removed that a git has left which was killed", "file", found[1], "age", r.clock().Sub(info.ModTime()).Round(time.Second))
			freed = true
		}
	}
	return freed
}
