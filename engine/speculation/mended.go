package speculation

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// That a tree could not be made, of a change alone or on top of others, holds until something comes onto the mainline that
// may mend it. Then it is tried again: by the analyzer, which is asked for the same reason (agenda), or by another build.

// outdateBy forgets the failures that the landing of a may have mended.
func (q *Queue) outdateBy(a *analysis) {
	q.landings = append(q.landings, landing{q.Lineup.Sequence, a.revision})
	if len(q.landings) > keptMoves {
		q.landings = slices.Clone(q.landings[1:])
	}
	for id, o := range q.analyses.pending {
		if id != a.revision.change && !o.known() && meets(a, o) {
			o.outdated = true
			q.delta.dirty[id] = true
		}
	}
	for id, st := range q.changes {
		if id == a.revision.change || len(st.failedTrees) == 0 {
			continue
		}
		var c revision
		if o := q.analyses.pending[id]; o != nil {
			c = o.revision
		}
		q.dropFailedTrees(id, st, func(tree failedTree) bool { return q.mends(a, c, tree) })
	}
}

// mends reports whether a's landing may have mended a tree of c: a was not in it, and meets a change that was.
func (q *Queue) mends(a *analysis, c revision, tree failedTree) bool {
	if slices.Contains(tree.assumed, a.revision) {
		return false
	}
	return slices.ContainsFunc(append([]revision{c}, tree.assumed...), func(r revision) bool {
		o := q.analysisOf(r)
		return o != nil && meets(a, o)
	})
}

// treeMayBeMendedSince reports whether anything that has landed since the base of a tree of c may have mended it: the
// preparation may be read after a landing that it did not know of.
func (q *Queue) treeMayBeMendedSince(c revision, tree failedTree) bool {
	if tree.outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE {
		return false
	}
	return q.landedSince(tree.sequence, func(a *analysis) bool { return q.mends(a, c, tree) })
}

// mayBeMendedSince reports whether anything that has landed after a move may have mended the change of an analysis.
func (q *Queue) mayBeMendedSince(a *analysis, sequence uint64) bool {
	return q.landedSince(sequence, func(o *analysis) bool { return meets(o, a) })
}

// landedSince reports whether a direct push, or a change that mends, has come onto the mainline after a move. One whose analysis is not kept
// any more may mend anything.
func (q *Queue) landedSince(sequence uint64, mends func(*analysis) bool) bool {
	if q.lastPush > sequence {
		return true
	}
	return slices.ContainsFunc(q.landings, func(l landing) bool {
		a := q.analyses.departed[l.revision]
		return l.sequence > sequence && (a == nil || mends(a))
	})
}

// outdateByPush forgets the failures from before a direct push. Any of them may be mended: its analysis does not tell which
// paths the push touches.
func (q *Queue) outdateByPush(sequence uint64) {
	q.lastPush = max(q.lastPush, sequence)
	for id, o := range q.analyses.pending {
		if at, kept := q.landed.sequences[o.base]; !o.known() && (!kept || at < sequence) {
			o.outdated = true
			q.delta.dirty[id] = true
		}
	}
	for id, st := range q.changes {
		q.dropFailedTrees(id, st, func(tree failedTree) bool { return tree.sequence < sequence })
	}
}

// refreshOn makes the analyses count again whose base is the head once more: nothing has come onto the mainline after it.
func (q *Queue) refreshOn(head string) {
	for _, a := range q.analyses.pending {
		if a.base == head {
			a.outdated = false
		}
	}
}

// meets reports whether a and b conflict, or touch a common path.
func meets(a, b *analysis) bool { return a.meetsInPath(b) || relate(a, b, nil) != nil }

// dropFailedTrees forgets failures that may be mended. A failure of the infrastructure stays: it has nothing to do with what
// has landed.
func (q *Queue) dropFailedTrees(id string, st *changeState, mended func(failedTree) bool) {
	kept := slices.DeleteFunc(st.failedTrees, func(tree failedTree) bool {
		return tree.outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE && mended(tree)
	})
	if len(kept) < len(st.failedTrees) {
		q.delta.dirty[id] = true
	}
	st.failedTrees = kept
}
