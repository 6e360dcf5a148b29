package tally

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

// writer appends to a log; every record has an id of its own.
type writer struct {
	t   *testing.T
	log *memory.Log
	n   int
}

func (w *writer) put(topic, source, queue string, term int64, m proto.Message) int64 {
	w.t.Helper()
	w.n++
	at, err := w.log.Append(w.t.Context(), topic, 0, events.Envelope{
		ID: fmt.Sprint("r", w.n), Source: source, Instance: "test", Queue: queue, Time: time.UnixMicro(1), Term: term, Message: m,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return at[0]
}

func ref(change string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: change, Revision: 1} }

func scheduled(build, change string) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
		Build: build, Change: &eventsv1.AssumedChange{Change: ref(change)},
	}}}
}

func TestStepsOfOtherChangesCountAsReused(t *testing.T) {
	w := &writer{t: t, log: memory.New(memory.Options{Partitions: 1})}
	defer w.log.Close()
	term := w.put(events.TopicDecisions, events.ServiceSelector, "q", -1, &eventsv1.Claim{Service: events.ServiceSelector, Instance: "test"})
	decide := func(term int64, items ...*eventsv1.DecisionItem) {
		w.put(events.TopicDecisions, events.ServiceSelector, "q", term, &eventsv1.Decision{Items: items})
	}
	decide(term, scheduled("b1", "one"), scheduled("b2", "two"))
	decide(term-1, scheduled("ghost", "one")) // of an instance that had lost its claim
	decide(term, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: "b2"}}})
	lib, test := &eventsv1.TargetVersion{Target: "//lib", Hash: "1"}, &eventsv1.TargetVersion{Target: "//test", Hash: "2"}
	trivial := &eventsv1.TargetVersion{Target: "//none", Hash: "3", Trivial: true}
	build := func(m proto.Message) { w.put(events.TopicBuilds, events.ServiceBuilder, "q", -1, m) }
	build(&eventsv1.BuildPrepared{Build: "b1", Change: ref("one"), Versions: []*eventsv1.TargetVersion{lib, trivial}})
	build(&eventsv1.BuildPrepared{Build: "b2", Change: ref("two"), Versions: []*eventsv1.TargetVersion{lib, test}})
	finished := func(v *eventsv1.TargetVersion, attempt uint32, build string, outcome eventsv1.StepOutcome) *eventsv1.StepFinished {
		return &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: attempt, Build: build, Outcome: outcome}
	}
	build(finished(lib, 1, "b1", eventsv1.StepOutcome_STEP_OUTCOME_PASSED))
	build(finished(lib, 1, "b2", eventsv1.StepOutcome_STEP_OUTCOME_PASSED)) // the same attempt again: the first stands
	build(finished(test, 1, "b2", eventsv1.StepOutcome_STEP_OUTCOME_ABORTED))
	build(finished(test, 2, "b2", eventsv1.StepOutcome_STEP_OUTCOME_PASSED))
	w.put(events.TopicBuilds, events.ServiceBuilder, "another", -1, finished(test, 3, "b9", eventsv1.StepOutcome_STEP_OUTCOME_PASSED))
	lander := w.put(events.TopicChanges, events.ServiceLander, "q", -1, &eventsv1.Claim{Service: events.ServiceLander, Instance: "test"})
	w.put(events.TopicChanges, events.ServiceLander, "q", lander, &eventsv1.Refused{Change: ref("one")})
	w.put(events.TopicChanges, events.ServiceLander, "q", lander, &eventsv1.ChangeLanded{
		Change: ref("three"), Proof: []*eventsv1.Proof{{Version: lib, Build: "b1"}, {Version: trivial}},
	})
	got, err := Count(t.Context(), w.log, "q")
	if err != nil {
		t.Fatal(err)
	}
	// two needs lib, which ran for one; three rests on it too.
	if want := (Tally{Builds: 2, BuildsAborted: 1, StepsRun: 3, StepsAborted: 1, StepsReused: 2, Refusals: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAnEmptyLogIsCountedAtOnce(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 3})
	defer log.Close()
	if got, err := Count(t.Context(), log, "q"); err != nil || got != (Tally{}) {
		t.Errorf("%+v, %v", got, err)
	}
}
