package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Wanted is what a fetch brings into the mirror.
type Wanted struct {
	Branches []string // branches, or refs/… names, of the remote
	Commits  []string // full commit ids; what the mirror has already is not asked for again
	// Change bounds what git may take for each of them, since nobody has approved what a change brings: fetchBounds.apart, and mostMemory.
	Change bool
	// Whose has, by branches' full names and commits' ids, who asks for them, if that is known. Of what takes git long, that of those goes
	// first whose fetches have taken least.
	Whose map[string][]string
}

const (
	maxFetchBatch = 512 // requests served by one git fetch
	maxPacks      = 40  // above it packs are rolled up
	maxLooseInDir = 100 // loose objects in one of 256 directories, before they are packed
)

// Fetch brings branches and commits of the remote into the mirror; with the zero Wanted
// all branches and tags, and forgets those that are gone. Requests that meet are served
// together; what takes git long is fetched apart, one by one. The remote's refs/X is refs/remote/X here.
//
// ErrNoBranch: the remote has no such branch. ErrNoSuchCommit: it does not give out such a
// commit. ErrUnreachable: it does not answer. ErrTooLarge: git takes more than it may for what a change brings.
func (r *Repo) Fetch(ctx context.Context, wanted Wanted) error {
	missing, err := r.fetch(ctx, wanted, true)
	if err != nil {
		return err
	}
	return missing.of(wanted)
}

// Missing is what a fetch did not bring: ErrNoBranch, ErrTooLarge and ErrSlow by the branches' full names, ErrNoSuchCommit, ErrTooLarge
// and ErrSlow by the commits' ids.
type Missing map[string]error

// FetchSome is Fetch of what the remote has, and returns what it lacks. It does not wait for what is fetched apart, which is ErrSlow:
// whoever asks again is told once what came of it.
func (r *Repo) FetchSome(ctx context.Context, wanted Wanted) (Missing, error) {
	return r.fetch(ctx, wanted, false)
}

