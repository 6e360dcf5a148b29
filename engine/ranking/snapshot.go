package ranking

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the ranking as a message, which shares what nobody changes. What depends on the order of events is in it:
// who is behind whom, and the bounds that are kept up by multiplication. What is a function of the graph and the predictions
// is not.
func (r *Ranking) Snapshot() *snapshotv1.Ranking {
	m := &snapshotv1.Ranking{
		Graph: r.graph.Snapshot(), NowUs: r.now, RemainingAsOfUs: r.remainingAsOf,
		Pace:  &snapshotv1.RankingPace{Period: r.pacePeriod, TypicalDurationUs: r.typicalUS, LeastLoss: r.lossThreshold},
		Delta: r.delta, Published: r.published, Edits: uint32(r.editsSinceWhole), Estimates: r.estimates.snapshot(),
	}
	for _, id := range slices.Sorted(maps.Keys(r.predictions)) {
		m.Predictions = append(m.Predictions, r.predictions[id])
	}
	rest := []*change{}
	for _, c := range r.changes {
		if c.pendingAt < 0 {
			rest = append(rest, c)
		}
	}
	slices.SortFunc(rest, func(a, b *change) int { return cmp.Compare(a.id, b.id) })
	assumed := map[string]uint32{}
	for _, c := range slices.Concat(r.pending, rest) {
		m.Changes = append(m.Changes, r.snapshotChange(c, assumed))
	}
	m.Assumed = make([]string, len(assumed))
	for id, at := range assumed {
		m.Assumed[at] = id
	}
	m.Pairs = r.snapshotPairs()
	return m
}

// isPaired reports whether what is predicted of a member's pair is what the change has of the member.
func (r *Ranking) isPaired(c *change, m *member) bool {
	p, known := r.pairs[c.id][m.of.id]
	return known && p == pair{c.node.Change.Revision, m.ahead.Change.Revision, m.conflict}
}

// snapshotPairs returns the pairs that no member of a change stands for.
func (r *Ranking) snapshotPairs() (list []*snapshotv1.RankingPair) {
	for _, id := range slices.Sorted(maps.Keys(r.pairs)) {
		c, of := r.changes[id], r.pairs[id]
		isPaired := map[string]bool{}
		if c != nil {
			for j := range c.members {
				if m := &c.members[j]; r.isPaired(c, m) {
					isPaired[m.of.id] = true
				}
			}
		}
		if len(isPaired) == len(of) {
			continue
		}
		for _, ahead := range slices.Sorted(maps.Keys(of)) {
			if p := of[ahead]; !isPaired[ahead] {
				list = append(list, &snapshotv1.RankingPair{Behind: id, BehindRevision: p.behind, Ahead: ahead, AheadRevision: p.ahead, Conflict: p.conflict})
			}
		}
	}
	return list
}

// snapshotChange returns a change as a message. Ids that its builds assume get their places in assumed.
func (r *Ranking) snapshotChange(c *change, assumed map[string]uint32) *snapshotv1.RankingChange {
	m := &snapshotv1.RankingChange{
		Id: c.id, MostNeeded: c.mostNeeded, MostLikely: c.mostLikely, Multiplied: uint32(c.multiplications), Oldest: uint32(1 + slices.Index(c.runs, c.oldest)),
		Conflicts: make([]float64, len(c.members)), PlacesBehind: make([]uint32, len(c.members)),
	}
	if c.computed {
		m.Pace = &snapshotv1.RankingChangePace{AsOfUs: c.asOf, BuiltUs: c.builtAt, DecidedUs: c.decidedAt, AheadDecidedUs: c.aheadDecidedAt}
	}
	for j := range c.members {
		of := &c.members[j]
		m.Conflicts[j], m.PlacesBehind[j] = of.conflict, uint32(of.behindAt)
		if !r.isPaired(c, of) {
			m.Unpaired = append(m.Unpaired, uint32(j))
		}
		if c.funded {
			m.FinishesBefore, m.FundedBefore = append(m.FinishesBefore, of.finishesBefore), append(m.FundedBefore, of.fundedBefore)
		}
	}
	for _, x := range c.runs {
		run := &snapshotv1.RankingRun{Build: x.build, Revision: x.change.Revision, SinceUs: x.since, Worthless: x.worthless}
		for _, id := range slices.Sorted(maps.Keys(x.assumed)) {
			at, known := assumed[id]
			if !known {
				at = uint32(len(assumed))
				assumed[id] = at
			}
			run.Assumed, run.Revisions = append(run.Assumed, at), append(run.Revisions, x.assumed[id])
		}
		m.Runs = append(m.Runs, run)
	}
	return m
}

