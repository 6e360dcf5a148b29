package ranking

import (
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/graph"
	"landfall.build/engine/profile"
	"landfall.build/engine/ranking/rankingtest"
	"landfall.build/events/eventstest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestARankingThatHasKeptNothingSaysTheSame: one decides after every event, another one folds what the first
// has written and decides only now and then, as after a take-over. What they write is the same to the last
// byte, and the edits add up to the whole.
func TestARankingThatHasKeptNothingSaysTheSame(t *testing.T) {
	r := seedtest.Random(t)
	edits, compared, worthless, recovered, estimated, unknown := 0, 0, 0, 0, 0, 0
	for i := range 200 {
		first, second := New(), New()
		if i%5 == 0 {
			first.EnableEstimates("main")
			second.EnableEstimates("main")
		}
		q := rankingtest.New(r)
		settings := &eventsv1.QueueSettings{Best: 40, Threshold: []float64{0, 0.05}[r.IntN(2)], AbortThreshold: 0.2}
		if r.IntN(3) > 0 {
			settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
		}
		if i%4 == 0 {
			settings.PoolWorkers, settings.Quotas = 40, &eventsv1.Quotas{Author: uint32(1 + r.IntN(4))}
		}
		var ranking *eventsv1.Ranking
		for step := range 40 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = settings
			}
			first.Apply(p)
			second.Apply(proto.Clone(p).(*eventsv1.Profile))
			out := first.Decide()
			if r.IntN(3) == 0 {
				if again := second.Decide(); !proto.Equal(out, again) {
					t.Fatalf("got\n%s\nwant\n%s", prototext.Format(again), prototext.Format(out))
				}
				compared++
			}
			if out.Edit != nil {
				edits++
			}
			for _, e := range out.GetEstimates().GetMoved() {
				if estimated++; e.Unknown != "" {
					unknown++
				}
			}
			worthless += len(out.Worthless)
			recovered += len(out.Recovered)
			checkWorthless(t, first, p.StampUs, out)
			var err error
			if ranking, err = graph.EditedRanking(ranking, out); err != nil {
				t.Fatal(err)
			}
			if best := first.best(); !sameRanking(best, ranking) {
				t.Fatalf("the edits make\n%s\nthe best are\n%s", prototext.Format(ranking), prototext.Format(best))
			}
			first.Fold(out)
			second.Fold(proto.Clone(out).(*eventsv1.Priority))
		}
	}
	if estimated < 500 || unknown < 50 || unknown > estimated-200 {
		t.Errorf("%d estimates, %d of them unknown", estimated, unknown)
	}
	if edits < 500 || compared < 1000 || worthless < 100 || recovered < 20 {
		t.Errorf("%d edits, %d comparisons, %d builds became worthless and %d recovered", edits, compared, worthless, recovered)
	}
}

// checkWorthless checks every running build; the ranking only weighs those whose worth may have changed.
func checkWorthless(t *testing.T, r *Ranking, stampUS int64, out *eventsv1.Priority) {
	t.Helper()
	published := map[string]bool{}
	for _, w := range out.Worthless {
		published[w.Build] = true
	}
	for _, id := range out.Recovered {
		published[id] = true
	}
	for _, x := range r.runs {
		c := r.changes[x.change.Change]
		needed, alive := r.needed(c, x)
		q, left := r.predictions[c.id], 1.0
		if q.GetDurationMeanUs() > 0 {
			elapsed := math.Max(0, float64(stampUS>>24<<24-x.since))
			d := profile.Duration{Mean: q.DurationMeanUs, Std: q.DurationStdUs}.Beyond(elapsed)
			left = math.Min(1, math.Max(0.05, (d.Mean-elapsed)/q.DurationMeanUs))
		}
		falls := alive && !x.worthless && needed < r.graph.Settings.AbortThreshold*left
		rises := alive && x.worthless && needed >= r.graph.Settings.AbortThreshold*left
		if published[x.build] != (falls || rises) {
			t.Fatalf("%+v is needed with %g: published %v in %s", x, needed, published[x.build], prototext.Format(out))
		}
	}
}

// TestRenamingIdsChangesNothing in what is ranked, in which order, nor in what it is worth: ties go by place.
func TestRenamingIdsChangesNothing(t *testing.T) {
	r := seedtest.Random(t)
	names := map[string]string{}
	for i := range 1000 {
		names[fmt.Sprint("c", i)] = fmt.Sprintf("z%03d", 999-i)
	}
	ranked := 0
	for range 100 {
		plain, other, q := New(), New(), rankingtest.New(r)
		for step := range 40 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = &eventsv1.QueueSettings{Best: 40, AbortThreshold: 0.2, BypassThreshold: new(0.5)}
			}
			plain.Apply(p)
			other.Apply(eventstest.Renamed(p, names))
			out, renamed := plain.Decide(), other.Decide()
			if want := eventstest.Renamed(out, names); !proto.Equal(renamed, want) {
				t.Fatalf("by other names\n%s\nwant\n%s", prototext.Format(renamed), prototext.Format(want))
			}
			plain.Fold(out)
			other.Fold(renamed)
			ranked += len(plain.published.GetBest())
		}
	}
	if ranked < 5000 {
		t.Errorf("only %d builds were ranked", ranked)
	}
}

// TestWhatIsLeftOfADeepQueueIsRankedAsIfItWereNew: behind a thousand changes as likely to fail as to land the products are too small
// for a number, and must not stay so once these have landed.
func TestWhatIsLeftOfADeepQueueIsRankedAsIfItWereNew(t *testing.T) {
	const n, left = 1100, 8
	q := denseQueue(n, 0, &eventsv1.QueueSettings{Best: 64, Threshold: 0.05})
	for _, p := range q.Predictions {
		p.Success = 0.5
	}
	q.Pairs = nil
	for _, e := range q.Delta.Nodes {
		e.Classes[0].Outcomes = nil
		for _, a := range e.Ahead {
			a.MergeConflict = false
		}
	}
	landed := &eventsv1.GraphDelta{}
	for _, e := range q.Delta.Nodes[:n-left] {
		landed.Gone = append(landed.Gone, &eventsv1.NodeGone{Change: e.Change, How: eventsv1.GoneHow_GONE_HOW_LANDED})
	}
	kept, fresh := New(), New()
	kept.Apply(q)
	kept.Fold(kept.Decide())
	kept.Apply(&eventsv1.Profile{StampUs: 2, Delta: landed})
	now := &eventsv1.Profile{StampUs: 2, Delta: &eventsv1.GraphDelta{Settings: q.Delta.Settings, Mainline: q.Delta.Mainline}, Predictions: q.Predictions[n-left:]}
	for _, x := range kept.graph.Order() {
		now.Delta.Nodes = append(now.Delta.Nodes, x.Node)
	}
	fresh.Apply(now)
	if got, want := kept.best(), fresh.best(); len(now.Delta.Nodes) != left || len(want.Best) < left || !sameRanking(got, want) {
		t.Errorf("%d builds are listed, want %d", len(got.Best), len(want.Best))
	}
}
