package eta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
	"landfall.build/events/seedtest"
)

// certain adds a change that lands for certain, with one build, which runs or waits.
func certain(q *Queue, work, longest, open, worth float64, waits bool) {
	c := Change{Seed: uint64(len(q.Changes)), Lands: 1, Duration: profile.Duration{Mean: work}, Longest: longest}
	d := Demand{Open: open, Worth: worth}
	if waits {
		q.Waiting = append(q.Waiting, Waiting{Of: len(q.Changes), Lands: memberset.New(0), Demand: d})
	} else {
		c.Builds = []Build{{Lands: memberset.New(0), Demand: d}}
	}
	q.Changes = append(q.Changes, c)
}

// TestBuildsShareWorkersByWorthOverWork compares the medians with a twin that serves one build after the other.
func TestBuildsShareWorkersByWorthOverWork(t *testing.T) {
	r := seedtest.Random(t)
	for range 200 {
		q := &Queue{Workers: 1 + r.IntN(8)}
		type one struct{ at, index, work, longest float64 }
		var all []one
		for i := range 1 + r.IntN(12) {
			work, open, worth := 10+1000*r.Float64(), 0.1+0.9*r.Float64(), 0.1+r.Float64()
			longest := work * r.Float64()
			certain(q, work, longest, open, worth, r.IntN(2) == 0)
			all = append(all, one{float64(i), worth / (work * open), work * open, longest})
		}
		got := Of(q)
		slices.SortFunc(all, func(a, b one) int { return int(math.Copysign(1, b.index-a.index)) })
		busy := 0.0
		for _, x := range all {
			want := busy + math.Max(x.work/float64(q.Workers), math.Min(x.longest, x.work))
			busy += x.work / float64(q.Workers)
			e := got[int(x.at)]
			// What waits takes as long as its longest step does from when it begins.
			if math.Abs(e.P50-want) > 0.02*want+1e-6 || e.P5 >= e.P50 || e.P95 <= e.P50 {
				t.Fatalf("change %g: %+v, want about %g of %+v", x.at, e.Quantiles, want, q)
			}
		}
	}
}

// TestWhatWaitsForAWorkerIsNotTakenToRun: a build that has waited among others for long is not expected at any moment.
func TestWhatWaitsForAWorkerIsNotTakenToRun(t *testing.T) {
	q := &Queue{Workers: 2}
	for range 20 {
		certain(q, 100, 10, 1, 1, false)
	}
	for i := range q.Changes {
		q.Changes[i].Builds[0].Elapsed = 500
	}
	got := Of(q)
	if last := got[19]; last.P50 < 300 || last.P95 < last.P50+100 {
		t.Errorf("the last of 20 builds of 100 s on 2 workers, after 500 s: %+v", last.Quantiles)
	}
	if first := got[0]; first.P50 > 500 {
		t.Errorf("the first: %+v", first.Quantiles)
	}
}

func BenchmarkOfWorkers(b *testing.B) {
	for _, s := range [][2]int{{100, 100}, {1000, 16}, {10_000, 16}} {
		b.Run(fmt.Sprintf("n=%d/ahead=%d", s[0], s[1]), func(b *testing.B) {
			q := randomQueue(rand.New(rand.NewPCG(1, 1)), s[0], s[1])
			q.Workers = 64
			for i := range q.Changes {
				q.Changes[i].Unknown = ""
				for k := range q.Changes[i].Builds {
					q.Changes[i].Builds[k].Demand = Demand{Open: 1, Worth: 1}
				}
			}
			for i := range q.Waiting {
				q.Waiting[i].Demand = Demand{Open: 1, Worth: 1}
			}
			b.ReportAllocs()
			for b.Loop() {
				Of(q)
			}
		})
	}
}
