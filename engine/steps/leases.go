package steps

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// Lease is the right to make one attempt at a version.
type Lease struct {
	Version
	Attempt uint32
	ID      string
	Worker  string
	Build   string
	// UntilUs is when it lapses, in microseconds since 1970 by the holder's clock.
	UntilUs int64
	// Exclusive names what the step has to itself: no other lease in force names any of it.
	Exclusive []string
	// Quotas are for whom it counts while it is in force (M33b); counted reports whether it is counted.
	Quotas  []*eventsv1.StepQuota
	counted bool `snapshot:"-"`
}

// foldLeased folds a worker's claim to an attempt, or to one at each version of a group.
func (q *Queue) foldLeased(f *eventsv1.StepLeased) {
	l := Lease{ID: f.GetLease(), Worker: f.GetWorker(), Build: f.GetBuild(), UntilUs: f.GetUntilUs(), Quotas: f.GetQuotas()}
	first := l
	first.Version, first.Attempt, first.Exclusive = Version{Target: f.GetTarget(), Hash: f.GetHash()}, f.GetAttempt(), f.GetExclusive()
	q.claim(first, f.GetStampUs())
	for _, v := range f.GetGroup() {
		l.Version, l.Attempt = Version{Target: v.GetTarget(), Hash: v.GetHash()}, v.GetAttempt()
		q.claim(l, f.GetStampUs())
	}
}

// claim folds the claim to one attempt. The first lease of an attempt holds, its holder may extend it, and another worker takes it
// over only with a stamp after its end. So every reader sees the same holder, whatever the clocks show: they only decide how
// long the step of a lost worker waits.
func (q *Queue) claim(c Lease, stampUs int64) {
	if c.Attempt < q.ledger.NextAttempt(c.Version) {
		return // that attempt is finished
	}
	l := q.leases[c.Version]
	switch {
	case l == nil, l.Attempt < c.Attempt:
	case l.Attempt > c.Attempt:
		return
	case l.ID == c.ID:
		l.UntilUs = max(l.UntilUs, c.UntilUs)
		q.noteLease(l)
		return
	case stampUs <= l.UntilUs:
		return
	}
	lapsed, admits := q.admits(c, stampUs)
	if !admits || !q.free(c.Version, c.Exclusive, stampUs) {
		return
	}
	// Lapsed leases lose what this one takes. Their steps end, and may be run again.
	for _, other := range lapsed {
		q.endLease(other)
	}
	for other, l := range q.leases {
		if other != c.Version && overlap(l.Exclusive, c.Exclusive) {
			q.endLease(other)
		}
	}
	q.ledger.Expect(c.Version)
	q.dropLease(c.Version)
	q.holdLease(&c)
	q.noteLease(&c)
}

// noteLease takes over in the choice what a lease says now.
func (q *Queue) noteLease(l *Lease) {
	q.choice.lapseUs = min(q.choice.lapseUs, l.UntilUs)
	q.countLease(l, true)
	q.offerAgain(l.Version)
}

// endLease drops a lease, so that the step may be offered again.
func (q *Queue) endLease(v Version) {
	q.dropLease(v)
	q.offerAgain(v)
}

// free reports whether a step can have some names to itself: no lease of another version that is in force has any of them.
func (q *Queue) free(v Version, exclusive []string, nowUs int64) bool {
	if len(exclusive) == 0 {
		return true
	}
	for other, l := range q.leases {
		if other != v && nowUs <= l.UntilUs && overlap(l.Exclusive, exclusive) {
			return false
		}
	}
	return true
}

// overlap reports whether two lists share a name.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// Holder returns the id of the lease that may make an attempt at a version, "" if there is none. It may have lapsed: it holds
// until another worker takes over.
func (q *Queue) Holder(v Version, attempt uint32) string {
	if l := q.leases[v]; l != nil && l.Attempt == attempt {
		return l.ID
	}
	return ""
}

// Leases returns all leases in force, by target and hash.
func (q *Queue) Leases() []Lease {
	list := make([]Lease, 0, len(q.leases))
	for _, l := range q.leases {
		one := *l
		one.counted = false // that is of the last choice
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Hash, b.Hash))
	})
	return list
}

// NextLapse returns when the next lease lapses, from a time on, after which Next may list more: that of a wanted version, or one
// with exclusive names or quotas. ok is false if there is none.
func (q *Queue) NextLapse(nowUs int64) (untilUs int64, ok bool) {
	for v, l := range q.leases {
		if l.UntilUs >= nowUs && (!ok || l.UntilUs < untilUs) && (len(l.Exclusive)+len(l.Quotas) > 0 || q.Wants(v)) {
			untilUs, ok = l.UntilUs, true
		}
	}
	return untilUs, ok
}

// dropLapsed drops the leases that lapsed before a stamp of the log and whose step no build wants: their worker is lost, and
// their attempt will not finish.
func (q *Queue) dropLapsed(stampUs int64) {
	for v, l := range q.leases {
		if l.UntilUs < stampUs && !q.Wants(v) {
			q.endLease(v)
		}
	}
}
