package profile_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/engine/profile"
	"landfall.build/engine/speculation"
	eventsv1 "landfall.build/events/v1"
)

// line is enumerator and profiler in a row: a fact goes in, the profile comes out.
type line struct {
	t       *testing.T
	graph   *speculation.Queue
	profile *profile.Profile
	stamp   int64
	facts   int64
	log     []*eventsv1.Speculation
	written []*eventsv1.Profile
}

func newLine(t *testing.T) *line {
	l := &line{t: t, graph: speculation.New(), profile: profile.New(), stamp: predictiontest.Until}
	l.fact(&eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{
		Hash: "s", Workers: 8, Steps: &eventsv1.StepPolicy{}, PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000}}})
	l.say(&eventsv1.MainlineMoved{To: "m0", Initial: true})
	return l
}

func (l *line) say(m proto.Message) *eventsv1.Profile {
	l.t.Helper()
	f, ok := speculation.FactOf(m)
	if !ok {
		l.t.Fatalf("%T is no fact", m)
	}
	return l.fact(f)
}

func (l *line) fact(f *eventsv1.Fact) *eventsv1.Profile {
	l.facts++
	l.stamp += 1_000_000
	l.graph.Apply(f, l.facts)
	delta := l.graph.Decide()
	l.graph.Fold(delta)
	return l.speculation(f, delta)
}

func (l *line) speculation(f *eventsv1.Fact, delta *eventsv1.GraphDelta) *eventsv1.Profile {
	s := &eventsv1.Speculation{StampUs: l.stamp, Facts: []*eventsv1.Fact{f}, Delta: delta}
	l.profile.Apply(s)
	p := l.profile.Decide()
	if p != nil {
		l.profile.Fold(p)
	}
	l.log, l.written = append(l.log, s), append(l.written, p)
	return p
}

// change is admitted and analysed: it affects these targets.
func (l *line) change(id string, targets ...string) *eventsv1.Profile {
	l.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: id, Revision: 1, Benefit: 1, Author: "Ada", LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
	a := &eventsv1.Affected{}
	for _, t := range targets {
		a.Targets = append(a.Targets, &eventsv1.TargetVersion{Target: t, Hash: t + "{" + id + "}", Part: 1})
	}
	return l.say(&eventsv1.ChangeAnalyzed{Change: at(id), Base: "m0", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: a})
}

func at(id string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: 1} }

func (l *line) build(id, base string, assumed []string, of string, outcome eventsv1.StepOutcome, targets ...string) *eventsv1.Profile {
	p := &eventsv1.BuildPrepared{Build: id, Change: at(of), Base: base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, a := range assumed {
		p.Assumed = append(p.Assumed, at(a))
	}
	for _, t := range targets {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t, Hash: t + "{" + strings.Join(append(assumed, of), "+") + "}", Part: 1})
	}
	l.say(p)
	var last *eventsv1.Profile
	for _, v := range p.Versions {
		last = l.say(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: outcome, Build: id, StartedUs: l.stamp - 30_000_000, FinishedUs: l.stamp})
	}
	return last
}

func (l *line) promote(m *eventsv1.Model) *eventsv1.Profile {
	return l.say(&eventsv1.ModelPromoted{Model: m, Who: "trainer"})
}

func of(p *eventsv1.Profile, id string) *eventsv1.Prediction {
	for _, q := range p.GetPredictions() {
		if q.Change.Change == id {
			return q
		}
	}
	return nil
}

// TestPredictionsComeFromTheModelThatIsInUse: from the prior to a model and back without a restart; each names its version,
// and holds the vector that it was made from.
func TestPredictionsComeFromTheModelThatIsInUse(t *testing.T) {
	l := newLine(t)
	prior := of(l.change("a", "//x", "//y"), "a")
	if prior.GetSuccessSource() != "prior" || prior.Success != 0.9 || len(prior.Features) != len(features.OfChange()) || prior.Schema != features.Version {
		t.Fatalf("before there is a model: %v", prior)
	}
	m := predictiontest.Success(t, 5)
	p := l.promote(m)
	first := of(p, "a")
	if first == nil || first.SuccessSource != "success-"+m.Version[:12] || first.Success == 0.9 {
		t.Fatalf("with the model: %v", p)
	}
	if len(p.Models) != 1 || p.Models[0].Version != m.Version || p.Models[0].Trouble != "" {
		t.Errorf("what is in use is not said: %v", p.Models)
	}
	opened, err := prediction.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := opened.Probability(first.Features); err != nil || again != first.Success {
		t.Errorf("of the vector in the event the model says %v, the event %v", again, first.Success)
	}
	after := of(l.build("b1", "m0", nil, "a", eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "//x"), "a")
	if after == nil || after.Features[features.IndexOfChange("builds_failed")] != 1 || !(after.Success < first.Success) {
		t.Errorf("after a failed build: %v, before it %v", after, first.Success)
	}
	back := l.say(&eventsv1.ModelRolledBack{Kind: m.Kind, Version: m.Version})
	if q := of(back, "a"); q.GetSuccessSource() != "prior, and its builds" || len(back.Models) != 1 || back.Models[0].Version != "" {
		t.Errorf("rolled back: %v", back)
	}
}

