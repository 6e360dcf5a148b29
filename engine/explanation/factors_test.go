package explanation_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"

	"landfall.build/engine/explanation"
	"landfall.build/engine/graph"
	"landfall.build/engine/ranking"
	"landfall.build/engine/ranking/rankingtest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// history is a queue that changes at random, as the ranking and an explanation read of it.
type history struct {
	queue    *rankingtest.Queue
	ranking  *ranking.Ranking
	state    *explanation.State
	best     *eventsv1.Ranking
	profiles []*eventsv1.Profile
	// first is the index in profiles of the first one that has the node of a pending change.
	first map[string]int
	// flags are, by build, the positions at which it was published as worthless, or as no longer worthless.
	flags map[string][]flag
	how   explanation.How
	// named is the last build of each name in the random queue, which names several alike.
	named map[string]string
}

type flag struct {
	position  int64
	worthless bool
}

func newHistory(r *rand.Rand) *history {
	h := &history{queue: rankingtest.New(r), ranking: ranking.New(), state: explanation.New(nil, nil), first: map[string]int{}, flags: map[string][]flag{}, named: map[string]string{}}
	if h.how.ByModel = r.IntN(3) == 0; h.how.ByModel {
		h.ranking = ranking.NewFundingAll()
	}
	if r.IntN(2) == 0 {
		h.how.Factors, h.how.Terms = 1+r.IntN(4), 1+r.IntN(3)
	}
	h.how.Worthless = func(build string, position int64) (is bool) {
		for _, f := range h.flags[build] {
			if f.position < position {
				is = f.worthless
			}
		}
		return is
	}
	return h
}

