package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Whoever may push a branch can make a pack of a few kilobytes that costs git hours, or any amount of memory, to unpack. A fetch of several
// requests together therefore has little time. If it does not end in that, each of its branches and commits is fetched alone, with less
// time, between the fetches of others. What takes longer by itself is fetched apart: beside the fetches of others, with more time.
//
// Who has many of these waits for itself: first comes what is asked for by those whose fetches have taken least. Once one of somebody's was
// costly, none of its others are fetched together with those of others, until nothing is left that takes long.

// errCostly is the cause of ending a git that takes more time than its fetch may.
var errCostly = errors.New("git takes longer to fetch it than it may")

// isCostly reports whether a fetch met its bound, of time or of memory.
func isCostly(err error) bool {
	failed, is := errors.AsType[*CommandError](err)
	return errors.Is(err, errCostly) || is && failed.overMemory
}

// fetchBound is what git may take for a fetch.
type fetchBound struct {
	time   time.Duration
	memory uint64 // none if 0
}

// fetchBounds are the times of fetches.
type fetchBounds struct {
	together time.Duration   // of what is fetched together
	apart    []time.Duration // of what a change brings, by itself: one after another
	whole    time.Duration   // of the rest, by itself
}

var defaultFetchBounds = fetchBounds{
	together: 30 * time.Second, apart: []time.Duration{3 * time.Second, 30 * time.Second, networkLimit}, whole: networkLimit,
}

const (
	// allBranches stands for all branches and tags, among the names of what is fetched.
	allBranches = "*"
	// apartLock is held by the process that fetches something apart, and while something is deleted.
	apartLock = "landfall-apart.lock"
	// apartPause is long enough for another process to get the lock.
	apartPause = 200 * time.Millisecond
	// apartKept is how long the error of a fetch apart is kept for the next request, if nobody waited for it, and how long one that nobody
	// asks for any more is still to be tried.
	apartKept = 10 * time.Minute
)

// fetchQueue gathers the requests that come in while a fetch runs, for the next one.
type fetchQueue struct {
	ctx    context.Context // of all fetches: a caller that leaves must not take the others' along
	stop   context.CancelFunc
	bounds fetchBounds

	mu      sync.Mutex
	waiting []*fetchRequest
	running bool
	apart   map[string]*apartFetch   // by name
	alone   []*apartFetch            // to be fetched alone, between the fetches of others
	turns   []*apartFetch            // to be fetched apart
	taken   map[string]time.Duration // by what was fetched alone or apart, by who asked for it
	serving bool                     // of turns
	closed  bool
	// work is what serves.
	work sync.WaitGroup
}

type fetchRequest struct {
	ctx    context.Context
	names  []string // of what is left to fetch together: commit ids, refs' full names, allBranches
	change bool
	whose  map[string][]string
	wait   bool // for what is fetched apart

	// By the queue's lock until done is closed:
	open    int // fetches apart that it waits for
	missing Missing
	err     error
	done    chan struct{}
}

// apartFetch is a fetch of one branch or commit.
type apartFetch struct {
	name    string
	change  bool // asked for by changes alone
	who     string
	tries   int
	waiting []*fetchRequest
	asked   time.Time // when it was last asked for
	// ended is when it failed, if nobody waited for it; zero otherwise.
	ended time.Time
	err   error
}

// close ends all fetches, and waits for that.
func (q *fetchQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.stop()
	q.mu.Unlock()
	q.work.Wait()
}

// put takes a request in, unless the queue is closed.
func (q *fetchQueue) put(r *Repo, request *fetchRequest) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if q.splitApart(request); len(request.names) > 0 {
		q.waiting = append(q.waiting, request)
	} else {
		request.concludeIfOver()
	}
	if !q.running && len(q.waiting)+len(q.alone) > 0 {
		q.running = true
		q.work.Go(r.serveFetches)
	}
	return true
}

