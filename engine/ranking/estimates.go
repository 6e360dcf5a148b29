package ranking

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"

	"landfall.build/engine/eta"
	"landfall.build/engine/features"
	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// How often estimates are made, in microseconds of log time. It takes some 30 ms for 1,000 changes, so that about a
// hundredth of the time is spent on them (decision 0028).
const (
	// estimateEvery is the least time between two, to which each pending change adds estimateChange.
	estimateEvery  = 1_000_000
	estimateChange = 5_000
	// estimateQuiet is the time after which they are made again although nothing has happened: builds that run late
	// move them.
	estimateQuiet = 10_000_000
)

// An estimate is published again when one of its times has moved by this part of what is left until then, and by more
// than movedLeast.
const (
	movedPart  = 0.1
	movedLeast = 1_000_000
)

// estimates holds when each change will be decided, as published.
type estimates struct {
	queue     string
	published map[string]*eventsv1.Estimate
	// stamp is the log time of the last profile, madeAt of the last profile for which estimates were made.
	stamp, madeAt int64
	// changed reports whether an event has come since then.
	changed bool
}

// EnableEstimates makes the ranking estimate, now and then, when each change will be decided. The name of the queue is
// part of the seeds.
func (r *Ranking) EnableEstimates(queue string) {
	r.estimates = &estimates{queue: queue, published: map[string]*eventsv1.Estimate{}}
}

func (e *estimates) apply(p *eventsv1.Profile) {
	if e == nil {
		return
	}
	e.stamp = p.StampUs
	d := p.Delta
	e.changed = e.changed || len(p.Predictions)+len(p.Pairs)+len(d.GetNodes())+len(d.GetGone())+len(d.GetBuilds()) > 0 || d.GetSettings() != nil || d.GetMainline() != nil
	for _, g := range d.GetGone() {
		if t := e.published[g.Change.Change]; t != nil && graph.SameRef(t.Change, g.Change) {
			delete(e.published, g.Change.Change)
		}
	}
}

func (e *estimates) fold(p *eventsv1.Priority) {
	if e == nil || p.GetEstimates() == nil {
		return
	}
	e.madeAt, e.changed = e.stamp, false
	for _, t := range p.Estimates.Moved {
		e.published[t.Change.Change] = t
	}
}

// estimate returns the estimates that have moved, nil if it is not yet time to make them.
func (r *Ranking) estimate(best *eventsv1.Ranking) *eventsv1.Estimates {
	e, past := r.estimates, r.estimates.stamp-r.estimates.madeAt
	if every := max(estimateEvery, estimateChange*int64(len(r.pending))); past < every || !e.changed && past < max(estimateQuiet, every) {
		return nil
	}
	out := &eventsv1.Estimates{}
	for _, now := range r.Estimates(best, e.queue, e.stamp) {
		if t := e.published[now.Change.Change]; t == nil || moved(t, now, e.stamp) {
			out.Moved = append(out.Moved, now)
		}
	}
	return out
}

func moved(a, b *eventsv1.Estimate, now int64) bool {
	if !graph.SameRef(a.Change, b.Change) || a.Unknown != b.Unknown {
		return true
	}
	for _, t := range [][2]int64{{a.P5Us, b.P5Us}, {a.P25Us, b.P25Us}, {a.P50Us, b.P50Us}, {a.P75Us, b.P75Us}, {a.P95Us, b.P95Us}} {
		if by := max(t[0], t[1]) - min(t[0], t[1]); by > movedLeast && float64(by) > movedPart*float64(t[1]-now) {
			return true
		}
	}
	return false
}

