package ranking

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

var (
	queues = flag.Int("ranking.queues", 10_000, "number of random queues that are held to the formulas")
	large  = flag.Int("ranking.large", 50, "how many of them have 9 to 13 changes, up to 12 ahead")
)

// maxSmall is how many changes the other random queues have at most.
const maxSmall = 7

// TestM7M8M9M13M14M15M16M17TheBestBuildsAreThoseOfTheFormulas: paths, their worth to the last bit but one, and
// their order are those of the formulas, worked out for every path of every change.
func TestM7M8M9M13M14M15M16M17TheBestBuildsAreThoseOfTheFormulas(t *testing.T) {
	r := seedtest.Random(t)
	builds, most := 0, 0
	for x := range *queues {
		n := 1 + r.IntN(maxSmall)
		if x%max(1, *queues/max(1, *large)) == 0 {
			n = 9 + r.IntN(5) // up to 12 ahead
		}
		m := randomModel(r, n)
		for _, ahead := range m.ahead {
			most = max(most, len(ahead))
		}
		threshold := []float64{0, 0, 0.05, 0.3}[r.IntN(4)]
		want := m.best(threshold)
		k := uint32(1 + r.IntN(150))
		if r.IntN(20) == 0 {
			k = 1 << 14 // all of them
		}
		ranking := eager()
		ranking.Apply(m.profile(threshold, k))
		got := ranking.Decide().GetRanking()
		if !got.GetExact() {
			t.Fatalf("the search of so small a queue is not exact: %+v", m)
		}
		want = want[:min(len(want), int(k))]
		if len(got.Best) != len(want) {
			t.Fatalf("%d builds, want %d: %+v\n%v", len(got.Best), len(want), m, got)
		}
		for x, b := range got.Best {
			w := want[x]
			var assumed []string
			for _, j := range m.ahead[w.i] {
				if w.s[j] {
					assumed = append(assumed, fmt.Sprintf("c%d", j))
				}
			}
			var names []string
			for _, a := range b.Assumed {
				names = append(names, a.Change)
			}
			if b.Change.Change != fmt.Sprintf("c%d", w.i) || !slices.Equal(names, assumed) ||
				math.Abs(b.Needed-w.needed) > 1e-12 || math.Abs(b.Value-w.value) > 1e-12 {
				t.Fatalf("place %d has %v, want %+v: %+v", x, b, w, m)
			}
			builds++
		}
	}
	t.Logf("%d queues, %d ahead at most, %d builds", *queues, most, builds)
	if builds < 20_000 {
		t.Errorf("only %d builds were compared", builds)
	}
}

// TestM14WithoutBypassThePathsOfAChangeShareOne: they are all that can become of it.
func TestM14WithoutBypassThePathsOfAChangeShareOne(t *testing.T) {
	r := seedtest.Random(t)
	for range 2000 {
		m := randomModel(r, 1+r.IntN(maxSmall))
		m.bypass = 0
		clear(m.unmerged)
		clear(m.required)
		for i := range m.known {
			clear(m.known[i])
		}
		ranking := eager()
		ranking.Apply(m.profile(0, 1<<12))
		sum := map[string]float64{}
		for _, b := range ranking.Decide().GetRanking().Best {
			sum[b.Change.Change] += b.Needed
		}
		for i := range m.p {
			if s := sum[fmt.Sprintf("c%d", i)]; math.Abs(s-1) > 1e-9 {
				t.Fatalf("the paths of c%d are needed %g times in all: %+v", i, s, m)
			}
		}
	}
}

// TestM26ByTheModelWhatIsNearlyDoneGoesOn however little it is needed; as a queue runs what is left of it decides.
func TestM26ByTheModelWhatIsNearlyDoneGoesOn(t *testing.T) {
	const mean = 100e6
	a, b := &eventsv1.ChangeRef{Change: "a", Revision: 1}, &eventsv1.ChangeRef{Change: "b", Revision: 1}
	target := []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}
	worthless := func(r *Ranking, elapsed int64) bool {
		r.Apply(&eventsv1.Profile{StampUs: 1 << 30, Delta: &eventsv1.GraphDelta{
			Settings: &eventsv1.QueueSettings{AbortThreshold: 0.2}, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
			Nodes: []*eventsv1.Node{
				{Change: a, Position: 1, Analyzed: true, Classes: []*eventsv1.Class{{Targets: target}}},
				{Change: b, Position: 2, Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: a, Conflicts: true}}, Classes: []*eventsv1.Class{{Targets: target, Members: []uint32{0}}}},
			},
			Builds: []*eventsv1.BuildProgress{{Build: "on-a", State: eventsv1.BuildState_BUILD_STATE_PREPARED, Change: b, Assumed: []*eventsv1.ChangeRef{a}}},
		}, Predictions: []*eventsv1.Prediction{{Change: a, Success: 0.9, DurationMeanUs: mean}, {Change: b, Success: 0.9, DurationMeanUs: mean}}})
		r.Fold(r.Decide())
		// Now a is hardly going to land.
		r.Apply(&eventsv1.Profile{StampUs: 1<<30 + elapsed, Delta: &eventsv1.GraphDelta{}, Predictions: []*eventsv1.Prediction{{Change: a, Success: 0.1, DurationMeanUs: mean}}})
		return len(r.Decide().Worthless) > 0
	}
	for _, x := range []struct {
		elapsed      int64
		model, queue bool
	}{{0.7 * mean, true, false}, {0.79 * mean, true, false}, {0.81 * mean, false, false}, {0.1 * mean, true, true}} {
		if got := worthless(NewFundingAll(), x.elapsed); got != x.model {
			t.Errorf("by the model, after %d of its time it is worthless: %v", x.elapsed, got)
		}
		if got := worthless(New(), x.elapsed); got != x.queue {
			t.Errorf("as a queue runs, after %d of its time it is worthless: %v", x.elapsed, got)
		}
	}
}
