package steps

import (
	"strconv"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// M-numbers in the names are claims of engine/README.md.

func scheduled(build string, value float64) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
		Build: build, Value: value, Steps: &eventsv1.StepPolicy{InfrastructureRetries: 1}}}}
}

func aborted(build, successor string) *eventsv1.DecisionItem {
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: build, SupersededBy: successor}}}
}

func decide(q *Queue, items ...*eventsv1.DecisionItem) {
	q.Apply(&eventsv1.Decision{Items: items}, Origin{})
}

func prepare(q *Queue, build string, targets ...string) {
	p := &eventsv1.BuildPrepared{Build: build, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, t := range targets {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t, Hash: "h"})
	}
	q.Apply(p, Origin{})
}

func finish(q *Queue, target string, attempt uint32, outcome eventsv1.StepOutcome, took int64) {
	q.Apply(&eventsv1.StepFinished{Target: target, Hash: "h", Attempt: attempt, Outcome: outcome, StartedUs: 1000, FinishedUs: 1000 + took}, Origin{})
}

func lease(q *Queue, target, id string, stamp, until int64) {
	q.Apply(&eventsv1.StepLeased{Target: target, Hash: "h", Attempt: 1, Lease: id, StampUs: stamp, UntilUs: until}, Origin{})
}

func next(q *Queue, now int64) string {
	var names []string
	for _, s := range q.Next(now, 100, nil, nil) {
		names = append(names, s.Target+"#"+strconv.FormatUint(uint64(s.Attempt), 10))
	}
	return strings.Join(names, " ")
}

const (
	passed   = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed   = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	crashed  = eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN
	wasEnded = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED
)

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestM27TheLongestStepComesFirstAndTheUnknownBeforeIt(t *testing.T) {
	q := New()
	finish(q, "short", 1, passed, 10)
	finish(q, "long", 1, passed, 500)
	finish(q, "long", 2, passed, 100)
	decide(q, scheduled("b", 1))
	p := &eventsv1.BuildPrepared{Build: "b", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, target := range []string{"short", "new", "long"} {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: target, Hash: "other"})
	}
	q.Apply(p, Origin{})
	expect(t, "order", next(q, 0), "new#1 long#1 short#1")
}

func TestTheMostValuableBuildComesFirst(t *testing.T) {
	q := New()
	decide(q, scheduled("b1", 0.5), scheduled("b2", 9), scheduled("b3", 0.5))
	for _, b := range []string{"b3", "b2", "b1"} {
		prepare(q, b, b, "shared")
	}
	expect(t, "order", next(q, 0), "b2#1 shared#1 b1#1 b3#1")
}

func TestM24WhatIsGreenIsNeverRunAgain(t *testing.T) {
	q := New()
	decide(q, scheduled("b1", 1))
	prepare(q, "b1", "a")
	finish(q, "a", 1, passed, 1)
	if !q.Idle() {
		t.Error("the build is not over")
	}
	decide(q, scheduled("b2", 1))
	prepare(q, "b2", "a", "b")
	expect(t, "what is outstanding", next(q, 0), "b#1")
}

func TestM19aEachKindOfEndHasItsOwnRetries(t *testing.T) {
	q := New()
	decide(q, scheduled("b", 1))
	prepare(q, "b", "a", "keep")
	finish(q, "a", 1, wasEnded, 1)
	finish(q, "a", 2, crashed, 1)
	expect(t, "after an end that is no result", next(q, 0), "a#3 keep#1")
	finish(q, "a", 3, crashed, 1)
	expect(t, "with its retries used up", next(q, 0), "keep#1")
	finish(q, "keep", 1, failed, 1)
	if !q.Idle() {
		t.Error("a red version leaves something to do")
	}
}

func TestWithdrawnEvidenceIsSoughtAgain(t *testing.T) {
	q := New()
	decide(q, scheduled("b", 1))
	prepare(q, "b", "a", "b")
	finish(q, "a", 1, crashed, 1)
	finish(q, "a", 2, crashed, 1)
	expect(t, "with its retries used up", next(q, 0), "b#1")
	q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "c", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}}}}, Origin{})
	q.Apply(&eventsv1.ChangeEjected{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "a", Hash: "h"}, Attempt: 9}}}}, Origin{})
	expect(t, "after it had its effect", next(q, 0), "a#3 b#1")
}

func TestAPredictionFollowsATargetThatBecameSlow(t *testing.T) {
	q := New()
	for attempt := range uint32(1000) {
		finish(q, "a", attempt+1, passed, 10)
	}
	for attempt := range uint32(32) {
		finish(q, "a", 1001+attempt, passed, 1000)
	}
	if got := q.predictedUs("a"); got < 500 {
		t.Errorf("predicted %d µs", got)
	}
}

func TestABuildWithARedVersionWantsNothingMore(t *testing.T) {
	q := New()
	decide(q, scheduled("b1", 1), scheduled("b2", 1))
	prepare(q, "b1", "red", "own", "shared")
	prepare(q, "b2", "shared")
	finish(q, "red", 1, failed, 1)
	expect(t, "what is left", next(q, 0), "shared#1")
	if q.Wants(Version{Target: "own", Hash: "h"}) || !q.Wants(Version{Target: "shared", Hash: "h"}) {
		t.Error("what goes on is not what the other build wants")
	}
}