// Estimates returns when each pending change will be decided, in queue order, if the best builds are these.
func (r *Ranking) Estimates(best *eventsv1.Ranking, queue string, stampUS int64) []*eventsv1.Estimate {
	q := r.etaQueue(best, queue, stampUS)
	out := make([]*eventsv1.Estimate, 0, len(q.Changes))
	for i, t := range eta.Of(q) {
		e := &eventsv1.Estimate{Change: r.graph.Order()[i].Change, Lands: q.Changes[i].Lands, Unknown: t.Unknown}
		if t.Unknown == "" {
			at := func(seconds float64) int64 { return stampUS + int64(seconds*1e6) }
			e.P5Us, e.P25Us, e.P50Us, e.P75Us, e.P95Us = at(t.P5), at(t.P25), at(t.P50), at(t.P75), at(t.P95)
		}
		out = append(out, e)
	}
	return out
}

// etaQueue returns what the estimates are computed from.
func (r *Ranking) etaQueue(best *eventsv1.Ranking, queue string, stampUS int64) *eta.Queue {
	order := r.graph.Order()
	q := &eta.Queue{
		Workers: int(r.graph.Settings.GetPoolWorkers()), Slots: int(r.graph.Settings.GetWorkers()), Threshold: r.threshold(),
		Retries: int(r.graph.Settings.GetSteps().GetFailedRetries()), Changes: make([]eta.Change, len(order)),
	}
	for i, n := range order {
		r.changes[n.Change.Change].queuePlace = i
	}
	for i, n := range order {
		c := r.changes[n.Change.Change]
		p := r.predictions[c.id]
		x := eta.Change{
			Seed: seedOf(queue, n.Change), Unknown: r.noEstimate(c),
			Duration: profile.Duration{Mean: p.GetDurationMeanUs() / 1e6, Std: p.GetDurationStdUs() / 1e6},
			Lands:    r.marginalFrom(c, func(of *change) float64 { return q.Changes[of.queuePlace].Lands }),
			Ahead:    make([]eta.Ahead, len(c.members)),
			Longest:  longestOf(p),
		}
		if r.lossThreshold > 0 {
			x.Urgency, x.Free = r.lossPerUS(c)*1e6/r.lossThreshold, float64(c.aheadDecidedAt-stampUS)/1e6
		}
		for j := range c.members {
			m := &c.members[j]
			x.Ahead[j] = eta.Ahead{At: -1, Required: m.ahead.Required}
			if of := m.pending(); of != nil && of.queuePlace < i {
				x.Ahead[j].At = of.queuePlace
			}
		}
		for _, b := range c.runs {
			if needed, alive := r.needed(c, b); alive {
				set := landing(len(c.members), b.rejected)
				x.Builds = append(x.Builds, eta.Build{Lands: set, Elapsed: float64(stampUS-b.since) / 1e6, Demand: r.demand(c, set, needed, needed*r.benefit(c))})
			}
		}
		switch {
		case n.Intended:
			x.Known = func(memberset.Set) eta.Outcome { return eta.Green }
		case !n.Unproven():
			x.Known = func(set memberset.Set) eta.Outcome { return outcomeOf(n.Path(set)) }
		}
		q.Changes[i] = x
	}
	q.Waiting = r.waiting(best, q)
	if n := len(best.GetBest()); n > 0 && n >= r.wanted() {
		// A path that is worth less than the last of the best gets no slot now.
		q.Threshold = max(q.Threshold, best.Best[n-1].Needed)
	}
	return q
}

func outcomeOf(s eventsv1.OutcomeState) eta.Outcome {
	switch s {
	case graph.Green:
		return eta.Green
	case graph.Red, graph.Exhausted:
		return eta.Red
	}
	return eta.Open
}

// noEstimate returns why there is no estimate for a change whatever is ahead of it, empty if there may be one.
func (r *Ranking) noEstimate(c *change) string {
	n := c.node
	switch {
	case r.graph.Mainline.GetRefusedByRemote() != "":
		return eta.PausedByRemote
	case n.Intended:
		return ""
	case r.graph.Mainline.GetPaused():
		return eta.Paused
	case len(n.Holds) > 0:
		return eta.Held
	case !n.Analyzed:
		return eta.NotAnalyzed
	case n.Path(memberset.New(len(n.Ahead))) == graph.Blocked:
		return eta.Blocked
	case r.predictions[c.id] == nil || r.predictions[c.id].DurationSource == profile.SourcePrior:
		return eta.NoDurations
	}
	return ""
}

