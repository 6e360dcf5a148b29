package view

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// TestABuildHasPassedOnceAllVersionsAreProven, in whatever order, and its versions are not all counted for each one: a build of a change that
// affects 100,000 targets would be counted as often, and meanwhile nobody is answered.
func TestABuildHasPassedOnceAllVersionsAreProven(t *testing.T) {
	for _, order := range [][]string{{"//a", "//b", "//c"}, {"//c", "//b", "//a"}, {"//b", "//c", "//a"}, {"//c", "//a", "//b"}} {
		q, offset := New("main", DefaultLimits()), int64(0)
		fold := func(topic string, m proto.Message) {
			e := journal.Entry{Topic: topic, Offset: offset}
			e.Message = m
			offset++
			q.Fold(e)
		}
		c := &eventsv1.ChangeRef{Change: "c", Revision: 1}
		fold(events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: "c", Revision: 1}})
		fold(events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{
			Build: "b", Change: &eventsv1.AssumedChange{Change: c}}}}}})
		fold(events.TopicBuilds, &eventsv1.BuildPrepared{Build: "b", Change: c, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
			Versions: []*eventsv1.TargetVersion{{Target: "//a", Hash: "h"}, {Target: "//t", Trivial: true}, {Target: "//b", Hash: "h"}, {Target: "//c", Hash: "h"}}})
		b := q.builds.byID["b"]
		for i, target := range order {
			if b.passed || b.progress.at != 0 {
				t.Errorf("%v: before the last step the build has passed (%t), or its steps were counted (%d)", order, b.passed, b.progress.at)
			}
			end := &eventsv1.StepFinished{Target: target, Hash: "h", Attempt: 1, Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED}
			fold(events.TopicBuilds, end)
			end = proto.CloneOf(end)
			end.Attempt, end.Outcome = 2, eventsv1.StepOutcome_STEP_OUTCOME_PASSED
			fold(events.TopicBuilds, end)
			if i == len(order)-1 && !b.passed {
				t.Errorf("%v: the build has not passed", order)
			}
		}
	}
}

// TestAnAnalysisCostsWhatItIsLong: one that has a million of each was compared each with each.
func TestAnAnalysisCostsWhatItIsLong(t *testing.T) {
	q := New("main", DefaultLimits())
	a := &eventsv1.Affected{AddedEdges: []string{"//lib"}}
	for i := range 1_000_000 {
		label := "//big:t" + strconv.Itoa(i)
		a.Targets = append(a.Targets, &eventsv1.TargetVersion{Target: label, Trivial: true})
		a.Leaves = append(a.Leaves, "//:big/"+strconv.Itoa(i))
		a.AddedEdges = append(a.AddedEdges, a.Leaves[i], label)
	}
	for offset, m := range []proto.Message{
		&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: "c", Revision: 1, RequestId: "r",
			Entries: []*eventsv1.Entry{{Commit: strings.Repeat("1", 40)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: strings.Repeat("1", 40)}}}},
		&eventsv1.ChangeAnalyzed{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: a},
	} {
		e := journal.Entry{Topic: events.TopicChanges, Offset: int64(offset)}
		e.Message = m
		q.Fold(e)
	}
	analysis := q.pendingAt(ref{"c", 1}).analysis
	if !slices.Equal(analysis.needs, []string{"//lib"}) || analysis.TargetsTotal != 1_000_000 {
		t.Errorf("of %d targets, %v are needed", analysis.TargetsTotal, analysis.needs)
	}
}
