package lineup

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the queue as a message, the same one for the same history. It shares the admissions and the intention, which nobody changes.
func (q *Queue) Snapshot() *snapshotv1.Lineup {
	m := &snapshotv1.Lineup{Head: q.Head, Sequence: q.Sequence, RefusedByRemote: q.RefusedByRemote, Changes: make([]*snapshotv1.LineupChange, len(q.order))}
	for i, c := range q.order {
		change := &snapshotv1.LineupChange{Admission: c.Admission, Position: c.Position, AdmittedOffset: c.AdmittedOffset, Urgent: c.Urgent}
		for _, h := range c.Holds {
			change.Holds = append(change.Holds, &eventsv1.Hold{Name: h.Name, Who: h.Who, Why: h.Why})
		}
		m.Changes[i] = change
	}
	m.SettledIds = make([]byte, 0, len(q.settled)*len(digest{}))
	m.SettledRevisions = make([]uint64, 0, len(q.settled))
	m.SettledStates = make([]uint32, 0, len(q.settled))
	for _, id := range slices.SortedFunc(maps.Keys(q.settled), func(a, b digest) int { return bytes.Compare(a[:], b[:]) }) {
		s := q.settled[id]
		m.SettledIds = append(m.SettledIds, id[:]...)
		m.SettledRevisions = append(m.SettledRevisions, s.Revision)
		m.SettledStates = append(m.SettledStates, uint32(s.State))
	}
	if q.Intention != nil {
		m.Intention, m.IntentionOffset = q.Intention.Fact, q.Intention.Offset
	}
	if q.Paused != nil {
		m.Paused = &snapshotv1.LineupPause{Who: q.Paused.Who, Why: q.Paused.Why, SinceUs: q.Paused.SinceUS}
	}
	return m
}

// Restore returns the queue that a message was made of.
func Restore(m *snapshotv1.Lineup) (*Queue, error) {
	q := New()
	q.Head, q.Sequence, q.RefusedByRemote = m.GetHead(), m.GetSequence(), m.GetRefusedByRemote()
	for _, change := range m.GetChanges() {
		if change.Admission.GetChange() == "" {
			return nil, errors.New("a pending change has no admission")
		}
		c := &Change{Admission: change.Admission, Position: change.Position, AdmittedOffset: change.AdmittedOffset, Urgent: change.Urgent}
		if q.pending[c.ID()] != nil {
			return nil, fmt.Errorf("the change %s is pending twice", c.ID())
		}
		for _, h := range change.Holds {
			c.Holds = append(c.Holds, Hold{h.Name, h.Who, h.Why})
		}
		q.pending[c.ID()] = c
		q.order = append(q.order, c)
	}
	if err := q.restoreSettled(m); err != nil {
		return nil, err
	}
	if i := m.GetIntention(); i != nil {
		if i.Change == nil || len(i.Commits) == 0 {
			return nil, errors.New("the intention has no change or no commits")
		}
		q.Intention = &Intention{Fact: i, Offset: m.IntentionOffset}
	}
	if p := m.GetPaused(); p != nil {
		q.Paused = &Pause{p.Who, p.Why, p.SinceUs}
	}
	return q, nil
}

func (q *Queue) restoreSettled(m *snapshotv1.Lineup) error {
	ids, n := m.GetSettledIds(), len(m.GetSettledRevisions())
	if len(m.GetSettledStates()) != n || len(ids) != n*len(digest{}) {
		return fmt.Errorf("the lists of %d, %d and %d settled changes differ in length", len(ids)/len(digest{}), n, len(m.GetSettledStates()))
	}
	q.settled = make(map[digest]Settled, n)
	for i, revision := range m.GetSettledRevisions() {
		q.settled[digest(ids[i*len(digest{}):])] = Settled{revision, State(m.SettledStates[i])}
	}
	return nil
}
