package ranking

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/memberset"
	"landfall.build/events/processortest"
	eventsv1 "landfall.build/events/v1"
)

// denseQueue is a queue of n changes, each with the reach changes before it ahead (all of them if reach is 0): success
// 0.7 to 0.995, conflict 0 to 0.05, evidence or a merge conflict on one pair of fifty changes.
func denseQueue(n, reach int, settings *eventsv1.QueueSettings) *eventsv1.Profile {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	p := &eventsv1.Profile{StampUs: 1, Delta: &eventsv1.GraphDelta{Settings: settings, Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}}}
	refs := make([]*eventsv1.ChangeRef, n)
	for i := range n {
		refs[i] = &eventsv1.ChangeRef{Change: fmt.Sprintf("change-%05d", i), Revision: 1}
		node := &eventsv1.Node{Change: refs[i], Position: int64(i + 1), Analyzed: true}
		k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}
		from := 0
		if reach > 0 {
			from = max(0, i-reach)
		}
		for j := from; j < i; j++ {
			node.Ahead = append(node.Ahead, &eventsv1.Ahead{Change: refs[j], Conflicts: true})
			k.Members = append(k.Members, uint32(j-from))
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: refs[i], Ahead: refs[j], Conflict: 0.05 * r.Float64()})
		}
		if len(node.Ahead) > 0 && r.IntN(50) == 0 {
			node.Ahead[r.IntN(len(node.Ahead))].MergeConflict = true
		}
		if r.IntN(50) == 0 {
			all := memberset.New(len(node.Ahead))
			for j := range node.Ahead {
				all.Add(j)
			}
			k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{Members: all.Bytes(), State: eventsv1.OutcomeState(1 + r.IntN(2))})
		}
		node.Classes = []*eventsv1.Class{k}
		p.Delta.Nodes = append(p.Delta.Nodes, node)
		p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: refs[i], Success: 0.7 + 0.295*r.Float64(), DurationMeanUs: 60e6, DurationStdUs: 10e6})
	}
	return p
}

func benchmarkShapes() (list []shape) {
	for _, n := range []int{10, 100, 1000} {
		list = append(list, shape{n, 64, 0})
	}
	return append(list, shape{1000, 1000, 0}, shape{10, 64, 16}, shape{100, 64, 16}, shape{1000, 64, 16}, shape{10_000, 64, 16})
}

type shape struct{ n, k, reach int }

func (s shape) run(b *testing.B, f func(b *testing.B, q *eventsv1.Profile)) {
	ahead := "all"
	if s.reach > 0 {
		ahead = fmt.Sprint(s.reach)
	}
	for _, threshold := range []float64{0, 0.1} {
		b.Run(fmt.Sprintf("n=%d/k=%d/ahead=%s/threshold=%g", s.n, s.k, ahead, threshold), func(b *testing.B) {
			b.ReportAllocs()
			f(b, denseQueue(s.n, s.reach, &eventsv1.QueueSettings{Best: uint32(s.k), Threshold: threshold}))
		})
	}
}

