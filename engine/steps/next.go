package steps

import (
	"cmp"
	"container/heap"

	eventsv1 "landfall.build/events/v1"
)

// Rank orders the steps that could be started.
type Rank struct {
	// Urgent reports whether a build wants the step whose change an operator has moved to the front (M35).
	Urgent bool
	// Ready reports whether all that the step's target depends on has passed. Other steps are for workers that have nothing
	// else to do.
	Ready bool
	// Index is the sum of the indexes of the builds that want the step (M33).
	Index float64
}

// Compare is negative if a step of rank r comes before one of rank o.
func (r Rank) Compare(o Rank) int {
	return cmp.Or(boolean(o.Urgent)-boolean(r.Urgent), boolean(o.Ready)-boolean(r.Ready), cmp.Compare(o.Index, r.Index))
}

// indexOf returns the index of a build (M33): what it is worth, times how long it has waited, over the work that is left.
func (q *Queue) indexOf(b *build, nowUs int64) float64 {
	work := b.workUs
	if !b.prepared {
		work = max(1, int64(len(b.scheduled.GetTargets()))) * q.estimates.meanUs()
	}
	return b.value * float64(q.estimates.patienceUs(q.Workers)+max(0, nowUs-b.sinceUs)) / float64(max(1, work))
}

// rank returns the rank of a step that could be started.
func (q *Queue) rank(b *build, o offer, nowUs int64) Rank {
	r := Rank{Ready: o.ready}
	for _, other := range b.at(o).want.askers {
		if other.successor == "" && other.open[other.place] {
			r.Urgent = r.Urgent || other.urgent
			r.Index += q.indexOf(other.build, nowUs)
		}
	}
	return r
}

// Next returns at most limit steps that nobody has the right to run at a time (microseconds since 1970), in the order in
// which they should be started: each build offers its first step that could be started (M34), and the offer of the highest
// rank comes next (M33). Those that are taken are left out, and so are those that have to wait for what another step has to
// itself, and those for whose resources fits reports false; nil fits all.
//
// An aborted build that lingers starts nothing: what it alone wants is probably no longer needed.
func (q *Queue) Next(nowUs int64, limit int, taken []Version, fits func([]*eventsv1.ResourceAmount) bool) []Step {
	if limit <= 0 || len(q.order) == 0 {
		return nil
	}
	for v, l := range q.leases {
		if l.UntilUs < nowUs {
			q.offerAgain(v)
		}
	}
	unleased := func(a *asked) bool {
		l := q.leases[a.Version]
		return l == nil || l.UntilUs < nowUs
	}
	held, listed := q.held(taken), map[Version]bool{}
	for _, v := range taken {
		listed[v] = true
	}
	may := func(a *asked) bool {
		return unleased(a) && !listed[a.Version] &&
			q.free(a.Version, a.claims.GetExclusive(), nowUs) && !overlap(held, a.claims.GetExclusive()) &&
			(len(a.claims.GetResources()) == 0 || fits == nil || fits(a.claims.GetResources()))
	}
	open := make(offers, 0, len(q.order))
	for _, b := range q.order {
		if b.successor != "" || len(b.open) == 0 {
			continue
		}
		if b.stale {
			b.offer, b.stale = b.next(unleased), false
		}
		o := b.offer
		if o.at >= 0 && (len(listed) > 0 || b.at(o).claims != nil) && !may(b.at(o)) {
			o = b.next(may)
		}
		if o.at >= 0 {
			open = append(open, offered{b, o, q.rank(b, o, nowUs)})
		}
	}
	heap.Init(&open)
	var list []Step
	for len(open) > 0 && len(list) < limit {
		top := open[0]
		if a := top.build.at(top.offer); may(a) {
			listed[a.Version] = true
			list = append(list, Step{
				Version: a.Version, Attempt: q.ledger.NextAttempt(a.Version), Part: a.part, Build: top.build.scheduled, Origin: top.build.origin, Claims: a.claims, Rank: top.rank})
			if names := a.claims.GetExclusive(); len(names) > 0 {
				held = append(held, names...)
				q.replaceClaiming(&open, may, nowUs)
				continue
			}
		}
		if top.offer = top.build.next(may); top.offer.at < 0 {
			heap.Pop(&open)
			continue
		}
		top.rank = q.rank(top.build, top.offer, nowUs)
		open[0] = top
		heap.Fix(&open, 0)
	}
	return list
}

// replaceClaiming replaces the offers that take something besides a worker and may not be started any more.
func (q *Queue) replaceClaiming(open *offers, may func(*asked) bool, nowUs int64) {
	left := (*open)[:0]
	for _, o := range *open {
		if a := o.build.at(o.offer); a.claims != nil && !may(a) {
			if o.offer = o.build.next(may); o.offer.at < 0 {
				continue
			}
			o.rank = q.rank(o.build, o.offer, nowUs)
		}
		left = append(left, o)
	}
	*open = left
	heap.Init(open)
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

// offered is a build's offer with its rank.
type offered struct {
	build *build
	offer
	rank Rank
}

// offers is a heap, the highest rank first; of equal ranks the build that was scheduled first.
type offers []offered

func (o offers) Len() int { return len(o) }

func (o offers) Less(i, j int) bool {
	return cmp.Or(o[i].rank.Compare(o[j].rank), before(o[i].build, o[j].build)) < 0
}

func (o offers) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

func (o *offers) Push(x any) { *o = append(*o, x.(offered)) }

func (o *offers) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
