package speculation

import (
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func surveyOf(commit string, targets ...string) *eventsv1.MainlineSurveyed {
	f := &eventsv1.MainlineSurveyed{Commit: commit}
	for _, t := range targets {
		f.Targets = append(f.Targets, &eventsv1.TargetVersion{Target: t, Hash: t + "@m0"})
	}
	return f
}

func finished(target, hash string, outcome eventsv1.StepOutcome) *eventsv1.StepFinished {
	return &eventsv1.StepFinished{Target: target, Hash: hash, Attempt: 1, Outcome: outcome}
}

const (
	passed   = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed   = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	timedOut = eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT
)

// asked returns the targets that the next idle build is to prove, and how many are left.
func (q *testQueue) asked() (targets []string, unproven uint32) {
	return namesOf(q.published.survey.GetTargets()), q.published.survey.GetUnproven()
}

// M23b: each target that the mainline had before the queue is asked for until it has a result, a landing or a push. A red one is
// reported as red on the mainline, though no change has failed in it.
func TestM23bTheMainlinesTargetsAreAskedForUntilTheyAreSettled(t *testing.T) {
	q := newTestQueue(t)
	q.say(surveyOf("m0", "green", "red", "slow", "landed", "pushed", "doubted", "last"))
	if targets, unproven := q.asked(); len(targets) != 7 || unproven != 7 {
		t.Fatalf("%v are asked for, %d unproven", targets, unproven)
	}
	left := func(why string, want uint32) {
		t.Helper()
		if _, unproven := q.asked(); unproven != want {
			t.Fatalf("%s: %d are unproven, want %d", why, unproven, want)
		}
	}
	q.say(finished("green", "green@m0", passed))
	left("one passed", 6)
	q.say(finished("red", "another version", failed))
	left("another version failed", 6)
	q.say(finished("red", "red@m0", failed))
	left("one failed", 5)
	n := q.published.check
	if n == nil || len(n.Classes) != 1 || n.Classes[0].Outcomes[0].State != eventsv1.OutcomeState_OUTCOME_STATE_RED || len(n.Inherited) != 1 || n.Inherited[0] != "red" {
		t.Fatalf("the mainline's own node is %v", n)
	}
	q.say(finished("slow", "slow@m0", timedOut))
	left("one took too long", 4)

	c := q.enter("c", "m0", "red", "red@c")
	q.prepare(c, "m0", "red", "red@c", false)
	q.say(finished("red", "red@c", failed))
	if o := q.published.nodes["c"].Classes[0].Outcomes; len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED {
		t.Fatalf("a change that fails where the mainline does has %v", o)
	}

	l := q.enter("l", "m0", "landed", "landed@l")
	q.say(&eventsv1.LandIntended{Change: l, Commits: []string{"m1"}})
	q.say(&eventsv1.ChangeLanded{Change: l, Commits: []string{"m1"}, Proof: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "landed", Hash: "landed@l"}}}})
	left("one was landed over", 3)
	q.say(&eventsv1.Refused{Change: c, Base: "m1", Decision: "d", BaseUnproven: []*eventsv1.TargetVersion{{Target: "doubted", Hash: "doubted@m0"}}})
	left("the guard asked for one", 2)
	q.say(&eventsv1.MainlineMoved{From: "m1", To: "m2"})
	q.say(&eventsv1.MainlineAnalyzed{From: "m1", To: "m2", Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "pushed", Hash: "pushed@m2", Part: 1}}}})
	left("one was pushed over", 1)
	if targets, _ := q.asked(); len(targets) != 1 || targets[0] != "last" {
		t.Fatalf("%v are asked for", targets)
	}
	q.say(&eventsv1.MainlineMoved{From: "m2", To: "m3", Forced: true})
	q.say(&eventsv1.MainlineAnalyzed{From: "m2", To: "m3", Affected: &eventsv1.Affected{All: true, Targets: []*eventsv1.TargetVersion{{Target: WholeRepository, Hash: "m3", Part: 1}}}})
	left("the mainline was rewritten", 0)
}

func TestM23bASurveyOfAnotherHeadDoesNotCount(t *testing.T) {
	q := newTestQueue(t)
	q.say(surveyOf("before", "a"))
	if q.published.survey != nil {
		t.Fatalf("what is left is %v", q.published.survey)
	}
	q.say(surveyOf("m0", "b"))
	q.say(surveyOf("m0", "c"))
	if targets, _ := q.asked(); len(targets) != 1 || targets[0] != "b" {
		t.Fatalf("%v are asked for, want those of the first survey of the head", targets)
	}
}

