package journal

import (
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// Terms says which records of one partition count: of a service whose records need a claim, only those
// that name its last claim before them (ARCHITECTURE section 3, Terms). It is a fold: feed it every
// record in order.
type Terms struct {
	claimed map[string]bool
	last    map[string]int64
}

// NewTerms is for one partition of a topic of events.Topics.
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

// Counts folds the next record and says whether readers take it. Claims themselves, and records that
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

// Admits says whether the next record counts, and folds nothing.
func (t *Terms) Admits(e Entry) bool {
	if e.Err != nil || e.Message == nil || BeginsTerm(e.Envelope) {
		return false
	}
	if !t.claimed[e.Source] {
		return true
	}
	return e.Term >= 0 && e.Term == t.last[e.Source]
}

// Restore puts a service's claim in force, for a reader that starts behind it with that as part of its state.
func (t *Terms) Restore(service string, term int64) { t.last[service] = term }

// Last is the offset of a service's claim in force, -1 if it has none.
func (t *Terms) Last(service string) int64 {
	if o, ok := t.last[service]; ok {
		return o
	}
	return -1
}
