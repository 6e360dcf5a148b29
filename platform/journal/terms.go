package journal

import (
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// Terms decides which records of one partition count: of a service whose records need a claim, only those that name its
// last claim before them. It is a fold: feed it every record in order.
type Terms struct {
	// claimed holds the services whose records need a claim; the table of topics names them.
	claimed map[string]bool
	// last holds the offset of each service's last claim, -1 before the first.
	last map[string]int64
}

// NewTerms returns the terms of one partition of a topic of events.Topics, before its first record.
func NewTerms(topic string) *Terms {
	t := &Terms{claimed: map[string]bool{}, last: map[string]int64{}}
	for _, row := range events.Topics() {
		if row.Name == topic {
			for _, s := range row.Claimed {
				t.claimed[s] = true
				t.last[s] = -1
			}
		}
	}
	return t
}

// Snapshot returns the claims in force.
func (t *Terms) Snapshot() *snapshotv1.JournalTerms {
	m := &snapshotv1.JournalTerms{Claims: map[string]int64{}}
	for service, offset := range t.last {
		if offset >= 0 {
			m.Claims[service] = offset
		}
	}
	return m
}

// RestoreTerms returns the terms of one partition of a topic that a snapshot was taken of.
func RestoreTerms(topic string, m *snapshotv1.JournalTerms) *Terms {
	t := NewTerms(topic)
	for service, offset := range m.GetClaims() {
		t.last[service] = offset
	}
	return t
}

// Counts folds the next record and reports whether readers take it. Claims themselves, and records that
// cannot be decoded, do not count.
func (t *Terms) Counts(e Entry) bool {
	if e.Err != nil || e.Message == nil {
		return false
	}
	if _, isClaim := e.Message.(*eventsv1.Claim); isClaim {
		if t.claimed[e.Source] {
			t.last[e.Source] = e.Offset
		}
		return false
	}
	return t.Admits(e)
}

// Admits reports whether the next record counts, and folds nothing.
func (t *Terms) Admits(e Entry) bool {
	if e.Err != nil || e.Message == nil || BeginsTerm(e.Envelope) {
		return false
	}
	if !t.claimed[e.Source] {
		return true
	}
	if _, same := e.Message.(*eventsv1.ChangeOutcome); same {
		return true // two owners of a partition write the same
	}
	return e.Term >= 0 && e.Term == t.last[e.Source]
}

// Restore puts a service's claim in force, for a reader that starts behind it with that as part of its state.
func (t *Terms) Restore(service string, term int64) { t.last[service] = term }

// Last returns the offset of a service's claim in force, -1 if it has none.
func (t *Terms) Last(service string) int64 {
	if o, ok := t.last[service]; ok {
		return o
	}
	return -1
}
