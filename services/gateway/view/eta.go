package view

import (
	"slices"
	"time"

	"landfall.build/engine/eta"
	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// ETA is when a change will be decided, as the prioritizer expects it. Nothing is decided by it. With Unknown there are no
// times.
type ETA struct {
	// Median is as likely too early as too late.
	Median time.Time `json:"median,omitzero"`
	// It is decided between From50 and To50 with a probability of 50 %, between From90 and To90 with one of 90 %.
	From50 time.Time `json:"from_50,omitzero"`
	To50   time.Time `json:"to_50,omitzero"`
	From90 time.Time `json:"from_90,omitzero"`
	To90   time.Time `json:"to_90,omitzero"`
	// Lands is the probability that it lands then.
	Lands float64 `json:"lands,omitempty"`
	// OverdueFrom is from when on a step of it that runs takes longer than all of its build was predicted to and three standard deviations
	// more. The estimate says nothing then.
	OverdueFrom time.Time `json:"overdue_from,omitzero"`
	// Unknown is why there is no estimate.
	Unknown string `json:"unknown,omitempty"`
}

// notEstimated is the reason until an estimate of the change as it is now is published.
const notEstimated = "it is being estimated"

// foldEstimates takes the estimates that have moved. That of a change which has left may be read late.
func (q *Queue) foldEstimates(e *eventsv1.Estimates) {
	for _, t := range e.GetMoved() {
		of := refOf(t.Change)
		if c := q.keptAt(of); q.gone(of) || c != nil && !c.pending() {
			continue
		}
		q.priority.estimates[of] = t
	}
}

// eta returns the estimate of a pending change, nil for one that has left.
func (q *Queue) eta(c *change, s standing) *ETA {
	if !c.pending() {
		return nil
	}
	t := q.priority.estimates[c.ref()]
	if missing := q.serviceReasons(s); len(missing) > 0 {
		return &ETA{Unknown: noEstimateWithout(missing)}
	} else if why := q.noEstimate(c, t.GetUnknown()); why != "" {
		return &ETA{Unknown: why}
	} else if t == nil {
		return &ETA{Unknown: notEstimated}
	}
	at := func(us int64) time.Time { return time.UnixMicro(us).UTC().Truncate(time.Second) }
	return &ETA{Median: at(t.P50Us), From50: at(t.P25Us), To50: at(t.P75Us), From90: at(t.P5Us), To90: at(t.P95Us), Lands: t.Lands, OverdueFrom: q.overdueFrom(c)}
}

// overdueFrom returns from when on each build of a change that runs has a step that takes longer than all of the build was predicted to
// and three standard deviations more; the zero time if one has none.
func (q *Queue) overdueFrom(c *change) (from time.Time) {
	p := q.known.Prediction(c.admission.Change)
	if p.GetDurationMeanUs() == 0 {
		return from
	}
	takes := time.Duration(p.DurationMeanUs+3*p.DurationStdUs) * time.Microsecond
	for _, b := range q.builds.ofChange[c.ref()] {
		if !q.active(b) {
			continue
		}
		var began time.Time
		for _, w := range b.wants() {
			if q.steps.leases[version{w.Target, w.Hash}] == nil {
				continue
			}
			if s := q.stepOf(b, w); s.State == StepRunning && (began.IsZero() || s.StartedAt.Before(began)) {
				began = s.StartedAt
			}
		}
		if began.IsZero() {
			return time.Time{}
		}
		if end := began.Add(takes).Truncate(time.Second); end.After(from) {
			from = end
		}
	}
	return from
}

// refusedAhead reports whether the remote refuses the push of a change that is ahead of another.
func (q *Queue) refusedAhead(a *eventsv1.Ahead) bool {
	c := q.changes[a.GetChange().GetChange()]
	return c != nil && c.pending() && c.pushRefused()
}

// noEstimate returns why there is no estimate of a change, "" if there is one. published is what the last estimate gave as the
// reason; it may be older than what the queue knows.
func (q *Queue) noEstimate(c *change, published string) string {
	node, entry := q.node(c.ref()), q.lineup.Pending(c.admission.Change)
	switch {
	case q.lineup.RefusedByRemote != nil:
		return eta.PausedByRemote + ", since " + q.pausedByRemote().Since.Format(time.DateTime) + " UTC"
	case q.unreachable != nil:
		return "nothing lands: the lander cannot work on the mainline"
	case c.pushRefused():
		return "the remote refuses its push"
	case slices.ContainsFunc(node.GetAhead(), q.refusedAhead):
		return "the remote refuses the push of a change ahead of it"
	case q.lineup.Intended(c.admission.Change):
		// Neither a pause nor a hold comes in time.
	case q.lineup.Paused != nil:
		return eta.Paused
	case entry != nil && len(entry.Holds) > 0:
		return eta.Held
	case c.analysisMissing() && !node.GetAnalyzed():
		return eta.NotAnalyzed
	case c.analysis != nil && c.analysis.Outcome != "analyzed":
		return "as it stands it cannot land"
	case !node.GetAnalyzed():
		if len(q.unanalyzedBefore(c.admission.Change)) > 0 {
			return "changes ahead of it are not analysed yet"
		}
		return notEstimated
	case onMainline(node) == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED:
		if len(holding(blockedTargets(node), q.mainlineRed())) == 0 {
			return "whether the mainline fails in its targets too is verified first"
		}
		return eta.Blocked
	case published == "" && q.meetsRed(node):
		return eta.Blocked // unless it repairs that, which its own run tells
	}
	if published == "" && q.vague(c.ref()) { // what waits for it has as wide an interval
		return eta.NoDurations
	}
	switch published {
	case eta.WaitsForUnknown:
		var ahead []string
		for _, a := range node.GetAhead() {
			if q.keepsWaiting(a) {
				ahead = append(ahead, a.Change.GetChange())
			}
		}
		if direct, by := q.stuckAhead(ahead); by != "" && len(q.lineup.Pending(by).Holds) > 0 {
			published += ": " + by + " is held"
			merges := !slices.ContainsFunc(node.GetAhead(), func(a *eventsv1.Ahead) bool { return a.MergeConflict && a.Change.GetChange() == direct })
			if merges && len(q.brokenWith(node)[direct]) == 0 {
				published += "; it can pass that if its steps are green both with and without it"
			}
		}
	case eta.Paused, eta.PausedByRemote, eta.Held, eta.NotAnalyzed:
		return notEstimated
	case eta.Blocked:
		if len(blockedTargets(node)) == 0 {
			return notEstimated
		}
	}
	return published
}

// meetsRed reports whether a change has a target that is red on the mainline, and is not known to be green there with the change.
func (q *Queue) meetsRed(node *eventsv1.Node) bool {
	red := q.mainlineRed()
	if len(red) == 0 || onMainline(node) == eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
		return false
	}
	return slices.ContainsFunc(node.GetClasses(), func(k *eventsv1.Class) bool {
		return slices.ContainsFunc(k.Targets, func(t *eventsv1.TargetVersion) bool { return slices.Contains(red, t.Target) })
	})
}

// vague reports whether what is predicted of a change's duration says nothing: none of its targets has ever run, and what is known of
// the queue's builds deviates from their mean by more than the mean. That is so while a few builds have been far from the prior (M32).
func (q *Queue) vague(of ref) bool {
	p := q.known.Prediction(of.change)
	return q.pendingAt(of) != nil && p.GetDurationSource() == profile.SourceQueue && p.DurationStdUs > p.DurationMeanUs
}
