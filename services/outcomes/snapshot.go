package outcomes

import (
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Snapshot implements runner.Core.
func (c *Core) Snapshot() proto.Message {
	m := &snapshotv1.Outcomes{Terms: c.terms.Snapshot(), Changes: c.changes, Builds: c.builds, WrittenOffset: c.written.offset, WrittenCount: uint32(c.written.count)}
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		m.Queues = append(m.Queues, c.queues[name].snapshot())
	}
	return m
}

func (q *queue) snapshot() *snapshotv1.OutcomesQueue {
	m := &snapshotv1.OutcomesQueue{Queue: q.name, Lineup: q.lineup.Snapshot(), Answered: q.answered}
	for _, of := range sortedRefs(q.dropped) {
		m.Dropped = append(m.Dropped, of.message())
	}
	known := map[ref]bool{}
	for of := range q.trials {
		known[of] = true
	}
	for _, of := range sortedRefs(known) {
		t := q.trials[of]
		m.Trials = append(m.Trials, &snapshotv1.OutcomesTrial{Change: of.message(), Builds: t.builds, LeasedUs: t.leased, Done: t.done})
	}
	return m
}

func (r ref) message() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: r.change, Revision: r.revision}
}

func restore(f form, state []byte) (*Core, error) {
	m := &snapshotv1.Outcomes{}
	if err := proto.Unmarshal(state, m); err != nil {
		return nil, err
	}
	c := newCore(f)
	c.terms = journal.RestoreTerms(events.TopicChanges, m.Terms)
	c.changes, c.builds, c.written = m.Changes, m.Builds, place{m.WrittenOffset, int(m.WrittenCount)}
	for _, q := range m.Queues {
		if c.queues[q.Queue] != nil {
			return nil, errors.New("a queue is there twice")
		}
		if err := c.queue(q.Queue).restore(q); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (q *queue) restore(m *snapshotv1.OutcomesQueue) (err error) {
	if q.lineup, err = lineup.Restore(m.Lineup); err != nil {
		return err
	}
	for _, subject := range m.Answered {
		q.answer(subject)
	}
	for _, c := range m.Dropped {
		q.dropped[refOf(c)] = true
	}
	for _, t := range m.Trials {
		of := refOf(t.Change)
		q.trials[of] = &trial{builds: t.Builds, leased: t.LeasedUs, done: t.Done}
		for _, b := range t.Builds {
			q.builds[b] = of
		}
		if t.LeasedUs != 0 && !t.Done {
			q.due[of] = true
		}
	}
	return nil
}
