package view

import (
	"fmt"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
)

// TestNothingIsKeptOfRevisionsThatWereReplaced: builds are scheduled and a landing is decided for each of them, before
// and after its admission is read, and only the last one's are kept.
func TestNothingIsKeptOfRevisionsThatWereReplaced(t *testing.T) {
	q := New("main", DefaultLimits())
	offset := int64(0)
	fold := func(topic string, m *journal.Entry) {
		m.Topic, m.Offset = topic, offset
		offset++
		q.Fold(*m)
	}
	const revisions = 200 // more than events are kept of a change that is not known yet
	decide := func(revision uint64) {
		e := &journal.Entry{}
		e.Message = &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{
			LandDecided: &eventsv1.LandDecided{Change: &eventsv1.ChangeRef{Change: "c", Revision: revision}, Decision: fmt.Sprint("d", revision)},
		}}}}
		fold(events.TopicDecisions, e)
	}
	for revision := uint64(1); revision <= revisions; revision++ {
		if revision%2 == 0 {
			decide(revision)
		}
		e := &journal.Entry{}
		a := &eventsv1.Admission{Queue: "main", Change: "c", Revision: revision, RequestId: fmt.Sprint(revision),
			Entries: []*eventsv1.Entry{{Commit: fmt.Sprintf("%040d", revision)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprintf("%040d", revision)}}}
		if e.Message = (&eventsv1.ChangeRevised{Admission: a}); revision == 1 {
			e.Message = &eventsv1.ChangeAdmitted{Admission: a}
		}
		fold(events.TopicChanges, e)
		decide(revision)
		decide(revision - 1)
	}
	if len(q.decided) != 1 || len(q.early) != 0 || len(q.ranks) != 0 || len(q.ofChange) != 0 {
		t.Errorf("kept are %d decisions, %d early events, %d ranks, builds of %d changes", len(q.decided), len(q.early), len(q.ranks), len(q.ofChange))
	}
}
