package eta

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"

	"landfall.build/events/seedtest"
)

// TestM12TheEstimateOfWhatRunsIsTheTruncatedNormal compares the quantiles with those of the summed density. What is later than its mean by
// two deviations has a larger one: what it is late by, less the one predicted.
func TestM12TheEstimateOfWhatRunsIsTheTruncatedNormal(t *testing.T) {
	for elapsed, deviation := range map[float64]float64{0: 10, 20: 10, 60: 10, 75: 10, 80: 10, 100: 30, 200: 130} {
		d := profile.Duration{Mean: 60, Std: 10}
		q := &Queue{Slots: 1, Changes: []Change{{Seed: 7, Lands: 0.9, Duration: d, Builds: []Build{{Elapsed: elapsed}}}}}
		got := Of(q)[0]
		density := func(x float64) float64 { return math.Exp(-(x - 60) * (x - 60) / 2 / deviation / deviation) }
		all := 0.0
		const step = 0.001
		to := elapsed + 15*deviation
		for x := elapsed; x < to; x += step {
			all += density(x)
		}
		want, sum := []float64{}, 0.0
		for x := elapsed; len(want) < 5 && x < to; x += step {
			for sum += density(x); len(want) < 5 && sum >= all*[]float64{0.05, 0.25, 0.5, 0.75, 0.95}[len(want)]; {
				want = append(want, x-elapsed)
			}
		}
		for i, g := range []float64{got.P5, got.P25, got.P50, got.P75, got.P95} {
			// One of 256 samples lies between.
			if math.Abs(g-want[i]) > 0.015*deviation+0.02*want[i] {
				t.Errorf("after %g s the quantile %d is %g, want %g", elapsed, i, g, want[i])
			}
		}
	}
}

// TestTheLaterABuildIsTheLongerItIsExpectedToTake from two deviations on; before, it comes nearer with each second.
func TestTheLaterABuildIsTheLongerItIsExpectedToTake(t *testing.T) {
	left := func(elapsed float64) float64 {
		q := &Queue{Slots: 1, Changes: []Change{{Seed: 7, Lands: 1, Duration: profile.Duration{Mean: 60, Std: 10}, Builds: []Build{{Elapsed: elapsed}}}}}
		return Of(q)[0].P95
	}
	for elapsed := 10.0; elapsed <= 80; elapsed += 10 {
		if now, before := left(elapsed), left(elapsed-10); now >= before {
			t.Errorf("after %g s it takes %g s more, ten seconds before %g", elapsed, now, before)
		}
	}
	for elapsed := 90.0; elapsed < 2000; elapsed *= 1.5 {
		if now, before := left(elapsed), left(elapsed/1.2); now <= before {
			t.Errorf("after %g s it takes %g s more, after %g s %g", elapsed, now, elapsed/1.2, before)
		}
	}
}

// life is the simple twin: it goes through the queue minute by minute. Durations and outcomes are certain, and there are slots for
// all.
type life struct {
	lands, decided []bool
	at, shown      []int
	since          []int          // of the build of each change
	on             []map[int]bool // whom that assumes to land
}

func live(lands []bool, likely []bool, ahead [][]int, takes, elapsed []int) *life {
	n := len(lands)
	l := &life{lands: lands, decided: make([]bool, n), at: make([]int, n), shown: make([]int, n), since: make([]int, n), on: make([]map[int]bool, n)}
	for i := range n {
		l.shown[i], l.since[i] = -1, -elapsed[i]
		l.on[i] = map[int]bool{}
		for _, k := range ahead[i] {
			l.on[i][k] = likely[k]
		}
	}
	for now := 0; slices.Contains(l.decided, false); now++ {
		for again := true; again; {
			again = false
			for i := range n {
				// A member that has shown its outcome is known from then on: a build that assumed otherwise is begun again.
				for _, k := range ahead[i] {
					if l.shown[k] >= 0 && l.on[i][k] != lands[k] {
						l.on[i][k], l.since[i], again = lands[k], now, true
					}
				}
				right := !slices.ContainsFunc(ahead[i], func(k int) bool { return l.on[i][k] != lands[k] })
				if l.shown[i] < 0 && right && now >= l.since[i]+takes[i] {
					l.shown[i], again = now, true
				}
				// The paths with one that is shown to be red are dead, if it has nothing else ahead.
				waits := slices.ContainsFunc(ahead[i], func(k int) bool {
					outside := slices.ContainsFunc(ahead[k], func(x int) bool { return !slices.Contains(ahead[i], x) })
					return !l.decided[k] && (lands[k] || l.shown[k] < 0 || outside)
				})
				if !l.decided[i] && l.shown[i] >= 0 && !waits {
					l.decided[i], l.at[i], again = true, now, true
				}
			}
		}
	}
	return l
}

