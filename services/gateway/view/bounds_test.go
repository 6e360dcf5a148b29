package view

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// TestNothingIsKeptOfRevisionsThatWereReplaced: builds are scheduled and a landing is decided for each of them, before
// and after its admission is read, and only the last one's are kept.
func TestNothingIsKeptOfRevisionsThatWereReplaced(t *testing.T) {
	q := New("main", DefaultLimits())
	offset := int64(0)
	fold := func(topic string, m *journal.Entry) {
		m.Topic, m.Offset = topic, offset
		offset++
		q.Fold(*m)
	}
	const revisions = 200 // more than events are kept of a change that is not known yet
	decide := func(revision uint64) {
		e := &journal.Entry{}
		e.Message = &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{
			LandDecided: &eventsv1.LandDecided{Change: &eventsv1.ChangeRef{Change: "c", Revision: revision}, Decision: fmt.Sprint("d", revision)},
		}}}}
		fold(events.TopicDecisions, e)
	}
	for revision := uint64(1); revision <= revisions; revision++ {
		if revision%2 == 0 {
			decide(revision)
		}
		e := &journal.Entry{}
		a := &eventsv1.Admission{Queue: "main", Change: "c", Revision: revision, RequestId: fmt.Sprint(revision),
			Entries: []*eventsv1.Entry{{Commit: fmt.Sprintf("%040d", revision)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprintf("%040d", revision)}}}
		if e.Message = (&eventsv1.ChangeRevised{Admission: a}); revision == 1 {
			e.Message = &eventsv1.ChangeAdmitted{Admission: a}
		}
		fold(events.TopicChanges, e)
		decide(revision)
		decide(revision - 1)
	}
	if len(q.open) != 1 || len(q.early.events) != 0 || len(q.builds.ofChange) != 0 || len(q.history.decisions) != 1 || len(q.history.from) != 0 {
		t.Errorf("kept are %d decisions, %d early events, builds of %d changes, rulings of %d, marks of %d", len(q.open), len(q.early.events), len(q.builds.ofChange), len(q.history.decisions), len(q.history.from))
	}
}

// TestTheHistoryKeptForExplanationsIsBounded by what is pending and what is kept, while one change is held and thousands pass it.
func TestTheHistoryKeptForExplanationsIsBounded(t *testing.T) {
	limits := DefaultLimits()
	limits.Finished, limits.Builds = 50, 100
	q := New("main", limits)
	offset := int64(0)
	fold := func(topic string, m proto.Message) {
		e := journal.Entry{Topic: topic, Offset: offset}
		e.Message = m
		offset++
		q.Fold(e)
	}
	admit := func(id string, position int64) {
		a := &eventsv1.Admission{Queue: "main", Change: id, Revision: 1, RequestId: id, Entries: []*eventsv1.Entry{{Commit: fmt.Sprintf("%040d", position)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprintf("%040d", position)}}}
		fold(events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: a})
		of := &eventsv1.ChangeRef{Change: id, Revision: 1}
		fold(events.TopicProfiles, &eventsv1.Profile{Position: offset, Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: of, Position: position, Analyzed: true}}},
			Predictions: []*eventsv1.Prediction{{Change: of, Success: 0.5, SuccessSource: fmt.Sprint("model-", position), Features: make([]float32, 100)}}})
		fold(events.TopicDecisions, &eventsv1.Decision{Position: offset, Items: []*eventsv1.DecisionItem{
			{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: &eventsv1.BuildScheduled{Build: "b" + id, Change: &eventsv1.AssumedChange{Change: of}}}},
			{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{Change: of, Decision: "d" + id}}}}})
		fold(events.TopicPriorities, &eventsv1.Priority{Position: offset, Worthless: []*eventsv1.WorthlessBuild{{Build: "b" + id}, {Build: "nobody knows " + id}}})
	}
	admit("held", 1)
	for i := range int64(3000) {
		id := fmt.Sprint("c", i)
		admit(id, i+2)
		fold(events.TopicChanges, &eventsv1.ChangeCancelled{Change: id})
		fold(events.TopicProfiles, &eventsv1.Profile{Position: offset, Delta: &eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}}}}})
	}
	if len(q.history.named) > 2*q.known.Nodes()+65 || len(q.history.from) > 51 || len(q.history.decisions) > 51 || len(q.builds.worthless) > limits.Builds+1 {
		t.Errorf("%d were told, from %d marks, %d rulings, flags of %d builds", len(q.history.named), len(q.history.from), len(q.history.decisions), len(q.builds.worthless))
	}
	if i, _ := q.Inquire("c2999"); !i.WantsLog() || i.Offset != 1 {
		t.Errorf("the past of the last one begins at %d: the held one was there all the time", i.Offset)
	}
}

// TestTheVersionsThatBuildsHoldAreBounded: of changes that affect very many targets fewer builds are kept, and those that run are.
func TestTheVersionsThatBuildsHoldAreBounded(t *testing.T) {
	q := New("main", DefaultLimits())
	offset := int64(0)
	fold := func(topic string, m proto.Message) {
		e := journal.Entry{Topic: topic, Offset: offset}
		e.Message = m
		offset++
		q.Fold(e)
	}
	const each = maxVersionsOfBuilds / 4
	run := func(id string, target *eventsv1.TargetVersion) {
		a := &eventsv1.Admission{Queue: "main", Change: id, Revision: 1, RequestId: id, Entries: []*eventsv1.Entry{{Commit: id}}, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}
		fold(events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: a})
		of := &eventsv1.ChangeRef{Change: id, Revision: 1}
		fold(events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
			BuildScheduled: &eventsv1.BuildScheduled{Build: "b" + id, Change: &eventsv1.AssumedChange{Change: of}}}}}})
		versions := slices.Repeat([]*eventsv1.TargetVersion{{Target: "//t", Trivial: true}}, each)
		versions[0] = target
		fold(events.TopicBuilds, &eventsv1.BuildPrepared{Build: "b" + id, Change: of, Versions: versions, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED})
	}
	run("runs", &eventsv1.TargetVersion{Target: "//slow", Hash: "h"})
	for i := range 10 {
		run(fmt.Sprint("c", i), &eventsv1.TargetVersion{Target: "//t", Trivial: true})
	}
	kept := slices.Sorted(maps.Keys(q.builds.byID))
	if want := []string{"bc7", "bc8", "bc9", "bruns"}; !slices.Equal(kept, want) || q.builds.versions != 4*each {
		t.Errorf("kept are %q with %d versions, want %q with %d", kept, q.builds.versions, want, 4*each)
	}
	again, err := Restore(q.Snapshot(), "main", DefaultLimits())
	if err != nil || again.builds.versions != q.builds.versions {
		t.Errorf("a view that goes on counts %d versions, %v", again.builds.versions, err)
	}
}
