package speculation

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// That a tree could not be made, of a change alone or on top of others, holds as long as nothing comes onto the
// mainline that may mend it. What does is looked at again: by the analyzer, which is asked for the same reason
// (agenda), or by another build.

// overtake forgets what a's landing may have mended.
func (q *Queue) overtake(a *analysis) {
	q.landings = append(q.landings, landedNeighbour{q.Lineup.Sequence, a.ref})
	if len(q.landings) > keptMoves {
		q.landings = slices.Clone(q.landings[1:])
	}
	for id, o := range q.analyses {
		if id != a.ref.change && !o.known() && q.meets(a, o) {
			o.overtaken = true
			q.dirty[id] = true
		}
	}
	for id, st := range q.state {
		if id == a.ref.change || len(st.paths) == 0 {
			continue
		}
		var c refKey
		if o := q.analyses[id]; o != nil {
			c = o.ref
		}
		q.dropPaths(id, st, func(p pathObservation) bool { return q.mends(a, c, p) })
	}
}

// mends says that a's landing may have made a tree of c possible that could not be made: it was not in it, and meets one
// that was.
func (q *Queue) mends(a *analysis, c refKey, p pathObservation) bool {
	if slices.Contains(p.assumed, a.ref) {
		return false
	}
	return slices.ContainsFunc(append([]refKey{c}, p.assumed...), func(k refKey) bool {
		o := q.analysisOf(k)
		return o != nil && q.meets(a, o)
	})
}

// mendedSince says so of all that has landed since the base of a tree: its preparation may be read after the landing that
// it had not seen.
func (q *Queue) mendedSince(c refKey, p pathObservation) bool {
	if p.outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE {
		return false
	}
	if q.pushed > p.sequence {
		return true
	}
	return slices.ContainsFunc(q.landings, func(l landedNeighbour) bool {
		a := q.departed[l.ref]
		return l.sequence > p.sequence && a != nil && q.mends(a, c, p)
	})
}

// pushedOver is overtake for a direct push: which paths it touches, nobody has said.
func (q *Queue) pushedOver(sequence uint64) {
	q.pushed = max(q.pushed, sequence)
	for id, o := range q.analyses {
		if at, kept := q.history.sequences[o.base]; !o.known() && (!kept || at < sequence) {
			o.overtaken = true
			q.dirty[id] = true
		}
	}
	for id, st := range q.state {
		q.dropPaths(id, st, func(p pathObservation) bool { return p.sequence < sequence })
	}
}

// cameBack makes good what was found on a commit that is the head again: nothing has come onto the mainline after it.
func (q *Queue) cameBack(head string) {
	for _, a := range q.analyses {
		if a.base == head {
			a.overtaken = false
		}
	}
}

// overtakenSince says that something has landed after a move of the mainline that may have mended a.
func (q *Queue) overtakenSince(a *analysis, sequence uint64) bool {
	if q.pushed > sequence {
		return true
	}
	return slices.ContainsFunc(q.landings, func(l landedNeighbour) bool {
		o := q.departed[l.ref]
		return l.sequence > sequence && o != nil && q.meets(o, a)
	})
}

// meets says that two conflict, or touch a path that both touch.
func (q *Queue) meets(a, b *analysis) bool {
	return textualWith(a, b.ref) != nil || textualWith(b, a.ref) != nil || relate(a, b, nil) != nil
}

// dropPaths forgets that trees could not be made. That the machines failed has nothing to do with what has landed.
func (q *Queue) dropPaths(id string, st *changeState, overtaken func(pathObservation) bool) {
	kept := slices.DeleteFunc(st.paths, func(p pathObservation) bool {
		return p.outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE && overtaken(p)
	})
	if len(kept) < len(st.paths) {
		q.dirty[id] = true
	}
	st.paths = kept
}
