package ranking

import (
	"math"
	"slices"
	"testing"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// twinPace is when a change is decided, as last looked at.
type twinPace struct{ asOf, known, decided, free int64 }

// updatePaces computes the pace of all changes once in 2^26 microseconds, and that of new ones at once.
func (t *twin) keepPace(p *eventsv1.Profile) {
	first := t.paces == nil
	if first {
		t.paces = map[string]twinPace{}
	}
	for id := range t.paces {
		if t.graph.Node(id) == nil {
			delete(t.paces, id)
		}
	}
	if at := p.StampUs >> 26; first || at != t.lookedAt {
		t.lookedAt = at
		clear(t.paces)
		sum, n := 0.0, 0.0
		for _, node := range t.graph.Order() {
			if q := t.predictions[node.Change.Change]; q != nil && q.DurationMeanUs > 0 {
				sum, n = sum+q.DurationMeanUs, n+1
			}
		}
		t.typicalUs, t.bar = 0, t.leastLoss
		if n > 0 {
			t.typicalUs = sum / n
		}
		if workers := t.graph.Settings.GetWorkers(); workers > 0 {
			running := 0.0
			for _, b := range t.builds {
				if _, alive := t.needed(b); alive {
					running++
				}
			}
			short := math.Max(0, math.Min(1, 2*running/float64(workers)-1))
			t.bar = t.bar * short * short
		}
	}
	for _, n := range t.graph.Order() {
		if _, known := t.paces[n.Change.Change]; !known {
			t.paces[n.Change.Change] = t.paceOf(n)
		}
	}
}

func (t *twin) paceOf(n *graph.Node) twinPace {
	start, d := t.timeOf(n.Change.Change)
	x := twinPace{asOf: t.now, known: t.now + int64((start+d.Mean)*1e6)}
	likely := memberset.New(len(n.Ahead))
	for j, a := range n.Ahead {
		if a.Required || t.success(a.Change.Change) >= 0.5 {
			likely.Add(j)
		}
		if m := t.graph.NodeAt(a.Change); m != nil && t.paces[m.Change.Change].decided != 1<<62 {
			x.free = max(x.free, t.paces[m.Change.Change].decided)
		}
	}
	running := slices.ContainsFunc(t.builds, func(b *twinBuild) bool {
		_, alive := t.needed(b)
		return alive && b.change.Change == n.Change.Change
	})
	if !running && n.Path(likely) != graph.Unknown {
		x.known = t.now
	}
	if len(n.Holds) > 0 || !n.Analyzed || n.Path(memberset.New(len(n.Ahead))) == graph.Blocked {
		x.known = 1 << 62
	}
	x.decided = max(x.known, x.free)
	return x
}

// canWait reports whether a path of a change, beside its likeliest, can be begun later.
func (t *twin) waits(likeliest, p twinPath) bool {
	mean := t.predictions[p.n.Change.Change].GetDurationMeanUs()
	if t.bar == 0 || p.likely >= 0.5 || mean <= 0 {
		return false
	}
	other, all := 0, 0
	for _, k := range p.n.Classes {
		all += len(k.Targets)
		if slices.ContainsFunc(k.Members, func(j uint32) bool { return p.set.Has(int(j)) != likeliest.set.Has(int(j)) }) {
			other += len(k.Targets)
		}
	}
	if p.needed >= 0.5 && 2*other <= all {
		return false
	}
	known := int64(0)
	for j, a := range p.n.Ahead {
		m := t.graph.NodeAt(a.Change)
		if m != nil && t.matters(p.n, j) && p.set.Has(j) != likeliest.set.Has(j) {
			known = max(known, t.paces[m.Change.Change].known)
		}
	}
	of := t.paces[p.n.Change.Change]
	soon := max(of.free, of.asOf+int64(mean)) // when it could be decided if it were begun now
	late := max(0, known-of.asOf-(soon-of.asOf-int64(mean)))
	typical := t.typicalUs
	if typical == 0 {
		typical = mean
	}
	times := mean / typical
	behind := math.Min(100, 1+float64(len(p.n.Ahead))*times*times)
	return p.needed*(behind/typical)*float64(late) < t.bar
}

// matters reports whether a member is in a class with a version that is not known to be green.
func (t *twin) matters(n *graph.Node, j int) bool {
	if len(n.Paths) > 0 || n.Guard != nil {
		return true
	}
	return slices.ContainsFunc(n.Classes, func(k graph.Class) bool {
		return slices.Contains(k.Members, uint32(j)) && !(allKnown(k) && !slices.ContainsFunc(k.Class.Outcomes, func(o *eventsv1.Outcome) bool { return o.State != graph.Green }))
	})
}

// TestAPathBesideTheLikeliestWaitsForAsLongAsThatCostsLittle: b meets a, and so builds of b are wanted with a and without it.
func TestAPathBesideTheLikeliestWaitsForAsLongAsThatCostsLittle(t *testing.T) {
	const minute = 60e6
	a, b, long := &eventsv1.ChangeRef{Change: "a", Revision: 1}, &eventsv1.ChangeRef{Change: "b", Revision: 1}, &eventsv1.ChangeRef{Change: "long", Revision: 1}
	target := []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}
	for _, x := range []struct {
		name string
		// success and lasts are of a, takes is how long b does, and another how long a change does that b meets as well, 0 for none.
		success               float64
		lasts, takes, another float64
		held                  bool
		workers               uint32
		r                     *Ranking
		begun                 int
	}{
		// b is taken to have one behind it.
		{"a chance in five to lose a minute, for two", 0.8, 1 * minute, 1 * minute, 0, false, 0, New(), 2},
		{"a chance in ten", 0.9, 1 * minute, 1 * minute, 0, false, 0, New(), 1},
		{"workers are idle", 0.9, 1 * minute, 1 * minute, 0, false, 8, New(), 2},
		{"by the model", 0.9, 1 * minute, 1 * minute, 0, false, 0, NewFundingAll(), 2},
		{"a is over soon", 0.8, 0.2 * minute, 1 * minute, 0, false, 0, New(), 1},
		{"nobody knows how long b takes", 0.9, 1 * minute, 0, 0, false, 0, New(), 2},
		{"b has to wait anyway", 0.8, 1 * minute, 1 * minute, 9 * minute, false, 0, New(), 1},
		{"a is held, for as long as somebody likes", 0.98, 0.01 * minute, 1 * minute, 0, true, 0, New(), 2},
		{"it is as likely as not", 0.5, 0.01 * minute, 1 * minute, 0, false, 0, New(), 2},
	} {
		nodes := []*eventsv1.Node{{Change: a, Position: 1, Analyzed: true, Classes: []*eventsv1.Class{{Targets: target}}}}
		if x.held {
			nodes[0].Holds = []*eventsv1.Hold{{Name: "hold"}}
		}
		predictions := []*eventsv1.Prediction{{Change: a, Success: x.success, DurationMeanUs: x.lasts}, {Change: b, Success: 1, DurationMeanUs: x.takes}}
		behind := &eventsv1.Node{Change: b, Position: 3, Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: a, Conflicts: true}}, Classes: []*eventsv1.Class{{Targets: target, Members: []uint32{0}}}}
		if x.another > 0 {
			nodes = append(nodes, &eventsv1.Node{Change: long, Position: 2, Analyzed: true, Classes: []*eventsv1.Class{{Targets: target}}})
			predictions = append(predictions, &eventsv1.Prediction{Change: long, Success: 1, DurationMeanUs: x.another})
			behind.Ahead = append(behind.Ahead, &eventsv1.Ahead{Change: long, Conflicts: true})
			behind.Classes[0].Members = []uint32{0, 1}
		}
		x.r.Apply(&eventsv1.Profile{StampUs: 1 << 40, Delta: &eventsv1.GraphDelta{
			Settings: &eventsv1.QueueSettings{Best: 10, Threshold: 0.01, Workers: x.workers}, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}, Nodes: append(nodes, behind),
		}, Predictions: predictions})
		begun := 0
		for _, r := range x.r.Decide().GetRanking().Best {
			if r.Change.Change == "b" {
				begun++
			}
		}
		if begun != x.begun {
			t.Errorf("%s: %d builds of b, want %d", x.name, begun, x.begun)
		}
	}
}