func lastOf(l *line, id string) (last *eventsv1.Prediction) {
	for _, p := range l.written {
		if q := of(p, id); q != nil {
			last = q
		}
	}
	return last
}

// TestWhatCameTrueOfAPairIsWritten: red with one ahead, green without; and green with both.
func TestWhatCameTrueOfAPairIsWritten(t *testing.T) {
	l := newLine(t)
	l.change("a", "//x")
	l.change("b", "//y")
	l.change("c", "//x", "//y")
	l.build("b0", "m0", nil, "c", eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "//x", "//y")
	l.build("b1", "m0", []string{"a"}, "c", eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "//x")
	l.build("b2", "m0", []string{"b"}, "c", eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "//y")
	seen := map[string]bool{}
	for _, p := range l.written {
		for _, o := range p.GetObserved() {
			if _, twice := seen[o.Ahead.Change]; twice || o.Behind.Change != "c" {
				t.Errorf("observed: %v", o)
			}
			seen[o.Ahead.Change] = o.Conflict
		}
	}
	if len(seen) != 2 || !seen["a"] || seen["b"] {
		t.Errorf("%v", seen)
	}
}

// TestAModelThatCannotBeUsedFallsBackToPriorsAndIsNamed: and a good one after it is used, and the queue has gone on.
func TestAModelThatCannotBeUsedFallsBackToPriorsAndIsNamed(t *testing.T) {
	good := predictiontest.Success(t, 5)
	spoil := func(f func(m *eventsv1.Model)) *eventsv1.Model {
		m := proto.CloneOf(good)
		f(m)
		return m
	}
	old := spoil(func(m *eventsv1.Model) { m.Card.DataUntilUs -= 200 * 24 * 3600 * 1_000_000 })
	for name, x := range map[string]struct {
		m    *eventsv1.Model
		says string
	}{
		"truncated": {spoil(func(m *eventsv1.Model) { m.Predictor = m.Predictor[:40] }), "corrupt"},
		"old":       {prediction.Seal(old), "too old"},
		"other":     {prediction.Seal(spoil(func(m *eventsv1.Model) { m.Features[0] = "horoscope" })), "horoscope"},
	} {
		l := newLine(t)
		l.change("a", "//x")
		p := l.promote(x.m)
		if len(p.GetModels()) != 1 || p.Models[0].Version != x.m.Version || !strings.Contains(p.Models[0].Trouble, x.says) {
			t.Errorf("%s: %v", name, p.GetModels())
		}
		if q := lastOf(l, "a"); q.SuccessSource != "prior" || q.Success != 0.9 {
			t.Errorf("%s: %v", name, q)
		}
		if q := of(l.change("b", "//x"), "b"); q.GetSuccessSource() != "prior" {
			t.Errorf("%s: the queue does not go on: %v", name, q)
		}
		if p := l.promote(good); len(p.Models) != 1 || p.Models[0].Trouble != "" || of(p, "a").GetSuccessSource() == "prior" {
			t.Errorf("%s: a good one after it: %v", name, p)
		}
	}
}

// TestAnAbsurdModelIsNotAskedTwice: what it said is not in the log, and it is out of use from the record on that says so.
func TestAnAbsurdModelIsNotAskedTwice(t *testing.T) {
	l := newLine(t)
	l.change("a", "//x")
	l.build("b0", "m0", nil, "a", eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "//x") // a median
	absurd := predictiontest.Duration(t, 1, 1e9)
	p := l.promote(absurd)
	for p.Models == nil && len(l.log) < 12 { // it has to be asked with a vector that has the median
		p = l.build(fmt.Sprint("b", len(l.log)), "m0", nil, "a", eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "//x")
	}
	l.change("b", "//x")
	var told []*eventsv1.ModelUse
	for _, p := range l.written {
		told = append(told, p.GetModels()...)
		for _, q := range p.GetPredictions() {
			if q.DurationMeanUs > 1e9 || strings.HasPrefix(q.DurationSource, "duration-") {
				t.Errorf("an absurd prediction is in the log: %v", q)
			}
		}
	}
	if last := told[len(told)-1]; !strings.Contains(last.Trouble, "cannot be") || last.Version != absurd.Version {
		t.Errorf("told: %v", told)
	}
}

