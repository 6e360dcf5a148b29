package steps

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// manyBuilds has 1,000 builds of a hundred open steps each. Every tenth step is shared with the build before.
func manyBuilds() *Queue {
	q := New()
	for b := range 1000 {
		id := fmt.Sprint("build-", b)
		s := scheduled(id, 1/float64(1+b%7))
		s.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: fmt.Sprint("change-", b/2), Revision: 1}}
		p := &eventsv1.BuildPrepared{Build: id, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for i := range 100 {
			of := b
			if i%10 == 0 {
				of = b &^ 1
			}
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprintf("//services/area%d:target%d", of%100, i), Hash: fmt.Sprintf("%064x", of)})
		}
		q.Apply(&eventsv1.Decision{StampUs: int64(b), Items: []*eventsv1.DecisionItem{s}}, Origin{})
		q.Apply(p, Origin{})
	}
	return q
}

// BenchmarkStep is one step of 1,000 builds with 100,000 open steps, while 64 run: which comes next, and with the step's lease
// and its end.
func BenchmarkStep(b *testing.B) {
	b.Run("choice", func(b *testing.B) {
		q, now := manyBuilds(), int64(0)
		q.Next(0, 1, nil, nil)
		for b.Loop() {
			now += 1000
			q.Next(now, 1, nil, nil)
		}
	})
	b.Run("choice,lease,end", func(b *testing.B) {
		var q *Queue
		var running []Step
		now, left := int64(0), 0
		for b.Loop() {
			if left == 0 {
				b.StopTimer()
				q, running, left = manyBuilds(), nil, 50_000
				b.StartTimer()
			}
			left--
			now += 1000
			s := q.Next(now, 1, nil, nil)[0]
			q.Apply(&eventsv1.StepLeased{Target: s.Target, Hash: s.Hash, Attempt: 1, Lease: "l", StampUs: now, UntilUs: now + 1e9}, Origin{})
			if running = append(running, s); len(running) > 64 {
				s, running = running[0], running[1:]
				q.Apply(&eventsv1.StepFinished{Target: s.Target, Hash: s.Hash, Attempt: 1, Outcome: passed, StartedUs: now - 64_000, FinishedUs: now}, Origin{})
			}
		}
	})
}
