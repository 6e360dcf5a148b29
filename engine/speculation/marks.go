package speculation

import (
	"maps"
	"slices"

	"landfall.build/engine/evidence"
)

// marks are the versions that were found trivial without an observation, by direct pushes and refusals. No departure of a
// change forgets them, so they are swept when there are many.
type marks struct {
	// order holds them, oldest first, each once; set holds the same.
	order []evidence.Version
	set   map[evidence.Version]bool
	// limit is the number above which they are swept next.
	limit int
}

// keptTrivial is the number of the newest marks that a sweep keeps.
const keptTrivial = 4096

// markTrivialUnlabelled is markTrivial for a version that no label names.
func (q *Queue) markTrivialUnlabelled(v evidence.Version) {
	q.markTrivial(v)
	m := &q.known.marks
	if m.set[v] || len(q.known.byVersion[v]) > 0 {
		return
	}
	if m.set == nil {
		m.set = map[evidence.Version]bool{}
	}
	m.set[v] = true
	if m.order = append(m.order, v); len(m.order) > max(m.limit, 2*keptTrivial) {
		q.sweepMarks()
	}
}

// sweepMarks forgets all but the newest marks. It keeps what the mainline itself, or the land guard, still asks for,
// however much that is: it would be asked for again.
func (q *Queue) sweepMarks() {
	asked := map[evidence.Version]bool{}
	for id := range q.guarded {
		for _, v := range q.changes[id].guard.Versions {
			asked[evidence.Version{Target: v.Target, Hash: v.Hash}] = true
		}
	}
	m := &q.known.marks
	old, newest := m.order[:len(m.order)-keptTrivial], m.order[len(m.order)-keptTrivial:]
	kept := slices.DeleteFunc(slices.Clone(old), func(v evidence.Version) bool {
		if asked[v] || q.pushes.Has(v) {
			return false
		}
		if len(q.known.byVersion[v]) == 0 { // else it goes with its observations
			q.known.ledger.ForgetTrivial(v)
		}
		delete(m.set, v)
		return true
	})
	m.order = append(kept, newest...)
	m.limit = 2 * len(m.order)
}

// sweepLanded forgets what landed in targets that no pending change touches and that nothing has landed in for keptMoves
// moves: they have no label left, and none can be made on an older head. A change's targets are forgotten when the last
// change that touches them leaves; those of direct pushes are forgotten here.
func (q *Queue) sweepLanded() {
	now := q.Lineup.Sequence
	if now < q.landed.swept+keptMoves {
		return
	}
	q.landed.swept = now
	maps.DeleteFunc(q.landed.targets, func(t string, s *sums) bool {
		return s.at[len(s.at)-1]+keptMoves < now && len(q.conflicts.byTarget[t]) == 0 && len(q.known.observed[t]) == 0 && !q.pushes.Open(t)
	})
}
