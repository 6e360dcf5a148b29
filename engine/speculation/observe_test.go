package speculation

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// testQueue is a queue on a mainline "m0", fed by messages.
type testQueue struct {
	*Queue
	t      *testing.T
	offset int64
}

func newTestQueue(t *testing.T) *testQueue {
	q := &testQueue{Queue: New(), t: t}
	q.Apply(&eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{Hash: "s", Steps: &eventsv1.StepPolicy{}}}}, 0)
	q.say(&eventsv1.MainlineMoved{To: "m0", Initial: true})
	return q
}

func (q *testQueue) say(m proto.Message) {
	q.t.Helper()
	q.take(m)
	q.Fold(q.Decide())
}

// take is say without what the queue makes of it.
func (q *testQueue) take(m proto.Message) *eventsv1.Fact {
	q.t.Helper()
	f, ok := FactOf(m)
	if !ok {
		q.t.Fatalf("%T is no fact", m)
	}
	q.offset++
	q.Apply(f, q.offset)
	return f
}

// enter admits a change of one landing commit that affects one target, analysed on a base.
func (q *testQueue) enter(id, base, target, hash string) *eventsv1.ChangeRef {
	ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
	q.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
	q.say(&eventsv1.ChangeAnalyzed{Change: ref, Base: base, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: target, Hash: hash, Part: 1}}}})
	return ref
}

func (q *testQueue) prepare(c *eventsv1.ChangeRef, base, target, hash string, trivial bool, assumed ...*eventsv1.ChangeRef) {
	q.say(&eventsv1.BuildPrepared{Build: fmt.Sprint("b", q.offset), Change: c, Base: base, Assumed: assumed,
		Outcome:  eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
		Versions: []*eventsv1.TargetVersion{{Target: target, Hash: hash, Part: 1, Trivial: trivial}}})
}

// TestAVersionFoundTrivialIsToldToAllWhoHoldIt: the same version may stand in trees of several changes.
func TestAVersionFoundTrivialIsToldToAllWhoHoldIt(t *testing.T) {
	q := newTestQueue(t)
	q.enter("c1", "m0", "//t", "same")
	c2 := q.enter("c2", "m0", "//t", "other")
	if o := q.published.nodes["c1"].Classes[0].Outcomes; len(o) > 0 {
		t.Fatalf("c1 is known before anything was found: %v", o)
	}
	q.prepare(c2, "m0", "//t", "same", true)
	if o := q.published.nodes["c1"].Classes[0].Outcomes; len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
		t.Fatalf("c1 has the version that c2's build found trivial, and is told %v", o)
	}
}

// TestATargetOfManyChangesKeepsOnlyWhatCanComeBack while changes land, and are rejected, one after another.
func TestATargetOfManyChangesKeepsOnlyWhatCanComeBack(t *testing.T) {
	const pending, rounds = 8, 300
	q := newTestQueue(t)
	head, made := "m0", 0
	enter := func() {
		made++
		q.enter(fmt.Sprint("c", made), head, "//hub", fmt.Sprint(head, "+", made))
	}
	for range pending {
		enter()
	}
	most := 0
	for round := range rounds {
		order := q.Lineup.Order()
		first, second := order[0].Ref(), order[1].Ref()
		q.prepare(first, head, "//hub", fmt.Sprint(head, "+", first.Change), false)
		q.prepare(second, head, "//hub", fmt.Sprint(head, "+", first.Change, "+", second.Change), false, first)
		if round%3 == 0 {
			q.say(&eventsv1.ChangeRejected{Change: first})
		} else {
			head = fmt.Sprint("m", round+1)
			q.say(&eventsv1.LandIntended{Change: first, Commits: []string{head}})
			q.say(&eventsv1.ChangeLanded{Change: first, Commits: []string{head}})
		}
		enter()
		most = max(most, len(q.known.observed["//hub"]))
	}
	if q.Lineup.Sequence < rounds/2 {
		t.Fatalf("only %d changes landed", q.Lineup.Sequence)
	}
	if most > 4*pending {
		t.Errorf("up to %d observations of a target that %d pending changes affect", most, pending)
	}
	if len(q.known.labels) > 4*pending || len(q.known.byVersion) > 4*pending {
		t.Errorf("%d labels and %d versions are kept for %d pending changes", len(q.known.labels), len(q.known.byVersion), pending)
	}
	// What is known of the next one still comes from a tree that was made while the one before was pending.
	first, second := q.Lineup.Order()[0].Ref(), q.Lineup.Order()[1].Ref()
	q.prepare(second, head, "//hub", "on top", false, first)
	q.say(&eventsv1.StepFinished{Target: "//hub", Hash: "on top", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
	q.say(&eventsv1.LandIntended{Change: first, Commits: []string{"last"}})
	q.say(&eventsv1.ChangeLanded{Change: first, Commits: []string{"last"}})
	if o := q.published.nodes[second.Change].Classes[0].Outcomes; len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_GREEN || len(o[0].Members) > 0 {
		t.Errorf("%s is green on %s, which landed, and told %v", second.Change, first.Change, o)
	}
}

// TestALabelIsFoundWhoeverElseItsTreeHeld: k did not affect the target when a tree of it with k was looked at, and
// does by now. The same version without k is known, then, and must not be built for ever.
func TestALabelIsFoundWhoeverElseItsTreeHeld(t *testing.T) {
	q := newTestQueue(t)
	k := q.enter("k", "m0", "//other", "k")
	l := q.enter("l", "m0", "//t", "l")
	n := q.enter("n", "m0", "//t", "n")
	c := q.enter("c", "m0", "//t", "c")
	q.prepare(c, "m0", "//t", "l, n and c", false, k, l, n)
	q.say(&eventsv1.StepFinished{Target: "//t", Hash: "l, n and c", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})

	q.say(&eventsv1.MainlineMoved{From: "m0", To: "m1"})
	q.say(&eventsv1.MainlineAnalyzed{From: "m0", To: "m1",
		Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//elsewhere", Hash: "m1", Trivial: true}}}})
	q.say(&eventsv1.ChangeAnalyzed{Change: k, Base: "m1", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//t", Hash: "k in t", Part: 1}}}})

	q.prepare(c, "m1", "//t", "l, n and c", false, l, n)
	class := q.published.nodes["c"].Classes[0]
	if len(class.Members) != 3 {
		t.Fatalf("k, l and n all affect //t now, and the class has %v", class.Members)
	}
	for _, o := range class.Outcomes {
		if len(o.Members) == 1 && o.Members[0] == 6 && o.State == eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
			return
		}
	}
	t.Errorf("c on l and n is green, and told: %v", class.Outcomes)
}

// TestTheLandingsUnderAChangeAreForgottenOnceNoTreeCanBeOlder, unless a tree that could not be made is.
func TestTheLandingsUnderAChangeAreForgottenOnceNoTreeCanBeOlder(t *testing.T) {
	st := &changeState{}
	add := func(from, to uint64) {
		for s := from; s <= to; s++ {
			st.addLanding(landing{sequence: s})
		}
	}
	add(1, 5*keptMoves)
	if n := len(st.landings); n != keptMoves+1 {
		t.Errorf("%d landings are kept", n)
	}
	oldest := st.landings[0].sequence
	st.failedTrees = []failedTree{{sequence: oldest}}
	add(5*keptMoves+1, 9*keptMoves)
	if first := st.landings[0].sequence; first != oldest+1 {
		t.Errorf("a tree on move %d could not be made, and the landings begin with move %d", oldest, first)
	}
}
