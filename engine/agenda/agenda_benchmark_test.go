package agenda

import (
	"fmt"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// BenchmarkLanding is one landing among 500 analysed changes of 60 targets each, and what is wanted then.
func BenchmarkLanding(b *testing.B) {
	const pending, each = 500, 60
	q := New()
	q.Apply(&eventsv1.MainlineMoved{To: "m", Initial: true}, 0)
	offset := int64(1)
	admit := func(id string, nth int) {
		q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}},
		}}, offset)
		f := &eventsv1.ChangeAnalyzed{
			Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Base: q.Lineup.Head, Outcome: 1, Affected: &eventsv1.Affected{},
		}
		for i := range each {
			f.Affected.Targets = append(f.Affected.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%07d", nth*each+i)})
			f.Affected.Leaves = append(f.Affected.Leaves, fmt.Sprintf("file:f%07d", nth*each+i))
		}
		q.Apply(f, offset)
		offset++
	}
	for i := range pending {
		admit(fmt.Sprintf("c%d", i), i)
	}
	b.ResetTimer()
	for i := range b.N {
		id := fmt.Sprintf("c%d", i)
		commit := "m" + id
		ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
		q.Apply(&eventsv1.LandIntended{Change: ref, Commits: []string{commit}}, offset)
		q.Apply(&eventsv1.ChangeLanded{Change: ref, Commits: []string{commit}}, offset)
		if n := len(q.Wanted("")); n != 0 {
			b.Fatalf("%d wanted", n)
		}
		admit(fmt.Sprintf("c%d", pending+i), (pending+i)%pending)
	}
}