// splitApart moves the names of a request that are fetched alone or apart to those fetches.
func (q *fetchQueue) splitApart(request *fetchRequest) {
	maps.DeleteFunc(q.apart, func(_ string, a *apartFetch) bool { return !a.ended.IsZero() && time.Since(a.ended) > apartKept })
	if len(q.apart) == 0 {
		clear(q.taken)
	}
	request.names = slices.DeleteFunc(request.names, func(name string) bool {
		a := q.apart[name]
		switch {
		case a == nil && request.change && q.isCostly(request.whose[name]):
			q.join(q.begin(name, request), request)
		case a == nil:
			return false
		case !a.ended.IsZero() && a.change && !request.change:
			delete(q.apart, name) // what is approved has other bounds
			return false
		case !a.ended.IsZero():
			delete(q.apart, name)
			request.add(name, a.err)
		default:
			q.join(a, request)
		}
		return true
	})
}

// isCostly reports whether all who ask for a name have asked for what took git long.
func (q *fetchQueue) isCostly(who []string) bool {
	return len(who) > 0 && q.taken[q.least(who)] >= q.bounds.apart[0]
}

// least returns the one whose fetches have taken least, "" if none is named.
func (q *fetchQueue) least(who []string) string {
	if len(who) == 0 {
		return ""
	}
	return slices.MinFunc(who, func(a, b string) int { return cmp.Compare(q.taken[a], q.taken[b]) })
}

// begin queues a name that a request asks for to be fetched alone.
func (q *fetchQueue) begin(name string, request *fetchRequest) *apartFetch {
	a := &apartFetch{name: name, change: request.change, who: q.least(request.whose[name])}
	q.apart[name] = a
	if a.change {
		q.alone = append(q.alone, a)
	} else {
		q.turns = append(q.turns, a)
	}
	return a
}

// join adds a request to those that wait for a fetch. One that does not wait is told ErrSlow.
func (q *fetchQueue) join(a *apartFetch, request *fetchRequest) {
	a.change, a.asked = a.change && request.change, time.Now()
	if who := request.whose[a.name]; len(who) > 0 {
		a.who = q.least([]string{q.least(who), a.who})
	}
	if request.wait {
		a.waiting = append(a.waiting, request)
		request.open++
	} else {
		request.add(a.name, ErrSlow)
	}
}

// add adds the result of fetching a name.
func (f *fetchRequest) add(name string, err error) {
	switch {
	case err == nil:
	case isOfName(err), errors.Is(err, ErrSlow):
		f.missing[name] = err
	case f.err == nil:
		f.err = err
	}
}

// isOfName reports whether an error is about the branch or commit, and not about the remote or this machine.
func isOfName(err error) bool {
	return errors.Is(err, ErrNoBranch) || errors.Is(err, ErrNoSuchCommit) || errors.Is(err, ErrTooLarge)
}

// concludeIfOver answers a request once nothing of it is left to fetch.
func (f *fetchRequest) concludeIfOver() {
	if len(f.names) == 0 && f.open == 0 {
		close(f.done)
	}
}

// take returns the requests of the next fetch, and their names. Those of the mainline and those of changes are not fetched together.
func (q *fetchQueue) take() (batch []*fetchRequest, names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []*fetchRequest
	for _, request := range q.waiting {
		if len(batch) == maxFetchBatch || len(batch) > 0 && request.change != batch[0].change {
			left = append(left, request)
			continue
		}
		if request.ctx.Err() != nil {
			continue
		}
		if q.splitApart(request); len(request.names) == 0 {
			request.concludeIfOver()
			continue
		}
		batch, names = append(batch, request), append(names, request.names...)
	}
	q.waiting = left
	return batch, names
}

