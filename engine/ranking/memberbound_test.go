package ranking

import (
	"testing"

	"landfall.build/engine/memberset"
	"landfall.build/engine/ranking/rankingtest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestNoPathIsWorthMoreThanTheOutlook: half looked at or whole, and kept over events, against every path of every change.
func TestNoPathIsWorthMoreThanTheOutlook(t *testing.T) {
	r := seedtest.Random(t)
	looked, tighter, kept := 0, 0, 0
	for range 300 {
		ranking, w := New(), &twin{conflict: map[[2]string]float64{}}
		q := rankingtest.New(r)
		for step := range 30 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = &eventsv1.QueueSettings{Best: 40}
				if r.IntN(2) == 0 {
					p.Delta.Settings.BypassThreshold = new(0.5)
				}
			}
			for _, x := range p.Pairs {
				w.conflict[[2]string{at(x.Behind), at(x.Ahead)}] = x.Conflict
			}
			ranking.Apply(p)
			w.Ranking, w.bar = ranking, ranking.lossThreshold
			w.fold(p)
			w.weighMarginals()
			if r.IntN(2) == 0 {
				ranking.best() // some have a search now, until something is said of what it rests on
			}
			for i, c := range ranking.pending {
				if ranking.keys[i] < 0 || c.search != nil {
					continue
				}
				most := ranking.worthBound(c, c.mostNeeded, c.mostLikely)
				if c.bounded {
					kept++
				}
				ranking.tightenBound(c, most*r.Float64())
				if r.IntN(2) == 0 {
					ranking.tightenBound(c, 0)
				}
				looked++
				if ranking.keys[i] < most*0.999 {
					tighter++
				}
				start := twinPath{n: c.node, set: memberset.New(len(c.members)), needed: 1, likely: 1, benefit: ranking.benefit(c)}
				var paths []twinPath
				w.walk(start, &paths)
				for _, path := range paths {
					if path.value() > ranking.keys[i] {
						t.Fatalf("%s: a path is worth %g, its outlook %g", c.id, path.value(), ranking.keys[i])
					}
				}
			}
		}
	}
	if looked < 5000 || tighter < 1000 || kept < 1000 {
		t.Errorf("only %d looked at, %d of them for something, %d kept", looked, tighter, kept)
	}
}
