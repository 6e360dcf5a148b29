package gitrepo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A mirror holds objects that no ref names: the trees and commits that this package makes, and commits whose ref Prune
// removed. What is used of them is written down in the mirror, so that Prune knows, in whatever process.
//
// Three locks keep a use and its deletion apart:
//
//   - Whoever makes an object, or finds one there and goes on with it, holds usesLock shared from before it looks until
//     the use is written down.
//   - Prune holds usesLock alone while it deletes. It takes gateLock first, which others pass on their way, so that
//     many short uses cannot keep it waiting.
const (
	usesFile  = "landfall-uses"
	usesLock  = "landfall-uses.lock"
	gateLock  = "landfall-uses.gate"
	pruneLock = "landfall-prune.lock"

	// useEvery is how often one use is written down by one process. What is remembered for longer is looked up again.
	useEvery = 10 * time.Minute
	// maxUses is how many uses a process remembers as written down.
	maxUses = 64 << 10
)

// using runs a function that makes or finds objects of the mirror, and writes down those that it returns: commits, trees, or
// refs of the remote by their full names.
func (r *Repo) using(ctx context.Context, find func() (names []string, err error)) error {
	gate, err := lockFile(ctx, filepath.Join(r.dir, gateLock))
	if err != nil {
		return fmt.Errorf("uses of the mirror: %w", err)
	}
	unlock, err := lockShared(ctx, filepath.Join(r.dir, usesLock))
	gate()
	if err != nil {
		return fmt.Errorf("uses of the mirror: %w", err)
	}
	defer unlock()
	names, err := find()
	if err == nil {
		r.writeUses(names)
	}
	return err
}

// writeUses writes uses down. A failure is no reason to stop: on a disk without room Prune fails as well, and deletes nothing.
func (r *Repo) writeUses(names []string) {
	now := r.clock()
	var lines strings.Builder
	for _, name := range names {
		if !r.usedLately(name) {
			fmt.Fprintf(&lines, "%d %s\n", now.Unix(), name)
		}
	}
	if lines.Len() == 0 {
		return
	}
	file, err := os.OpenFile(filepath.Join(r.dir, usesFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = file.WriteString(lines.String())
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		r.log.Warn("uses of the mirror's objects could not be written down", "error", err)
		return
	}
	for _, name := range names {
		r.used.put(name, now, 1)
	}
}

// usedLately reports whether this process has written a use down within useEvery.
func (r *Repo) usedLately(names ...string) bool {
	for _, name := range names {
		if at, ok := r.used.get(name); !ok || r.clock().Sub(at) >= useEvery {
			return false
		}
	}
	return true
}

// readUses returns when each name was last used. Lines that a full disk cut short are left out.
func (r *Repo) readUses() (map[string]time.Time, error) {
	file, err := os.Open(filepath.Join(r.dir, usesFile))
	uses := map[string]time.Time{}
	if errors.Is(err, fs.ErrNotExist) {
		return uses, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text, name, _ := strings.Cut(lines.Text(), " ")
		seconds, err := strconv.ParseInt(text, 10, 64)
		if at := time.Unix(seconds, 0); err == nil && at.After(uses[name]) && (IsID(name) || strings.HasPrefix(name, "refs/")) {
			uses[name] = at
		}
	}
	return uses, lines.Err()
}

// forgetUses rewrites the file without uses before a time. usesLock is held alone.
func (r *Repo) forgetUses(before time.Time) error {
	uses, err := r.readUses()
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(uses)) {
		if !uses[name].Before(before) {
			fmt.Fprintf(&lines, "%d %s\n", uses[name].Unix(), name)
		}
	}
	path := filepath.Join(r.dir, usesFile)
	if err := os.WriteFile(path+".new", []byte(lines.String()), 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
