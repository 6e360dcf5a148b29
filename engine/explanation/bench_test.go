package explanation_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"landfall.build/engine/explanation"
	eventsv1 "landfall.build/events/v1"
)

// queueOf is a queue in which each change meets those before it, as far as it reaches, in one class of targets.
func queueOf(n, reach int) *eventsv1.Profile {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	ref := func(i int) *eventsv1.ChangeRef {
		return &eventsv1.ChangeRef{Change: fmt.Sprint("c", i), Revision: 1}
	}
	p := &eventsv1.Profile{Position: 1, StampUs: 1 << 40, Delta: &eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Threshold: 0.1, Best: 64, BypassThreshold: new(0.5)}, Mainline: &eventsv1.Mainline{Analyzed: true}}}
	for i := range n {
		node := &eventsv1.Node{Change: ref(i), Position: int64(i + 1), Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}}}
		for j := max(0, i-reach); j < i; j++ {
			node.Classes[0].Members = append(node.Classes[0].Members, uint32(len(node.Ahead)))
			node.Ahead = append(node.Ahead, &eventsv1.Ahead{Change: ref(j), Conflicts: true})
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: ref(i), Ahead: ref(j), Conflict: 0.05 * r.Float64(), Source: "conflict-0123456789ab"})
		}
		p.Delta.Nodes = append(p.Delta.Nodes, node)
		p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: ref(i), Success: 0.7 + 0.295*r.Float64(), SuccessSource: "success-0123456789ab",
			DurationMeanUs: 6e8 * (1 + r.Float64()), DurationStdUs: 6e7, DurationSource: "duration-0123456789ab", Features: make([]float32, 100)})
	}
	return p
}

var shapes = []struct{ n, reach int }{{100, 100}, {1000, 16}, {1000, 1000}, {10_000, 16}}

// BenchmarkExplain is one answer: what it would take to decide the last change, and what three builds of it are worth.
func BenchmarkExplain(b *testing.B) {
	for _, shape := range shapes {
		b.Run(fmt.Sprintf("n=%d/ahead=%d", shape.n, min(shape.n-1, shape.reach)), func(b *testing.B) {
			p := queueOf(shape.n, shape.reach)
			s := explanation.New(nil, nil)
			s.Apply(p)
			last := p.Delta.Nodes[shape.n-1]
			var all []*eventsv1.ChangeRef
			for _, a := range last.Ahead {
				all = append(all, a.Change)
			}
			for b.Loop() {
				e := s.Explainer(explanation.How{Factors: 32, Terms: 16})
				if v := e.Verdict(last.Change); v == nil || v.Open == 0 {
					b.Fatal(v)
				}
				for _, assumed := range [][]*eventsv1.ChangeRef{all, all[1:], nil} {
					if w := e.Worth(last.Change, assumed); w == nil || len(w.Factors) == 0 {
						b.Fatal(w)
					}
				}
			}
		})
	}
}

// BenchmarkApply is the cost of a profile while no question is asked: one that replaces a node, with its predictions.
func BenchmarkApply(b *testing.B) {
	for _, shape := range shapes {
		b.Run(fmt.Sprintf("n=%d/ahead=%d", shape.n, min(shape.n-1, shape.reach)), func(b *testing.B) {
			p := queueOf(shape.n, shape.reach)
			s := explanation.New(nil, nil)
			s.Apply(p)
			id := p.Delta.Nodes[shape.n/2].Change.Change
			one := &eventsv1.Profile{Position: 2, StampUs: 1 << 41, Delta: &eventsv1.GraphDelta{Nodes: p.Delta.Nodes[shape.n/2 : shape.n/2+1]}, Predictions: p.Predictions[shape.n/2 : shape.n/2+1]}
			for _, q := range p.Pairs {
				if q.Behind.Change == id {
					one.Pairs = append(one.Pairs, q)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Apply(one)
			}
		})
	}
}

// BenchmarkClone is how long a queue stands still for one answer.
func BenchmarkClone(b *testing.B) {
	for _, shape := range shapes {
		b.Run(fmt.Sprintf("n=%d/ahead=%d", shape.n, min(shape.n-1, shape.reach)), func(b *testing.B) {
			s := explanation.New(nil, nil)
			s.Apply(queueOf(shape.n, shape.reach))
			for b.Loop() {
				if s.Clone() == nil {
					b.Fatal("nothing")
				}
			}
		})
	}
}