// TestAnEstimateIsWhatASimpleSimulationGives where nothing is left to chance.
func TestAnEstimateIsWhatASimpleSimulationGives(t *testing.T) {
	r := seedtest.Random(t)
	surprises := 0
	for range 3000 {
		n := 1 + r.IntN(9)
		q := &Queue{Slots: 100, Threshold: 0.5, Changes: make([]Change, n)}
		lands, likely, ahead, takes, elapsed := make([]bool, n), make([]bool, n), make([][]int, n), make([]int, n), make([]int, n)
		for i := range n {
			c := &q.Changes[i]
			lands[i], likely[i], takes[i] = r.IntN(3) > 0, r.IntN(4) > 0, r.IntN(20)
			elapsed[i] = r.IntN(takes[i] + 1)
			for k := range i {
				if r.IntN(2) == 0 {
					ahead[i] = append(ahead[i], k)
					c.Ahead = append(c.Ahead, Ahead{At: k})
				}
			}
			// The likelier way is taken for granted until a build shows the other one.
			c.Seed, c.Duration, c.Lands = r.Uint64(), profile.Duration{Mean: float64(takes[i])}, 1
			if !likely[i] {
				c.Lands = 0
			}
			b := Build{Lands: memberset.New(len(ahead[i])), Elapsed: float64(elapsed[i])}
			for j, k := range ahead[i] {
				if likely[k] {
					b.Lands.Add(j)
				}
			}
			c.Builds = []Build{b}
			if lands[i] != likely[i] {
				surprises++
			}
		}
		x := newSampler(q)
		x.draw()
		for i := range n { // the outcomes are not drawn but set
			for s := range x.samples {
				x.lands[i][s/64] &^= 1 << (s % 64)
				if lands[i] {
					x.lands[i][s/64] |= 1 << (s % 64)
				}
			}
		}
		x.assignSlots()
		want := live(lands, likely, ahead, takes, elapsed)
		for i := range n {
			x.decide(i)
			if got := x.quantiles(x.decided[i]); got.P5 != float64(want.at[i]) || got.P95 != float64(want.at[i]) {
				t.Fatalf("change %d is decided at %v, want %d: lands %v, likely %v, ahead %v, takes %v, elapsed %v", i, got, want.at[i], lands, likely, ahead, takes, elapsed)
			}
		}
	}
	if surprises < 1000 {
		t.Errorf("only %d turned out otherwise", surprises)
	}
}

// TestWhatWaitsForASlotGetsTheNextThatIsFree, in the order in which it is ranked.
func TestWhatWaitsForASlotGetsTheNextThatIsFree(t *testing.T) {
	r := seedtest.Random(t)
	for range 500 {
		n, slots := 1+r.IntN(12), 1+r.IntN(4)
		q := &Queue{Slots: slots, Changes: make([]Change, n)}
		free, want := make([]float64, slots), make([]float64, n)
		for i := range n {
			q.Changes[i] = Change{Seed: r.Uint64(), Lands: 1, Duration: profile.Duration{Mean: float64(r.IntN(30))}}
			if i < slots && r.IntN(2) == 0 {
				elapsed := float64(r.IntN(10))
				q.Changes[i].Builds = []Build{{Elapsed: elapsed}}
				want[i] = max(0, q.Changes[i].Duration.Mean-elapsed)
				free[i] = want[i]
			} else {
				q.Waiting = append(q.Waiting, Waiting{Of: i})
			}
		}
		for _, w := range q.Waiting {
			slices.Sort(free)
			free[0] += q.Changes[w.Of].Duration.Mean
			want[w.Of] = free[0]
		}
		for i, e := range Of(q) {
			if e.P5 != want[i] || e.P95 != want[i] {
				t.Fatalf("change %d is decided at %+v, want %g", i, e, want[i])
			}
		}
	}
}

// randomQueue returns a queue with something of everything.
func randomQueue(r *rand.Rand, n, reach int) *Queue {
	q := &Queue{Slots: n / 2, Threshold: 0.05, Changes: make([]Change, n)}
	for i := range q.Changes {
		c := &q.Changes[i]
		*c = Change{Seed: r.Uint64(), Lands: 0.7 + 0.3*r.Float64(), Duration: profile.Duration{Mean: 60 + 600*r.Float64(), Std: 60}}
		for k := max(0, i-reach); k < i; k++ {
			c.Ahead = append(c.Ahead, Ahead{At: k, Required: r.IntN(50) == 0})
		}
		all := memberset.New(len(c.Ahead))
		for j := range c.Ahead {
			all.Add(j)
		}
		switch r.IntN(3) {
		case 0:
			c.Builds = []Build{{Lands: all, Elapsed: 300 * r.Float64()}, {Lands: memberset.New(len(c.Ahead))}}
		case 1:
			q.Waiting = append(q.Waiting, Waiting{Of: i, Lands: all})
		}
		switch r.IntN(20) {
		case 0:
			c.Known = func(s memberset.Set) Outcome { return Outcome(len(s.Bytes()) % 3) }
		case 1:
			c.Unknown = "it is held"
		}
	}
	return q
}