// TestTheSameLogGivesTheSameProfilesAndGoesOnTheSame: a profile that folded what was written up to any record writes what the
// first one wrote behind it.
func TestTheSameLogGivesTheSameProfilesAndGoesOnTheSame(t *testing.T) {
	l := newLine(t)
	l.change("a", "//x", "//y")
	l.promote(predictiontest.Success(t, 5))
	l.change("b", "//x")
	l.promote(predictiontest.Conflict(t, 5))
	l.build("b0", "m0", nil, "a", eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "//x", "//y")
	l.promote(predictiontest.Duration(t, 1, 1))
	l.change("c", "//x", "//z")
	l.promote(predictiontest.Duration(t, 1, 1e9))
	l.build("b1", "m0", []string{"a"}, "b", eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "//x")
	l.say(&eventsv1.LandIntended{Change: at("a"), Decision: "a", Base: "m0", Commits: []string{"m1"}})
	l.say(&eventsv1.LandIntended{Change: at("a"), Base: "m0", Commits: []string{"m1"}, Tree: "t1"})
	l.say(&eventsv1.ChangeLanded{Change: at("a"), Decision: "a", Base: "m0", Commits: []string{"m1"}})
	l.say(&eventsv1.ModelRolledBack{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS})
	l.change("d", "//y")
	for from := range l.log {
		p := profile.New()
		for i, s := range l.log {
			p.Apply(s)
			if i >= from {
				got := p.Decide()
				if !proto.Equal(got, l.written[i]) {
					t.Fatalf("folded up to record %d, record %d is\n%v\nand was\n%v", from, i, got, l.written[i])
				}
			}
			if l.written[i] != nil {
				p.Fold(l.written[i])
			}
		}
	}
}

// TestM32WithoutAModelTheQueuesLastChangesAndBuildsMoveThePriors: two changes pass and land, one fails and is rejected, and what
// comes next is expected by that; a change that was taken back says nothing.
func TestM32WithoutAModelTheQueuesLastChangesAndBuildsMoveThePriors(t *testing.T) {
	l := newLine(t)
	if q := of(l.change("none", "//n"), "none"); q.SuccessSource != "prior" || q.DurationSource != "prior" || q.Success != 0.9 || q.DurationMeanUs != 60e6 {
		t.Fatalf("before anything has ended: %v", q)
	}
	l.say(&eventsv1.ChangeCancelled{Change: "none", Revision: 1})
	if q := of(l.change("a", "//a"), "a"); q.SuccessSource != "prior" || q.Success != 0.9 {
		t.Errorf("after a change was taken back: %v", q)
	}
	l.build("ba", "m0", nil, "a", eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "//a")
	l.say(&eventsv1.LandIntended{Change: at("a"), Base: "m0", Commits: []string{"m1"}, Tree: "t1"})
	l.say(&eventsv1.ChangeLanded{Change: at("a"), Base: "m0", Commits: []string{"m1"}, Tree: "t1"})
	l.change("b", "//b")
	l.build("bb", "m1", nil, "b", eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "//b")
	l.say(&eventsv1.ChangeRejected{Change: at("b"), Base: "m1", Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED}})
	q := of(l.change("c", "//c"), "c")
	if q == nil || q.SuccessSource != "queue" || math.Abs(q.Success-10.0/12) > 1e-12 {
		t.Errorf("after one landed and one was rejected: %v, want a success of 10/12", q)
	}
	// One build that passed took 30 s or so: the prior of 60 s counts as five.
	if q == nil || q.DurationSource != "queue" || !(q.DurationMeanUs > 45e6 && q.DurationMeanUs < 59e6) {
		t.Errorf("after a build of 30 s: %v", q)
	}
	if q := of(l.change("again", "//a"), "again"); q == nil || q.DurationSource != "targets" {
		t.Errorf("a target that ran: %v", q)
	}
}
