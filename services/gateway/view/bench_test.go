package view_test

import (
	"fmt"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// BenchmarkWatchingAFullQueue is what one client that watches costs for each batch that it is sent: 500
// pending changes, each with three builds of ten steps.
func BenchmarkWatchingAFullQueue(b *testing.B) {
	q := fullQueue(b)
	fact := &eventsv1.QueueResumed{}
	for b.Loop() {
		put(q, events.TopicChanges, fact)
		q.Overview()
		q.Since(q.Sequence(), nil)
	}
}

// BenchmarkFoldingAStep is what a finished step costs.
func BenchmarkFoldingAStep(b *testing.B) {
	q := fullQueue(b)
	n := 0
	for b.Loop() {
		n++
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: fmt.Sprint(n), Attempt: 1, Build: "b1-1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, OutputTail: make([]byte, 4096)})
	}
}

func fullQueue(b *testing.B) *view.Queue {
	q := view.New(main, view.DefaultLimits())
	for i := range 500 {
		id := fmt.Sprint("c", i)
		put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: admissionOf(id)})
		for k := range 3 {
			build := fmt.Sprintf("b%d-%d", i, k)
			p := &eventsv1.BuildPrepared{Build: build, Change: refOf(id), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
			for s := range 10 {
				p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprint("//t", s), Hash: build})
			}
			put(q, events.TopicDecisions, scheduled(build, id))
			put(q, events.TopicBuilds, p)
			put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//t1", Hash: build, Attempt: 1, Build: build, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
		}
	}
	return q
}
