package builder

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// errUnusable is wrapped by what is wrong with a schedule itself: trying again cannot help.
var errUnusable = errors.New("the schedule cannot be used")

// Bounds of a schedule; one beyond them is unusable.
const (
	maxAssumed = 10_000
	maxAsked   = 1 << 20
)

// assembly is the trees of M plus S plus the change, made once for all that need them. The fields may be read once ready is
// closed.
type assembly struct {
	ready chan struct{}
	repo  *gitrepo.Repo
	// base is the tree of M, trees has the one after each landing commit of the change, and whole is the last of these.
	base, whole string
	trees       []string
	// conflict is why there are no trees, for people to read.
	conflict string
	err      error
	// made is when it was begun to be made.
	made time.Time
	// cancelled is set if whoever made it was cancelled: then err means nothing to others.
	cancelled bool
}

// tree returns the tree after a landing commit (1-based) of the change; 0 is the whole.
func (a *assembly) tree(part uint32) (string, error) {
	switch {
	case part == 0:
		return a.whole, nil
	case int(part) > len(a.trees):
		return "", fmt.Errorf("%w: it asks for landing commit %d of %d", errUnusable, part, len(a.trees))
	}
	return a.trees[part-1], nil
}

// assemblyAge is how long trees are used that were made for a build. The mirror keeps them for as long as gitrepo.MinAge at least after
// they were made.
const assemblyAge = gitrepo.MinAge / 2

// isOld reports whether the trees were made so long ago that they are to be made again.
func (a *assembly) isOld() bool {
	select {
	case <-a.ready:
		return time.Since(a.made) > assemblyAge
	default:
		return false
	}
}

// assembled returns a build's trees, and makes them if nobody has. An error is not kept.
func (s *session) assembled(ctx context.Context, b *eventsv1.BuildScheduled) (*assembly, error) {
	s.mu.Lock()
	a, had := s.assemblies[b.GetBuild()]
	if had = had && !a.isOld(); !had {
		a = &assembly{ready: make(chan struct{}), made: time.Now()}
		s.assemblies[b.GetBuild()] = a
	}
	s.mu.Unlock()
	if had {
		select {
		case <-a.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if a.cancelled && ctx.Err() == nil {
			return s.assembled(ctx, b)
		}
		return a, a.err
	}
	s.fillAssembly(ctx, b, a)
	return a, a.err
}

// fillAssembly fills an assembly and closes its ready, whatever happens.
func (s *session) fillAssembly(ctx context.Context, b *eventsv1.BuildScheduled, a *assembly) {
	defer close(a.ready)
	defer func() {
		if failure := recover(); failure != nil {
			s.Logger.Error("panic while a tree was made", "build", b.GetBuild(), "panic", failure, "stack", string(debug.Stack()))
			a.err = fmt.Errorf("the builder failed: %v", failure)
		}
		if a.err != nil {
			a.cancelled = ctx.Err() != nil
			s.mu.Lock()
			if s.assemblies[b.GetBuild()] == a {
				delete(s.assemblies, b.GetBuild())
			}
			s.mu.Unlock()
		}
	}()
	a.err = s.assemble(ctx, b, a)
}

// forgetAssemblies drops the trees of builds that are over. shared.mu is held.
func (s *session) forgetAssemblies() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for build := range s.assemblies {
		if !s.anyLive(build) {
			delete(s.assemblies, build)
		}
	}
}

func (s *session) assemble(ctx context.Context, b *eventsv1.BuildScheduled, a *assembly) (err error) {
	owners, err := ownersOf(b)
	if err != nil {
		return err
	}
	if a.repo, err = s.Repo(ctx, b.GetRepository()); err != nil {
		return fmt.Errorf("repository %q: %w", b.GetRepository(), err)
	}
	if err := a.repo.Fetch(ctx, gitrepo.Wanted{Commits: []string{b.GetBase()}}); err != nil {
		return err
	}
	if a.base, err = a.repo.TreeOf(ctx, b.GetBase()); err != nil {
		return err
	}
	var wanted []string
	var picks []landing.Pick
	for _, o := range owners {
		for _, p := range o.picks {
			wanted = append(wanted, p.Base, p.Head)
		}
		picks = append(picks, o.picks...)
	}
	slices.Sort(wanted)
	if len(wanted) > 0 {
		if err := a.repo.Fetch(ctx, gitrepo.Wanted{Commits: slices.Compact(wanted), Change: true}); err != nil {
			return err
		}
	}
	trees, conflict, err := landing.ApplyTree(ctx, a.repo, a.base, picks)
	if err != nil {
		return err
	}
	if conflict != nil {
		a.conflict, err = blame(ctx, a.repo, a.base, owners, conflict)
		return err
	}
	a.whole = a.base
	if len(trees) > 0 {
		a.whole = trees[len(trees)-1]
	}
	a.trees = trees[len(trees)-len(owners[len(owners)-1].picks):]
	return nil
}

