package steps

import (
	"fmt"
	"slices"
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

// prepareWith is a tree whose versions have other hashes than those that finish names, and depend on each other as needs has it.
func prepareWith(q *Queue, build string, needs map[string][]string, targets ...string) {
	p := &eventsv1.BuildPrepared{Build: build, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, target := range targets {
		n := &eventsv1.VersionNeeds{}
		for _, of := range needs[target] {
			n.Versions = append(n.Versions, uint32(slices.Index(targets, of)))
		}
		p.Versions, p.Needs = append(p.Versions, &eventsv1.TargetVersion{Target: target, Hash: "other"}), append(p.Needs, n)
	}
	q.Apply(p, Origin{})
}

func TestM34TheLongestStepComesFirstAndTheUnknownLastsAsLongAsOthers(t *testing.T) {
	q := New()
	finish(q, "short", 1, passed, 10)
	finish(q, "long", 1, passed, 500)
	finish(q, "long", 2, passed, 100)
	decide(q, scheduled("b", 1))
	prepareWith(q, "b", nil, "short", "new", "long")
	expect(t, "order", next(q, 0), "long#1 new#1 short#1")
}

func TestM34TheLongestChainOfStepsComesFirst(t *testing.T) {
	q := New()
	for target, took := range map[string]int64{"lib": 100, "svc": 500, "web": 400, "odd": 550} {
		for attempt := range uint32(50) {
			finish(q, target, attempt+1, passed, took*1000)
		}
	}
	decide(q, scheduled("b", 1))
	prepareWith(q, "b", map[string][]string{"web": {"lib"}, "svc": {"lib"}}, "odd", "web", "svc", "lib")
	expect(t, "what is ready, then what waits for a dependency", next(q, 0), "lib#1 odd#1 svc#1 web#1")
	q.Apply(&eventsv1.StepLeased{Target: "lib", Hash: "other", Attempt: 1, Lease: "l", UntilUs: 100}, Origin{})
	if list := q.Next(0, 9, nil, nil); !list[0].Rank.Ready || list[1].Rank.Ready || list[1].Target != "svc" {
		t.Errorf("while lib runs: %+v", list)
	}
	q.Apply(&eventsv1.StepFinished{Target: "lib", Hash: "other", Attempt: 1, Outcome: passed}, Origin{})
	if list := q.Next(0, 9, nil, nil); list[0].Target != "odd" || !list[1].Rank.Ready {
		t.Errorf("once lib has passed: %+v", list)
	}
}

func TestM34ALargeBuildLooksForAFailureAndEndsWithItsLongestChains(t *testing.T) {
	q := New()
	decide(q, scheduled("b", 1))
	var targets []string
	for i := range 40 {
		name := fmt.Sprintf("t%02d", i)
		targets = append(targets, name)
		for attempt := range uint32(30) {
			finish(q, name, attempt+1, passed, int64(1+i)*1000) // they fail equally often
		}
	}
	prepareWith(q, "b", nil, targets...)
	list := strings.Fields(next(q, 0))
	// The twenty longest take about 21 to 40, together at most sixteen times 40; with the next two they would take more.
	short, long := list[:20], list[20:]
	slices.Reverse(long)
	if len(list) != 40 || short[0] != "t00#1" || long[0] != "t20#1" || !slices.IsSorted(short) || !slices.IsSorted(long) {
		t.Errorf("order: %v", list)
	}
}

func TestACycleOfDependenciesIsRunAllTheSame(t *testing.T) {
	q := New()
	decide(q, scheduled("b", 1))
	prepareWith(q, "b", map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}}, "a", "b", "c")
	if list := q.Next(0, 9, nil, nil); len(list) != 3 {
		t.Errorf("%d of 3 steps", len(list))
	}
}

func TestM34WhatProbablyFailsComesFirstByFailuresPerSecond(t *testing.T) {
	q := New()
	for attempt := range uint32(40) {
		for _, target := range []string{"bad-long", "bad-short", "good"} {
			outcome := failed
			if target == "good" || attempt%4 == 0 {
				outcome = passed
			}
			finish(q, target, attempt+1, outcome, map[string]int64{"bad-long": 900_000, "bad-short": 90_000, "good": 5_000_000}[target])
		}
	}
	decide(q, scheduled("b", 1))
	prepareWith(q, "b", nil, "good", "bad-long", "bad-short")
	expect(t, "order", next(q, 0), "bad-short#1 bad-long#1 good#1")
}

func TestM34ARetryOfWhatFailedComesBeforeWhatProbablyPasses(t *testing.T) {
	q := New()
	b := scheduled("b", 1)
	b.GetBuildScheduled().Steps.FailedRetries = 1
	decide(q, b)
	prepare(q, "b", "a", "b", "c")
	finish(q, "b", 1, failed, 1)
	expect(t, "order", next(q, 0), "b#2 a#1 c#1")
}

