package view_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

const (
	stepPassed = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	stepFailed = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	red        = eventsv1.OutcomeState_OUTCOME_STATE_RED
	blocked    = eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED
)

// blame is a queue in which things fail.
type blame struct {
	*testing.T
	*apitest.Backend
	// says is the first line of steps that fail, if they say something else than usual.
	says string
}

func newBlame(t *testing.T, changes ...string) *blame {
	b := &blame{T: t, Backend: apitest.New(main)}
	for _, c := range changes {
		if _, err := b.Land(context.Background(), &eventsv1.LandRequest{Queue: main, Change: c, Entries: []*eventsv1.Entry{{Ref: c}}}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// build folds a build of a change on a base, or of the mainline ("") itself, with how the steps of each target ended; needs are of
// the targets in their order.
func (b *blame) build(id, change, base string, assumed []string, targets []string, ends []eventsv1.StepOutcome, needs ...[]uint32) {
	of := apitest.Ref(change)
	if change == "" {
		of = &eventsv1.ChangeRef{}
	}
	s := &eventsv1.BuildScheduled{Build: id, Base: base, Change: &eventsv1.AssumedChange{Change: of}}
	p := &eventsv1.BuildPrepared{Build: id, Base: base, Change: of, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, a := range assumed {
		s.Assumed = append(s.Assumed, &eventsv1.AssumedChange{Change: apitest.Ref(a)})
	}
	for _, t := range targets {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t, Hash: apitest.VersionOf(id, t)})
	}
	for _, n := range needs {
		p.Needs = append(p.Needs, &eventsv1.VersionNeeds{Versions: n})
	}
	b.Fold(main, events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: s}}}})
	b.Fold(main, events.TopicBuilds, p)
	for i, t := range targets {
		f := &eventsv1.StepFinished{Target: t, Hash: apitest.VersionOf(id, t), Attempt: 1, Outcome: ends[i], Build: id, Log: "log-" + t}
		if ends[i] != stepPassed {
			f.FailedCommand, f.Decisive = "test", []string{cmp.Or(b.says, t[2:]+"/a.go:12: want 3, got 4"), "second line"}
		}
		b.Fold(main, events.TopicBuilds, f)
	}
}

// node folds what is known of a change behind others: a class with all of them as members, and one outcome.
func (b *blame) node(change string, ahead []string, state eventsv1.OutcomeState, members byte, build, target string) {
	n := &eventsv1.Node{Change: apitest.Ref(change), Analyzed: true, Position: int64(len(ahead))}
	class := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: target}}}
	for i, a := range ahead {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: apitest.Ref(a), Conflicts: true})
		class.Members = append(class.Members, uint32(i))
	}
	o := &eventsv1.Outcome{State: state, Version: &eventsv1.TargetVersion{Target: target, Hash: apitest.VersionOf(build, target)}}
	if members != 0 {
		o.Members = []byte{members}
	}
	class.Outcomes = []*eventsv1.Outcome{o}
	n.Classes = []*eventsv1.Class{class}
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
}

func (b *blame) expect(change, target, whose string, with []string, sentence string) *view.Fault {
	b.Helper()
	var f *view.Fault
	b.Read(main, func(q *view.Queue) {
		e, _ := q.Explain(change)
		c, _ := q.Change(change)
		if f = e.Failure; f == nil || c.Failure == nil || c.Failure.Sentence != f.Sentence {
			b.Fatalf("failures %+v and %+v", f, c.Failure)
		}
	})
	if f.Target != target || f.Whose != whose || !slices.Equal(f.With, with) || f.Sentence != sentence {
		b.Errorf("failure %+v, want %s, %s with %v: %s", *f, target, whose, with, sentence)
	}
	return f
}

func TestTheCauseIsTheDependencyThatFailedNotItsDependents(t *testing.T) {
	b := newBlame(t, "c")
	targets := []string{"//app", "//svc", "//fine", "//lib", "//odd"}
	b.build("b1", "c", "m", nil, targets, []eventsv1.StepOutcome{stepFailed, stepFailed, stepPassed, stepFailed, stepFailed},
		[]uint32{1}, []uint32{2}, []uint32{3}, nil, nil) // app needs svc, that fine, that lib
	b.build("b0", "", "m", nil, []string{"//lib"}, []eventsv1.StepOutcome{stepPassed})
	b.Reject(main, "c", "b1", "//app", 1)
	f := b.expect("c", "//lib", view.WhoseYours, nil, "your change breaks //lib: lib/a.go:12: want 3, got 4")
	if !slices.Equal(f.Also, []string{"//app", "//odd", "//svc"}) || f.Step != "test" || f.Log != "log-//lib" || len(f.Lines) != 2 {
		t.Errorf("%+v", f)
	}
	b.Read(main, func(q *view.Queue) {
		if s, _ := q.Summary("c"); s.Failure == nil || s.Why != "Rejected: your change breaks //lib: lib/a.go:12: want 3, got 4." {
			t.Errorf("%q, %+v", s.Why, s.Failure)
		}
	})
}