func (r *Repo) fetch(ctx context.Context, wanted Wanted, wait bool) (Missing, error) {
	for _, branch := range wanted.Branches {
		if _, err := branchRef(branch); err != nil {
			return nil, err
		}
	}
	everything := wanted.all()
	if len(wanted.Commits) > 0 {
		missing, err := r.missingCommits(ctx, wanted.Commits)
		if err != nil {
			return nil, err
		}
		wanted.Commits = missing
		if len(missing) == 0 && len(wanted.Branches) == 0 {
			return nil, nil
		}
	}
	request := &fetchRequest{ctx: ctx, change: wanted.Change, whose: wanted.Whose, wait: wait, missing: Missing{}, done: make(chan struct{})}
	request.names = wanted.names()
	if everything {
		request.names = []string{allBranches}
	}
	if !r.fetches.put(r, request) {
		return nil, errors.New("the mirror is closed")
	}
	select {
	case <-request.done:
		return request.missing, request.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *Repo) missingCommits(ctx context.Context, ids []string) ([]string, error) {
	for _, id := range ids {
		if err := checkID("commit", id); err != nil {
			return nil, err
		}
	}
	got, err := r.usedCommits(ctx, ids, 0)
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

// of returns the first error about what is wanted.
func (f Missing) of(wanted Wanted) error {
	for _, branch := range wanted.Branches {
		if ref, err := branchRef(branch); err != nil || f[ref] != nil {
			return errors.Join(err, f.about(ref))
		}
	}
	for _, id := range wanted.Commits {
		if f[id] != nil {
			return f.about(id)
		}
	}
	return nil
}

// about returns the error of a name, with the name.
func (f Missing) about(name string) error {
	if errors.Is(f[name], ErrTooLarge) {
		return fmt.Errorf("fetching %s: %w", name, f[name])
	}
	return f[name]
}

// names returns what is wanted as uses name it.
func (w Wanted) names() []string {
	names := slices.Clone(w.Commits)
	for _, branch := range w.Branches {
		if ref, err := branchRef(branch); err == nil {
			names = append(names, ref)
		}
	}
	return names
}

func (w Wanted) all() bool { return len(w.Branches)+len(w.Commits) == 0 }

// fetchLocked holds the lock that all processes on the mirror share.
func (r *Repo) fetchLocked(ctx context.Context, names []string, bound fetchBound) (missing Missing, took time.Duration, err error) {
	unlock, err := lockFile(ctx, r.dir+".lock")
	if err != nil {
		return nil, 0, err
	}
	defer unlock()
	if apart, err := tryLock(filepath.Join(r.dir, apartLock)); err == nil { // else what is fetched apart may count on what would be deleted
		r.finishPrune()
		apart()
	}
	if missing, took, err = r.fetchBounded(ctx, names, bound); err != nil {
		return nil, took, err
	}
	if err := r.compact(ctx); err != nil {
		r.log.Warn("the mirror's packs could not be repacked; reading it gets slower", "error", err)
	}
	return missing, took, nil
}

// fetchBounded ends with errCostly if git takes more than the bound, and returns what it took.
func (r *Repo) fetchBounded(ctx context.Context, names []string, bound fetchBound) (missing Missing, took time.Duration, err error) {
	wanted, begin := wantedOf(names), time.Now()
	bounded, cancel := context.WithTimeoutCause(ctx, bound.time, fmt.Errorf("%w: more than %v", errCostly, bound.time))
	defer cancel()
	missing, err = r.fetchOnce(bounded, wanted, slices.Contains(names, allBranches), bound.memory)
	took = time.Since(begin)
	r.writeUses(wanted.names())
	if err != nil {
		r.log.Info("fetch failed", "branches", wanted.Branches, "commits", wanted.Commits, "error", err)
		return nil, took, err
	}
	r.log.Debug("fetched", "branches", wanted.Branches, "commits", wanted.Commits, "missing", len(missing))
	return missing, took, nil
}

// fetchOnce fetches all that is wanted at once. If that fails it finds out what the remote lacks, by a number of questions that
// does not grow with what is wanted.
func (r *Repo) fetchOnce(ctx context.Context, wanted Wanted, everything bool, memory uint64) (Missing, error) {
	var always, branches, refs, ids []string
	if everything {
		always = append(always, "+refs/heads/*:"+remoteHeads+"*", "+refs/tags/*:"+remoteTags+"*")
	}
	for _, branch := range wanted.Branches {
		ref, err := branchRef(branch)
		if err != nil {
			return nil, err
		}
		if slices.Contains(refs, ref) {
			continue
		}
		refs = append(refs, ref)
		if !everything || !strings.HasPrefix(ref, "refs/heads/") && !strings.HasPrefix(ref, "refs/tags/") {
			branches = append(branches, ref)
		}
	}
	for _, id := range wanted.Commits {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	first := r.fetchRefspecs(ctx, everything, slices.Concat(always, refspecs(branches), keptRefspecs(ids)), memory)
	if first == nil || isCostly(first) {
		return nil, first
	}
	var heads map[string]string
	if len(refs) > 0 || namedBy(first, ids) < 0 {
		var err error
		if heads, err = r.remoteRefs(ctx, append(slices.Clone(refs), "HEAD")...); err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
	}
	found := Missing{}
	for _, ref := range refs {
		if heads[ref] == "" {
			found[ref] = fmt.Errorf("%w: %s at %s", ErrNoBranch, ref, r.shownRemote)
		}
	}
	lacks := func(ref string) bool { return found[ref] != nil }
	branches, refs = slices.DeleteFunc(branches, lacks), slices.DeleteFunc(refs, lacks)
	again := slices.Concat(always, refspecs(branches))
	named := first // may name a commit that the remote lacks
	if len(again) > 0 && len(found)+len(ids) > 0 {
		first = r.fetchRefspecs(ctx, everything, again, memory)
	}
	if len(again) == 0 || first == nil {
		if ids, first = r.fetchCommits(ctx, ids, named, memory); len(ids) == 0 {
			return found, nil
		}
	}
	if isCostly(first) {
		return nil, first
	}
	if memory > 0 && len(again) == 0 && len(ids) == 1 && strings.Contains(first.Error(), "not our ref "+ids[0]) {
		found[ids[0]] = fmt.Errorf("%w: %s has no commit %s", ErrNoSuchCommit, r.shownRemote, ids[0])
		return found, nil // all branches, which anybody may push, would not bring it
	}
	// The remote is there and has the branches. What is left: it gives out no commit by its
	// id, or a branch a/b has taken the place of a branch a, which only pruning resolves.
	all := []string{"+refs/heads/*:" + remoteHeads + "*", "+refs/tags/*:" + remoteTags + "*"}
	if strings.HasPrefix(r.remote, "/") || strings.HasPrefix(r.remote, "file://") {
		all = []string{"+refs/*:" + remoteRefs + "*"}
	}
	if err := r.fetchRefspecs(ctx, true, all, memory); err != nil {
		return nil, fmt.Errorf("fetch: %w", errors.Join(first, err))
	}
	for _, ref := range refs {
		if _, err := r.Resolve(ctx, ref); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", ref, errors.Join(err, first))
		}
	}
	missing, err := r.missingCommits(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range missing {
		found[id] = fmt.Errorf("%w: %s does not serve %s: %w", ErrNoSuchCommit, r.shownRemote, id, first)
	}
	return found, nil
}

const (
	// maxSuspects bounds how many commits a remote may name as missing before the others are given up.
	maxSuspects = 2
	// maxAlone is how many of those are asked for alone.
	maxAlone = 1
)

// fetchCommits fetches commits by their ids, and returns those that it did not get, and the last error; that of an earlier try
// is given. A remote that lacks some gives out none of them, and names one that it lacks. Where it lacks many, the first ones
// count.
func (r *Repo) fetchCommits(ctx context.Context, ids []string, before error, memory uint64) (left []string, last error) {
	last = before
	fetched := func(ids ...string) bool {
		err := r.fetchRefspecs(ctx, false, keptRefspecs(ids), memory)
		if err != nil {
			last = err
		}
		return err == nil
	}
	for try := range maxSuspects {
		if at := namedBy(last, ids); at >= 0 {
			left, ids = append(left, ids[at]), slices.Delete(slices.Clone(ids), at, at+1)
		} else if try > 0 {
			break
		}
		if len(ids) == 0 || fetched(ids...) {
			return left, last
		}
	}
	for i, id := range ids {
		if i >= maxAlone || !fetched(id) {
			left = append(left, id)
		}
	}
	return left, last
}

// namedBy returns the place of a commit that an error names, -1 if it names none.
func namedBy(err error, ids []string) int {
	if err == nil {
		return -1
	}
	text := err.Error()
	return slices.IndexFunc(ids, func(id string) bool { return strings.Contains(text, id) })
}

// refspecs fetch branches by their full names.
func refspecs(refs []string) (specs []string) {
	for _, ref := range refs {
		specs = append(specs, "+"+ref+":"+mirrorRef(ref))
	}
	return specs
}

// keptRefspecs fetch commits by their ids. A ref of its own tells later fetches that a commit's history is here.
func keptRefspecs(ids []string) (specs []string) {
	for _, id := range ids {
		specs = append(specs, "+"+id+":"+keptRefs+id)
	}
	return specs
}

func (r *Repo) fetchRefspecs(ctx context.Context, prune bool, refspecs []string, memory uint64) error {
	args := []string{
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules",
		"--no-show-forced-updates", "--stdin",
	}
	if prune {
		args = append(args, "--prune")
	}
	_, err := r.run(ctx, invocation{
		network: true, args: append(args, "--", r.remote), stdin: []byte(strings.Join(refspecs, "\n") + "\n"), memory: memory,
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
	unlock, err := tryLock(filepath.Join(r.dir, pruneLock))
	if errors.Is(err, errLocked) {
		return nil // Prune reads the packs
	}
	if err != nil {
		return err
	}
	defer unlock()
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
