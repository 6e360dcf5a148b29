package steps

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

func TestOnlyTheRevisionThatLandedHasLanded(t *testing.T) {
	q, offset := New(), int64(0)
	apply := func(m proto.Message) {
		t.Helper()
		offset++
		if !q.Apply(m, Origin{Offset: offset}) {
			t.Fatalf("%v means nothing", m)
		}
	}
	ref := func(change string, revision uint64) *eventsv1.ChangeRef {
		return &eventsv1.ChangeRef{Change: change, Revision: revision}
	}
	expect := func(change string, revision uint64, want lineup.State) {
		t.Helper()
		if got := q.Became(ref(change, revision)); got != want {
			t.Errorf("revision %d of %s is %v, want %v", revision, change, got, want)
		}
	}
	admit := func(change string, revision uint64) {
		apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: change, Revision: revision, LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}})
	}
	apply(&eventsv1.MainlineMoved{To: "m", Initial: true})
	admit("a", 1)
	admit("a", 2)
	admit("b", 1)
	expect("a", 1, lineup.Cancelled)
	expect("a", 2, lineup.Pending)
	expect("c", 1, lineup.Cancelled)
	apply(&eventsv1.LandIntended{Change: ref("a", 2), Commits: []string{"x"}})
	expect("a", 2, lineup.Pending)
	apply(&eventsv1.ChangeLanded{Change: ref("a", 2), Commits: []string{"x"}})
	apply(&eventsv1.ChangeRejected{Change: ref("b", 1)})
	expect("a", 1, lineup.Cancelled)
	expect("a", 2, lineup.Landed)
	expect("b", 1, lineup.Rejected)
	admit("a", 3)
	expect("a", 2, lineup.Landed)
	expect("a", 3, lineup.Pending)
}