func TestAQuestionThatAToolAsksHasNoFullStop(t *testing.T) {
	b := newBlame(t, "c")
	b.says = "a.ts:1: TS2724: no 'place'. Did you mean 'places'?"
	b.build("b1", "c", "m", nil, []string{"//lib"}, []eventsv1.StepOutcome{stepFailed}, []uint32{1})
	b.build("b0", "", "m", nil, []string{"//lib"}, []eventsv1.StepOutcome{stepPassed})
	b.Reject(main, "c", "b1", "//lib", 1)
	b.Read(main, func(q *view.Queue) {
		if s, _ := q.Summary("c"); s.Why != "Rejected: your change breaks //lib: "+b.says {
			t.Errorf("%q", s.Why)
		}
	})
}

// TestAnInstallThatFailsIsTheCause: the steps of all packages of a project install first, and no target needs the install's.
func TestAnInstallThatFailsIsTheCause(t *testing.T) {
	for says, want := range map[string]string{"web/a/package.json:5: Missing: words@1.2.0 from lock file": "node://web [install]", "": "node://web/a [test]"} {
		b := newBlame(t, "c")
		b.says = says
		targets := []string{"node://web/a", "node://web/a [test]", "node://web [install]"}
		b.build("b1", "c", "m", nil, targets, []eventsv1.StepOutcome{stepPassed, stepFailed, stepFailed}, []uint32{}, []uint32{0}, nil)
		b.build("b0", "", "m", nil, targets, []eventsv1.StepOutcome{stepPassed, stepPassed, stepPassed})
		b.Reject(main, "c", "b1", "node://web/a [test]", 1)
		line := cmp.Or(says, "de://web/a [test]/a.go:12: want 3, got 4")
		b.expect("c", want, view.WhoseYours, nil, "your change breaks "+want+": "+line)
	}
}

// The tests of a package and those of one that imports it both fail when the first is broken: neither needs the other, but
// the first need less.
func TestTheCauseIsTheFailureThatNeedsTheLeast(t *testing.T) {
	b := newBlame(t, "c")
	targets := []string{"//cart:test", "//cart", "//money:test", "//money", "//other:test"}
	b.build("b1", "c", "m", nil, targets, []eventsv1.StepOutcome{stepFailed, stepPassed, stepFailed, stepPassed, stepFailed},
		[]uint32{1, 3}, []uint32{3}, []uint32{3}, nil, nil)
	b.build("b0", "", "m", nil, []string{"//money:test"}, []eventsv1.StepOutcome{stepPassed})
	b.Reject(main, "c", "b1", "//cart:test", 1)
	f := b.expect("c", "//money:test", view.WhoseYours, nil, "your change breaks //money:test: money:test/a.go:12: want 3, got 4")
	if !slices.Equal(f.Also, []string{"//cart:test", "//other:test"}) {
		t.Errorf("%+v", f)
	}
}

