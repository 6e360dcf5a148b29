package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Wanted is what a fetch brings into the mirror.
type Wanted struct {
	Branches []string // branches, or refs/… names, of the remote
	Commits  []string // full commit ids; what the mirror has already is not asked for again
}

const (
	maxFetchBatch = 64  // requests served by one git fetch
	maxPacks      = 40  // above it packs are rolled up
	maxLooseInDir = 100 // loose objects in one of 256 directories, before they are packed
)

// fetchQueue gathers the requests that come in while a fetch runs, for the next one.
type fetchQueue struct {
	mu      sync.Mutex
	waiting []*fetchRequest
	running bool
	stop    context.CancelFunc
	closed  bool
}

type fetchRequest struct {
	ctx    context.Context
	wanted Wanted
	done   chan error // buffered
}

func (q *fetchQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.stop != nil {
		q.stop()
	}
}

// Fetch brings branches and commits of the remote into the mirror; with the zero Wanted
// all branches and tags, and forgets those that are gone. Requests that meet are served
// together. The remote's refs/X is refs/remote/X here.
//
// ErrNoBranch: the remote has no such branch. ErrNoSuchCommit: it does not give out such a
// commit. ErrUnreachable: it does not answer.
func (r *Repo) Fetch(ctx context.Context, wanted Wanted) error {
	for _, branch := range wanted.Branches {
		if _, err := branchRef(branch); err != nil {
			return err
		}
	}
	if len(wanted.Commits) > 0 {
		missing, err := r.missingCommits(ctx, wanted.Commits)
		if err != nil {
			return err
		}
		wanted.Commits = missing
		if len(missing) == 0 && len(wanted.Branches) == 0 {
			return nil
		}
	}
	request := &fetchRequest{ctx: ctx, wanted: wanted, done: make(chan error, 1)}
	q := &r.fetches
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return errors.New("the mirror is closed")
	}
	q.waiting = append(q.waiting, request)
	if !q.running {
		q.running = true
		batchCtx, stop := context.WithCancel(context.Background())
		q.stop = stop
		go func() {
			defer stop()
			r.serveFetches(batchCtx)
		}()
	}
	q.mu.Unlock()
	select {
	case err := <-request.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Repo) missingCommits(ctx context.Context, ids []string) ([]string, error) {
	for _, id := range ids {
		if err := checkID("commit", id); err != nil {
			return nil, err
		}
	}
	got, err := r.readers.objects(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, id := range ids {
		if got[i].kind != "commit" {
			missing = append(missing, id)
		}
	}
	return missing, nil
}

// serveFetches runs until nobody waits. Its context is the mirror's, not a caller's: a
// caller that leaves must not take the others' fetch along.
func (r *Repo) serveFetches(ctx context.Context) {
	q := &r.fetches
	for {
		q.mu.Lock()
		batch := q.waiting[:min(len(q.waiting), maxFetchBatch)]
		q.waiting = q.waiting[len(batch):]
		if len(batch) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()

		var union Wanted
		live := batch[:0:0]
		everything := false
		for _, request := range batch {
			if request.ctx.Err() != nil {
				continue
			}
			live = append(live, request)
			union.Branches = append(union.Branches, request.wanted.Branches...)
			union.Commits = append(union.Commits, request.wanted.Commits...)
			everything = everything || request.wanted.all()
		}
		if len(live) == 0 {
			continue
		}
		err := r.fetchLocked(ctx, union, everything)
		for _, request := range live {
			if err != nil && len(live) > 1 { // each alone shows whose fault it was
				request.done <- r.fetchLocked(ctx, request.wanted, request.wanted.all())
				continue
			}
			request.done <- err
		}
	}
}

func (w Wanted) all() bool { return len(w.Branches)+len(w.Commits) == 0 }

// fetchLocked holds the lock that all processes on the mirror share.
func (r *Repo) fetchLocked(ctx context.Context, wanted Wanted, everything bool) error {
	unlock, err := lockFile(ctx, r.dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.fetchOnce(ctx, wanted, everything); err != nil {
		r.log.Info("fetch failed", "branches", wanted.Branches, "commits", wanted.Commits, "error", err)
		return err
	}
	r.log.Debug("fetched", "branches", wanted.Branches, "commits", wanted.Commits)
	if err := r.compact(ctx); err != nil {
		r.log.Warn("the mirror's packs could not be repacked; reading it gets slower", "error", err)
	}
	return nil
}

func (r *Repo) fetchOnce(ctx context.Context, wanted Wanted, everything bool) error {
	var refspecs, refs []string
	if everything {
		refspecs = append(refspecs, "+refs/heads/*:"+remoteHeads+"*", "+refs/tags/*:"+remoteTags+"*")
	}
	seen := make(map[string]bool)
	for _, branch := range wanted.Branches {
		ref, err := branchRef(branch)
		if err != nil {
			return err
		}
		if seen[ref] {
			continue
		}
		seen[ref] = true
		refs = append(refs, ref)
		if !everything || !strings.HasPrefix(ref, "refs/heads/") && !strings.HasPrefix(ref, "refs/tags/") {
			refspecs = append(refspecs, "+"+ref+":"+mirrorRef(ref))
		}
	}
	for _, id := range wanted.Commits {
		if !seen[id] {
			seen[id] = true
			// A ref of its own tells later fetches that this history is here.
			refspecs = append(refspecs, "+"+id+":"+keptRefs+id)
		}
	}
	first := r.fetchRefspecs(ctx, everything, refspecs)
	if first == nil {
		return nil
	}
	heads, err := r.remoteRefs(ctx, append(refs, "HEAD")...)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	for _, ref := range refs {
		if heads[ref] == "" {
			return fmt.Errorf("%w: %s at %s", ErrNoBranch, ref, r.shownRemote)
		}
	}
	// The remote is there and has the branches. What is left: it gives out no commit by its
	// id, or a branch a/b has taken the place of a branch a, which only pruning resolves.
	all := []string{"+refs/heads/*:" + remoteHeads + "*", "+refs/tags/*:" + remoteTags + "*"}
	if strings.HasPrefix(r.remote, "/") || strings.HasPrefix(r.remote, "file://") {
		all = []string{"+refs/*:" + remoteRefs + "*"}
	}
	if err := r.fetchRefspecs(ctx, true, all); err != nil {
		return fmt.Errorf("fetch: %w", errors.Join(first, err))
	}
	for _, ref := range refs {
		if _, err := r.Resolve(ctx, ref); err != nil {
			return fmt.Errorf("fetch %s: %w", ref, errors.Join(err, first))
		}
	}
	missing, err := r.missingCommits(ctx, wanted.Commits)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s does not serve %s: %w", ErrNoSuchCommit, r.shownRemote, strings.Join(missing, ", "), first)
	}
	return nil
}

func (r *Repo) fetchRefspecs(ctx context.Context, prune bool, refspecs []string) error {
	args := []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--no-show-forced-updates", "--stdin",
	}
	if prune {
		args = append(args, "--prune")
	}
	_, err := r.run(ctx, invocation{
		network: true, args: append(args, "--", r.remote), stdin: []byte(strings.Join(refspecs, "\n") + "\n"),
	})
	return err
}

// compact keeps the number of packs and loose objects small. It deletes no object:
// commits that wait to be pushed are reachable from nothing.
func (r *Repo) compact(ctx context.Context) error {
	packs, err := filepath.Glob(filepath.Join(escapeGlob(r.dir), "objects", "pack", "*.pack"))
	if err != nil {
		return err
	}
	sample, err := os.ReadDir(filepath.Join(r.dir, "objects", "17"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(packs) <= maxPacks && len(sample) <= maxLooseInDir {
		return nil
	}
	if _, err := r.git(ctx, "repack", "-d", "-q", "--geometric=2"); err != nil {
		return err
	}
	if _, err := r.git(ctx, "pack-refs", "--all"); err != nil {
		return err
	}
	r.readers.renew()
	return nil
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