// landing returns the path of so many members that rejects these.
func landing(members int, rejected []int32) memberset.Set {
	set := memberset.New(members)
	for j := range members {
		set.Add(j)
	}
	for _, j := range rejected {
		set.Remove(int(j))
	}
	return set
}

// waiting returns the best builds that do not run, and behind them the likeliest path of each change that is not among
// the best.
func (r *Ranking) waiting(best *eventsv1.Ranking, q *eta.Queue) (list []eta.Waiting) {
	listed := make([]bool, len(q.Changes))
	for _, b := range best.GetBest() {
		n := r.graph.NodeAt(b.Change)
		if n == nil {
			continue // the check of a direct push
		}
		c := r.changes[n.Change.Change]
		w := eta.Waiting{Of: c.queuePlace, Lands: memberset.New(len(c.members))}
		for _, a := range b.Assumed {
			if j := n.IndexOf(a.Change); j >= 0 {
				w.Lands.Add(j)
			}
		}
		w.Demand = r.demand(c, w.Lands, b.Needed, b.Value)
		listed[c.queuePlace] = true
		if !slices.ContainsFunc(q.Changes[c.queuePlace].Builds, func(x eta.Build) bool { return x.Lands.Equal(w.Lands) }) {
			list = append(list, w)
		}
	}
	var behind []*change
	// Not Ranking.keys: how near these bounds are depends on what was searched so far.
	worth := make([]float64, len(q.Changes))
	for i, n := range r.graph.Order() {
		c := r.changes[n.Change.Change]
		if listed[i] || len(q.Changes[i].Builds) > 0 {
			continue
		}
		most := 1.0
		for j := range c.members {
			most *= c.members[j].maxWeight
		}
		if worth[i] = r.worthBound(c, most, c.likeliestPathBound()); worth[i] >= 0 {
			behind = append(behind, c)
		}
	}
	slices.SortStableFunc(behind, func(a, b *change) int { return cmp.Compare(worth[b.queuePlace], worth[a.queuePlace]) })
	for _, c := range behind {
		w := eta.Waiting{Of: c.queuePlace, Lands: memberset.New(len(c.members))}
		for j, a := range q.Changes[c.queuePlace].Ahead {
			if a.At >= 0 && (a.Required || q.Changes[a.At].Lands >= 0.5) {
				w.Lands.Add(j)
			}
		}
		w.Demand = r.demand(c, w.Lands, 0, worth[c.queuePlace])
		list = append(list, w)
	}
	return list
}

// demand returns what a build of a path asks of workers; nothing where builds hold slots.
func (r *Ranking) demand(c *change, path memberset.Set, needed, value float64) (d eta.Demand) {
	if r.graph.Settings.GetPoolWorkers() == 0 {
		return d
	}
	all := 0
	for _, k := range c.node.Classes {
		all += len(k.Targets)
	}
	_, open := c.node.Outstanding(path)
	return eta.Demand{Open: float64(len(open)) / float64(max(1, all)), Worth: r.graph.PoolFactor(c.node) * graph.PoolWorth(c.node, value, needed)}
}

// longestOf returns how long the slowest target of a change takes, in seconds, 0 if none is known.
func longestOf(p *eventsv1.Prediction) float64 {
	if v := p.GetFeatures(); longest < len(v) && v[longest] > 0 { // NaN is not
		return float64(v[longest])
	}
	return 0
}

var longest = features.IndexOfChange("longest_seconds")

// seedOf returns the seed of a change's plays, the same as long as it is pending at that revision.
func seedOf(queue string, c *eventsv1.ChangeRef) uint64 {
	h := sha256.Sum256([]byte(queue + "\x00" + c.Change + "\x00" + strconv.FormatUint(c.Revision, 10)))
	return binary.LittleEndian.Uint64(h[:])
}