// measured also reports the processor time of an operation, the garbage collector's included: on a machine with other
// work that tells more than the elapsed time.
func measured(b *testing.B, operation func()) {
	before := processortest.Used(b)
	for b.Loop() {
		operation()
	}
	b.ReportMetric(float64(processortest.Used(b)-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkBest is the best builds from scratch; the graph and what each change is worth are there.
func BenchmarkBest(b *testing.B) {
	for _, s := range benchmarkShapes() {
		s.run(b, func(b *testing.B, q *eventsv1.Profile) {
			r := New()
			r.Apply(q)
			measured(b, func() {
				r.lastWorth = 0
				for _, c := range r.pending {
					c.marginalKnown, c.lossesKnown, c.watchers = false, false, nil
					r.reweighAll(c)
				}
				r.best()
			})
		})
	}
}

// BenchmarkOneEvent is an event that moves the prediction of the change in the middle.
func BenchmarkOneEvent(b *testing.B) {
	for _, s := range benchmarkShapes() {
		s.run(b, func(b *testing.B, q *eventsv1.Profile) {
			r := New()
			r.Apply(q)
			r.Fold(r.Decide())
			moved := slices.Clone(q.Predictions[s.n/2 : s.n/2+1])
			stamp := q.StampUs
			measured(b, func() {
				x := moved[0]
				moved[0] = &eventsv1.Prediction{Change: x.Change, Success: 1.69 - x.Success, DurationMeanUs: x.DurationMeanUs, DurationStdUs: x.DurationStdUs}
				stamp += 20_000
				r.Apply(&eventsv1.Profile{StampUs: stamp, Delta: &eventsv1.GraphDelta{}, Predictions: moved})
				r.Fold(r.Decide())
			})
		})
	}
}

// BenchmarkSettles is the head landing while 500 builds run: it leaves every change behind it, and as many of the builds. A new
// change comes, so that the queue is as long as before.
func BenchmarkSettles(b *testing.B) {
	for _, s := range []shape{{1000, 64, 0}, {1000, 1000, 0}, {1000, 64, 16}, {10_000, 64, 16}} {
		s.run(b, func(b *testing.B, q *eventsv1.Profile) {
			var r *Ranking
			var nodes []*eventsv1.Node
			stamp, made := q.StampUs, s.n
			for b.Loop() {
				b.StopTimer()
				if made%20 == 0 { // few builds are left of those that ran
					r, _ = whileRunning(b, q)
					nodes = slices.Clone(q.Delta.Nodes)
				}
				stamp += 20_000
				p := &eventsv1.Profile{StampUs: stamp, Delta: &eventsv1.GraphDelta{
					Gone: []*eventsv1.NodeGone{{Change: nodes[0].Change, How: eventsv1.GoneHow_GONE_HOW_LANDED}},
				}}
				nodes = append(nodes[1:], nil)
				nodes[len(nodes)-1] = arriving(p, nodes[:len(nodes)-1], s.reach, made)
				made++
				b.StartTimer()
				r.Apply(p)
				r.Fold(r.Decide())
			}
		})
	}
}

// BenchmarkSettlesBuild is a build that ends green while 500 run: what it showed is known of its change from then on, and its slot
// is free.
func BenchmarkSettlesBuild(b *testing.B) {
	for _, s := range []shape{{1000, 64, 0}, {1000, 64, 16}, {10_000, 64, 16}} {
		s.run(b, func(b *testing.B, q *eventsv1.Profile) {
			var r *Ranking
			var builds []*eventsv1.BuildProgress
			stamp := q.StampUs
			for b.Loop() {
				b.StopTimer()
				if len(builds) == 0 {
					r, builds = whileRunning(b, q)
				}
				x := builds[len(builds)-1]
				builds = builds[:len(builds)-1]
				stamp += 20_000
				p := &eventsv1.Profile{StampUs: stamp, Delta: &eventsv1.GraphDelta{
					Builds: []*eventsv1.BuildProgress{{Build: x.Build, State: eventsv1.BuildState_BUILD_STATE_FINISHED, Change: x.Change}},
					Nodes:  []*eventsv1.Node{shown(r.graph.NodeAt(x.Change).Node, x)},
				}}
				b.StartTimer()
				r.Apply(p)
				r.Fold(r.Decide())
			}
		})
	}
}

// whileRunning is a ranking of a queue whose 500 best builds run.
func whileRunning(b *testing.B, q *eventsv1.Profile) (*Ranking, []*eventsv1.BuildProgress) {
	const running = 500
	wanted := proto.CloneOf(q)
	wanted.Delta.Settings.Best = uint32(running)
	r := New()
	r.Apply(wanted)
	d := r.Decide()
	r.Fold(d)
	p := &eventsv1.Profile{StampUs: q.StampUs, Delta: &eventsv1.GraphDelta{Settings: q.Delta.Settings}}
	for i, x := range d.Ranking.Best {
		p.Delta.Builds = append(p.Delta.Builds, &eventsv1.BuildProgress{
			Build: fmt.Sprintf("build-%03d", i), State: eventsv1.BuildState_BUILD_STATE_PREPARED, Change: x.Change, Assumed: x.Assumed})
	}
	if q.Delta.Settings.Threshold == 0 && len(p.Delta.Builds) != running {
		b.Fatalf("%d builds run", len(p.Delta.Builds))
	}
	r.Apply(p)
	r.Fold(r.Decide())
	return r, p.Delta.Builds
}

// shown is a node once a build of its change has ended green.
func shown(n *eventsv1.Node, x *eventsv1.BuildProgress) *eventsv1.Node {
	set := memberset.New(len(n.Ahead))
	for i, a := range n.Ahead {
		if slices.Contains(x.Assumed, a.Change) {
			set.Add(i)
		}
	}
	k := n.Classes[0]
	return &eventsv1.Node{Change: n.Change, Position: n.Position, Analyzed: true, Ahead: n.Ahead, Classes: []*eventsv1.Class{{
		Targets: k.Targets, Members: k.Members, Outcomes: append(slices.Clip(k.Outcomes), &eventsv1.Outcome{Members: set.Bytes(), State: eventsv1.OutcomeState_OUTCOME_STATE_GREEN})}}}
}

// arriving is a new change at the end, behind the last reach ones, or all.
func arriving(p *eventsv1.Profile, nodes []*eventsv1.Node, reach, made int) *eventsv1.Node {
	ref := &eventsv1.ChangeRef{Change: fmt.Sprintf("change-%05d", made), Revision: 1}
	n := &eventsv1.Node{Change: ref, Position: int64(made + 1), Analyzed: true}
	k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}
	if reach > 0 {
		nodes = nodes[max(0, len(nodes)-reach):]
	}
	for j, o := range nodes {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: o.Change, Conflicts: true})
		k.Members = append(k.Members, uint32(j))
		p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: ref, Ahead: o.Change, Conflict: 0.02})
	}
	n.Classes = []*eventsv1.Class{k}
	p.Delta.Nodes = append(p.Delta.Nodes, n)
	p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: ref, Success: 0.9, DurationMeanUs: 60e6, DurationStdUs: 10e6})
	return n
}
