package builder

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

// BenchmarkDecisionToResult is what the builder adds to a step that takes no time: a decision is read, a
// tree is made of two changes, a lease goes to the log and back, the tree is checked out, /bin/true runs.
func BenchmarkDecisionToResult(b *testing.B) {
	s := newSite(b, memory.Options{})
	base := s.commit("", map[string]string{"landfall.yaml": "targets: [{name: t, sources: [\"*\"], steps: [{name: check, run: [\"true\"]}]}]\n"})
	s.start("a", func(o *Options) { o.Logger = slog.New(slog.DiscardHandler) })
	var commits []string
	for i := range b.N {
		commits = append(commits, s.commit(base, map[string]string{"x": fmt.Sprintln(i)}))
	}
	var toPrepared, toFinished []time.Duration
	b.ResetTimer()
	for i, c := range commits {
		build := s.scheduled(fmt.Sprint("b", i), base, asked("//:t")...)
		build.Change = change("C", pick(base, c))
		began := time.Now()
		s.decide(build)
		s.prepared(build.Build)
		toPrepared = append(toPrepared, time.Since(began))
		if f := s.finished("//:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			b.Fatal(f)
		}
		toFinished = append(toFinished, time.Since(began))
	}
	b.StopTimer()
	slices.Sort(toPrepared)
	slices.Sort(toFinished)
	b.ReportMetric(float64(toPrepared[len(toPrepared)/2].Microseconds())/1000, "p50-ms-to-prepared")
	b.ReportMetric(float64(toFinished[len(toFinished)/2].Microseconds())/1000, "p50-ms-to-finished")
}

// BenchmarkFold is one step's records and a look at what comes next, with a build of 30,000 targets live.
func BenchmarkFold(b *testing.B) {
	q := steps.New()
	p := &eventsv1.BuildPrepared{Build: "big", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for i := range max(30_000, b.N+1) {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprintf("//folder/of/target:%d", i), Hash: "h"})
	}
	q.Apply(&eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
		BuildScheduled: &eventsv1.BuildScheduled{Build: "big", Steps: &eventsv1.StepPolicy{}}}}}}, steps.Origin{})
	q.Apply(p, steps.Origin{})
	b.ResetTimer()
	for i := range b.N {
		step := q.Next(int64(i), 4, nil, nil)[0]
		q.Apply(&eventsv1.StepLeased{Target: step.Target, Hash: step.Hash, Attempt: 1, Lease: "l", StampUs: int64(i), UntilUs: int64(i) + 100}, steps.Origin{})
		q.Apply(&eventsv1.StepFinished{Target: step.Target, Hash: step.Hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}, steps.Origin{})
	}
}
