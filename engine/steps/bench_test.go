package steps

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// manyBuilds has 1,000 builds of a hundred open steps each. Every tenth step is shared with the build before. They are of 200 authors.
func manyBuilds(quotas *eventsv1.Quotas) *Queue {
	q := New()
	q.SetQuotas(quotas)
	for change := range 700 {
		admitOne(q, change)
	}
	for b := range 1000 {
		scheduleOne(q, b)
	}
	return q
}

func admitOne(q *Queue, change int) {
	q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: fmt.Sprint("change-", change), Revision: 1, Author: fmt.Sprintf("Author <author-%d@example.com>", change%200),
		LandingCommits: []*eventsv1.LandingCommit{{Head: "h"}}}}, Origin{})
}

func scheduleOne(q *Queue, b int) {
	s, p := oneBuild(b)
	q.Apply(s, Origin{})
	q.Apply(p, Origin{})
}

func oneBuild(b int) (*eventsv1.Decision, *eventsv1.BuildPrepared) {
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
	return &eventsv1.Decision{StampUs: int64(b), Items: []*eventsv1.DecisionItem{s}}, p
}

// spent has how long each of many calls took.
type spent map[string][]time.Duration

func (s spent) on(what string, call func()) {
	began := time.Now()
	call()
	s[what] = append(s[what], time.Since(began))
}

// report reports the median, which other load hardly moves, and the mean, which includes the rare long calls.
func (s spent) report(b *testing.B) {
	for what, took := range s {
		slices.Sort(took)
		var sum time.Duration
		for _, d := range took {
			sum += d
		}
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, what+"-p50-µs")
		b.ReportMetric(float64(sum.Nanoseconds())/1000/float64(len(took)), what+"-mean-µs")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkStep is the life of steps of 1,000 builds with 100,000 open steps while 64 run, a step each millisecond: which comes
// next, its lease, its end, and each hundredth time a build that ends and one that begins. With quotas
// some authors and teams are at their limits all the time.
func BenchmarkStep(b *testing.B) {
	b.Run("quotas=none", func(b *testing.B) { benchmarkStep(b, nil) })
	quotas := &eventsv1.Quotas{Queue: 1000, Author: 4, Authors: []*eventsv1.AuthorQuota{{Who: []string{"author-1*@example.com"}, Steps: 6}}}
	for i := range 20 {
		quotas.Teams = append(quotas.Teams, &eventsv1.TeamQuota{Name: fmt.Sprint("team-", i), Who: []string{fmt.Sprintf("*%d@example.com", i)}, Steps: 24})
	}
	b.Run("quotas=three", func(b *testing.B) { benchmarkStep(b, quotas) })
}

func benchmarkStep(b *testing.B, quotas *eventsv1.Quotas) {
	var q *Queue
	var running []Step
	now, left, builds := int64(0), 0, 0
	took := spent{}
	for b.Loop() {
		if left == 0 {
			q, running, left, builds = manyBuilds(quotas), nil, 20_000, 1000
			q.Next(now, 1, nil, nil)
			runtime.GC()
		}
		left--
		now += 1000
		var s Step
		took.on("choice", func() { s = q.Next(now, 1, nil, nil)[0] })
		lease := &eventsv1.StepLeased{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Lease: "l", StampUs: now, UntilUs: now + 1e9, Quotas: s.Quotas}
		took.on("lease", func() { q.Apply(lease, Origin{}) })
		if running = append(running, s); len(running) > 64 {
			s, running = running[0], running[1:]
			end := &eventsv1.StepFinished{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Outcome: passed, StartedUs: now - 64_000, FinishedUs: now}
			kind := "pass"
			if left%20 == 0 {
				end.Outcome, kind = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "failure"
			}
			took.on(kind, func() { q.Apply(end, Origin{}) })
		}
		if left%100 == 0 {
			s, p := oneBuild(builds)
			s.StampUs = now
			revalued := &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildRevalued{BuildRevalued: &eventsv1.BuildRevalued{Build: fmt.Sprint("build-", builds-500), Value: 0.3}}}
			aborted := &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: fmt.Sprint("build-", builds-900)}}}
			s.Items = append(s.Items, revalued, aborted)
			builds++
			took.on("decision", func() { q.Apply(s, Origin{}) })
			took.on("prepared", func() { q.Apply(p, Origin{}) })
			took.on("admitted", func() { admitOne(q, builds) })
		}
	}
	took.report(b)
}
