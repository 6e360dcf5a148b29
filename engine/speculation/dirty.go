package speculation

import (
	"landfall.build/engine/evidence"
)

// These mark the changes whose node a fact may have changed, beyond those that it names and their neighbours in the conflict
// graph.

// dirtyByEdge marks the changes that may have another one as a member of other classes, as an edge changed what that one
// affects (M24): those that require it, which need not conflict with it, and those that affect a target only on top of
// others, or meet it in a hub alone. All others conflict with the change at the edge's other end and are marked for that.
func (q *Queue) dirtyByEdge(id string) {
	q.dirtyRequirers(id)
	for other := range q.conflicts.edges[id] {
		if len(q.conflicts.leading[other]) > 0 || len(q.conflicts.hubNames) > 0 {
			q.delta.dirty[other] = true
		}
	}
}

// dirtyLabels marks the changes that do not meet a change that leaves, and whose versions get another label by it: those
// that touch what it affects through an edge, and those that affect its targets only on top of another change.
func (q *Queue) dirtyLabels(a *analysis) {
	for t := range a.structural {
		for other := range q.conflicts.byTarget[t] {
			q.delta.dirty[other] = true
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

// dirtyOnTop marks the changes that affect a target only on top of others.
func (q *Queue) dirtyOnTop(target string) {
	for m := range q.conflicts.byTarget[target] {
		for other := range q.conflicts.structural[m] {
			if q.conflicts.leading[other][m] {
				q.delta.dirty[other] = true
			}
		}
	}
}

// dirtyRequirers marks the changes that require another one, themselves or through others: if it can never land, nor can
// they.
func (q *Queue) dirtyRequirers(id string) {
	for _, c := range q.Lineup.Order() {
		if q.Lineup.Requires(c, id) {
			q.delta.dirty[c.ID()] = true
		}
	}
}

// dirtyHolders marks the changes whose outcomes a result about v may change.
func (q *Queue) dirtyHolders(v evidence.Version) {
	for _, o := range q.known.byVersion[v] {
		q.dirtyHeld(o)
	}
	for id := range q.guarded {
		for _, g := range q.changes[id].guard.Versions {
			if g.Target == v.Target && g.Hash == v.Hash {
				q.delta.dirty[id] = true
			}
		}
	}
}

// dirtyHeld marks the observed target of those changes in an observation's tree that are pending.
func (q *Queue) dirtyHeld(o *observation) {
	for _, r := range o.held {
		if q.Lineup.PendingAt(r.ref()) == nil {
			continue
		}
		of := q.delta.known[r.change]
		if of == nil {
			of = map[string]bool{}
			q.delta.known[r.change] = of
		}
		of[o.label.target] = true
	}
}
