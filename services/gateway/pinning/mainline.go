package pinning

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"landfall.build/engine/admission"
	"landfall.build/platform/gitrepo"
)

const (
	// windowDepth is how far back the mainline is listed at first.
	windowDepth = 500
	// windowLimit bounds a window; one that grew larger is listed again.
	windowLimit = 20_000
)

// window is a part of the mainline's history that is closed towards the head: it holds every commit
// that is reachable from the head and descends from a member. So a commit that descends from a member
// and is none itself is not on the mainline, and the first member that a line of single parents meets
// is its merge base with the mainline. Windows do not change once made.
type window struct {
	head    string
	members map[string]bool
}

// mainline keeps the window of a branch as its head moves.
type mainline struct {
	mu  sync.Mutex
	now *window
}

// current returns the window at the head that the mirror has, after a fetch if the mirror lacks the head
// that the log has.
func (m *mainline) current(ctx context.Context, mirror Mirror, branch, logged string) (*window, error) {
	name := "refs/heads/" + branch
	for fetched := false; ; fetched = true {
		now, err := m.atTip(ctx, mirror, name)
		if err != nil && !errors.Is(err, gitrepo.ErrNoSuchCommit) {
			return nil, err
		}
		// A head that is not in the window even after a fetch: the branch was rewritten, and the log
		// has not heard of it.
		if err == nil && (fetched || logged == "" || now.members[logged]) {
			return now, nil
		}
		if fetched {
			return nil, missingBranch(branch)
		}
		if err := mirror.Fetch(ctx, gitrepo.Wanted{Branches: []string{name}}); errors.Is(err, gitrepo.ErrNoBranch) {
			return nil, missingBranch(branch)
		} else if err != nil {
			return nil, err
		}
	}
}

// atTip returns the window at what the mirror has of a branch; gitrepo.ErrNoSuchCommit if it has nothing. The lock is not held
// while the remote is asked: others may know all that they need.
func (m *mainline) atTip(ctx context.Context, mirror Mirror, name string) (*window, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tip, err := mirror.Resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	next, err := advance(ctx, mirror, m.now, tip)
	if err != nil {
		return nil, fmt.Errorf("the mainline at %s: %v", tip, err)
	}
	m.now = next
	return next, nil
}

func missingBranch(branch string) error {
	return &admission.Refusal{Code: admission.NoSuchRef, Message: fmt.Sprintf("The repository has no branch %q, on which this queue lands; push it, or correct the configuration.", branch)}
}

// advance returns the window at another head: new commits are added, unless the branch was rewritten.
func advance(ctx context.Context, mirror Mirror, old *window, head string) (*window, error) {
	if old != nil && old.head == head {
		return old, nil
	}
	if old != nil && len(old.members) < windowLimit {
		_, err := mirror.FirstParents(ctx, old.head, head, windowDepth)
		if err == nil {
			return list(ctx, mirror, old.head, head, old.members)
		}
		if !errors.Is(err, gitrepo.ErrNotFirstParent) && !errors.Is(err, gitrepo.ErrTooLarge) && !errors.Is(err, gitrepo.ErrNoSuchCommit) {
			return nil, err
		}
	}
	chain, err := mirror.FirstParents(ctx, "", head, windowDepth)
	if err != nil {
		return nil, err
	}
	return list(ctx, mirror, chain[0], head, map[string]bool{chain[0]: true})
}

// list adds what head has and base has not. Where that is too much, the head alone is a window.
func list(ctx context.Context, mirror Mirror, base, head string, known map[string]bool) (*window, error) {
	commits, err := mirror.Commits(ctx, base, head)
	if errors.Is(err, gitrepo.ErrTooLarge) {
		return &window{head: head, members: map[string]bool{head: true}}, nil
	}
	if err != nil {
		return nil, err
	}
	members := make(map[string]bool, len(known)+len(commits))
	for id := range known {
		members[id] = true
	}
	for _, id := range commits {
		members[id] = true
	}
	return &window{head: head, members: members}, nil
}
