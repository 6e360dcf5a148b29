package view_test

import (
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// rejectedTwice returns a queue in which both attempts at a step of a change's build failed, and the change was rejected.
func rejectedTwice(t *testing.T) *apitest.Backend {
	t.Helper()
	b := apitest.New("main")
	b.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("a")})
	b.Schedule("main", "b1", "a", nil, "//x")
	b.Prepare("main", "b1", "a", "//x")
	b.Finish("main", "b1", "//x", 1, failed, "", "")
	b.Finish("main", "b1", "//x", 2, failed, "", "")
	b.Reject("main", "a", "b1", "//x", 2)
	return b
}

func TestABuildTellsEveryRunOfItsSteps(t *testing.T) {
	b := rejectedTwice(t)
	build := changeOf(b, "a").Builds[0]
	if build.Steps[0].Attempt != 2 || len(build.Earlier) != 1 || build.Earlier[0].Attempt != 1 || build.Earlier[0].State != view.StepFailed || build.Earlier[0].Worker == "" {
		t.Errorf("the build is %+v", build)
	}
	b.Finish("main", "b1", "//x", 3, passed, "", "")
	if build := changeOf(b, "a").Builds[0]; len(build.Earlier) != 1 {
		t.Errorf("with a run after it had ended the build is %+v", build)
	}
}

// TestABuildEndsWithItsFailure, and not with what another build does with the same versions later.
func TestABuildEndsWithItsFailure(t *testing.T) {
	b := apitest.New("main")
	b.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf("a")})
	b.Schedule("main", "b1", "a", nil, "//x", "//y")
	b.Prepare("main", "b1", "a", "//x", "//y")
	b.Finish("main", "b1", "//x", 1, failed, "", "")
	ended := changeOf(b, "a").Builds[0].Steps[0].FinishedAt
	other := &eventsv1.StepFinished{Target: "//y", Hash: apitest.VersionOf("b1", "//y"), Attempt: 1, Build: "b2", Outcome: passed, Worker: "w2",
		StartedUs: ended.Add(20 * time.Second).UnixMicro(), FinishedUs: ended.Add(30 * time.Second).UnixMicro()}
	b.Fold("main", events.TopicBuilds, other)
	if build := changeOf(b, "a").Builds[0]; build.State != view.BuildFailed || !build.EndedAt.Equal(ended) {
		t.Errorf("the build ends at %s, want %s: %+v", build.EndedAt, ended, build)
	}
}

// TestAQuarantineChangesNothingOfABuildThatFailedBeforeIt: the runs stay, and that they are tolerated since is told.
func TestAQuarantineChangesNothingOfABuildThatFailedBeforeIt(t *testing.T) {
	b := rejectedTwice(t)
	before := changeOf(b, "a").Builds[0]
	since := before.EndedAt.Add(4 * time.Minute)
	b.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//x", StampUs: since.UnixMicro(), UntilUs: since.Add(24 * time.Hour).UnixMicro()})
	b.Fold("main", events.TopicBuilds, &eventsv1.StepFinished{Target: "//x", Hash: apitest.VersionOf("b1", "//x"), Attempt: 3, Build: "b2", Outcome: passed, Worker: "w2",
		StartedUs: since.Add(time.Second).UnixMicro(), FinishedUs: since.Add(2 * time.Second).UnixMicro()})
	c := changeOf(b, "a")
	after := c.Builds[0]
	if c.Failure == nil || c.Failure.Target != "//x" || c.Failure.Attempt != 2 {
		t.Errorf("the change's failure is %+v", c.Failure)
	}
	if after.State != view.BuildFailed || !after.EndedAt.Equal(before.EndedAt) || after.Steps[0].Attempt != 2 || after.Steps[0].Quarantined || len(after.Earlier) != 1 {
		t.Errorf("the build was %+v, and is %+v", before, after)
	}
	if want := "//x failed, and is tolerated since its quarantine at " + since.Format(time.DateTime) + " UTC"; after.Message != want {
		t.Errorf("the build says %q, want %q", after.Message, want)
	}
}