func (e *estimates) snapshot() *snapshotv1.RankingEstimates {
	if e == nil {
		return nil
	}
	m := &snapshotv1.RankingEstimates{StampUs: e.stamp, MadeUs: e.madeAt, Changed: e.changed}
	for _, id := range slices.Sorted(maps.Keys(e.published)) {
		m.Published = append(m.Published, e.published[id])
	}
	return m
}

// Restore returns the ranking that a message was made of, which estimates when the queue's changes are decided. It has no
// searches and no marginals, so its next decision computes them all. What it writes is what the original would have written.
func Restore(m *snapshotv1.Ranking, queue string) (*Ranking, error) {
	g, err := graph.Restore(m.GetGraph())
	if err != nil {
		return nil, err
	}
	r := New()
	r.graph, r.now, r.remainingAsOf = g, m.GetNowUs(), m.GetRemainingAsOfUs()
	r.pacePeriod, r.typicalUS, r.lossThreshold = m.GetPace().GetPeriod(), m.GetPace().GetTypicalDurationUs(), m.GetPace().GetLeastLoss()
	r.delta, r.published, r.editsSinceWhole = m.GetDelta(), m.GetPublished(), int(m.GetEdits())
	r.restoreEstimates(m.GetEstimates(), queue)
	for _, p := range m.GetPredictions() {
		r.predictions[p.Change.GetChange()] = p
	}
	for _, p := range m.GetPairs() {
		r.pair(p.Behind, p.Ahead, pair{p.BehindRevision, p.AheadRevision, p.Conflict})
	}
	for _, x := range m.GetChanges() {
		if r.changes[x.Id] != nil {
			return nil, fmt.Errorf("the change %s is in the ranking twice", x.Id)
		}
		c := r.changeOf(x.Id)
		if c.node = g.Node(x.Id); c.node != nil {
			r.updatePending(c)
		}
	}
	if len(r.pending) != len(g.Order()) {
		return nil, fmt.Errorf("the ranking has %d of %d pending changes", len(r.pending), len(g.Order()))
	}
	if err := r.restoreMembers(m.GetChanges()); err != nil {
		return nil, err
	}
	for _, x := range m.GetChanges() {
		if err := r.restoreRuns(r.changes[x.Id], x, m.Assumed); err != nil {
			return nil, err
		}
	}
	for _, x := range m.GetChanges() {
		r.restoreBounds(r.changes[x.Id], x)
	}
	return r, nil
}

func (r *Ranking) restoreEstimates(m *snapshotv1.RankingEstimates, queue string) {
	r.EnableEstimates(queue)
	r.estimates.stamp, r.estimates.madeAt, r.estimates.changed = m.GetStampUs(), m.GetMadeUs(), m.GetChanged()
	for _, e := range m.GetPublished() {
		r.estimates.published[e.Change.GetChange()] = e
	}
}