func TestM33LessWorkForTheSameWorthComesFirst(t *testing.T) {
	q := New()
	decide(q, scheduled("large", 1), scheduled("small", 1), scheduled("speculative", 0.1))
	prepare(q, "large", "l1", "l2", "l3", "l4")
	prepare(q, "small", "s1")
	prepare(q, "speculative", "p1")
	expect(t, "order", next(q, 0), "s1#1 l1#1 l2#1 l3#1 l4#1 p1#1")
}

func TestM33AVersionThatSeveralBuildsWantIsWorthTheirSum(t *testing.T) {
	q := New()
	decide(q, scheduled("alone", 0.3), scheduled("b1", 0.2), scheduled("b2", 0.2))
	for _, b := range []string{"alone", "b1", "b2"} {
		prepare(q, b, map[string]string{"alone": "own", "b1": "shared", "b2": "shared"}[b])
	}
	expect(t, "order", next(q, 0), "shared#1 own#1")
}

func TestM33WhoHasWaitedLongComesFirst(t *testing.T) {
	q := New()
	decide(q, scheduled("large", 1))
	prepare(q, "large", "l1", "l2")
	late := 9 * patience * int64(priorUs)
	q.Apply(&eventsv1.Decision{StampUs: late, Items: []*eventsv1.DecisionItem{scheduled("small", 1)}}, Origin{})
	prepare(q, "small", "s1")
	expect(t, "order", next(q, late), "l1#1 l2#1 s1#1")
}

func TestM33ABuildCountsForWhatItIsWorthNow(t *testing.T) {
	q := New()
	decide(q, scheduled("b1", 0.5), scheduled("b2", 0.4))
	prepare(q, "b1", "a")
	prepare(q, "b2", "b")
	expect(t, "as scheduled", next(q, 0), "a#1 b#1")
	decide(q, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildRevalued{BuildRevalued: &eventsv1.BuildRevalued{Build: "b2", Value: 1}}})
	expect(t, "since it is worth more", next(q, 0), "b#1 a#1")
}

func TestM35AChangeThatWasMovedToTheFrontComesFirst(t *testing.T) {
	q := New()
	admit := func(name string) {
		q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: name, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}}}}, Origin{})
		s := scheduled("b-"+name, 1)
		s.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: name, Revision: 1}}
		decide(q, s)
	}
	admit("small")
	admit("hotfix")
	prepare(q, "b-small", "s1")
	prepare(q, "b-hotfix", "h1", "h2", "h3")
	expect(t, "at first", next(q, 0), "s1#1 h1#1 h2#1 h3#1")
	q.Apply(&eventsv1.ChangeMoved{Change: "hotfix"}, Origin{})
	expect(t, "moved to the front", next(q, 0), "h1#1 h2#1 h3#1 s1#1")
	q = restored(t, q)
	expect(t, "after a restart", next(q, 0), "h1#1 h2#1 h3#1 s1#1")
}

func TestM35StepsOfLeastRankAreEndedForUrgentOnesAndNoneThatIsNearItsEnd(t *testing.T) {
	q := New()
	q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "hotfix", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}}}}, Origin{})
	hotfix := scheduled("hotfix", 1)
	hotfix.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: "hotfix", Revision: 1}}
	decide(q, scheduled("small", 1), scheduled("large", 1), scheduled("speculative", 0.01), hotfix)
	prepare(q, "small", "s")
	prepare(q, "large", "l1", "l2", "l3", "l4")
	prepare(q, "speculative", "p")
	prepare(q, "hotfix", "h1", "h2")
	q.Apply(&eventsv1.ChangeMoved{Change: "hotfix"}, Origin{})
	now := int64(priorUs)
	var running []Running
	for target, part := range map[string]float64{"s": 0.5, "l1": 0.5, "l2": 0.9, "l3": 2, "p": 0.1, "h1": 0.1, "gone": 0.1} {
		running = append(running, Running{[]Version{{Target: target, Hash: "h"}}, now - int64(part*priorUs)})
	}
	var names []string
	for _, r := range q.Preemptible(now, running) {
		names = append(names, r.Versions[0].Target)
	}
	expect(t, "to be ended", strings.Join(names, " "), "p l1 l3 s")
}

