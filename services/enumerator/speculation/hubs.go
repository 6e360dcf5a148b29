package speculation

import (
	"maps"
	"slices"

	"landfall.build/services/analyzer/targets"
	"landfall.build/services/lineup"
)

// maxOvertaken is how many changes behind one may land and leave it without proof in a hub. After that its
// hubs serialize as other targets do: whoever is behind is verified with it, and what that proves is its own
// too (M20). So a stream of quick changes holds nobody back for good.
const maxOvertaken = 8

// setHubs takes the queue's hubs from the log: from here on they decide who conflicts with whom.
func (q *Queue) setHubs(names []string) {
	if slices.Equal(names, q.hubNames) {
		return
	}
	q.hubNames, q.hubs = slices.Clone(names), targets.NewHubs(names)
	for _, id := range slices.Sorted(maps.Keys(q.analyses)) {
		q.setAnalysis(q.analyses[id])
	}
}

// insists says that hubs serialize for a change.
func (q *Queue) insists(id string) bool { return q.insisting[id] }

// hubsOf are the hubs between two changes.
func (q *Queue) hubsOf(a, b string) *targets.Hubs {
	if q.insists(a) || q.insists(b) {
		return nil
	}
	return q.hubs
}

// landedInHubs is what a landing does to those that meet it in hubs alone: no build of theirs assumed it, so what
// they have of a hub is of another mainline, and their builds are as after a direct push. It gives those that
// were overtaken too often just now.
func (q *Queue) landedInHubs(landed *lineup.Change, a *analysis) (overtaken []string) {
	if a == nil || q.hubs == nil {
		return nil
	}
	met := map[string]bool{}
	for _, t := range a.footprint.Touched {
		if !q.hubs.Has(t) {
			continue
		}
		for id := range q.byTarget[t] {
			met[id] = met[id] || id != landed.ID() && q.edges[landed.ID()][id] == nil
		}
	}
	for _, id := range slices.Sorted(maps.Keys(met)) {
		c, st := q.Lineup.Pending(id), q.state[id]
		if !met[id] || c == nil || st == nil {
			continue
		}
		st.epoch++
		q.dirty[id] = true
		if c.Position < landed.Position {
			if st.overtaken++; st.overtaken == maxOvertaken {
				q.insisting[id] = true
				overtaken = append(overtaken, id)
			}
		}
	}
	return overtaken
}
