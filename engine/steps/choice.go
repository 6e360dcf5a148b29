package steps

import (
	"math"
	"slices"
)

// choice holds what each build that asks for versions would have started next, so that a choice is one pass over a list. All of
// it follows from the rest of the queue.
type choice struct {
	entries []entry
	// claiming is how many entries have claims.
	claiming int
	// changed are the builds whose entries are to be made again.
	changed []*build
	// quotas counts what runs for whom.
	quotas quotas
	// latestUs is when the youngest live build's change began to wait.
	latestUs int64
	// nowUs is the time of the last choice, and lapseUs when the first of the leases lapses that were in force then.
	nowUs, lapseUs int64
}

// entry is the offer of a build.
type entry struct {
	build *build
	class class
	line  line
	// lateFromUs is when the first of the builds that want the step is late, never if none will be; build.late is of that one.
	lateFromUs int64
	// payer is the author that the step counts for; nil if it counts for none.
	payer *payer
	// claims reports whether the step takes something besides a worker.
	claims bool
}

// class comes before the index: the higher is next.
type class uint8

const (
	noOffer class = iota
	// whileIdle is a step that no change needs (M23b).
	whileIdle
	notReady
	ready
	// late is a step that is ready, of a build that has taken too long (M33a).
	late
	urgentNotReady
	urgentReady
)

// line is an index as a function of the time t = a + now (M33): slope · t − offset.
type line struct{ slope, offset float64 }

// at returns the index at a time. The conversion keeps processors from fusing the two operations, which rounds differently.
func (l line) at(t float64) float64 { return float64(l.slope*t) - l.offset }

// standing is a build's part in the choice.
type standing struct {
	// slot is one more than the place of the build's entry, 0 if it has none.
	slot    int
	changed bool
	// counts is what the build adds to the ranks of its versions.
	counts contribution
	// offered is the version of the build's offer, nil if there is none.
	offered *wanted
	// late is when the first of the builds that want the offered version is late, and how late it is.
	late lateness
	// shown are the versions it asks for that some build offers.
	shown []*wanted
}

type contribution struct {
	line
	urgent, runs bool
	late         lateness
	// idle is set if no change needs the build.
	idle bool
}

// indexLine returns the index of a build as a function of time (M33): what it is worth, times how long it has waited, over the
// work that is left.
func (q *Queue) indexLine(b *build) line {
	work := b.workUs
	if !b.prepared {
		work = max(1, int64(len(b.scheduled.GetTargets()))) * q.estimates.meanUs()
	}
	slope := b.value / float64(max(1, work))
	return line{slope, slope * float64(b.sinceUs)}
}

// moment returns the t of an index.
func (q *Queue) moment(nowUs int64) float64 {
	return float64(q.estimates.patienceUs(q.Workers) + q.waitedTo(nowUs))
}

// waitedTo returns up to when waits are counted. A clock that is behind the log's counts them up to the last that began.
func (q *Queue) waitedTo(nowUs int64) int64 { return max(nowUs, q.choice.latestUs) }

// changeEntry has a build's entry made again before the next choice.
func (q *Queue) changeEntry(b *build) {
	if b.slot > 0 && !b.changed {
		b.changed = true
		q.choice.changed = append(q.choice.changed, b)
	}
}

// changeOffers has the entries made again of all builds that offer a version.
func (q *Queue) changeOffers(w *wanted) {
	for _, o := range w.askers {
		if o.offered == w {
			q.changeEntry(o.build)
		}
	}
}

// offerAgain has the builds that ask for a version look again which step they would have started next.
func (q *Queue) offerAgain(v Version) {
	if w := q.wanted[v]; w != nil {
		for _, b := range w.askers {
			b.stale = true
			q.changeEntry(b.build)
		}
	}
}

// enter gives a build that begins to ask for versions an entry.
func (q *Queue) enter(b *build) {
	q.choice.entries = append(q.choice.entries, entry{build: b})
	b.slot = len(q.choice.entries)
	b.stale = true
	q.changeEntry(b)
}

// leave takes a build's entry away.
func (q *Queue) leave(b *build) {
	if b.slot == 0 {
		return
	}
	q.offer(b, offer{at: -1})
	q.setEntry(b, entry{build: b})
	last := len(q.choice.entries) - 1
	moved := q.choice.entries[last]
	q.choice.entries[b.slot-1], moved.build.slot = moved, b.slot
	q.choice.entries[last] = entry{}
	q.choice.entries = q.choice.entries[:last]
	b.slot, b.counts, b.late = 0, contribution{}, lateness{}
	// Next empties the list. A gateway may never call it.
	if c := &q.choice; len(c.changed) > 2*len(c.entries)+leastChanged {
		c.changed = slices.DeleteFunc(c.changed, func(b *build) bool {
			b.changed = b.slot > 0
			return !b.changed
		})
	}
}

// leastChanged is the length up to which the list of changed builds is not looked through for those that are gone.
const leastChanged = 64

