package gitrepo

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

var (
	// ErrNoBranch: the remote answered and has no such branch. Asking again does not help.
	ErrNoBranch = errors.New("the remote has no such branch")
	// ErrNoSuchCommit: the name or id denotes no commit that the mirror holds, and, where
	// it came from Fetch, none that the remote gives out either.
	ErrNoSuchCommit = errors.New("no such commit")
	// ErrUnreachable: the remote did not answer, or broke off. From a push it means that
	// nobody knows whether the push arrived: read the head before anything else is done.
	ErrUnreachable = errors.New("the remote cannot be reached")
	// ErrSlow: git is still at fetching it, which takes long. Ask again.
	ErrSlow = errors.New("fetching it takes git long")
	// ErrMoved: the ref was not what the push expected, so somebody else pushed. Nothing
	// was changed.
	ErrMoved = errors.New("the ref has moved")
	// ErrRefused: the remote declined the push (a hook, a protected branch, a locked ref).
	// Nothing was changed; the text says what it gave as its reason.
	ErrRefused = errors.New("the remote refused the push")
	// ErrTooLarge: a stated bound (a blob's, a listing's, an output's) was exceeded.
	ErrTooLarge = errors.New("larger than its limit")
	// ErrBadObject: an object does not parse, or holds names that no checkout may follow.
	ErrBadObject = errors.New("malformed git object")
	// ErrNotFirstParent: the older commit is not on the newer one's first-parent chain,
	// so the mainline was rewritten between the two.
	ErrNotFirstParent = errors.New("not on the first-parent chain")
	// ErrInvalid: an argument can never be right (a malformed id, ref, name or date).
	ErrInvalid = errors.New("invalid argument")
)

// CommandError is a git process that failed: what was run, how it ended, what it said.
type CommandError struct {
	Args   []string // without the configuration that every command gets
	Code   int      // exit code; -1 when it was killed or could not start
	Stderr string   // bounded, credentials of the remote's URL removed
	Err    error    // the context's error where that ended it
	// overMemory is set if it met the bound of its memory, and the machine had so much.
	overMemory bool
	// overWork is set if it met the bound of its processor time.
	overWork bool
}

func (e *CommandError) Error() string {
	text := strings.TrimSpace(e.Stderr)
	if text == "" {
		text = "no message"
	}
	if e.Err != nil {
		return fmt.Sprintf("git %s: %v (exit code %d): %s", strings.Join(e.Args, " "), e.Err, e.Code, text)
	}
	return fmt.Sprintf("git %s: exit code %d: %s", strings.Join(e.Args, " "), e.Code, text)
}

// Unwrap returns the context's error, so that a cancelled command is seen as cancelled.
func (e *CommandError) Unwrap() error { return e.Err }

func exitCode(err error) int {
	if failed, ok := errors.AsType[*CommandError](err); ok {
		return failed.Code
	}
	return -1
}

// DiskFull reports whether an error comes of a disk of this machine that takes no more. What the remote says of its own
// disk comes marked as the remote's word.
func DiskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	failed, is := errors.AsType[*CommandError](err)
	if !is {
		return false
	}
	// git runs under LC_ALL=C, so that its words are these.
	for line := range strings.Lines(failed.Stderr) {
		local := !strings.HasPrefix(line, "remote:") && !strings.Contains(line, "remote error:")
		if local && (strings.Contains(line, "No space left on device") || strings.Contains(line, "Disk quota exceeded")) {
			return true
		}
	}
	return false
}
