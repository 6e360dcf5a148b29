package steps

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// interleavings returns every order of the records in which those of each topic keep theirs.
func interleavings(topics ...[]proto.Message) [][]proto.Message {
	var all [][]proto.Message
	for i, topic := range topics {
		if len(topic) == 0 {
			continue
		}
		rest := append([][]proto.Message(nil), topics...)
		rest[i] = topic[1:]
		for _, tail := range interleavings(rest...) {
			all = append(all, append([]proto.Message{topic[0]}, tail...))
		}
	}
	if all == nil {
		return [][]proto.Message{nil}
	}
	return all
}

// Topics are read side by side, and after a restart in another order than live. For the selector these builds are over, so it
// aborts none of them.
func TestABuildOfAChangeThatHasLeftWantsNothingInWhateverOrderItsRecordsAreRead(t *testing.T) {
	c := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	version := &eventsv1.TargetVersion{Target: "//t", Hash: "h"}
	admitted := &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "c", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: "f00d"}}}}
	schedule := scheduled("b", 1)
	schedule.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: c}
	decisions := []proto.Message{&eventsv1.Decision{Items: []*eventsv1.DecisionItem{schedule}}}
	builds := func(outcome eventsv1.StepOutcome) []proto.Message {
		return []proto.Message{
			&eventsv1.BuildPrepared{Build: "b", Change: c, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{version}},
			&eventsv1.StepFinished{Target: "//t", Hash: "h", Attempt: 1, Outcome: outcome},
		}
	}
	forgotten := &eventsv1.EvidenceForgotten{Versions: []*eventsv1.TargetVersion{version}}
	for what, topics := range map[string][3][]proto.Message{
		"rejected, which takes its evidence back": {decisions, builds(failed), {admitted, &eventsv1.ChangeRejected{Change: c, Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{{Version: version, Attempt: 1}}}}}},
		"cancelled, and its evidence forgotten":   {decisions, append(builds(failed), forgotten), {admitted, &eventsv1.ChangeCancelled{Change: "c"}}},
		"landed, and its evidence forgotten":      {decisions, append(builds(passed), forgotten), {admitted, &eventsv1.LandIntended{Change: c, Commits: []string{"beef"}}, &eventsv1.ChangeLanded{Change: c, Commits: []string{"beef"}}}},
	} {
		for _, order := range interleavings(topics[:]...) {
			q := New()
			read := ""
			for _, m := range order {
				q.Apply(m, Origin{})
				read += fmt.Sprintf(" %T", m)
			}
			if steps := next(q, 0); steps != "" || !q.Idle() || len(q.Preparations(0)) > 0 {
				t.Errorf("%s: read as%s, the builder would run %q, and idle is %v", what, read, steps, q.Idle())
			}
		}
	}
}
