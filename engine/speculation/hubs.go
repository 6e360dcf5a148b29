package speculation

import (
	"maps"
	"slices"

	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
)

// maxOvertaken is how many changes behind one may land and leave it without proof in a hub. After that its hubs serialize as
// other targets do: a change behind is verified on top of it, and that proves this one too (M20). So a stream of quick
// changes cannot hold a slow one back for ever.
const maxOvertaken = 8

// setHubs takes the queue's hubs from the log: from here on they decide who conflicts with whom.
func (q *Queue) setHubs(names []string) {
	if slices.Equal(names, q.conflicts.hubNames) {
		return
	}
	q.conflicts.hubNames, q.conflicts.hubs = slices.Clone(names), targets.NewHubs(names)
	for _, id := range slices.Sorted(maps.Keys(q.analyses.pending)) {
		q.setAnalysis(q.analyses.pending[id])
	}
}

// landInHubs voids what was proven for the changes that meet a landed one in hubs alone: none of their builds assumed it, so
// what is known of the hub is of another mainline, as after a direct push. It returns the changes that have now been
// overtaken maxOvertaken times, sorted.
func (q *Queue) landInHubs(landed *lineup.Change, a *analysis) (insisting []string) {
	if a == nil || q.conflicts.hubs == nil {
		return nil
	}
	met := map[string]bool{}
	for _, t := range a.footprint.Touched {
		if !q.conflicts.hubs.Has(t) {
			continue
		}
		for id := range q.conflicts.byTarget[t] {
			if id != landed.ID() && q.conflicts.edges[landed.ID()][id] == nil {
				met[id] = true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(met)) {
		c, st := q.Lineup.Pending(id), q.changes[id]
		st.epoch++
		q.delta.dirty[id] = true
		if c.Position < landed.Position {
			if st.overtaken++; st.overtaken == maxOvertaken {
				q.conflicts.insisting[id] = true
				insisting = append(insisting, id)
			}
		}
	}
	return insisting
}
