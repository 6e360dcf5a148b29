package steps

import (
	"cmp"

	eventsv1 "landfall.build/events/v1"
)

// Rank orders the steps that could be started.
type Rank struct {
	// Urgent reports whether a build wants the step whose change an operator has moved to the front (M35).
	Urgent bool
	// Ready reports whether all that the step's target depends on has passed, and a change needs the step. Other steps are for
	// workers that have nothing else to do.
	Ready bool
	// Late reports whether a build that wants the step has taken too long beside what it would with a fair share (M33a).
	Late bool
	// Index is the sum of the indexes of the builds that want the step (M33).
	Index float64
	// Bid is what the step counts beside those of other queues: its index, or the highest of its queue if it is late. Which of a
	// queue's steps is next does not alter what the queue has of the workers.
	Bid float64
}

// Compare is negative if a step of rank r comes before one of rank o of another queue.
func (r Rank) Compare(o Rank) int {
	return cmp.Or(boolean(o.Urgent)-boolean(r.Urgent), boolean(o.Ready)-boolean(r.Ready), cmp.Compare(o.Bid, r.Bid))
}

// indexOf returns the index of a build (M33).
func (q *Queue) indexOf(b *build, nowUs int64) float64 { return q.indexLine(b).at(q.moment(nowUs)) }

// Next returns at most limit steps that nobody has the right to run at a time (microseconds since 1970), in the order in
// which they should be started: each build offers its first step that could be started (M34), and the offer of the highest
// rank comes next (M33). Those that are taken are left out, and so are those that have to wait for what another step has to
// itself, and those for whose claims fits reports false: it is asked about resources and labels, and nil fits all. No more are
// listed for anybody than may run for it (M33b), but for urgent ones.
//
// An aborted build that lingers starts nothing: what it alone wants is probably no longer needed.
func (q *Queue) Next(nowUs int64, limit int, taken []Version, fits func(*eventsv1.StepClaims) bool) []Step {
	if limit <= 0 || len(q.order) == 0 {
		return nil
	}
	q.refresh(nowUs)
	held, listed := q.held(taken), map[Version]bool{}
	may := func(a *asked) bool {
		return !listed[a.Version] && q.unleased(a, nowUs) &&
			q.free(a.Version, a.claims.GetExclusive(), nowUs) && !overlap(held, a.claims.GetExclusive()) &&
			(len(a.claims.GetResources())+len(a.claims.GetLabels()) == 0 || fits == nil || fits(a.claims))
	}
	for _, v := range taken {
		listed[v] = true
	}
	for _, v := range taken {
		q.offerAnother(v, may)
	}
	q.offerClaimless(may)
	counted := q.countTaken(taken)
	defer func() {
		for _, p := range counted {
			p.add(-1)
		}
	}()
	moment := q.moment(nowUs)
	var list []Step
	for {
		e, rank := q.choice.best(moment, q.waitedTo(nowUs))
		if e == nil {
			return list
		}
		b := e.build
		a := b.at(b.offer)
		list = append(list, Step{
			Version: a.Version, Attempt: q.ledger.NextAttempt(a.Version), Part: a.part, Build: b.scheduled, Origin: b.origin, Claims: a.claims,
			Quotas: e.payer.quotas(rank.Urgent), Rank: rank})
		if len(list) == limit {
			return list
		}
		listed[a.Version] = true
		e.payer.add(1)
		counted = append(counted, e.payer)
		q.offerAnother(a.Version, may)
		if names := a.claims.GetExclusive(); len(names) > 0 {
			held = append(held, names...)
			q.offerClaimless(may)
		}
	}
}

// offerAnother has the builds that offer a version offer another one that may be started, during this choice.
func (q *Queue) offerAnother(v Version, may func(*asked) bool) {
	w := q.wanted[v]
	if w == nil || w.offers == 0 {
		return
	}
	for _, a := range w.askers {
		if a.offered == w {
			q.offerMeanwhile(a.build, may)
		}
	}
}

// offerClaimless does so for the offers that take something besides a worker and may not be started now.
func (q *Queue) offerClaimless(may func(*asked) bool) {
	for i := 0; i < len(q.choice.entries) && q.choice.claiming > 0; i++ {
		if b := q.choice.entries[i].build; q.choice.entries[i].claims && !may(b.at(b.offer)) {
			q.offerMeanwhile(b, may)
		}
	}
}

// offerMeanwhile sets a build's offer for this choice alone.
func (q *Queue) offerMeanwhile(b *build, may func(*asked) bool) {
	q.offer(b, b.next(may))
	q.rank(b)
	b.stale = true
	q.changeEntry(b)
}

// held returns what the versions that are taken have to themselves, though no lease of theirs may have been read.
func (q *Queue) held(taken []Version) []string {
	var names []string
	for _, v := range taken {
		if w := q.wanted[v]; w != nil {
			names = append(names, w.claims.GetExclusive()...)
		}
	}
	return names
}
