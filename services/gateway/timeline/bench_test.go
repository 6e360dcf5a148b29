package timeline_test

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/timeline"
	"landfall.build/services/gateway/view"
)

// BenchmarkATimeline is an hour of 64 workers that run 5,000 steps of 20 to 60 seconds for 1,000 builds, in a view that keeps ten times as
// many. taking is what the queue is locked for.
func BenchmarkATimeline(b *testing.B) {
	q, offset := view.New("main", view.DefaultLimits()), int64(0)
	start := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	put := func(topic string, m proto.Message) {
		e := journal.Entry{Topic: topic, Offset: offset}
		e.Message = m
		offset++
		q.Fold(e)
	}
	const workers, steps, builds = 64, 50_000, 10_000
	put(events.TopicProfiles, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: workers}}})
	var end time.Time
	for i := range steps {
		row := i / workers
		at := start.Add(time.Duration(row) * 45 * time.Second)
		build := fmt.Sprint("b", i*builds/steps)
		if i%(steps/builds) == 0 {
			s := &eventsv1.BuildScheduled{Build: build, Change: &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: "c" + build, Revision: 1}}}
			put(events.TopicDecisions, &eventsv1.Decision{StampUs: at.UnixMicro(), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: s}}}})
			p := &eventsv1.BuildPrepared{Build: build, Change: s.Change.Change, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, FinishedUs: at.UnixMicro()}
			for n := range steps / builds {
				p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprint("//t", n), Hash: build})
			}
			put(events.TopicBuilds, p)
		}
		end = at.Add(time.Duration(20+i%40) * time.Second)
		put(events.TopicBuilds, &eventsv1.StepFinished{Target: fmt.Sprint("//t", i%(steps/builds)), Hash: build, Attempt: 1, Build: build, Worker: fmt.Sprint("m/", i%workers+1), Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: at.UnixMicro(), FinishedUs: end.UnixMicro()})
	}
	var taking time.Duration
	for b.Loop() {
		began := time.Now()
		a := q.Activity(end.Add(-time.Hour), end)
		taking += time.Since(began)
		if made := timeline.Make("default", end.Add(-time.Hour), end, []timeline.Activity{{Activity: a}}, nil); len(made.Workers) != workers || made.BusyMS == 0 {
			b.Fatalf("%d workers, busy for %d ms", len(made.Workers), made.BusyMS)
		}
	}
	b.ReportMetric(float64(taking.Microseconds())/1000/float64(b.N), "taking-ms/op")
}