// M23b: once trees are read in another way, nothing that was found in them counts: a change is analysed and built again, also what was
// red on the mainline has another version, and what is green under its version stays so.
func TestM23bWhatWasFoundInTreesIsForgottenWithAnotherReading(t *testing.T) {
	q := newTestQueue(t)
	survey := func(reading string, versions ...string) *eventsv1.MainlineSurveyed {
		f := surveyOf("m0")
		f.Reading, f.Targets, f.Whole = reading, versionsOf(versions...), &eventsv1.TargetVersion{Target: WholeRepository, Hash: reading}
		return f
	}
	q.say(survey("old", "a", "a@old", "b", "b@old", "same", "same@m0"))
	q.say(finished("a", "a@old", failed))
	q.say(finished("same", "same@m0", passed))
	c := q.enter("c", "m0", "b", "b@c")
	q.prepare(c, "m0", "b", "b@c", false)
	q.say(finished("b", "b@c", failed))
	l := q.enter("l", "m0", "a", "a@l")
	q.prepare(l, "m0", "a", "a@l", false)
	if red := q.pushes.Red(q.known.ledger, q.settings.GetSteps()); len(red) != 1 || red[0].Hash != "a@old" {
		t.Fatalf("red on the mainline is %v", red)
	}
	q.say(survey("old", "a", "a@new"))
	if !q.published.nodes["c"].Analyzed {
		t.Fatal("a survey with the same reading voids analyses")
	}

	q.say(&eventsv1.LandIntended{Change: l, Commits: []string{"m1"}})
	early := survey("new", "a", "a@new")
	early.Again = true
	q.say(early)
	if !q.published.nodes["c"].Analyzed {
		t.Fatal("a survey voids analyses while a landing is intended that is proven by the reading before")
	}
	q.say(&eventsv1.LandVoid{Change: l, Commit: "m1"})

	q.take(survey("new", "a", "a@new", "b", "b@new", "same", "same@m0"))
	d := q.Decide()
	if len(d.Builds) != 1 || d.Builds[0].Change.GetChange() != "l" || d.Builds[0].State != eventsv1.BuildState_BUILD_STATE_OUTDATED {
		t.Fatalf("of builds it says %v", d.Builds)
	}
	q.Fold(d)
	for _, id := range []string{"c", "l"} {
		if n := q.published.nodes[id]; n.Analyzed {
			t.Errorf("%s is still analysed: %v", id, n)
		}
	}
	if red := q.pushes.Red(q.known.ledger, q.settings.GetSteps()); len(red) != 0 {
		t.Fatalf("red on the mainline is %v", red)
	}
	if want := q.pushes.Unproven(q.known.ledger, q.settings.GetSteps()); len(want) != 1 || want[0].Hash != "a@new" {
		t.Fatalf("to be proven on the mainline is %v", want)
	}
	if targets, unproven := q.asked(); len(targets) != 1 || targets[0] != "b" || unproven != 1 {
		t.Fatalf("%v are asked for, %d unproven", targets, unproven)
	}
	q.say(&eventsv1.ChangeAnalyzed{Change: c, Base: "m0", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: &eventsv1.Affected{Targets: versionsOf("b", "b@c new")}})
	if n := q.published.nodes["c"]; !n.Analyzed || len(q.outcomes("c")) != 0 {
		t.Fatalf("analysed again it is %v", n)
	}
}

// A queue that proves the base only when something needs it counts what is unproven, and asks for nothing.
func TestM23bNothingIsAskedForWhereTheBaseIsProvenWhenNeeded(t *testing.T) {
	q := newTestQueue(t)
	q.say(surveyOf("m0", "a", "b"))
	q.say(&eventsv1.QueueSettings{Hash: "when needed", Steps: &eventsv1.StepPolicy{}, ProveWhenNeeded: true})
	if targets, unproven := q.asked(); len(targets) != 0 || unproven != 2 {
		t.Fatalf("%v are asked for, %d are unproven", targets, unproven)
	}
	q.say(&eventsv1.QueueSettings{Hash: "idle", Steps: &eventsv1.StepPolicy{}})
	if targets, _ := q.asked(); len(targets) != 2 {
		t.Fatalf("%v are asked for", targets)
	}
}

// A head that cannot be prepared is not built over and over.
func TestM23bAHeadThatCannotBePreparedIsLeftAlone(t *testing.T) {
	q := newTestQueue(t)
	q.say(surveyOf("m0", "a"))
	for i := range maxFailedChecks {
		if targets, _ := q.asked(); len(targets) != 1 {
			t.Fatalf("after %d failures %v are asked for", i, targets)
		}
		q.say(&eventsv1.BuildPrepared{Build: string(rune('a' + i)), Change: &eventsv1.ChangeRef{}, Base: "m0", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE})
	}
	if targets, unproven := q.asked(); len(targets) != 0 || unproven != 1 {
		t.Fatalf("%v are asked for, %d are unproven", targets, unproven)
	}
	q.say(&eventsv1.Tick{})
	if targets, _ := q.asked(); len(targets) != 1 {
		t.Fatalf("after a tick %v are asked for", targets)
	}
}