func TestRunningStepsGoOnUntilTsuccessorHeirIsPrepared(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(q *Queue)
		want bool
	}{
		{"not prepared yet", func(*Queue) {}, true},
		{"it shares the step", func(q *Queue) { prepare(q, "new", "runs", "waits") }, true},
		{"it does not", func(q *Queue) { prepare(q, "new", "else") }, false},
		{"it is aborted", func(q *Queue) { decide(q, aborted("new", "")) }, false},
		{"it has an successor itself", func(q *Queue) { decide(q, scheduled("newer", 1), aborted("new", "newer")) }, true},
		{"whose successor does not share it", func(q *Queue) {
			decide(q, scheduled("newer", 1), aborted("new", "newer"))
			prepare(q, "newer", "else")
		}, false},
	} {
		q := New()
		decide(q, scheduled("old", 1))
		prepare(q, "old", "runs", "waits")
		lease(q, "runs", "l", 10, 100)
		decide(q, scheduled("new", 1), aborted("old", "new"))
		expect(t, c.name+": before", next(q, 50), "")
		c.end(q)
		if got := q.Wants(Version{Target: "runs", Hash: "h"}); got != c.want {
			t.Errorf("%s: wanted %v", c.name, got)
		}
	}
}

func TestOneLeaseHoldsUntilItLapses(t *testing.T) {
	q := New()
	v := Version{Target: "a", Hash: "h"}
	decide(q, scheduled("b", 1))
	prepare(q, "b", "a")
	lease(q, "a", "first", 10, 100)
	lease(q, "a", "second", 100, 200)
	expect(t, "holder at the very end", q.Holder(v, 1), "first")
	expect(t, "free", next(q, 100), "")
	expect(t, "free behind it", next(q, 101), "a#1")
	lease(q, "a", "first", 90, 150)
	lease(q, "a", "third", 120, 220)
	expect(t, "holder after an extension", q.Holder(v, 1), "first")
	lease(q, "a", "third", 151, 251)
	expect(t, "holder after a lapse", q.Holder(v, 1), "third")
	lease(q, "a", "first", 152, 1000)
	expect(t, "holder after a late extension", q.Holder(v, 1), "third")
	finish(q, "a", 1, wasEnded, 1)
	expect(t, "holder after the end", q.Holder(v, 1)+q.Holder(v, 2), "")
	expect(t, "next attempt", next(q, 160), "a#2")
}

func TestThePreparationMayBeReadBeforeTheSchedule(t *testing.T) {
	q := New()
	prepare(q, "b", "a")
	prepare(q, "over", "z")
	decide(q, scheduled("b", 1))
	expect(t, "wanted", next(q, 0), "a#1")
	if q.Early() != 1 {
		t.Errorf("%d early preparations", q.Early())
	}
	if q.ForgetEarly(); q.Early() != 0 {
		t.Error("an early preparation is kept for ever")
	}
}

func TestWhatAStepHasToItselfNobodyElseHas(t *testing.T) {
	q := New()
	claims := []*eventsv1.StepClaims{{Version: 0, Exclusive: []string{"db"}}, {Version: 1, Exclusive: []string{"db", "x"}}, {Version: 2, Resources: []*eventsv1.ResourceAmount{{Name: "memory_gb", Amount: 4}}}}
	versions := []*eventsv1.TargetVersion{{Target: "//a", Hash: "h"}, {Target: "//b", Hash: "h"}, {Target: "//c", Hash: "h"}, {Target: "//d", Hash: "h"}}
	q.Apply(&eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{Build: "b"}}}}}, Origin{})
	q.Apply(&eventsv1.BuildPrepared{Build: "b", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: versions, Claims: claims}, Origin{})
	a, b := Version{Target: "//a", Hash: "h"}, Version{Target: "//b", Hash: "h"}
	next := func(now int64, taken func(Version) bool, room int64) string {
		var names []string
		for _, s := range q.Next(now, 10, taken, func(amounts []*eventsv1.ResourceAmount) bool { return amounts[0].Amount <= room }) {
			names = append(names, s.Target)
		}
		return strings.Join(names, " ")
	}
	lease := func(v Version, id string, stamp, until int64, names ...string) {
		q.Apply(&eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: 1, Lease: id, StampUs: stamp, UntilUs: until, Exclusive: names}, Origin{})
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("at first, one of two", next(0, nil, 4), "//a //c //d")
	expect("without room the others go on", next(0, nil, 3), "//a //d")
	expect("while this process tries to get it", next(0, func(v Version) bool { return v == b }, 4), "//c //d")
	lease(a, "1", 0, 10, "db")
	expect("while it is leased", next(10, nil, 4), "//c //d")
	lease(b, "2", 10, 20, "db", "x")
	expect("a second lease", q.Holder(b, 1), "")
	expect("once it has lapsed", next(11, nil, 4), "//a //c //d")
	lease(b, "2", 11, 20, "db", "x")
	expect("the one that takes over", q.Holder(b, 1), "2")
	expect("the one that let it lapse", q.Holder(a, 1), "")
	lease(a, "1", 12, 30, "db")
	expect("which extends it too late", q.Holder(a, 1), "")
	restored, err := Restore(q.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	q = restored
	expect("after a restart", next(12, nil, 4), "//c //d")
	q.Apply(&eventsv1.StepFinished{Target: "//b", Hash: "h", Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}, Origin{})
	expect("when it has ended", next(12, nil, 4), "//a //c //d")
}