// TestADeeperFailureIsTheCauseOnlyIfItIsSettledAndTheChanges: //a may fail on the mainline, too, or by chance. //b is what was run again, there
// and with the change.
func TestADeeperFailureIsTheCauseOnlyIfItIsSettledAndTheChanges(t *testing.T) {
	onMainline := func(ends ...eventsv1.StepOutcome) func(*blame) {
		return func(b *blame) {
			for i, end := range ends {
				b.build("b0"+string(rune('a'+i)), "", "m", nil, []string{"//a"}, []eventsv1.StepOutcome{end})
			}
			if ends[len(ends)-1] == stepFailed {
				b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{
					Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//a", Hash: apitest.VersionOf("b0", "//a")}}}}}}}})
			}
		}
	}
	landed := func(p *eventsv1.Proof) func(*blame) {
		return func(b *blame) {
			p.Version = &eventsv1.TargetVersion{Target: "//a", Hash: "landed"}
			b.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: apitest.Ref("k"), Decision: "d", Base: "m", Commits: []string{"k"}, Proof: []*eventsv1.Proof{p}})
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: apitest.Ref("k"), Decision: "d", Base: "m", Commits: []string{"k"}, Proof: []*eventsv1.Proof{p}})
		}
	}
	failed := &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: "//a", Hash: apitest.VersionOf("b1", "//a")}, Attempt: 1}
	for _, c := range []struct {
		name    string
		retries uint32
		before  func(b *blame)
		against []string // the targets that speak against the change
		cause   string
	}{
		{"nothing shows that the mainline is green in it", 0, func(*blame) {}, []string{"//b"}, "//b"},
		{"the mainline is red in it", 0, onMainline(stepFailed), []string{"//b"}, "//b"},
		{"the mainline was green in it, and is red now", 0, onMainline(stepPassed, stepFailed), []string{"//b"}, "//b"},
		{"what landed was quarantined in it", 0, landed(&eventsv1.Proof{Attempt: 1, Quarantined: true}), []string{"//b"}, "//b"},
		{"it was to run once more", 1, onMainline(stepPassed), []string{"//b"}, "//b"},
		{"somebody retried it", 0, func(b *blame) {
			onMainline(stepPassed)(b)
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeRetried{Change: apitest.Ref("c"), Failed: []*eventsv1.Proof{failed}})
		}, []string{"//b"}, "//b"},
		{"the mainline is green in it", 0, onMainline(stepPassed), []string{"//b"}, "//a"},
		{"what landed passed in it", 0, landed(&eventsv1.Proof{Attempt: 1}), []string{"//b"}, "//a"},
		{"it failed once more", 1, func(b *blame) {
			onMainline(stepPassed)(b)
			b.Finish(main, "b1", "//a", 2, stepFailed, "", "log-//a")
		}, []string{"//b"}, "//a"},
		{"it is new with the change", 0, func(b *blame) {
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("c"), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
				Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//a"}}, Created: []uint32{0}}})
		}, []string{"//b"}, "//a"},
		{"it speaks against the change, too", 1, func(*blame) {}, []string{"//b", "//a"}, "//a"},
	} {
		for how, needs := range map[string][][]uint32{
			"//b needs //a":                      {{1}, nil, nil, nil},
			"//b needs what //a needs, and more": {{2, 3}, {2}, nil, nil},
		} {
			for _, pending := range []bool{false, true} {
				t.Run(c.name+", "+how, func(t *testing.T) {
					b := newBlame(t, "k", "c")
					b.Graph(main, &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Steps: &eventsv1.StepPolicy{FailedRetries: c.retries}}})
					b.build("b1", "c", "m", nil, []string{"//b", "//a", "//fine", "//more"}, []eventsv1.StepOutcome{stepFailed, stepFailed, stepPassed, stepPassed}, needs...)
					c.before(b)
					n, r := &eventsv1.Node{Change: apitest.Ref("c"), Analyzed: true}, &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED}
					for _, target := range c.against {
						v := &eventsv1.TargetVersion{Target: target, Hash: apitest.VersionOf("b1", target)}
						n.Classes = append(n.Classes, &eventsv1.Class{Targets: []*eventsv1.TargetVersion{v}, Outcomes: []*eventsv1.Outcome{{State: red, Version: v}}})
						r.Failed = append(r.Failed, &eventsv1.Proof{Build: "b1", Attempt: 1 + c.retries, Version: v})
						if c.retries > 0 {
							b.Finish(main, "b1", target, 2, stepFailed, "", "log-"+target)
						}
					}
					if pending {
						b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{n}})
					} else {
						b.Fold(main, events.TopicChanges, &eventsv1.ChangeRejected{Change: apitest.Ref("c"), Decision: "reject", Base: "m", Reason: r})
					}
					b.Read(main, func(q *view.Queue) {
						e, _ := q.Explain("c")
						other := map[string]string{"//a": "//b", "//b": "//a"}[c.cause]
						if f := e.Failure; f == nil || f.Target != c.cause || !slices.Equal(f.Also, []string{other}) || f.Hash != apitest.VersionOf("b1", c.cause) || f.Log != "log-"+c.cause {
							t.Errorf("pending: %v; failure %+v, want %s", pending, f, c.cause)
						}
						if r := e.Rejection; r != nil && (r.Failed[0].Target != c.cause || r.Failed[0].Log != "log-"+c.cause) {
							t.Errorf("rejected for %+v, want %s first", r.Failed, c.cause)
						}
					})
				})
			}
		}
	}
}

func TestTargetsThatDependOnEachOtherHaveACauseToo(t *testing.T) {
	b := newBlame(t, "c")
	b.build("b1", "c", "m", nil, []string{"//x", "//y"}, []eventsv1.StepOutcome{stepFailed, stepFailed}, []uint32{1}, []uint32{0})
	b.build("b0", "", "m", nil, []string{"//y"}, []eventsv1.StepOutcome{stepPassed})
	b.Reject(main, "c", "b1", "//x", 1)
	b.expect("c", "//y", view.WhoseYours, nil, "your change breaks //y: y/a.go:12: want 3, got 4")
}

func TestWhatPassesWithoutAChangeAheadFailsTogetherWithIt(t *testing.T) {
	b := newBlame(t, "k", "j", "c")
	x := []string{"//x"}
	b.build("b1", "c", "m", nil, x, []eventsv1.StepOutcome{stepPassed})
	b.build("b2", "c", "m", []string{"j"}, x, []eventsv1.StepOutcome{stepPassed})
	b.build("b3", "c", "m", []string{"k", "j"}, x, []eventsv1.StepOutcome{stepFailed})
	b.node("c", []string{"k", "j"}, red, 3, "b3", "//x")
	b.expect("c", "//x", view.WhoseAhead, []string{"k"}, "your change breaks //x only together with k, which is ahead of it: x/a.go:12: want 3, got 4")
}