// restoreMembers links the changes to their members, each at its place among those behind the member, and works out what
// follows of each change by itself.
func (r *Ranking) restoreMembers(changes []*snapshotv1.RankingChange) error {
	behind := map[*change]int{}
	for _, x := range changes {
		c := r.changes[x.Id]
		if c.node != nil {
			c.members = make([]member, len(c.node.Ahead))
		}
		if len(x.Conflicts) != len(c.members) || len(x.PlacesBehind) != len(c.members) {
			return fmt.Errorf("the change %s has %d members, in the ranking %d and %d", x.Id, len(c.members), len(x.Conflicts), len(x.PlacesBehind))
		}
		for j := range c.members {
			m := &c.members[j]
			m.ahead = c.node.Ahead[j]
			if m.of = r.changes[m.ahead.Change.Change]; m.of == nil {
				return fmt.Errorf("the change %s has %s ahead, which is not in the ranking", x.Id, m.ahead.Change.Change)
			}
			m.sure, m.conflict, m.behindAt = m.ahead.MergeConflict || m.ahead.Required, x.Conflicts[j], int(x.PlacesBehind[j])
			m.updateCurrent()
			behind[m.of]++
		}
	}
	for c, n := range behind {
		c.behind = make([]back, n)
	}
	for _, x := range changes {
		c := r.changes[x.Id]
		unpaired := x.Unpaired
		for j := range c.members {
			m := &c.members[j]
			if m.behindAt >= len(m.of.behind) || m.of.behind[m.behindAt].of != nil {
				return fmt.Errorf("the change %s has no place among those behind %s", x.Id, m.of.id)
			}
			m.of.behind[m.behindAt] = back{c, j}
			if len(unpaired) > 0 && unpaired[0] == uint32(j) {
				unpaired = unpaired[1:]
			} else {
				r.pair(c.id, m.of.id, pair{c.node.Change.Revision, m.ahead.Change.Revision, m.conflict})
			}
		}
		c.success = 1
		if p := r.predictions[c.id]; p != nil {
			c.success = p.Success
		}
		c.findCoupled()
		c.classify()
		c.likelierWay = c.likelierWayBound()
		c.updateVisible()
		c.updateFloor()
	}
	return nil
}

// restoreRuns gives a change its builds. All have to be weighed again, for nothing is known of what they rest on.
func (r *Ranking) restoreRuns(c *change, m *snapshotv1.RankingChange, assumed []string) error {
	for _, x := range m.Runs {
		run := &run{build: x.Build, change: &eventsv1.ChangeRef{Change: c.id, Revision: x.Revision}, assumed: map[string]uint64{}, since: x.SinceUs, worthless: x.Worthless}
		if len(x.Assumed) != len(x.Revisions) {
			return fmt.Errorf("the build %s assumes %d changes at %d revisions", x.Build, len(x.Assumed), len(x.Revisions))
		}
		for i, at := range x.Assumed {
			if int(at) >= len(assumed) {
				return fmt.Errorf("the build %s assumes change %d of %d", x.Build, at, len(assumed))
			}
			run.assumed[assumed[at]] = x.Revisions[i]
		}
		c.runs = append(c.runs, run)
		r.runs[run.build] = run
	}
	if m.Oldest > 0 {
		if int(m.Oldest) > len(c.runs) {
			return fmt.Errorf("the oldest build of %s is number %d of %d", c.id, m.Oldest, len(c.runs))
		}
		c.oldest = c.runs[m.Oldest-1]
	}
	r.queueRuns(c)
	r.updateTime(c)
	return nil
}

// restoreBounds needs all changes to be there: the bounds of one rest on those of its members.
func (r *Ranking) restoreBounds(c *change, m *snapshotv1.RankingChange) {
	if p := m.Pace; p != nil {
		c.pace = pace{true, p.AsOfUs, p.BuiltUs, p.DecidedUs, p.AheadDecidedUs}
	}
	c.funded = len(m.FinishesBefore) > 0
	for j := range c.members {
		of := &c.members[j]
		if c.funded && j < min(len(m.FinishesBefore), len(m.FundedBefore)) {
			of.finishesBefore, of.fundedBefore = m.FinishesBefore[j], m.FundedBefore[j]
		}
		of.maxWeight = of.fundedBefore + (1-of.fundedBefore)*likelierWayOf(of)
	}
	c.mostNeeded, c.mostLikely, c.multiplications = m.MostNeeded, m.MostLikely, int(m.Multiplied)
	r.updateKey(c)
}
