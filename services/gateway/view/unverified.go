package view

import (
	"slices"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// fruitless returns, by target, the last run of each target of the mainline that holds red in some targets and has no result there: it ran
// out of time, or could not run.
func (q *Queue) fruitless(held []string) (out []*attempt) {
	last := map[string]*attempt{}
	for v := range q.onMainline() {
		if !slices.ContainsFunc(held, func(t string) bool { return isHeldTo(t, v.target) }) {
			continue
		}
		p := q.failedAt(v)
		if p == nil {
			continue
		}
		if a, before := q.steps.find(v, p.Attempt), last[v.target]; before == nil || a.finished.After(before.finished) || a.finished.Equal(before.finished) && v.hash > before.version.hash {
			last[v.target] = a
		}
	}
	for _, a := range last {
		if a.outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *attempt) int { return strings.Compare(a.version.target, b.version.target) })
	return out
}

// onMainlineText continues the name of a target with what became of its last run on the mainline, on which commit.
func (q *Queue) onMainlineText(a *attempt) string {
	text := outcomeText(a.outcome) + " on the mainline"
	if b := q.builds.byID[a.build]; b != nil && b.fact.GetBase() != "" {
		text += " at " + events.ShortID(b.fact.Base)
	}
	return text
}

// unverifiedText says of a change that fails in some targets why these have no result on the mainline, and what to do.
func (q *Queue) unverifiedText(id string, targets []string) string {
	runs := q.fruitless(targets)
	if len(runs) == 0 {
		return "It fails in " + names(targets) + ", and on the mainline " + verb(len(targets), "it", "they") + " could not be verified. `landfall retry " + id + "` tries again there."
	}
	a := runs[0]
	text := "It fails in " + names(targets) + ", and whether without this change too is not known: " + a.version.target + " " + q.onMainlineText(a)
	if why := a.shown().why(); why != "" {
		text += ": " + strings.TrimRight(why, ".")
	}
	text += "."
	if at, passed := q.steps.passedBefore(a.version); passed {
		text += " It passed there at " + at.Format(time.DateTime) + " UTC."
	}
	helps := "Once what it needs is back"
	if a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT {
		helps += ", or its time limit is raised"
	}
	return text + " `landfall logs --target '" + a.version.target + "'` prints the output. " + helps + ", `landfall retry " + id + "` runs it there again."
}
