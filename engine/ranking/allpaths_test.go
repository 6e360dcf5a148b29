package ranking

import (
	"flag"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/ranking/rankingtest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

var histories = flag.Int("ranking.histories", 300, "number of random queues that are held to all their paths after each of 40 events")

// checkKept checks what is kept: a change that has left watches nothing, each watches once, and changes that nothing
// names are not kept.
func checkKept(t *testing.T, r *Ranking) {
	t.Helper()
	for id, c := range r.changes {
		if c.id != id || c.node == nil && len(c.behind) == 0 && len(c.watchers) == 0 && len(c.runs) == 0 && r.predictions[id] == nil {
			t.Fatalf("%s is kept for nothing", id)
		}
		for w := range c.watchers {
			if r.changes[w.id] != w || !slices.Contains(w.watched, c) {
				t.Fatalf("%s is watched by %s, which has left or does not know", id, w.id)
			}
		}
	}
}

// TestTheBestAreThoseOfAllPaths: M18 against every path, on queues that change at random.
func TestTheBestAreThoseOfAllPaths(t *testing.T) {
	r := seedtest.Random(t)
	listed, weighed, waited, crowded, most := 0, 0, 0, 0, 0
	for x := range *histories {
		ranking, w := New(), &twin{conflict: map[[2]string]float64{}}
		if x%3 == 0 {
			ranking = eager()
		}
		q := rankingtest.New(r)
		if x%30 == 0 {
			q = rankingtest.Sized(r, 13) // up to 12 ahead
		}
		settings := &eventsv1.QueueSettings{Best: []uint32{1, 3, 40}[r.IntN(3)], Threshold: []float64{0, 0.05, 0.5}[r.IntN(3)], Workers: []uint32{0, 1, 3}[r.IntN(3)]}
		if r.IntN(3) > 0 {
			settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
		}
		if x%2 == 0 {
			settings.PoolWorkers = 4
		}
		if x%4 == 0 {
			settings.Quotas = &eventsv1.Quotas{Author: uint32(1 + r.IntN(2))}
		}
		for step := range 40 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = settings
			} else if r.IntN(20) == 0 {
				settings = proto.CloneOf(settings)
				settings.Threshold = []float64{0, 0.05, 0.5}[r.IntN(3)]
				settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
				p.Delta.Settings = settings
			}
			for _, x := range p.Pairs {
				w.conflict[[2]string{at(x.Behind), at(x.Ahead)}] = x.Conflict
			}
			ranking.Apply(p)
			w.Ranking = ranking
			w.fold(p)
			w.keepPace(p)
			for _, n := range ranking.graph.Order() {
				most = max(most, len(n.Ahead))
			}
			got, want := ranking.best(), w.best()
			if !sameRanking(got, want) {
				t.Fatalf("got\n%s\nwant\n%s\nafter %s", prototext.Format(got), prototext.Format(want), prototext.Format(p))
			}
			listed += len(got.Best)
			if len(ranking.runs) != len(w.builds) {
				t.Fatalf("%d builds run, want %d after %s", len(ranking.runs), len(w.builds), prototext.Format(p))
			}
			for _, b := range w.builds {
				x := ranking.runs[b.id]
				needed, alive := ranking.needed(ranking.changes[x.change.Change], x)
				path, wantAlive := w.needed(b)
				if alive != wantAlive || alive && needed != w.weigh(path) {
					t.Fatalf("%+v is needed with %g (%v), want %v after %s", x, needed, alive, wantAlive, prototext.Format(p))
				}
				if alive {
					weighed++
				}
			}
			checkKept(t, ranking)
		}
		waited += w.waited
		crowded += w.crowded
	}
	t.Logf("%d queues of 40 steps, %d ahead at most, %d builds", *histories, most, listed)
	if listed < 10_000 || weighed < 1000 || waited < 1000 || crowded < 20 {
		t.Errorf("only %d builds were listed, %d that run weighed, %d paths waited, and %d were too many of an author's", listed, weighed, waited, crowded)
	}
}