// TestTheSameQueueHasTheSameEstimates to the last bit, and what is behind a change does not matter to it where slots
// are free.
func TestTheSameQueueHasTheSameEstimates(t *testing.T) {
	seed := seedtest.Of(t)
	known := 0
	for i := range uint64(50) {
		q := randomQueue(rand.New(rand.NewPCG(seed, i)), 60, 10)
		once := Of(q)
		if again := Of(randomQueue(rand.New(rand.NewPCG(seed, i)), 60, 10)); !reflect.DeepEqual(once, again) {
			t.Fatalf("got %v, then %v", once, again)
		}
		for _, e := range once {
			if e.Unknown == "" {
				known++
			}
			if q := e.Quantiles; q.P5 > q.P25 || q.P25 > q.P50 || q.P50 > q.P75 || q.P75 > q.P95 || math.IsNaN(q.P95) {
				t.Fatalf("%+v", e)
			}
		}
		q.Slots = 1000
		once = Of(q)
		q.Changes = q.Changes[:40]
		q.Waiting = slices.DeleteFunc(q.Waiting, func(w Waiting) bool { return w.Of >= 40 })
		if less := Of(q); !reflect.DeepEqual(once[:40], less) {
			t.Fatalf("got %v, want %v", less, once[:40])
		}
	}
	if known < 500 {
		t.Errorf("only %d are known", known)
	}
}

// TestWhatIsUnknownSpreadsToWhatWaitsForIt, and not to what is built for both of its ways.
func TestWhatIsUnknownSpreadsToWhatWaitsForIt(t *testing.T) {
	d := profile.Duration{Mean: 60, Std: 5}
	with, without := memberset.New(1), memberset.New(1)
	with.Add(0)
	q := &Queue{Slots: 10, Changes: []Change{
		{Seed: 1, Lands: 0.9, Duration: d, Unknown: "it is held"},
		{Seed: 2, Lands: 0.9, Duration: d, Ahead: []Ahead{{At: 0}}, Builds: []Build{{Lands: with}}},
		{Seed: 3, Lands: 0.9, Duration: d, Ahead: []Ahead{{At: 0}}, Builds: []Build{{Lands: with}, {Lands: without}}},
	}}
	got := Of(q)
	if got[0].Unknown == "" || got[1].Unknown == "" || got[2].Unknown != "" || got[2].P50 < 50 || got[2].P50 > 70 {
		t.Errorf("got %+v", got)
	}
}

// BenchmarkOf estimates a whole queue.
func BenchmarkOf(b *testing.B) {
	for _, s := range [][2]int{{100, 100}, {1000, 16}, {1000, 1000}, {10_000, 16}} {
		b.Run(fmt.Sprintf("n=%d/ahead=%d", s[0], s[1]), func(b *testing.B) {
			q := randomQueue(rand.New(rand.NewPCG(1, 1)), s[0], s[1])
			for i := range q.Changes {
				q.Changes[i].Unknown = ""
			}
			b.ReportAllocs()
			for b.Loop() {
				Of(q)
			}
		})
	}
}

// TestAChangeWaitsForOneThatDecidesItsFateHoweverMuchIsKnown: that both of its ways have an outcome lets it go on only if they have the
// same one. Behind a change that is held it has no estimate then.
func TestAChangeWaitsForOneThatDecidesItsFateHoweverMuchIsKnown(t *testing.T) {
	minute := profile.Duration{Mean: 60, Std: 1}
	for _, c := range []struct {
		name          string
		with, without Outcome
		held          string
		unknown       string
		waits         bool
	}{
		{"red with it and held", Red, Green, Held, WaitsForUnknown, true},
		{"green with it alone and held", Green, Red, Held, WaitsForUnknown, true},
		{"green with and without, and held", Green, Green, Held, "", false},
		{"red with it", Red, Green, "", "", true},
		{"green with and without", Green, Green, "", "", false},
	} {
		q := &Queue{Slots: 2, Changes: []Change{
			{Seed: 1, Lands: 0.8, Duration: minute, Unknown: c.held, Builds: []Build{{}}},
			{Seed: 2, Lands: 0.5, Duration: minute, Ahead: []Ahead{{At: 0}}, Known: func(lands memberset.Set) Outcome {
				if lands.Has(0) {
					return c.with
				}
				return c.without
			}},
		}}
		got := Of(q)[1]
		if got.Unknown != c.unknown || c.unknown == "" && (got.P5 > 30) != c.waits {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