func TestAFailureThatAChangeAheadHasByItselfIsItsFault(t *testing.T) {
	b := newBlame(t, "k", "c")
	x := []string{"//x"}
	b.build("b1", "k", "m", nil, x, []eventsv1.StepOutcome{stepFailed})
	b.build("b2", "c", "m", []string{"k"}, x, []eventsv1.StepOutcome{stepFailed})
	b.node("c", []string{"k"}, red, 1, "b2", "//x")
	b.expect("c", "//x", view.WhoseAhead, []string{"k"}, "//x fails in k, which is ahead of your change, by itself: x/a.go:12: want 3, got 4")
}

func TestAFailureThatWasNotComparedBlamesNobody(t *testing.T) {
	b := newBlame(t, "k", "c")
	b.build("b1", "c", "m", []string{"k"}, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", []string{"k"}, red, 1, "b1", "//x")
	b.expect("c", "//x", view.WhoseUnknown, []string{"k"}, "//x fails on top of k; whether without is not known yet: x/a.go:12: want 3, got 4")
}

func TestWhatFailsOnTopOfOthersIsToldSoWhileTheMainlineIsVerified(t *testing.T) {
	b := newBlame(t, "k", "c")
	b.build("b1", "c", "m", []string{"k"}, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", []string{"k"}, blocked, 1, "b1", "//x")
	b.expect("c", "//x", view.WhoseUnknown, []string{"k"}, "//x fails on top of k; whether without is not known yet: x/a.go:12: want 3, got 4")
}

func TestAFailureInWhatNeverRanOnTheMainlineBlamesNobodyYet(t *testing.T) {
	b := newBlame(t, "c")
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", nil, red, 0, "b1", "//x")
	b.expect("c", "//x", view.WhoseUnknown, nil, "//x fails; whether it does on the mainline too is verified before your change is rejected: x/a.go:12: want 3, got 4")
	b.build("b2", "", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepPassed})
	b.expect("c", "//x", view.WhoseYours, nil, "your change breaks //x: x/a.go:12: want 3, got 4")
}

func TestAFailureOfTheChangesOwnComesBeforeTheMainlines(t *testing.T) {
	b := newBlame(t, "c")
	b.build("b0", "", "m", nil, []string{"//own", "//main"}, []eventsv1.StepOutcome{stepPassed, stepFailed})
	b.build("b1", "c", "m", nil, []string{"//own", "//main"}, []eventsv1.StepOutcome{stepFailed, stepFailed})
	class := func(target string, state eventsv1.OutcomeState) *eventsv1.Class {
		return &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: target}}, Outcomes: []*eventsv1.Outcome{{State: state, Version: &eventsv1.TargetVersion{Target: target, Hash: apitest.VersionOf("b1", target)}}}}
	}
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: apitest.Ref("c"), Analyzed: true, Classes: []*eventsv1.Class{class("//main", blocked), class("//own", red)}}}})
	b.expect("c", "//own", view.WhoseYours, nil, "your change breaks //own: own/a.go:12: want 3, got 4")
}

func TestAFailureThatTheMainlineHasIsNotTheChangesFault(t *testing.T) {
	for _, inherited := range []bool{true, false} {
		b := newBlame(t, "c")
		check := &eventsv1.Node{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}}}}
		want := "a direct push broke //x on the mainline: not your change: x/a.go:12: want 3, got 4"
		if inherited {
			check.Inherited, want = []string{"//x"}, "//x has been red on the mainline since before the queue: not your change: x/a.go:12: want 3, got 4"
		}
		b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{check}})
		b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
		b.node("c", nil, blocked, 0, "b1", "//x")
		b.expect("c", "//x", view.WhoseMainline, nil, want)
	}
}

// TestWhatTheMainlineFailsByIsToldBeforeWhatTheChangeFailsBy: the change may be broken by itself, too.
func TestWhatTheMainlineFailsByIsToldBeforeWhatTheChangeFailsBy(t *testing.T) {
	b := newBlame(t, "c")
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{
		Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}}}}}})
	b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: "h", Attempt: 1, Outcome: stepFailed, Build: "check", Decisive: []string{"x/b.go:3: unlucky"}})
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", nil, blocked, 0, "b1", "//x")
	b.expect("c", "//x", view.WhoseMainline, nil,
		"a direct push broke //x on the mainline, and your change may break it too: x/b.go:3: unlucky (with your change: x/a.go:12: want 3, got 4)")
}

