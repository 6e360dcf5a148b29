package decision

import (
	"errors"
	"fmt"
	"maps"

	"landfall.build/engine/graph"
	"landfall.build/engine/quota"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the selection as a message. It shares messages that nobody changes.
func (s *Selection) Snapshot() *snapshotv1.Selection {
	m := &snapshotv1.Selection{
		Graph: s.graph.Snapshot(), Ranking: s.ranking, Decided: maps.Clone(s.decided),
		Position: s.position, Fresh: s.fresh,
	}
	indices := map[string]uint32{}
	for _, r := range s.running {
		b := &snapshotv1.SelectionBuild{
			Build: r.id, Change: r.change, Epoch: r.epoch, Steps: r.steps, Guard: r.guard,
			Over: r.end.over, Dead: r.end.dead, Stale: r.end.stale, Worthless: r.worthless, Value: r.value, Idle: r.subject.idle,
		}
		for id, revision := range r.assumed {
			b.Assumed = append(b.Assumed, &eventsv1.ChangeRef{Change: id, Revision: revision})
		}
		for t := range r.targets {
			i, had := indices[t.target]
			if !had {
				i = uint32(len(m.Targets))
				indices[t.target], m.Targets = i, append(m.Targets, t.target)
			}
			b.Targets, b.Parts = append(b.Targets, i), append(b.Parts, t.part)
		}
		m.Running = append(m.Running, b)
	}
	return m
}

// Restore returns the selection of a queue that a message was made of. What was concluded is concluded again when it is
// asked for.
func Restore(queue string, ids IDs, m *snapshotv1.Selection) (*Selection, error) {
	s := New(queue, ids)
	var err error
	if s.graph, err = graph.Restore(m.GetGraph()); err != nil {
		return nil, err
	}
	s.quotas = quota.New(s.graph.Settings.GetQuotas())
	for _, b := range m.GetRunning() {
		r, err := restoreRunning(b, m.Targets)
		if err != nil {
			return nil, err
		}
		s.add(r)
	}
	if m.GetRanking() != nil {
		s.rank(m.Ranking)
	}
	maps.Copy(s.decided, m.GetDecided())
	for _, n := range s.graph.Order() {
		s.undecided[n.Change.GetChange()] = true
	}
	s.position, s.fresh = m.GetPosition(), m.GetFresh()
	return s, nil
}

func restoreRunning(b *snapshotv1.SelectionBuild, targets []string) (*running, error) {
	if b.Change == nil {
		return nil, errors.New("a running build has no change")
	}
	if len(b.Targets) != len(b.Parts) {
		return nil, fmt.Errorf("the build %s has %d targets and %d parts", b.Build, len(b.Targets), len(b.Parts))
	}
	r := &running{
		id: b.Build, change: b.Change, subject: subjectOf(b.Change), epoch: b.Epoch, steps: b.Steps, guard: b.Guard,
		assumed: make(map[string]uint64, len(b.Assumed)), targets: make(map[targetPart]bool, len(b.Targets)),
		end: ending{b.Over, b.Dead, b.Stale}, worthless: b.Worthless, value: b.Value,
	}
	if b.Idle {
		r.subject = idleSubject
	}
	for _, a := range b.Assumed {
		r.assumed[a.Change] = a.Revision
	}
	for i, t := range b.Targets {
		if int(t) >= len(targets) {
			return nil, fmt.Errorf("the build %s is for target %d of %d", b.Build, t, len(targets))
		}
		r.targets[targetPart{targets[t], b.Parts[i]}] = true
	}
	return r, nil
}
