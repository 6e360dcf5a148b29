package speculation

import (
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// Whose node a fact may have changed, beyond those that it names and their neighbours in the conflict graph.

// affectsElse marks those whose classes may have a change as a member otherwise than before, since what it affects by an edge (M24) is
// something else: who requires it need not conflict with it, and who affects a target only on top of others need not conflict
// with all who affect that. The rest conflicts with the one that made or dropped the edge, and is marked for that, unless they meet
// in a hub alone.
func (q *Queue) affectsElse(id string) {
	q.dirtyRequirers(id)
	for other := range q.edges[id] {
		if len(q.led[other]) > 0 || len(q.hubNames) > 0 {
			q.dirty[other] = true
		}
	}
}

// dirtyLabels marks those of whom the versions of a target get another label by a change that leaves, though they do not meet it: who
// affects what it affects by an edge, and who affects its targets only on top of another one.
func (q *Queue) dirtyLabels(a *analysis) {
	for t := range a.structural {
		for other := range q.byTarget[t] {
			q.dirty[other] = true
		}
	}
	for _, touched := range []map[string]bool{a.deleted, a.structural} {
		for t := range touched {
			q.dirtyOnTop(t)
		}
	}
	for t := range a.targets {
		q.dirtyOnTop(t)
	}
}

// dirtyOnTop marks those who affect a target only on top of others.
func (q *Queue) dirtyOnTop(target string) {
	for m := range q.byTarget[target] {
		for other := range q.structural[m] {
			if q.led[other][m] {
				q.dirty[other] = true
			}
		}
	}
}

// dirtyRequirers marks those that require a change, themselves or by others: who requires who requires it can never land.
func (q *Queue) dirtyRequirers(id string) {
	for _, c := range q.Lineup.Order() {
		if q.Lineup.Requires(c, id) {
			q.dirty[c.ID()] = true
		}
	}
}

// dirtyHolders marks the changes whose known outcomes may differ for a result about v.
func (q *Queue) dirtyHolders(v evidence.Version) {
	for _, o := range q.byVersion[v] {
		q.dirtyHeld(o)
	}
	for id := range q.guarded {
		for _, g := range q.state[id].guard.Versions {
			if g.Target == v.Target && g.Hash == v.Hash {
				q.dirty[id] = true
			}
		}
	}
}

// dirtyHeld marks the pending ones of those that a tree held.
func (q *Queue) dirtyHeld(o *observation) {
	for _, k := range o.held {
		if q.Lineup.PendingAt(&eventsv1.ChangeRef{Change: k.change, Revision: k.revision}) != nil {
			q.dirty[k.change] = true
		}
	}
}
