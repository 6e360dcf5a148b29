package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/state"
)

const (
	pinsAtOnce = 64
	// firstPause is how long is waited before the remote is asked again; each pause is twice the one before, up to longestPause.
	firstPause   = 200 * time.Millisecond
	longestPause = time.Second
	// slowest is how long git may be at fetching what a request asks for, with all that it does before that: four times what one commit may take.
	slowest = time.Hour
)

// answerRequests answers the requests for which the mirror has everything, and hands on those about which the remote must be
// asked. Requests of one change keep their order.
func (q *queue) answerRequests(ctx context.Context) error {
	for {
		batch, err := q.inbox.take(ctx)
		if err != nil {
			return err
		}
		q.inbox.answered(batch) // nothing waits for them: they are either answered or handed on before the next are taken
		batch = q.unanswered(batch)
		near := q.pinNear(ctx, batch)
		var now []*asked
		for i, a := range batch {
			if near[i] && !q.far.holdsUp(a) {
				now = append(now, a)
			} else {
				q.far.put(a)
			}
		}
		if err := q.settle(ctx, now); err != nil {
			return err
		}
	}
}

// undecided reports whether git has to be asked about a request.
func (q *queue) undecided(a *asked) bool {
	return a.problem == nil && q.standing(a) == state.Undecided
}

// pinNear pins requests without the remote, and reports for which it needs none.
func (q *queue) pinNear(ctx context.Context, batch []*asked) []bool {
	near := make([]bool, len(batch))
	pinner, err := q.mirror(ctx)
	head := q.head()
	group(len(batch), pinsAtOnce, func(i int) {
		a := batch[i]
		if near[i] = !q.undecided(a); near[i] || err != nil {
			return
		}
		if a.pinned, near[i] = pinner.PinNear(ctx, a.Land.Entries, head); near[i] {
			a.problem = a.pinned.Problem
		}
	})
	return near
}