// TestWhatOnlyTheChangeFailsByIsToldBesideWhatTheMainlineFailsBy, where both begin with the same line.
func TestWhatOnlyTheChangeFailsByIsToldBesideWhatTheMainlineFailsBy(t *testing.T) {
	for second, want := range map[string]string{
		"x/b.go:3: unlucky": "a direct push broke //x on the mainline, and your change may break it too: x/a.go:12: want 3, got 4 (with your change: second line)",
		"second line":       "a direct push broke //x on the mainline: not your change: x/a.go:12: want 3, got 4",
	} {
		b := newBlame(t, "c")
		b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{
			Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}}}}}})
		b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: "h", Attempt: 1, Outcome: stepFailed, Build: "check", Decisive: []string{"x/a.go:12: want 3, got 4", second}})
		b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
		b.node("c", nil, blocked, 0, "b1", "//x")
		b.expect("c", "//x", view.WhoseMainline, nil, want)
	}
}

// TestWhatDiffersInItsDurationAloneIsTheSameFailure.
func TestWhatDiffersInItsDurationAloneIsTheSameFailure(t *testing.T) {
	b := newBlame(t, "c")
	b.Graph(main, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}, Classes: []*eventsv1.Class{{
		Outcomes: []*eventsv1.Outcome{{State: red, Version: &eventsv1.TargetVersion{Target: "//x", Hash: "h"}}}}}}}})
	b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: "h", Attempt: 1, Outcome: stepFailed, Build: "check", Decisive: []string{"--- FAIL: TestX (0.02s)", "second line"}})
	b.says = "--- FAIL: TestX (1.30s)"
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.node("c", nil, blocked, 0, "b1", "//x")
	b.expect("c", "//x", view.WhoseMainline, nil, "a direct push broke //x on the mainline: not your change: --- FAIL: TestX (1.30s)")
}

func TestWhatPassedBeforeAnotherChangeLandedFailsTogetherWithIt(t *testing.T) {
	b := newBlame(t, "k", "o", "c")
	x, base := []string{"//x"}, apitest.Commit("main")
	b.build("b0", "k", base, nil, x, []eventsv1.StepOutcome{stepPassed})
	b.build("b1", "c", base, nil, x, []eventsv1.StepOutcome{stepPassed})
	b.LandIt(main, "k", "b0", nil, "//x")
	head := apitest.Commit("landed k")
	// One that has nothing to do with it lands too.
	b.Fold(main, events.TopicChanges, &eventsv1.LandIntended{Change: apitest.Ref("o"), Decision: "d", Base: head, Commits: []string{"other"}})
	b.Fold(main, events.TopicChanges, &eventsv1.ChangeLanded{Change: apitest.Ref("o"), Decision: "d", Base: head, Commits: []string{"other"},
		Proof: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//o", Hash: "h"}}}})
	b.build("b2", "c", "other", nil, x, []eventsv1.StepOutcome{stepFailed})
	b.Reject(main, "c", "b2", "//x", 1)
	b.expect("c", "//x", view.WhoseAhead, []string{"k"}, "your change breaks //x only together with k, which landed before it: x/a.go:12: want 3, got 4")
}

func TestAnEjectionBlamesNobody(t *testing.T) {
	b := newBlame(t, "c")
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT})
	b.Fold(main, events.TopicChanges, &eventsv1.ChangeEjected{Change: apitest.Ref("c"), Decision: "d", Reason: &eventsv1.Reason{
		Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT, Message: "it ran out of time",
		Failed: []*eventsv1.Proof{{Build: "b1", Attempt: 1, Version: &eventsv1.TargetVersion{Target: "//x", Hash: apitest.VersionOf("b1", "//x")}}}}})
	b.expect("c", "//x", view.WhoseUnknown, nil, "//x ran out of time; that blames nobody: x/a.go:12: want 3, got 4")
}

// TestAServiceThatWasNotReadyIsTheReason, and not the builder's own line about what it printed, or what it printed.
func TestAServiceThatWasNotReadyIsTheReason(t *testing.T) {
	for printed, then := range map[string]string{"": "", "listening\n": ": web | listening"} {
		b := newBlame(t, "c")
		b.Schedule(main, "b1", "c", nil, "//x")
		b.Prepare(main, "b1", "c", "//x")
		v := &eventsv1.TargetVersion{Target: "//x", Hash: apitest.VersionOf("b1", "//x")}
		b.Fold(main, events.TopicBuilds, &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, Build: "b1",
			FailedCommand: "test", Reason: `Command "test" did not start: service "web" was not ready within 10s.`, OutputTail: []byte("\n[output of service web]\n" + printed)})
		b.Fold(main, events.TopicChanges, &eventsv1.ChangeEjected{Change: apitest.Ref("c"), Decision: "d", Reason: &eventsv1.Reason{
			Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT, Message: "it ran out of time", Failed: []*eventsv1.Proof{{Build: "b1", Attempt: 1, Version: v}}}})
		b.expect("c", "//x", view.WhoseUnknown, nil, `//x ran out of time; that blames nobody: Command "test" did not start: service "web" was not ready within 10s`+then)
	}
}

