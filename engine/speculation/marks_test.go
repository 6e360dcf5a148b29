package speculation

import (
	"fmt"
	"testing"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// TestDirectPushesLeaveNothingBehindForGood: neither what landed in targets that are no more, nor which of their
// versions no command verifies, however many pushes there were.
func TestDirectPushesLeaveNothingBehindForGood(t *testing.T) {
	q := newTestQueue(t)
	at := "m0"
	push := func(i int, a *eventsv1.Affected) {
		to := fmt.Sprint("p", i)
		q.say(&eventsv1.MainlineMoved{From: at, To: to})
		q.say(&eventsv1.MainlineAnalyzed{From: at, To: to, Affected: a})
		at = to
	}
	const rounds, each = 6 * keptMoves, 10
	made := func(i int) (list []*eventsv1.TargetVersion) {
		for k := range each {
			list = append(list, &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%d/%d", i, k), Hash: fmt.Sprint(i), Trivial: true, Part: 1})
		}
		return list
	}
	for i := range rounds { // each creates what the next one deletes
		a := &eventsv1.Affected{Targets: made(i)}
		if i > 0 {
			for _, v := range made(i - 1) {
				a.Deleted = append(a.Deleted, v.Target)
			}
		}
		push(i, a)
	}
	marks := 0
	for i := range rounds {
		for _, v := range made(i) {
			if q.known.ledger.Result(versionOf(v)) != nil {
				marks++
			}
		}
	}
	if marks > 2*keptTrivial+each || len(q.known.marks.order) > 2*keptTrivial+each || len(q.known.marks.set) != len(q.known.marks.order) {
		t.Errorf("of %d versions %d are marked (%d, %d)", rounds*each, marks, len(q.known.marks.order), len(q.known.marks.set))
	}
	if n := len(q.landed.targets); n > 3*keptMoves*each {
		t.Errorf("%d targets have a history after %d pushes of %d", n, rounds, each)
	}
	if q.known.ledger.Result(versionOf(made(rounds - 1)[0])) == nil || q.landed.targets[made(rounds - 1)[0].Target] == nil {
		t.Error("what the mainline is now is forgotten")
	}
}

// TestARefusalLeavesNothingBehindForGood: of what no command verifies.
func TestARefusalLeavesNothingBehindForGood(t *testing.T) {
	q := newTestQueue(t)
	for i := range 5 * keptTrivial {
		c := q.enter(fmt.Sprint("c", i), "m0", "//c", "h")
		q.say(&eventsv1.Refused{Change: c, Base: "m0", Versions: []*eventsv1.TargetVersion{{Target: "//r", Hash: fmt.Sprint(i), Trivial: true}}})
		q.say(&eventsv1.ChangeCancelled{Change: c.Change})
	}
	if n := len(q.known.marks.order); n > 2*keptTrivial+1 || len(q.known.marks.set) != n {
		t.Errorf("%d versions are marked (%d)", n, len(q.known.marks.set))
	}
	if q.known.ledger.Result(versionOf(&eventsv1.TargetVersion{Target: "//r", Hash: "0"})) != nil {
		t.Error("the first one is marked to this day")
	}
}

func versionOf(v *eventsv1.TargetVersion) evidence.Version {
	return evidence.Version{Target: v.Target, Hash: v.Hash}
}
