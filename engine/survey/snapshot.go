package survey

import (
	"fmt"
	"maps"
	"slices"

	"landfall.build/engine/snapshotv1"
)

// Snapshot returns the survey as a message. It shares the round, which nobody changes.
func (s *Survey) Snapshot() *snapshotv1.Survey {
	m := &snapshotv1.Survey{Known: s.known, Round: s.round}
	for _, t := range slices.Sorted(maps.Keys(s.open)) {
		m.Targets, m.Hashes = append(m.Targets, t), append(m.Hashes, s.open[t])
	}
	return m
}

// Restore returns the survey that a message was made of.
func Restore(m *snapshotv1.Survey) (*Survey, error) {
	s := New()
	if len(m.GetTargets()) != len(m.GetHashes()) {
		return nil, fmt.Errorf("%d surveyed targets have %d hashes", len(m.GetTargets()), len(m.GetHashes()))
	}
	s.known, s.round, s.order = m.GetKnown(), m.GetRound(), slices.Clone(m.GetTargets())
	slices.Sort(s.order)
	for i, t := range m.GetTargets() {
		s.open[t] = m.Hashes[i]
	}
	return s, nil
}