// takeAlone returns the next fetch of one name, and its bound; nil if there is none, or if a request of the mainline waits.
func (q *fetchQueue) takeAlone(memory uint64) (*apartFetch, fetchBound) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.alone) > 0 && !slices.ContainsFunc(q.waiting, func(f *fetchRequest) bool { return !f.change }) {
		a := slices.MinFunc(q.alone, func(a, b *apartFetch) int { return cmp.Compare(q.taken[a.who], q.taken[b.who]) })
		if q.alone = without(q.alone, a); a.change {
			return a, q.next(a, memory)
		}
		q.turns = append(q.turns, a) // what it may take is long
	}
	return nil, fetchBound{}
}

// serveFetches serves requests until none waits.
func (r *Repo) serveFetches() {
	q := &r.fetches
	for {
		if batch, names := q.take(); len(batch) > 0 {
			together := fetchBound{time: q.bounds.together}
			if batch[0].change {
				together.memory = r.gitMemory
			}
			missing, _, err := r.fetchLocked(q.ctx, names, together)
			if isCostly(err) {
				err = r.silence(err)
			}
			q.answer(batch, missing, err)
		}
		// These have as much time as the fetch above, so that a request that met a costly one does not wait for each that comes later.
		for began := time.Now(); time.Since(began) < q.bounds.together; {
			a, bound := q.takeAlone(r.gitMemory)
			if a == nil {
				break
			}
			missing, took, err := r.fetchLocked(q.ctx, []string{a.name}, bound)
			r.concludeApart(a, took, missing, err)
		}
		if q.rest(r) {
			return
		}
	}
}

// rest starts serving what is fetched apart, and reports whether nothing else is left to serve.
func (q *fetchQueue) rest(r *Repo) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) > 0 && !q.serving {
		q.serving = true
		q.work.Go(r.serveApart)
	}
	q.running = len(q.waiting)+len(q.alone) > 0
	return !q.running
}

// answer gives requests the result of the fetch of all of them. If that was costly, each of their names is fetched alone.
func (q *fetchQueue) answer(batch []*fetchRequest, missing Missing, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, request := range batch {
		names := request.names
		request.names = nil
		for _, name := range names {
			if !isCostly(err) {
				request.add(name, errors.Join(missing[name], err))
				continue
			}
			a := q.apart[name]
			if a == nil {
				a = q.begin(name, request)
			}
			q.join(a, request)
		}
		request.concludeIfOver()
	}
}

// silence returns ErrUnreachable if the remote does not answer either, and the error of the costly fetch if it does.
func (r *Repo) silence(costly error) error {
	if !errors.Is(costly, errCostly) {
		return costly
	}
	ctx, cancel := context.WithTimeout(r.fetches.ctx, r.fetches.bounds.together)
	defer cancel()
	if _, err := r.remoteRefs(ctx, "HEAD"); err != nil {
		return fmt.Errorf("%w: fetch: %w", ErrUnreachable, err)
	}
	return costly
}

// next returns the bound of the next try of a fetch. The lock is held.
func (q *fetchQueue) next(a *apartFetch, memory uint64) fetchBound {
	if !a.change {
		a.tries = len(q.bounds.apart)
		return fetchBound{time: q.bounds.whole}
	}
	a.tries++
	return fetchBound{q.bounds.apart[a.tries-1], memory}
}

// turn returns what is to be fetched apart next, and its bound; nil if there is nothing. What is approved goes first, then what is asked for
// by those whose fetches have taken least, of that what was tried least. What nobody asks for any more is given up.
func (q *fetchQueue) turn(memory uint64) (*apartFetch, fetchBound) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns = slices.DeleteFunc(q.turns, func(a *apartFetch) bool {
		left := len(a.waiting) == 0 && time.Since(a.asked) > apartKept
		if left {
			delete(q.apart, a.name)
		}
		return left
	})
	if len(q.turns) == 0 {
		q.serving = false
		return nil, fetchBound{}
	}
	rank := func(a *apartFetch) int {
		if !a.change {
			return 0
		}
		return a.tries
	}
	a := slices.MinFunc(q.turns, func(a, b *apartFetch) int {
		return cmp.Or(cmp.Compare(min(rank(a), 1), min(rank(b), 1)), cmp.Compare(q.taken[a.who], q.taken[b.who]), cmp.Compare(rank(a), rank(b)))
	})
	q.turns = without(q.turns, a)
	return a, q.next(a, memory)
}

