package order

import (
	"errors"
	"fmt"

	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/steps"
	"landfall.build/platform/journal"
)

// Settled reports whether no record that was read waits for one that was not. Only then may a snapshot be taken.
func (o *Order) Settled() bool { return !o.Waits() && o.early == 0 }

// Snapshot returns how far the topics are read, with the states of the partition's queues, by name. The message shares
// nothing that changes.
func (o *Order) Snapshot(queues map[string]*steps.Queue) *snapshotv1.Builder {
	m := &snapshotv1.Builder{
		Decisions: o.decisions.snapshot(), Changes: o.changes.snapshot(), Builds: o.builds.snapshot(),
		Queues: make(map[string]*snapshotv1.Steps, len(queues)),
	}
	for name, q := range queues {
		m.Queues[name] = q.Snapshot()
	}
	return m
}

func (t *topic) snapshot() *snapshotv1.BuilderTopic {
	return &snapshotv1.BuilderTopic{Next: t.next, Terms: t.terms.Snapshot()}
}

// Restore goes on from a snapshot, before Open, and returns the queues. After an error the order is as it was.
func (o *Order) Restore(m *snapshotv1.Builder) (map[string]*steps.Queue, error) {
	if m.GetDecisions().GetNext() > o.start.Decisions || m.GetChanges().GetNext() > o.start.Changes || m.GetBuilds().GetNext() > o.start.Builds {
		return nil, errors.New("it has folded more than the log holds")
	}
	queues := make(map[string]*steps.Queue, len(m.GetQueues()))
	for name, state := range m.GetQueues() {
		q, err := steps.Restore(state)
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", name, err)
		}
		queues[name] = q
	}
	o.decisions.restore(m.GetDecisions())
	o.changes.restore(m.GetChanges())
	o.builds.restore(m.GetBuilds())
	o.into.ReadBuilds(o.builds.next)
	return queues, nil
}

func (t *topic) restore(m *snapshotv1.BuilderTopic) {
	t.next, t.terms = m.GetNext(), journal.RestoreTerms(t.name, m.GetTerms())
}