// next tells the ranking and the explanation the next profile.
func (h *history) next(t *testing.T, r *rand.Rand) *eventsv1.Priority {
	t.Helper()
	p := h.queue.Profile()
	p.Position = int64(len(h.profiles) + 1)
	if len(h.profiles) == 0 || r.IntN(25) == 0 {
		p.Delta.Settings = &eventsv1.QueueSettings{Best: 40, Threshold: []float64{0, 0.05}[r.IntN(2)], AbortThreshold: 0.2}
		if r.IntN(3) > 0 {
			p.Delta.Settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
		}
	}
	for _, g := range p.Delta.Gone {
		g.How = eventsv1.GoneHow(1 + r.IntN(2)) // landed or rejected
		delete(h.first, g.Change.Change)
	}
	for _, b := range p.Delta.Builds {
		if b.State == eventsv1.BuildState_BUILD_STATE_PREPARED {
			h.named[b.Build] = fmt.Sprint(b.Build, "/", p.Position)
		}
		b.Build = h.named[b.Build]
	}
	for _, n := range p.Delta.Nodes {
		if _, known := h.first[n.Change.Change]; !known {
			h.first[n.Change.Change] = len(h.profiles)
		}
	}
	h.profiles = append(h.profiles, p)
	h.ranking.Apply(p)
	h.state.Apply(p)
	out := h.ranking.Decide()
	var err error
	if h.best, err = graph.EditedRanking(h.best, out); err != nil {
		t.Fatal(err)
	}
	h.ranking.Fold(out)
	for _, w := range out.Worthless {
		h.flags[w.Build] = append(h.flags[w.Build], flag{p.Position, true})
	}
	for _, id := range out.Recovered {
		h.flags[id] = append(h.flags[id], flag{p.Position, false})
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// product multiplies what is shown.
func product(w *explanation.Worth) (needed, likely float64) {
	needed, likely = 1, 1
	for _, f := range w.Factors {
		needed *= f.Factor
		likely *= f.Probability
	}
	return needed, likely
}

// TestM8M9M14M15TheFactorsShownMultiplyToTheValueThatWasRanked: for every build that is ranked, after every event of random
// queues, and for what runs and became worthless.
func TestM8M9M14M15TheFactorsShownMultiplyToTheValueThatWasRanked(t *testing.T) {
	r := seedtest.Random(t)
	builds, factors, bypassed, together, urgent, worthless := 0, 0, 0, 0, 0, 0
	for range 250 {
		h := newHistory(r)
		for range 40 {
			out := h.next(t, r)
			e := h.state.Explainer(h.how)
			for _, b := range h.best.Best {
				w := e.Worth(b.Change, b.Assumed)
				if w == nil {
					t.Fatalf("nothing explains %v", b)
				}
				builds++
				needed, likely := product(w)
				value := w.Benefit * w.Soon * likely
				if h.how.ByModel {
					value = w.Benefit * needed
				}
				if w.Rule != "" {
					value, urgent = 1, urgent+1
				}
				if !near(needed, b.Needed) || !near(value, b.Value) || !near(w.Needed, b.Needed) || !near(w.Value, b.Value) || w.State != "unknown" {
					t.Fatalf("the factors make %g and %g of %v: %+v", needed, value, b, w)
				}
				for _, f := range w.Factors {
					factors++
					if f.FinishesFirst > 0 {
						bypassed++
					}
					if f.Others > 0 {
						together++
						continue
					}
					lands := 1.0
					for _, x := range f.Terms {
						if lands *= x.Value; x.From == "" && x.Value != 1 {
							x.From = "a prediction without a source" // the random ones have none
						}
					}
					if f.Assumed == explanation.Rejected {
						lands = 1 - lands
					}
					if !near(lands, f.Probability) || !near(f.Factor, f.FinishesFirst+(1-f.FinishesFirst)*f.Probability) {
						t.Fatalf("the terms make %g of %+v", lands, f)
					}
				}
			}
			for _, x := range out.Worthless {
				w := e.Running(x.Build)
				if w == nil || !near(w.Needed, x.Needed) {
					t.Fatalf("%v is %+v", x, w)
				}
				worthless++
			}
		}
	}
	if builds < 20_000 || factors < 20_000 || bypassed < 1000 || together < 1000 || urgent < 100 || worthless < 100 {
		t.Errorf("only %d builds, %d factors, %d of them bypassed, %d several together; %d urgent and %d worthless builds", builds, factors, bypassed, together, urgent, worthless)
	}
}

// TestAnExplanationNeedsNoProfileBeforeTheOldestPendingChange, but for the settings and the mainline of the time before.
func TestAnExplanationNeedsNoProfileBeforeTheOldestPendingChange(t *testing.T) {
	r := seedtest.Random(t)
	compared, later := 0, 0
	for range 100 {
		h := newHistory(r)
		for range 40 {
			h.next(t, r)
			if r.IntN(4) > 0 || len(h.first) == 0 {
				continue
			}
			from := len(h.profiles)
			for _, place := range h.first {
				from = min(from, place)
			}
			var settings *eventsv1.QueueSettings
			var mainline *eventsv1.Mainline
			for _, p := range h.profiles[:from] {
				if p.Delta.Settings != nil {
					settings = p.Delta.Settings
				}
				if p.Delta.Mainline != nil {
					mainline = p.Delta.Mainline
				}
			}
			s := explanation.New(settings, mainline)
			for _, p := range h.profiles[from:] {
				s.Apply(p)
			}
			if from > 0 {
				later++
			}
			if r.IntN(2) == 0 { // what is applied to the clone does not change the original
				clone := s.Clone()
				s.Apply(rankingtest.New(r).Profile())
				for _, g := range h.best.Best {
					s.Apply(&eventsv1.Profile{Pairs: []*eventsv1.PairPrediction{{Behind: g.Change, Ahead: g.Change, Conflict: 1}},
						Delta: &eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: g.Change}}}})
				}
				s = clone
			}
			want, got := h.state.Explainer(h.how), s.Explainer(h.how)
			for _, b := range h.best.Best {
				compared++
				if w, g := want.Worth(b.Change, b.Assumed), got.Worth(b.Change, b.Assumed); !reflect.DeepEqual(w, g) {
					t.Fatalf("from record %d of %d on:\n%+v\nfrom the first on:\n%+v\n%s", from, len(h.profiles), g, w, prototext.Format(b))
				}
				if w, g := want.Verdict(b.Change), got.Verdict(b.Change); !reflect.DeepEqual(w, g) {
					t.Fatalf("from record %d of %d on:\n%+v\nfrom the first on:\n%+v", from, len(h.profiles), g, w)
				}
			}
		}
	}
	if compared < 1000 || later < 200 {
		t.Errorf("only %d builds were compared, %d times from a later record on", compared, later)
	}
}
