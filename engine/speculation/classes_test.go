package speculation

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// large returns a queue of changes that all affect the same targets, each built on top of those ahead of it.
func large(t *testing.T, changes, targets int) *testQueue {
	q := newTestQueue(t)
	var affected []*eventsv1.TargetVersion
	for i := range targets {
		affected = append(affected, &eventsv1.TargetVersion{Target: fmt.Sprintf("//p%d:t", i), Hash: "h", Part: 1})
	}
	var ahead []*eventsv1.ChangeRef
	for i := range changes {
		ref := &eventsv1.ChangeRef{Change: fmt.Sprint("c", i), Revision: 1}
		q.take(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: ref.Change, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: ref.Change}}}})
		q.take(&eventsv1.ChangeAnalyzed{Change: ref, Base: "m0", Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{Targets: affected}})
		var versions []*eventsv1.TargetVersion
		for _, v := range affected {
			versions = append(versions, &eventsv1.TargetVersion{Target: v.Target, Hash: fmt.Sprint("on ", i), Part: 1})
		}
		q.take(&eventsv1.BuildPrepared{Build: fmt.Sprint("b", i), Change: ref, Base: "m0", Assumed: ahead, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: versions})
		ahead = append(ahead, ref)
	}
	q.Fold(q.Decide())
	return q
}

// BenchmarkOutcomesOfManyTargets measures the outcomes of the last of 40 changes that affect the same targets.
func BenchmarkOutcomesOfManyTargets(b *testing.B) {
	q := large(&testing.T{}, 40, 2_000)
	c := q.Lineup.Pending("c39")
	a := q.analyses.pending["c39"]
	ahead, _ := q.ahead(c, a)
	b.ReportAllocs()
	for b.Loop() {
		if k := q.classes(a, ahead); len(k) != 1 || len(k[0].Targets) != 2_000 {
			b.Fatalf("%d classes", len(k))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2_000, "ns/target")
}