// offer sets what a build would have started next.
func (q *Queue) offer(b *build, o offer) {
	had := b.offered
	if b.offer, b.offered = o, nil; o.at >= 0 {
		b.offered = b.at(o).want
	}
	if had == b.offered {
		return
	}
	if had != nil {
		if had.offers--; had.offers == 0 {
			for _, a := range had.askers {
				at := slices.Index(a.shown, had)
				a.shown = slices.Delete(a.shown, at, at+1)
			}
		}
	}
	if w := b.offered; w != nil {
		if w.offers++; w.offers == 1 {
			for _, a := range w.askers {
				a.shown = append(a.shown, w)
			}
		}
	}
}

func (q *Queue) setEntry(b *build, e entry) {
	at := &q.choice.entries[b.slot-1]
	q.choice.claiming += boolean(e.claims) - boolean(at.claims)
	*at = e
}

// rank makes the entry of a build again. Its index is the sum of the indexes of all builds that want the step (M33).
func (q *Queue) rank(b *build) {
	e := entry{build: b, payer: b.payer, lateFromUs: never}
	if b.offered != nil {
		urgent, needed := false, false
		for _, a := range b.offered.askers {
			if a.counts.runs && a.open[a.place] {
				urgent, needed = urgent || a.counts.urgent, needed || !a.counts.idle
				if l := a.counts.late; l.fromUs < e.lateFromUs {
					e.lateFromUs, b.late = l.fromUs, l
				}
				e.line.slope += a.counts.slope
				e.line.offset += a.counts.offset
			}
		}
		e.class, e.claims = classOf(urgent, b.offer.ready), b.at(b.offer).claims != nil
		if !needed {
			e.class = whileIdle
		}
	}
	q.setEntry(b, e)
}

func classOf(urgent, isReady bool) class {
	switch {
	case urgent && isReady:
		return urgentReady
	case urgent:
		return urgentNotReady
	case isReady:
		return ready
	}
	return notReady
}

// refresh makes the entries again that have changed since the last choice.
func (q *Queue) refresh(nowUs int64) {
	q.lookAtLapses(nowUs)
	unleased := func(a *asked) bool { return q.unleased(a, nowUs) }
	for i := 0; i < len(q.choice.changed); i++ { // the list grows
		b := q.choice.changed[i]
		if b.slot == 0 {
			continue // it was dropped
		}
		c := contribution{runs: b.successor == ""}
		if c.runs {
			c.line, c.urgent, c.idle, c.late = q.indexLine(b), b.urgent, b.scheduled.GetIdle(), q.latenessOf(b)
		}
		if c != b.counts {
			b.counts = c
			for _, w := range b.shown {
				q.changeOffers(w)
			}
		}
		if b.stale {
			o := offer{at: -1}
			if c.runs {
				o = b.next(unleased)
			}
			b.stale = false
			q.offer(b, o)
		}
	}
	for _, b := range q.choice.changed {
		if b.changed = false; b.slot > 0 {
			q.rank(b)
		}
	}
	clear(q.choice.changed)
	q.choice.changed = q.choice.changed[:0]
}

func (q *Queue) unleased(a *asked, nowUs int64) bool {
	l := q.leases[a.Version]
	return l == nil || l.UntilUs < nowUs
}

// lookAtLapses has offers made again for the leases that are in force at one of two times: that of the last choice, and now.
func (q *Queue) lookAtLapses(nowUs int64) {
	c := &q.choice
	if nowUs >= c.nowUs && nowUs <= c.lapseUs {
		c.nowUs = nowUs
		return
	}
	from, to := min(nowUs, c.nowUs), max(nowUs, c.nowUs)
	c.nowUs, c.lapseUs = nowUs, 1<<63-1
	for v, l := range q.leases {
		if from <= l.UntilUs && l.UntilUs < to {
			q.offerAgain(v)
		}
		if l.UntilUs >= nowUs {
			c.lapseUs = min(c.lapseUs, l.UntilUs)
		}
		q.countLease(l, true)
	}
}

// best returns the entry that comes next at a time, with its rank. Of equal entries, that of the build that was scheduled first
// comes next. The entry is nil if no build offers a step. Offers for whom no further step may run are left out, but for urgent ones.
func (c *choice) best(t float64, nowUs int64) (best *entry, rank Rank) {
	of, most, highest := noOffer, 0.0, math.Inf(-1)
	for i := range c.entries {
		e := &c.entries[i]
		class, key := e.class, e.line.at(t)
		if e.payer.isFull() && class < urgentNotReady {
			continue
		}
		if class == ready {
			if key > highest {
				highest = key
			}
			if e.lateFromUs <= nowUs {
				class, key = late, e.build.late.times.at(float64(nowUs))
			}
		}
		if class == noOffer || class < of {
			continue
		}
		if class > of || key > most || key == most && before(e.build, best.build) < 0 {
			best, of, most = e, class, key
		}
	}
	if best != nil {
		rank = Rank{Urgent: of >= urgentNotReady, Ready: of == ready || of == late || of == urgentReady, Late: of == late, Index: best.line.at(t)}
		if rank.Bid = rank.Index; rank.Late {
			rank.Bid = highest
		}
	}
	return best, rank
}