// answerFar answers the requests about which the remote must be asked. While it cannot be reached they wait, each for as long
// as admission.patience; the others go on.
func (q *queue) answerFar(ctx context.Context) error {
	pause := firstPause
	for {
		batch, err := q.far.take(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		down := q.pinFar(ctx, batch)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		answers, open := splitReached(batch)
		answers = append(answers, q.sameAnswer(answers, begin)...)
		q.far.putBack(open)
		answers = append(answers, q.givenUp(down, begin)...)
		if err := q.settle(ctx, answers); err != nil {
			return err
		}
		q.far.answered(answers)
		if len(open) == 0 {
			pause = firstPause
			continue
		}
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
		pause = min(2*pause, longestPause)
	}
}

// pinFar pins requests, or sets why the repository could not be read. The error is that of the remote, which is then down for
// every request.
func (q *queue) pinFar(ctx context.Context, batch []*asked) error {
	begin := time.Now()
	open := slices.DeleteFunc(slices.Clone(batch), func(a *asked) bool { return !q.undecided(a) })
	fail := func(err error) error {
		for _, a := range open {
			a.fail(err, begin)
		}
		return err
	}
	pinner, err := q.mirror(ctx)
	if err != nil {
		return fail(err)
	}
	entries := [][]*eventsv1.Entry{{{Ref: q.settings.Branch}}}
	for _, a := range open {
		entries = append(entries, a.Land.Entries)
	}
	limited, cancel := context.WithTimeout(ctx, q.patienceLeft(open))
	defer cancel()
	head := q.head()
	sight := pinner.Look(limited, entries...)
	if err := sight.Err(); err != nil {
		return fail(err)
	}
	q.far.takeIf(func(a *asked) bool {
		a.unreachable, a.failing = nil, time.Time{} // what others heard of the remote is over
		return false
	})
	for _, a := range open {
		sight.By(a.Land.Author, a.Land.Entries)
	}
	// If that fails, each finds out for itself.
	sight, err = pinner.Fetch(ctx, head, sight, entries...)
	if err != nil {
		q.gateway.Logger.Info("commits could not be fetched together; most often one is named that does not exist", "queue", q.settings.Name, "error", err)
	}
	group(len(open), maxBatch, func(i int) {
		a := open[i]
		pinned, err := pinner.Pin(ctx, a.Land.Entries, head, sight)
		if errors.Is(err, gitrepo.ErrSlow) {
			a.slow(err)
			return
		}
		if err != nil {
			a.fail(err, begin)
			return
		}
		a.pinned, a.problem, a.unreachable = pinned, pinned.Problem, nil
	})
	return nil
}

// patienceLeft returns how long the one that waits longest still waits, and a second at least.
func (q *queue) patienceLeft(open []*asked) time.Duration {
	left := q.settings.Admission.Patience
	for _, a := range open {
		if !a.failing.IsZero() {
			left = min(left, time.Until(a.failing.Add(q.settings.Admission.Patience)))
		}
	}
	return max(left, time.Second)
}

// fail sets why a try that began at a time got no answer about a request.
func (a *asked) fail(err error, began time.Time) {
	if a.unreachable = err; a.failing.IsZero() {
		a.failing = began
		if a.read.After(began) {
			a.failing = a.read
		}
	}
}

// slow sets that git is still at fetching what a request asks for. The repository is there, so that its patience does not begin; but what else
// takes long may be before it.
func (a *asked) slow(err error) {
	if a.slowSince.IsZero() {
		a.slowSince = time.Now()
	}
	if a.unreachable = err; time.Since(a.slowSince) > slowest {
		a.unreachable, a.problem = nil, &admission.Refusal{Code: admission.RepositoryUnreachable,
			Message: fmt.Sprintf("Fetching it takes git long, and in %v it was not done with it and with what else takes long; ask again, or land it in several changes.", slowest)}
	}
}

// splitReached returns those of a batch that can be answered, and those that wait for the remote or for one of these.
func splitReached(batch []*asked) (answers, open []*asked) {
	held := touched{}
	for _, a := range batch {
		if a.unreachable != nil || held.by(a) {
			held.add(a, 1)
			open = append(open, a)
		} else {
			answers = append(answers, a)
		}
	}
	return answers, open
}

// sameAnswer takes those that ask for commits or refs which the remote turned out not to have, and that waited when it was
// asked. Who asks later may have pushed them.
func (q *queue) sameAnswer(answers []*asked, begin time.Time) []*asked {
	missing := map[string]*admission.Refusal{}
	for _, a := range answers {
		if p := a.problem; p != nil && (p.Code == admission.NoSuchRef || p.Code == admission.NoSuchCommit) {
			missing[fmt.Sprint(a.Land.Entries)] = p
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return q.far.takeIf(func(a *asked) bool {
		problem := missing[fmt.Sprint(a.Land.Entries)]
		if problem == nil || a.problem != nil || a.read.After(begin) || q.standing(a) != state.Undecided {
			return false
		}
		a.problem = problem
		return true
	})
}

// givenUp takes those that have waited for as long as the queue's patience, and refuses them. An error is why the remote cannot
// be reached for any of them.
func (q *queue) givenUp(down error, begin time.Time) []*asked {
	now := time.Now()
	gone := q.far.takeIf(func(a *asked) bool {
		if down != nil {
			a.fail(down, begin)
		}
		return a.problem == nil && a.unreachable != nil && !a.failing.IsZero() && now.Sub(a.failing) >= q.settings.Admission.Patience
	})
	for _, a := range gone {
		a.problem = q.unreachable(a.unreachable)
	}
	if len(gone) > 0 {
		q.gateway.Logger.Error("a repository cannot be reached", "queue", q.settings.Name, "repository", q.settings.Repository, "refused", len(gone), "error", gone[0].unreachable)
	}
	return gone
}

func (q *queue) unreachable(err error) *admission.Refusal {
	if gitrepo.DiskFull(err) {
		return &admission.Refusal{Code: admission.RepositoryUnreachable,
			Message: fmt.Sprintf("The disk of the gateway's mirror of %q is full (no space left on device), so nothing can be fetched; the repository is not at fault. Have space made there, then ask again.", q.settings.Repository)}
	}
	waited := fmt.Sprintf("for %v", q.settings.Admission.Patience)
	if errors.Is(err, context.DeadlineExceeded) {
		waited = fmt.Sprintf("within %v", q.settings.Admission.Patience)
	}
	return &admission.Refusal{Code: admission.RepositoryUnreachable,
		Message: fmt.Sprintf("The repository %q could not be read %s; ask again, and if it goes on, have it checked.", q.settings.Repository, waited)}
}