// Builders of older releases write no decisive lines.
func TestWithoutDecisiveLinesTheTailIsRead(t *testing.T) {
	b := newBlame(t, "c")
	b.Schedule(main, "b1", "c", nil, "//x")
	b.Prepare(main, "b1", "c", "//x")
	b.Finish(main, "b1", "//x", 1, stepFailed, "noise\nx/b.c:3:1: error: no such currency\nmore noise\n", "")
	b.Reject(main, "c", "b1", "//x", 1)
	b.expect("c", "//x", view.WhoseYours, nil, "your change breaks //x: x/b.c:3: no such currency")
}

func TestWhatLandedHasNoFailure(t *testing.T) {
	b := newBlame(t, "c", "d")
	b.build("b1", "c", apitest.Commit("main"), nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.build("b2", "c", apitest.Commit("main"), nil, []string{"//x"}, []eventsv1.StepOutcome{stepPassed})
	b.LandIt(main, "c", "b2", nil, "//x")
	b.Read(main, func(q *view.Queue) {
		for _, id := range []string{"c", "d"} {
			if e, _ := q.Explain(id); e.Failure != nil {
				t.Errorf("%s: %+v", id, e.Failure)
			}
		}
	})
}

// TestATargetPassesWhereTheWholeRepositoryDoes: what affects everything is proven as the whole repository, and rejected for a target.
func TestATargetPassesWhereTheWholeRepositoryDoes(t *testing.T) {
	b := newBlame(t, "k", "c")
	b.build("b1", "c", "m", nil, []string{"//:repository"}, []eventsv1.StepOutcome{stepPassed})
	b.build("b2", "c", "m", []string{"k"}, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.Reject(main, "c", "b2", "//x", 1)
	b.expect("c", "//x", view.WhoseAhead, []string{"k"}, "your change breaks //x only together with k, which is ahead of it: x/a.go:12: want 3, got 4")
}

// TestWhatLandedIsNamedOnlyIfItMayBeTheReason: k landed after the commit that c is based on.
func TestWhatLandedIsNamedOnlyIfItMayBeTheReason(t *testing.T) {
	for _, c := range []struct {
		name, line   string
		own, landed  []string
		ofEverything bool
		with         []string
	}{
		{"it altered the target", "x/a.go:12: undefined: f", []string{"file:x/a.go"}, []string{"file:x/b.go"}, false, []string{"k"}},
		{"it affected everything", "x/a.go:12: undefined: f", []string{"file:x/a.go"}, []string{"file:landfall.yaml"}, true, []string{"k"}},
		{"it touched a file that no target covers", "x/a.go:12: undefined: f", []string{"file:x/a.go"}, []string{"file:ops/prod.env"}, true, nil},
		{"a file of the change cannot be parsed", "x/a.py:12: SyntaxError: invalid syntax", []string{"file:x/a.py"}, []string{"file:x/b.py"}, false, nil},
		{"a file of both cannot be parsed", "x/a.py:12: SyntaxError: invalid syntax", []string{"file:x/a.py"}, []string{"file:x/a.py"}, false, []string{"k"}},
		{"another file cannot be parsed", "x/gen.py:12: SyntaxError: invalid syntax", []string{"file:x/a.py"}, []string{"file:x/b.py"}, false, []string{"k"}},
	} {
		b, head := newBlame(t, "k"), apitest.Commit("main")
		b.based("c", head)
		analysed := func(change string, leaves []string, all bool) {
			a := &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//x"}}, Leaves: leaves, All: all}
			if all && leaves[0] == "file:ops/prod.env" {
				a.Uncovered = &eventsv1.Uncovered{Files: []string{"ops/prod.env"}, FilesTotal: 1, Policy: "whole_repository"}
			}
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref(change), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, FilesChanged: 1, Affected: a})
		}
		analysed("k", c.landed, c.ofEverything)
		analysed("c", c.own, false)
		altered := "//x"
		if c.ofEverything {
			altered = "//:repository"
		}
		b.build("b1", "k", head, nil, []string{altered}, []eventsv1.StepOutcome{stepPassed})
		b.LandIt(main, "k", "b1", nil, altered)
		b.says = c.line
		b.build("b2", "c", apitest.Commit("landed k"), nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
		b.Reject(main, "c", "b2", "//x", 1)
		t.Log(c.name)
		whose, says := view.WhoseYours, "your change breaks //x: "
		if c.ofEverything && len(c.with) > 0 { // nothing shows that the mainline has //x
			whose, says = view.WhoseUnknown, "//x fails on top of k, which landed before it; it was not built without it: "
		}
		b.expect("c", "//x", whose, c.with, says+c.line+meanwhile(whose, c.with))
	}
}

// meanwhile ends the sentence of a failure of the change's own that was never built without others.
func meanwhile(whose string, with []string) string {
	if whose != view.WhoseYours || len(with) == 0 {
		return ""
	}
	return " (not built without " + strings.Join(with, ", ") + ", which landed meanwhile)"
}

// TestATargetThatTheChangeAddsIsNotBrokenByIt: the first landing into a queue often declares targets for what is there.
func TestATargetThatTheChangeAddsIsNotBrokenByIt(t *testing.T) {
	for _, c := range []struct {
		name     string
		created  []uint32
		leaves   []string
		files    uint32
		sentence string
	}{
		{"a manifest alone", []uint32{0}, []string{"def:old/landfall.yaml", "file:old/landfall.yaml"}, 1,
			"//old is new with your change, and fails with its sources as the mainline has them: "},
		{"a manifest and a document that no target covers", []uint32{0}, []string{"file:README.md", "file:old/landfall.yaml"}, 2,
			"//old is new with your change, and fails with its sources as the mainline has them: "},
		{"a manifest and a source", []uint32{0}, []string{"file:old/check.sh", "file:old/landfall.yaml"}, 2,
			"//old is new with your change, and fails: "},
		{"files that are not named", []uint32{0}, []string{"file:old/landfall.yaml"}, 3, "//old is new with your change, and fails: "},
		{"the mainline has it", nil, []string{"file:old/landfall.yaml"}, 1, "your change breaks //old: "},
	} {
		b := newBlame(t, "c")
		b.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("c"), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, FilesChanged: c.files,
			Affected: &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//old"}}, Created: c.created, Leaves: c.leaves, Uncovered: &eventsv1.Uncovered{Ignored: []string{"README.md"}, IgnoredTotal: 1}}})
		b.build("b1", "c", apitest.Commit("main"), nil, []string{"//old"}, []eventsv1.StepOutcome{stepFailed})
		b.Reject(main, "c", "b1", "//old", 1)
		t.Log(c.name)
		b.expect("c", "//old", view.WhoseYours, nil, c.sentence+"old/a.go:12: want 3, got 4")
	}
}

// based admits a change that is based on a commit.
func (b *blame) based(change, base string) {
	b.Fold(main, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: main, Change: change, Revision: 1, Mainline: apitest.Commit("main"),
		LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit(change), Base: base}}}})
}

