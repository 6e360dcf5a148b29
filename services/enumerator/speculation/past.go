package speculation

import (
	"maps"
	"slices"

	"landfall.build/services/evidence"
)

// past is what has to be gone through to forget what nobody pending has to do with: what came by direct pushes and
// refusals, and is in no observation that leaves with a change.
type past struct {
	// trivial are versions that were marked without an observation, oldest first, each once; marked has the same.
	trivial []evidence.Version
	marked  map[evidence.Version]bool
	// next is how many may come together before they are gone through again.
	next int
	// swept is the move of the mainline at which the history was gone through.
	swept uint64
}

// keptTrivial is how many marks are kept of versions that nobody pending affects.
const keptTrivial = 4096

// markUnobserved is markTrivial for a version that no label names.
func (q *Queue) markUnobserved(v evidence.Version) {
	q.markTrivial(v)
	p := &q.past
	if p.marked[v] || len(q.byVersion[v]) > 0 {
		return
	}
	if p.marked == nil {
		p.marked = map[evidence.Version]bool{}
	}
	p.marked[v] = true
	if p.trivial = append(p.trivial, v); len(p.trivial) <= max(p.next, 2*keptTrivial) {
		return
	}
	// What the mainline itself, or the guard, still asks for is kept, however much it is: it would be asked for again.
	asked := map[evidence.Version]bool{}
	for id := range q.guarded {
		for _, v := range q.state[id].guard.Versions {
			asked[evidence.Version{Target: v.Target, Hash: v.Hash}] = true
		}
	}
	old := p.trivial[:len(p.trivial)-keptTrivial]
	kept := slices.DeleteFunc(slices.Clone(old), func(v evidence.Version) bool {
		if asked[v] || q.foreign.Has(v) {
			return false
		}
		if len(q.byVersion[v]) == 0 { // else it goes with its observations
			q.ledger.ForgetTrivial(v)
		}
		delete(p.marked, v)
		return true
	})
	p.trivial = append(kept, p.trivial[len(old):]...)
	p.next = 2 * len(p.trivial)
}

// forgetPast drops the history of targets that nobody pending affects, and that nothing has landed in for as long as
// moves are kept: no label of theirs is left, and none can be made on a mainline from before. Those of changes go when
// the last one leaves that affects them; direct pushes leave theirs behind.
func (q *Queue) forgetPast() {
	now := q.Lineup.Sequence
	if now < q.past.swept+keptMoves {
		return
	}
	q.past.swept = now
	maps.DeleteFunc(q.history.targets, func(t string, l *landedSums) bool {
		return l.at[len(l.at)-1]+keptMoves < now && len(q.byTarget[t]) == 0 && len(q.observed[t]) == 0 && !q.foreign.Open(t)
	})
}
