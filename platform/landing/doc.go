// Package landing computes what a change makes of a mainline (M21 to
// M23): which landing commits it consists of, which trees they give on top of another
// tree, and the very commits that are pushed.
//
// Everything here is a function of its arguments: the same picks on the same commit with
// the same Meta give the same ids, in every process, at any time. That is what lets a
// lander that takes over recognise the commits of its predecessor by their id.
package landing

import (
	"context"
	"errors"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
)

// Repository is what this package needs of a git mirror; *gitrepo.Repo is one. All ids
// are full, and what they name is in the mirror already.
type Repository interface {
	TreeOf(ctx context.Context, commit string) (tree string, err error)
	MergeTrees(ctx context.Context, base, ours, theirs string) (tree string, conflict *gitrepo.Conflict, err error)
	CommitInfos(ctx context.Context, ids []string) ([]gitrepo.Commit, error)
	IsAncestor(ctx context.Context, ancestor, descendant string) (bool, error)
	MergeBase(ctx context.Context, a, b string) (string, error)
	Commits(ctx context.Context, base, head string) ([]string, error)
	WriteCommit(ctx context.Context, spec gitrepo.CommitSpec) (string, error)
}

// Strategy is how a queue turns the heads of a change into landing commits.
type Strategy string

const (
	Squash Strategy = "squash" // one commit for each entry (the default)
	Rebase Strategy = "rebase" // one for each commit of each entry
	Merge  Strategy = "merge"  // one merge commit for each entry
)

// Pick is the content of one landing commit: the difference from Base to Head, both full
// commit ids.
type Pick struct {
	Head, Base string
	Merge      bool // the landing commit gets Head as its second parent
}

// PicksOf returns a change's landing commits as picks.
func PicksOf(commits []*eventsv1.LandingCommit) []Pick {
	picks := make([]Pick, len(commits))
	for i, c := range commits {
		picks[i] = Pick{Head: c.GetHead(), Base: c.GetBase(), Merge: c.GetMerge()}
	}
	return picks
}

// All of these speak about the change as it was submitted; asking again gives the same.
var (
	// ErrAlreadyIn: an entry's head is an ancestor of the mainline already.
	ErrAlreadyIn = errors.New("already part of the mainline")
	// ErrEmpty: an entry changes no file.
	ErrEmpty = errors.New("changes nothing")
	// ErrNoCommonBase: an entry shares no history with the mainline.
	ErrNoCommonBase = errors.New("shares no history with the mainline")
	// ErrNotStacked: an entry does not descend from the one before it.
	ErrNotStacked = errors.New("does not descend from the entry before it")
	// ErrMergeCommit: an entry to be rebased contains a merge commit.
	ErrMergeCommit = errors.New("contains a merge commit, which cannot be rebased")
	// ErrTooMany: more entries or commits than one change may have.
	ErrTooMany = errors.New("too many landing commits for one change")
	// ErrInvalid: an argument can never be right (an unknown strategy, a malformed id or
	// date).
	ErrInvalid = errors.New("invalid argument")
)

// MaxPicks bounds the landing commits of one change.
const MaxPicks = 1000
