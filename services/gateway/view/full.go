package view

import (
	"cmp"
	"slices"
	"time"

	"landfall.build/engine/explanation"
	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Full is a full explanation: by what is known now, and by what was known when each build was scheduled and each decision taken.
type Full struct {
	// Position is the offset in landfall.speculations that the last profile answered, At its time. What is known now is as of then.
	Position int64     `json:"position"`
	At       time.Time `json:"at"`
	// Prediction is what is expected of the change by itself, Verdict what it takes to decide it. Both are absent once it is
	// out of the queue.
	Prediction *explanation.Prediction `json:"prediction,omitempty"`
	Verdict    *explanation.Verdict    `json:"verdict,omitempty"`
	// Ranked are its paths that are among the best builds of the queue now, best first, at most 16.
	Ranked    []RankedPath    `json:"ranked"`
	Builds    []BuildReasons  `json:"builds"`
	Decisions []DecisionTaken `json:"decisions"`
	// Omitted is why what was known then is left out.
	Omitted string `json:"omitted,omitempty"`
}

// RankedPath is a path that is worth a build.
type RankedPath struct {
	// Rank is its place among the builds of the whole queue.
	Rank int `json:"rank"`
	// Build of that path runs; empty if none does.
	Build string `json:"build,omitempty"`
	// Needed and Value are as it was ranked; Worth is what is known now.
	Needed float64            `json:"needed"`
	Value  float64            `json:"value"`
	Worth  *explanation.Worth `json:"worth,omitempty"`
}

// BuildReasons is why a build was scheduled, and what it is worth now if it is running.
type BuildReasons struct {
	Build string `json:"build"`
	State string `json:"state"`
	// Position is the offset in landfall.speculations on which it was scheduled.
	Position int64  `json:"position"`
	Why      string `json:"why,omitempty"`
	// Message is why it was aborted, or could not be prepared.
	Message string `json:"message,omitempty"`
	// Needed is as it was ranked then, Value what it was worth to the workers.
	Needed float64            `json:"needed"`
	Value  float64            `json:"value"`
	Then   *explanation.Worth `json:"then,omitempty"`
	Now    *explanation.Worth `json:"now,omitempty"`
}

// DecisionTaken is a decision about a change. The land guard may have refused it.
type DecisionTaken struct {
	// Decision is landed, rejected or ejected.
	Decision string    `json:"decision"`
	Position int64     `json:"position"`
	At       time.Time `json:"at"`
	// Then is what was known.
	Then *explanation.Verdict `json:"then,omitempty"`
}

// At most so many factors of a build, terms of a factor and ranked paths of a change are listed.
const (
	shownFactors = 32
	shownTerms   = 16
	shownRanked  = 16
)

// wasWorthless reports whether a build was known to be worthless when the profile at a position was ranked.
func (q *Queue) wasWorthless(build string, position int64) (is bool) {
	for _, f := range q.builds.worthless[build] {
		if f.position < position {
			is = f.is
		}
	}
	return is
}

// proof lists the steps that settled the version of a class that these members make. Only steps that agree with the version's
// outcome are listed: a build on an earlier mainline may have ended otherwise. A member that has landed since the build was
// scheduled is in its tree either way.
func (q *Queue) proof(n *graph.Node, class int, members memberset.Set) (list []explanation.Proof) {
	k := n.Classes[class]
	green := k.Outcome(members).GetState() == graph.Green
	named := map[string]bool{}
	builds := q.inOrder(refOf(n.Change))
	for _, b := range slices.Backward(builds) {
		path := memberset.New(len(n.Ahead))
		for _, a := range b.fact.Assumed {
			if j := n.IndexOf(a.GetChange().GetChange()); j >= 0 && n.Ahead[j].Change.Revision == a.Change.Revision {
				path.Add(j)
			}
		}
		if !k.MakesOn(path, members.Key()) {
			continue
		}
		for _, w := range b.prepared.GetVersions() {
			wanted := slices.ContainsFunc(k.Targets, func(t *eventsv1.TargetVersion) bool { return t.Target == w.Target && t.Part == w.Part })
			if !wanted || named[w.Target] {
				continue
			}
			if a := q.steps.settling(version{w.Target, w.Hash}); a != nil && q.counts(a) == green {
				named[w.Target] = true
				list = append(list, explanation.Proof{Target: w.Target, Build: a.build, Attempt: a.number, Outcome: outcomeName(a.outcome)})
			}
		}
	}
	return list
}

// counts reports whether an attempt counts as green.
func (q *Queue) counts(a *attempt) bool {
	return a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED || q.tolerated(a)
}

// scheduledNow lists the builds of a change that hold a slot.
func (q *Queue) scheduledNow(c *eventsv1.ChangeRef) (list []explanation.Scheduled) {
	for _, b := range q.inOrder(refOf(c)) {
		if q.active(b) {
			list = append(list, explanation.Scheduled{Build: b.id, Assumed: b.assumedRefs()})
		}
	}
	return list
}

func (b *build) assumedRefs() (list []*eventsv1.ChangeRef) {
	for _, a := range b.fact.Assumed {
		list = append(list, a.Change)
	}
	return list
}

// runningOn returns the running build of a change on a path, "" if there is none. Members that have landed since it was scheduled
// are on the mainline by now.
func (q *Queue) runningOn(of ref, assumed []*eventsv1.ChangeRef) string {
	for _, b := range q.inOrder(of) {
		same := q.active(b)
		for _, a := range q.node(of).GetAhead() {
			is := func(r *eventsv1.ChangeRef) bool { return refOf(r) == refOf(a.Change) }
			same = same && slices.ContainsFunc(assumed, is) == slices.ContainsFunc(b.assumedRefs(), is)
		}
		if same {
			return b.id
		}
	}
	return ""
}

// inOrder returns the builds of a revision in the order in which they were scheduled: a preparation may be read before its schedule.
func (q *Queue) inOrder(of ref) []*build {
	return slices.SortedStableFunc(slices.Values(q.builds.ofChange[of]), func(a, b *build) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.item, b.item))
	})
}