// owner is a change of a build, with its landing commits.
type owner struct {
	name  string
	picks []landing.Pick
}

// ownersOf returns the assumed changes in queue order, then the build's own, which has no landing commits if the mainline
// itself is verified.
func ownersOf(b *eventsv1.BuildScheduled) ([]owner, error) {
	if len(b.GetAssumed()) > maxAssumed || len(b.GetTargets()) > maxAsked {
		return nil, fmt.Errorf("%w: it assumes %d changes and asks for %d targets (at most %d and %d)",
			errUnusable, len(b.GetAssumed()), len(b.GetTargets()), maxAssumed, maxAsked)
	}
	if !gitrepo.IsID(b.GetBase()) {
		return nil, fmt.Errorf("%w: its base is %.80q, which is no commit id", errUnusable, b.GetBase())
	}
	var owners []owner
	for _, c := range append(slices.Clone(b.GetAssumed()), b.GetChange()) {
		o := owner{name: c.GetChange().GetChange(), picks: landing.PicksOf(c.GetLandingCommits())}
		for _, p := range o.picks {
			if !gitrepo.IsID(p.Head) || !gitrepo.IsID(p.Base) {
				return nil, fmt.Errorf("%w: change %s has a landing commit from %.80q to %.80q, which are no commit ids",
					errUnusable, o.name, p.Base, p.Head)
			}
		}
		own := len(owners) == len(b.GetAssumed())
		if len(o.picks) == 0 && (!own || o.name != "") || len(o.picks) > landing.MaxPicks {
			return nil, fmt.Errorf("%w: change %s has %d landing commits (1 to %d)", errUnusable, o.name, len(o.picks), landing.MaxPicks)
		}
		if own && o.name == "" && (len(o.picks) > 0 || len(owners) > 0) {
			return nil, fmt.Errorf("%w: it has landing commits or assumptions, but no change", errUnusable)
		}
		owners = append(owners, o)
	}
	return owners, nil
}

// maxBlamed bounds the changes with which a merge is tried, to find the one that is in its way.
const maxBlamed = 64

// blame returns, for people to read, which change does not merge, with which other, and in which files.
func blame(ctx context.Context, repo landing.Repository, base string, owners []owner, conflict *landing.Conflict) (string, error) {
	at, before := 0, conflict.Pick
	for before >= len(owners[at].picks) {
		before -= len(owners[at].picks)
		at++
	}
	with, paths := "the changes ahead of it", conflict.Paths
	merges := func(onto []landing.Pick) (*landing.Conflict, error) {
		_, found, err := landing.ApplyTree(ctx, repo, base, append(slices.Clone(onto), owners[at].picks...))
		if found != nil && found.Pick < len(onto) {
			found = nil // it needs what is left out here
		}
		return found, err
	}
	alone, err := merges(nil)
	if err != nil {
		return "", err
	}
	if alone != nil {
		with, paths = "the mainline", alone.Paths
	}
	for k := at - 1; alone == nil && k >= 0 && k >= at-maxBlamed; k-- {
		found, err := merges(owners[k].picks)
		if err != nil {
			return "", err
		}
		if found != nil {
			with, paths = "change "+owners[k].name, found.Paths
			break
		}
	}
	assumed := ""
	if at < len(owners)-1 {
		assumed = ", which the build assumes,"
	}
	return fmt.Sprintf("Change %s%s does not merge with %s: conflict in %s.", owners[at].name, assumed, with, listed(paths)), nil
}

// listed names at most ten paths.
func listed(paths []string) string {
	const shown = 10
	if len(paths) == 0 {
		return "files that git does not name"
	}
	text := strings.Join(paths[:min(len(paths), shown)], ", ")
	if more := len(paths) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
