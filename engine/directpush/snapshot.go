package directpush

import (
	"errors"
	"fmt"

	"landfall.build/engine/snapshotv1"
)

// Snapshot returns the pushes as a message. It shares the preparations, which nobody changes.
func (p *Pushes) Snapshot() *snapshotv1.DirectPushes {
	m := &snapshotv1.DirectPushes{Commits: p.commits, Sequence: p.sequence, Early: p.early, Whole: p.whole, Reading: p.reading}
	for _, commit := range p.commits {
		m.CommitSequences = append(m.CommitSequences, p.sequences[commit])
	}
	for at, sequence := range p.awaited {
		m.Awaited = append(m.Awaited, &snapshotv1.DirectPushAwaited{From: at.from, To: at.to, Sequence: sequence})
	}
	targets := map[string]*snapshotv1.DirectPushTarget{}
	target := func(name string) *snapshotv1.DirectPushTarget {
		if targets[name] == nil {
			targets[name] = &snapshotv1.DirectPushTarget{Target: name}
			m.Targets = append(m.Targets, targets[name])
		}
		return targets[name]
	}
	for name, v := range p.pushed {
		target(name).Pushed = v.message()
	}
	for name, v := range p.observed {
		target(name).Observed = v.message()
	}
	for name, sequence := range p.landed {
		target(name).Landed = sequence
	}
	return m
}

// Restore returns the pushes that a message was made of.
func Restore(m *snapshotv1.DirectPushes) (*Pushes, error) {
	p := New()
	p.commits, p.sequence, p.early, p.whole, p.reading = m.GetCommits(), m.GetSequence(), m.GetEarly(), m.GetWhole(), m.GetReading()
	if len(m.GetCommitSequences()) != len(p.commits) {
		return nil, fmt.Errorf("%d heads of the mainline have %d moves", len(p.commits), len(m.GetCommitSequences()))
	}
	for i, commit := range p.commits {
		p.sequences[commit] = m.CommitSequences[i]
	}
	for _, a := range m.GetAwaited() {
		p.awaited[span{a.From, a.To}] = a.Sequence
	}
	for _, t := range m.GetTargets() {
		if t.Target == "" {
			return nil, errors.New("a target has no name")
		}
		if t.Pushed != nil {
			p.pushed[t.Target] = versionOf(t.Pushed)
		}
		if t.Observed != nil {
			p.observed[t.Target] = versionOf(t.Observed)
		}
		if t.Landed != 0 {
			p.landed[t.Target] = t.Landed
		}
	}
	return p, nil
}

func (v version) message() *snapshotv1.DirectPushVersion {
	return &snapshotv1.DirectPushVersion{Sequence: v.sequence, Hash: v.hash, Trivial: v.trivial, Inherited: v.inherited, Surveyed: v.surveyed}
}

func versionOf(m *snapshotv1.DirectPushVersion) version {
	return version{m.Sequence, m.Hash, m.Trivial, m.Inherited, m.Surveyed}
}