// TestWhatWasNeverBuiltWithoutAnotherChangeIsNotBlamedAlone: sem-a alters //money and lands. sem-b adds //invoice, which needs
// //money, and the mainline has no //invoice: nothing green was ever built to compare with.
func TestWhatWasNeverBuiltWithoutAnotherChangeIsNotBlamedAlone(t *testing.T) {
	head, landed := apitest.Commit("main"), apitest.Commit("landed sem-a")
	needs := &eventsv1.Affected{Targets: []*eventsv1.TargetVersion{{Target: "//invoice"}, {Target: "//invoice:test"}}, Leaves: []string{"invoice/a.go"},
		AddedEdges: []string{"//invoice", "//money", "invoice/a.go"}}
	for _, c := range []struct {
		name     string
		base     string // that sem-b is based on
		assumed  []string
		on       string // what the red build is made on
		affected *eventsv1.Affected
		altered  string
		before   func(b *blame)
		whose    string
		with     []string
		sentence string
	}{
		{"assumed by the build", head, []string{"sem-a"}, head, needs, "//money", nil,
			view.WhoseUnknown, []string{"sem-a"}, "//invoice fails on top of sem-a, which landed before it; it was not built without it: "},
		{"landed before the build", head, nil, landed, needs, "//money", nil,
			view.WhoseUnknown, []string{"sem-a"}, "//invoice fails on top of sem-a, which landed before it; it was not built without it: "},
		{"based on a commit from before the queue", "unknown", nil, landed, needs, "//money", nil,
			view.WhoseUnknown, []string{"sem-a"}, "//invoice fails on top of sem-a, which landed before it; it was not built without it: "},
		{"altered as part of everything", head, nil, landed, needs, "//:repository", nil,
			view.WhoseUnknown, []string{"sem-a"}, "//invoice fails on top of sem-a, which landed before it; it was not built without it: "},
		{"based on the change that landed", landed, nil, landed, needs, "//money", nil,
			view.WhoseYours, nil, "your change breaks //invoice: "},
		{"the change that landed altered something else", head, []string{"sem-a"}, head, needs, "//other", nil,
			view.WhoseYours, nil, "your change breaks //invoice: "},
		{"nothing is known to be needed", head, []string{"sem-a"}, head, &eventsv1.Affected{}, "//money", nil,
			view.WhoseYours, nil, "your change breaks //invoice: "},
		{"it failed without it too", head, []string{"sem-a"}, head, needs, "//money", func(b *blame) {
			b.build("b1", "sem-b", head, nil, []string{"//invoice"}, []eventsv1.StepOutcome{stepFailed})
		}, view.WhoseYours, nil, "your change breaks //invoice: "},
		{"it passed without it", head, []string{"sem-a"}, head, needs, "//money", func(b *blame) {
			b.build("b1", "sem-b", head, nil, []string{"//invoice"}, []eventsv1.StepOutcome{stepPassed})
		}, view.WhoseAhead, []string{"sem-a"}, "your change breaks //invoice only together with sem-a, which landed before it: "},
		{"the mainline has the target, and it passes there", head, []string{"sem-a"}, head, needs, "//invoice", nil,
			view.WhoseYours, []string{"sem-a"}, "your change breaks //invoice: "},
		{"it adds the target", head, []string{"sem-a"}, head, &eventsv1.Affected{Targets: needs.Targets, Created: []uint32{0}, Leaves: needs.Leaves, AddedEdges: needs.AddedEdges}, "//money", nil,
			view.WhoseUnknown, []string{"sem-a"}, "//invoice is new with your change, and fails on top of sem-a, which landed before it; it was not built without it: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBlame(t, "sem-a")
			b.based("sem-b", c.base)
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeAnalyzed{Change: apitest.Ref("sem-b"), Affected: c.affected})
			b.build("a1", "sem-a", head, nil, []string{c.altered}, []eventsv1.StepOutcome{stepPassed})
			if c.before != nil {
				c.before(b)
			}
			if len(c.assumed) > 0 {
				b.build("b2", "sem-b", c.on, c.assumed, []string{"//invoice"}, []eventsv1.StepOutcome{stepFailed})
			}
			b.LandIt(main, "sem-a", "a1", nil, c.altered)
			if len(c.assumed) == 0 {
				b.build("b2", "sem-b", c.on, nil, []string{"//invoice"}, []eventsv1.StepOutcome{stepFailed})
			}
			b.Reject(main, "sem-b", "b2", "//invoice", 1)
			b.expect("sem-b", "//invoice", c.whose, c.with, c.sentence+"invoice/a.go:12: want 3, got 4"+meanwhile(c.whose, c.with))
		})
	}
}

