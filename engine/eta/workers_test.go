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

// TestAStepThatHangsIsNotExpectedToHangForHours: a build of seconds that has run for two minutes goes on for some as many.
func TestAStepThatHangsIsNotExpectedToHangForHours(t *testing.T) {
	q := &Queue{Workers: 2}
	certain(q, 1, 1, 1, 1, false)
	q.Changes[0].Builds[0].Elapsed = 120
	if got := Of(q)[0]; got.P50 < 10 || got.P50 > 120 || got.P95 < 60 || got.P95 > 600 {
		t.Errorf("it goes on for %+v", got.Quantiles)
	}
}

// TestAPathThatDoesNotComeAboutTakesNoWorkers: its steps come last, and it is dead by then.
func TestAPathThatDoesNotComeAboutTakesNoWorkers(t *testing.T) {
	times := func(paths int) float64 {
		q := &Queue{Workers: 1}
		certain(q, 10, 10, 1, 1, false)
		q.Changes = append(q.Changes, Change{Seed: 7, Lands: 1, Duration: profile.Duration{Mean: 100}, Longest: 10, Ahead: []Ahead{{At: 0}}})
		lands := memberset.New(1)
		lands.Add(0)
		for i, path := range []memberset.Set{lands, memberset.New(1)}[:paths] {
			q.Waiting = append(q.Waiting, Waiting{Of: 1, Lands: path, Demand: Demand{Open: 1, Worth: 1 - 0.1*float64(i)}})
		}
		certain(q, 100, 10, 1, 0.1, true) // it comes last
		return Of(q)[2].P50
	}
	if one, two := times(1), times(2); math.Abs(one-210) > 5 || one != two {
		t.Errorf("behind the path that comes about: %g s; with another path beside it: %g s", one, two)
	}
}

// TestAQueueIsLateAsAWhole: what keeps one change waiting longer than simulated keeps the others waiting, too. The last of many to be
// decided is not later for their number.
func TestAQueueIsLateAsAWhole(t *testing.T) {
	decided := func(n int) float64 {
		q := &Queue{Workers: 1000}
		for range n {
			certain(q, 10, 10, 1, 1, false)
		}
		c := Change{Seed: 99, Lands: 1, Duration: profile.Duration{Mean: 10}, Longest: 10}
		for i := range n {
			c.Ahead = append(c.Ahead, Ahead{At: i})
		}
		all := memberset.New(n)
		for i := range n {
			all.Add(i)
		}
		c.Builds = []Build{{Lands: all, Demand: Demand{Open: 1, Worth: 1}}}
		q.Changes = append(q.Changes, c)
		return Of(q)[n].P50
	}
	if few, many := decided(1), decided(12); many > 1.05*few {
		t.Errorf("behind 1 change %g s, behind 12 of the same length %g s", few, many)
	}
}

// TestAPathThatIsNotBuiltYetDoesNotWaitForTheLikeliest: once its members show that it comes about, it is needed more than most.
func TestAPathThatIsNotBuiltYetDoesNotWaitForTheLikeliest(t *testing.T) {
	q := &Queue{Workers: 1}
	certain(q, 10, 10, 1, 1e6, false)
	q.Changes[0].Lands = 0.6
	q.Changes = append(q.Changes, Change{Seed: 7, Lands: 1, Duration: profile.Duration{Mean: 20}, Longest: 20, Ahead: []Ahead{{At: 0}}})
	for range 5 {
		certain(q, 100, 100, 1, 1000, false)
	}
	lands := memberset.New(1)
	lands.Add(0)
	q.Waiting = append(q.Waiting, Waiting{Of: 1, Lands: lands, Demand: Demand{Open: 1, Worth: 1e-6}})
	if got := Of(q)[1]; got.P5 > 100 || got.P95 < 500 {
		t.Errorf("it waits for five builds of 100 s, or begins when a change of 10 s is rejected: %+v", got.Quantiles)
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
