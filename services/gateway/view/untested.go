package view

import (
	"slices"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// untested returns clauses, each with a semicolon before it, about what of the landing commits of a change passed without a test; "" if
// nothing is known to have. c is nil if the change is not kept.
func (q *Queue) untested(c *change, proof []*eventsv1.Proof) (text string) {
	var none, some []string
	for _, p := range proof {
		if target := p.GetVersion().GetTarget(); p.Untested && p.Tests == 0 && target != targets.Repository { // others of its commands may have tested
			none = append(none, target)
		} else if p.Untested {
			some = append(some, target)
		}
	}
	if none = sortedUnique(none); len(none) > 0 {
		first := slices.Clone(none[:min(len(none), maxNamesInSentences)])
		for i, t := range first {
			if n := q.testsBefore(c, t); n > 0 {
				first[i] += " (before: " + count(n, "test") + ")"
			}
		}
		text += "; nothing was tested in " + namesOf(first, len(none))
	}
	if some = sortedUnique(some); len(some) > 0 {
		text += "; a run of pytest or unittest in " + names(some) + " found no test"
	}
	return text
}

// testsBefore returns how many tests a target ran for the last change that landed before another one, or at all, and for which it ran
// some; 0 if none is kept.
func (q *Queue) testsBefore(c *change, target string) int {
	before := false
	if c == nil || c.end.landed == nil || !slices.ContainsFunc(q.finished, func(x finishedChange) bool { return q.stillFinished(x) == c }) {
		before = true // it has not landed yet, or just has
	}
	for _, x := range slices.Backward(q.finished) {
		k := q.stillFinished(x)
		if k == nil || !before {
			before = before || k == c && k != nil
			continue
		}
		for _, p := range k.end.landed.GetProof() {
			if p.Tests > 0 && p.GetVersion().GetTarget() == target {
				return int(p.Tests)
			}
		}
	}
	return 0
}