// TestABuildThatIsRedBecauseOfAnotherChangeComparesNothing: l breaks //t by itself, k lands, and c fails with k alone. That c fails on top of
// l does not say that it fails without k.
func TestABuildThatIsRedBecauseOfAnotherChangeComparesNothing(t *testing.T) {
	x, head := []string{"//t"}, apitest.Commit("main")
	for name, l := range map[string]func(b *blame){
		"it fails by itself, and is pending": func(b *blame) {
			b.build("l1", "l", head, nil, x, []eventsv1.StepOutcome{stepFailed})
		},
		"it failed by itself, and has another revision": func(b *blame) {
			b.build("l1", "l", head, nil, x, []eventsv1.StepOutcome{stepFailed})
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: main, Change: "l", Revision: 2, Mainline: head,
				LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit("l2"), Base: head}}}})
		},
		"it was rejected for it": func(b *blame) { b.Reject(main, "l", "unknown", "//t", 1) },
		"it was ejected for it": func(b *blame) {
			b.build("l1", "l", head, nil, x, []eventsv1.StepOutcome{eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT})
			b.Fold(main, events.TopicChanges, &eventsv1.ChangeEjected{Change: apitest.Ref("l"), Decision: "d", Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT,
				Failed: []*eventsv1.Proof{{Build: "l1", Attempt: 1, Version: &eventsv1.TargetVersion{Target: "//t", Hash: apitest.VersionOf("l1", "//t")}}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlame(t, "l", "k")
			b.based("c", head)
			l(b)
			b.build("k1", "k", head, nil, x, []eventsv1.StepOutcome{stepPassed})
			b.build("c1", "c", head, []string{"l"}, x, []eventsv1.StepOutcome{stepFailed})
			b.build("c2", "c", head, []string{"k"}, x, []eventsv1.StepOutcome{stepFailed})
			b.LandIt(main, "k", "k1", nil, "//t")
			b.Reject(main, "c", "c2", "//t", 1)
			b.expect("c", "//t", view.WhoseYours, []string{"k"}, "your change breaks //t: t/a.go:12: want 3, got 4 (not built without k, which landed meanwhile)")
		})
	}
	t.Run("it fails in something else", func(t *testing.T) {
		b := newBlame(t, "l", "k")
		b.based("c", head)
		b.build("l1", "l", head, nil, []string{"//other"}, []eventsv1.StepOutcome{stepFailed})
		b.Reject(main, "l", "l1", "//other", 1)
		b.build("k1", "k", head, nil, x, []eventsv1.StepOutcome{stepPassed})
		b.build("c1", "c", head, []string{"l"}, x, []eventsv1.StepOutcome{stepFailed})
		b.build("c2", "c", head, []string{"k"}, x, []eventsv1.StepOutcome{stepFailed})
		b.LandIt(main, "k", "k1", nil, "//t")
		b.Reject(main, "c", "c2", "//t", 1)
		b.expect("c", "//t", view.WhoseYours, nil, "your change breaks //t: t/a.go:12: want 3, got 4")
	})
}