func TestM33AnEstimateIsDrawnTowardsThePackageAndTheQueue(t *testing.T) {
	e := newEstimates()
	add := func(target string, n int, tookUs int64, outcome eventsv1.StepOutcome) {
		for range n {
			e.add(&eventsv1.StepFinished{Target: target, Outcome: outcome, FinishedUs: tookUs})
		}
	}
	if got := e.durationUs("//a:x"); got != priorUs {
		t.Errorf("before anything ran: %d", got)
	}
	add("//a:x", 16, 1000, passed)
	add("//b:y", 16, 9000, passed)
	own, pkg, queue := e.durationUs("//a:x"), e.durationUs("//a:new"), e.durationUs("//c:new")
	if !(1000 < own && own < pkg && pkg < queue && queue < 9000) {
		t.Errorf("of the target %d, its package %d, the queue %d: they are not drawn towards each other", own, pkg, queue)
	}
	add("//a:x", 16, 0, failed)
	if x, new, other := e.failureRate("//a:x"), e.failureRate("//a:new"), e.failureRate("//b:y"); !(x > new && new > other && x > 0.6) {
		t.Errorf("failure rates: %v of the target, %v of a neighbour, %v elsewhere", x, new, other)
	}
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

func TestAnEstimateFollowsATargetThatBecameSlow(t *testing.T) {
	q := New()
	for attempt := range uint32(1000) {
		finish(q, "a", attempt+1, passed, 10)
	}
	for attempt := range uint32(32) {
		finish(q, "a", 1001+attempt, passed, 1000)
	}
	if got := q.estimates.durationUs("a"); got < 500 {
		t.Errorf("estimated %d µs", got)
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

func TestRunningStepsGoOnUntilTheSuccessorIsPrepared(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(q *Queue)
		want bool
	}{
		{"not prepared yet", func(*Queue) {}, true},
		{"it shares the step", func(q *Queue) { prepare(q, "new", "runs", "waits") }, true},
		{"it does not", func(q *Queue) { prepare(q, "new", "else") }, false},
		{"it is aborted", func(q *Queue) { decide(q, aborted("new", "")) }, false},
		{"it has a successor itself", func(q *Queue) { decide(q, scheduled("newer", 1), aborted("new", "newer")) }, true},
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
	next := func(now int64, taken []Version, room int64) string {
		var names []string
		for _, s := range q.Next(now, 10, taken, func(c *eventsv1.StepClaims) bool { return c.Resources[0].Amount <= room }) {
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
	expect("while this process tries to get it", next(0, []Version{b}, 4), "//c //d")
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

// firstIsLate reports whether the first step of the list is handed out because its build has had too little.
func firstIsLate(q *Queue, now int64) bool {
	list := q.Next(now, 1, nil, nil)
	return len(list) > 0 && list[0].Rank.Late
}

// endless has workers deliver work for a build that does not end, from one time to another.
func endless(q *Queue, attempt uint32, from, until int64) {
	q.Apply(&eventsv1.StepFinished{Target: "endless", Hash: "other", Attempt: attempt, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT,
		StartedUs: from, FinishedUs: until}, Origin{})
}

func patient(build string, value float64) *eventsv1.DecisionItem {
	s := scheduled(build, value)
	s.GetBuildScheduled().Steps = &eventsv1.StepPolicy{TimedOutRetries: 100}
	return s
}

func TestM33aABuildOfLittleWorthHasLittleOfTheWorkers(t *testing.T) {
	for _, worth := range []float64{1, 0.1} {
		q := New()
		decide(q, patient("endless", 1), patient("b", worth))
		prepareWith(q, "endless", nil, "endless")
		prepareWith(q, "b", nil, "step")
		endless(q, 1, 0, 40*second) // sharing is through with 10 s of worth 1 after 20 s, of worth 0.1 after 110
		if got := firstIsLate(q, 45*second); got != (worth == 1) {
			t.Errorf("worth %g: late %v", worth, got)
		}
		endless(q, 2, 40*second, 120*second)
		if firstIsLate(q, 120*second) != (worth == 1) || !firstIsLate(q, 230*second) {
			t.Errorf("worth %g: late %v at 120 s, %v at 230 s", worth, firstIsLate(q, 120*second), firstIsLate(q, 230*second))
		}
	}
}

func TestM33aASuccessorTakesOverWhatItsBuildIsOwed(t *testing.T) {
	for _, successor := range []string{"", "next"} {
		q := New()
		decide(q, patient("endless", 1), patient("b", 1))
		prepareWith(q, "endless", nil, "endless")
		prepareWith(q, "b", nil, "step")
		endless(q, 1, 0, 40*second)
		decide(q, patient("next", 1), aborted("b", successor))
		prepareWith(q, "next", nil, "step")
		endless(q, 2, 40*second, 41*second)
		if got := firstIsLate(q, 45*second); got != (successor != "") {
			t.Errorf("superseded by %q: late %v", successor, got)
		}
	}
}

func TestAClockThatIsYearsAheadMakesNoWorkOfYears(t *testing.T) {
	q := New()
	decide(q, patient("endless", 1), patient("b", 1))
	prepareWith(q, "endless", nil, "endless")
	prepareWith(q, "b", nil, "step")
	endless(q, 1, 0, 1<<62)
	endless(q, 2, 1<<62, 0)
	if got := q.live["endless"].share.gotUs; got != mostWorkUs {
		t.Errorf("%d us were done", got)
	}
}
