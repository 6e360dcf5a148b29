package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

const (
	passed = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
)

func changeOf(b *apitest.Backend, id string) (out view.Change) {
	b.Read("main", func(q *view.Queue) { out, _ = q.Change(id) })
	return out
}

func storyOf(c view.Change) (text string) {
	for _, e := range c.Timeline {
		text += e.Text + "\n"
	}
	return text
}

// TestARejectionNamesAKnownFlake in its first line: whoever reads it may want to try again. A target that never contradicted itself,
// or was mended since, is none.
func TestARejectionNamesAKnownFlake(t *testing.T) {
	b := newBlame(t, "a", "c", "d")
	pass := func(build string, failures uint32) {
		b.Prepare(main, build, "a", "//x")
		for n := range failures {
			b.Finish(main, build, "//x", n+1, stepFailed, "", "")
		}
		b.Finish(main, build, "//x", failures+1, stepPassed, "", "")
	}
	for n, failures := range []uint32{0, 1, 0, 0, 2} {
		pass(fmt.Sprint("p", n), failures)
	}
	b.build("b1", "c", "m", nil, []string{"//x"}, []eventsv1.StepOutcome{stepFailed})
	b.Reject(main, "c", "b1", "//x", 1)
	b.expect("c", "//x", view.WhoseYours, nil, "your change breaks //x (a known flake: 2 of its last 4 versions that passed had failed before, with nothing changed; it may have failed by chance): x/a.go:12: want 3, got 4")
	b.build("b2", "d", "m", nil, []string{"//y"}, []eventsv1.StepOutcome{stepFailed})
	b.Reject(main, "d", "b2", "//y", 1)
	b.expect("d", "//y", view.WhoseYours, nil, "your change breaks //y: y/a.go:12: want 3, got 4")
}

func TestAFlakeIsToldToTheChangesInWhoseBuildsItWasAndIsListedByItsCost(t *testing.T) {
	b := apitest.New("main")
	flake := func(change, build, target string, failures uint32) {
		b.Prepare("main", build, change, target)
		for n := range failures {
			b.Finish("main", build, target, n+1, failed, "", "")
		}
		b.Finish("main", build, target, failures+1, passed, "", "")
	}
	for _, id := range []string{"a", "b", "c"} {
		b.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf(id)})
	}
	flake("a", "b1", "//cheap", 1)
	flake("b", "b2", "//dear", 2)
	flake("c", "b3", "//cheap", 0)
	if text := storyOf(changeOf(b, "b")); !strings.Contains(text, "//dear failed and then passed with nothing changed: a flake (1 of its last 1).") {
		t.Errorf("the author of b reads\n%s", text)
	}
	if text := storyOf(changeOf(b, "c")); strings.Contains(text, "flake") {
		t.Errorf("the author of c reads\n%s", text)
	}
	var list []view.Flake
	b.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//ch*", UntilUs: 1, Why: "w"})
	b.Read("main", func(q *view.Queue) { list = q.Flakes() })
	if len(list) != 2 || list[0].Target != "//dear" || list[0].LostMS != 500 || list[0].Change != "b" || list[0].LastBuild != "b2" || list[0].Quarantined != nil {
		t.Fatalf("flakes are %+v", list)
	}
	if f := list[1]; f.Versions != 2 || f.Rate != 0.5 || f.Quarantined == nil || f.Quarantined.Target != "//ch*" {
		t.Errorf("the second is %+v", f)
	}
}

// TestM24aAStoryNamesWhatAQuarantineTolerates: nobody reads that all passed where something did not.
func TestM24aAStoryNamesWhatAQuarantineTolerates(t *testing.T) {
	b := apitest.New("main")
	b.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("a")})
	b.Schedule("main", "b1", "a", nil, "//good", "//flaky")
	b.Prepare("main", "b1", "a", "//good", "//flaky")
	b.Finish("main", "b1", "//good", 1, passed, "", "")
	build := func() view.Build { return changeOf(b, "a").Builds[0] }
	until := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	b.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//fl*", UntilUs: until.UnixMicro(), Why: "a race."})
	b.Finish("main", "b1", "//flaky", 1, failed, "", "")
	if s := build(); s.State != view.BuildPassed || !s.Steps[1].Quarantined || s.Steps[1].State != view.StepFailed || s.Steps[0].Quarantined {
		t.Errorf("the build is %+v", s)
	}
	b.Fold("main", events.TopicChanges, &eventsv1.QuarantineEnded{Target: "//fl*"})
	if s := build(); s.State != view.BuildFailed || s.Steps[1].Quarantined {
		t.Errorf("without its quarantine the build is %+v", s)
	}
	b.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//flaky", UntilUs: until.UnixMicro()})
	b.Decide("main", "a")
	proof := []*eventsv1.Proof{
		{Build: "b1", Attempt: 1, Version: &eventsv1.TargetVersion{Target: "//good", Hash: apitest.VersionOf("b1", "//good"), Part: 1}},
		{Build: "b1", Attempt: 1, Version: &eventsv1.TargetVersion{Target: "//flaky", Hash: apitest.VersionOf("b1", "//flaky"), Part: 1}, Quarantined: true},
	}
	commits := []string{apitest.Commit("landed")}
	b.Fold("main", events.TopicChanges, &eventsv1.LandIntended{Change: apitest.Ref("a"), Decision: "d", Commits: commits, Proof: proof, Quarantined: []string{"//flaky"}})
	b.Fold("main", events.TopicChanges, &eventsv1.ChangeLanded{Change: apitest.Ref("a"), Decision: "d", Commits: commits, Proof: proof, Quarantined: []string{"//flaky"}})
	c := changeOf(b, "a")
	for _, want := range []string{
		"test exited with 1; it is quarantined through 2026-02-28 (a race), so it does not block.\n",
		"all steps passed but //flaky, which is quarantined.\n",
		" passed but //flaky, which is quarantined; it is being pushed.\n",
		"; //flaky did not pass and is quarantined.\n",
	} {
		if !strings.Contains(storyOf(c), want) {
			t.Errorf("no %q in\n%s", want, storyOf(c))
		}
	}
	if l := c.Landing; len(l.Quarantined) != 1 || l.Proof[1].State != view.StepFailed || !l.Proof[1].Quarantined || l.Proof[0].Quarantined {
		t.Errorf("it landed by %+v", l)
	}
}