func without(list []*apartFetch, one *apartFetch) []*apartFetch {
	return slices.DeleteFunc(list, func(a *apartFetch) bool { return a == one })
}

// serveApart fetches what is to be fetched apart.
func (r *Repo) serveApart() {
	q := &r.fetches
	for {
		a, bound := q.turn(r.gitMemory)
		if a == nil {
			return
		}
		missing, took, err := r.fetchApart(q.ctx, a.name, bound)
		if isCostly(err) && q.isLast(a, bound) {
			if err = r.silence(err); isCostly(err) {
				err = bound.exceeded(a.name)
			}
		}
		r.concludeApart(a, took, missing, err)
		select {
		case <-time.After(apartPause):
		case <-q.ctx.Done():
		}
	}
}

// isLast reports whether a fetch that met a bound is given up. If the mainline has asked for it meanwhile, it is tried again with the
// bound of the mainline.
func (q *fetchQueue) isLast(a *apartFetch, bound fetchBound) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return a.tries >= len(q.bounds.apart) && (a.change || bound.memory == 0)
}

// concludeApart queues a costly fetch for another try, and gives the result of any other to those that wait.
func (r *Repo) concludeApart(a *apartFetch, took time.Duration, missing Missing, err error) {
	q := &r.fetches
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken[a.who] += took
	if isCostly(err) {
		q.turns = append(q.turns, a)
		return
	}
	if q.conclude(a, errors.Join(missing[a.name], err)); len(a.waiting) == 0 && isOfName(a.err) {
		a.ended = time.Now()
	} else {
		delete(q.apart, a.name)
	}
	if len(q.apart) == 0 {
		clear(q.taken)
	}
}

// conclude gives the result of a fetch to those that wait for it.
func (q *fetchQueue) conclude(a *apartFetch, err error) {
	a.err = err
	for _, request := range a.waiting {
		request.add(a.name, err)
		request.open--
		request.concludeIfOver()
	}
}

// exceeded returns the error of a fetch that met the bound at its last try: ErrTooLarge for a change. What the mainline has is not too
// large; that it took too long is ErrUnreachable.
func (b fetchBound) exceeded(name string) error {
	if b.memory == 0 {
		return fmt.Errorf("%w: git takes longer than %v to fetch %s", ErrUnreachable, b.time, name)
	}
	return fmt.Errorf("git takes longer than %v or more than %d MiB of memory: %w", b.time, b.memory>>20, ErrTooLarge)
}

// fetchApart fetches one branch or commit while others are fetched too, and nothing is deleted.
func (r *Repo) fetchApart(ctx context.Context, name string, bound fetchBound) (missing Missing, took time.Duration, err error) {
	apart, err := lockFile(ctx, filepath.Join(r.dir, apartLock))
	if err != nil {
		return nil, 0, err
	}
	defer apart()
	unlock, err := lockFile(ctx, r.dir+".lock")
	if err != nil {
		return nil, 0, err
	}
	r.finishPrune()
	unlock()
	return r.fetchBounded(ctx, []string{name}, bound)
}

// lockFetches keeps all processes from fetching.
func (r *Repo) lockFetches(ctx context.Context) (unlock func(), err error) {
	apart, err := lockFile(ctx, filepath.Join(r.dir, apartLock))
	if err != nil {
		return nil, err
	}
	all, err := lockFile(ctx, r.dir+".lock")
	if err != nil {
		apart()
		return nil, err
	}
	return func() { all(); apart() }, nil
}

// wantedOf returns what has these names.
func wantedOf(names []string) (w Wanted) {
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "refs/"):
			w.Branches = append(w.Branches, name)
		case name != allBranches:
			w.Commits = append(w.Commits, name)
		}
	}
	return w
}
