package lineup

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func admission(change string, revision uint64, requires ...string) *eventsv1.Admission {
	return &eventsv1.Admission{Change: change, Revision: revision, Requires: requires, LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}
}

// A change that requires one which landed would wait for ever for the new revision of it that comes behind,
// which in turn waits for all that is ahead.
func TestDependantsFollowANewRevisionOfAChangeThatLanded(t *testing.T) {
	q := New()
	q.Apply(&eventsv1.ChangeAdmitted{Admission: admission("a", 1)}, 1)
	q.Apply(&eventsv1.ChangeAdmitted{Admission: admission("b", 1, "a")}, 2)
	q.Apply(&eventsv1.ChangeAdmitted{Admission: admission("c", 1, "b")}, 3)
	ref := &eventsv1.ChangeRef{Change: "a", Revision: 1}
	q.Apply(&eventsv1.LandIntended{Change: ref, Commits: []string{"t"}}, 4)
	q.Apply(&eventsv1.ChangeLanded{Change: ref, Commits: []string{"t"}}, 5)
	consequence := q.Apply(&eventsv1.ChangeRevised{Admission: admission("a", 2)}, 6)
	if !consequence.Applied || !consequence.Reordered || consequence.Left != nil {
		t.Errorf("the consequence is %+v", consequence)
	}
	for i, want := range []string{"a", "b", "c"} {
		if got := q.Order()[i].ID(); got != want {
			t.Errorf("place %d has %s, want %s", i, got, want)
		}
	}
}