func TestAFlakeAndAFailureNameTheOwnersOfTheirTarget(t *testing.T) {
	b := apitest.New("main")
	for _, id := range []string{"a", "b", "c"} {
		b.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf(id)})
	}
	b.PrepareOwned("main", "b1", "a", []string{"@x", "@y"}, "//flaky", "//red", "//good")
	b.Finish("main", "b1", "//flaky", 1, failed, "", "")
	b.Finish("main", "b1", "//flaky", 2, passed, "", "")
	b.Finish("main", "b1", "//good", 1, passed, "", "")
	b.Finish("main", "b1", "//red", 1, failed, "", "")
	a := changeOf(b, "a")
	if want := "a flake (1 of its last 1), owned by @x and @y.\n"; !strings.Contains(storyOf(a), want) {
		t.Errorf("no %q in\n%s", want, storyOf(a))
	}
	if len(a.Flaky) != 1 || a.Flaky[0].Target != "//flaky" || !slices.Equal(a.Flaky[0].Owners, []string{"@x", "@y"}) {
		t.Errorf("the flaky targets of a are %+v", a.Flaky)
	}
	steps := a.Builds[0].Steps
	if !steps[0].Flaky || steps[1].Flaky || steps[2].Flaky || len(steps[0].Owners) != 2 || len(steps[1].Owners) != 2 || len(steps[2].Owners) != 0 {
		t.Errorf("the steps of a are %+v", steps)
	}
	owners := func() (list []string) {
		b.Read("main", func(q *view.Queue) { list = q.Flakes()[0].Owners })
		return list
	}
	if got := owners(); !slices.Equal(got, []string{"@x", "@y"}) {
		t.Errorf("the flake is owned by %q", got)
	}
	b.PrepareOwned("main", "b2", "b", []string{"@new"}, "//good", "//flaky")
	if got := owners(); !slices.Equal(got, []string{"@new"}) {
		t.Errorf("after they changed the flake is owned by %q", got)
	}
	b.Prepare("main", "b3", "c", "//flaky")
	if got := owners(); len(got) != 0 {
		t.Errorf("without owners the flake is owned by %q", got)
	}
	if f := changeOf(b, "c").Flaky; f != nil {
		t.Errorf("the flaky targets of c are %+v", f)
	}
	b.Reject("main", "a", "b1", "//red", 1)
	if f := changeOf(b, "a").Failure; f == nil || !slices.Equal(f.Owners, []string{"@x", "@y"}) {
		t.Errorf("the failure is %+v", f)
	}
}

// TestTheFlakesOfATargetCountFromZeroAgainAsTheyDoForTheLander: once it is quarantined, and once a person has ended that.
func TestTheFlakesOfATargetCountFromZeroAgainAsTheyDoForTheLander(t *testing.T) {
	b := apitest.New("main")
	b.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("a")})
	for n, step := range []struct {
		then proto.Message
		want int64
	}{
		{&eventsv1.TargetQuarantined{Target: "//t", UntilUs: 1, Why: "w"}, 0},
		{&eventsv1.QuarantineEnded{Target: "//t", Who: events.ServiceLander}, 1},
		{&eventsv1.TargetQuarantined{Target: "//t", UntilUs: 1, Why: "w"}, 0},
		{&eventsv1.QuarantineEnded{Target: "//t", Who: "ada"}, 0},
	} {
		build := fmt.Sprint("b", n)
		b.Prepare("main", build, "a", "//t")
		b.Finish("main", build, "//t", 1, failed, "", "")
		b.Finish("main", build, "//t", 2, passed, "", "")
		b.Fold("main", events.TopicChanges, step.then)
		b.Read("main", func(q *view.Queue) {
			if list := q.Flakes(); len(list) != 1 || list[0].Flakes != step.want || list[0].Versions != step.want {
				t.Errorf("after %T %d: %+v, want %d", step.then, n, list, step.want)
			}
		})
	}
}
