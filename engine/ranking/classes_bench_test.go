package ranking

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// classedQueue is a dense queue whose changes meet each member in a target of its own (M25); a part of these
// classes is known to be green whatever becomes of the member, as while the paths of a change are built.
func classedQueue(n, reach int, proven float64, settings *eventsv1.QueueSettings) *eventsv1.Profile {
	r := rand.New(rand.NewPCG(2, uint64(n)))
	p := denseQueue(n, reach, settings)
	for _, node := range p.Delta.Nodes {
		members := len(node.Ahead)
		if members == 0 {
			continue
		}
		node.Classes = nil
		for j := range members {
			k := &eventsv1.Class{Members: []uint32{uint32(j)}, Targets: []*eventsv1.TargetVersion{{Target: fmt.Sprintf("//t%d", j), Part: 1}}}
			if r.Float64() < proven {
				for bits := range byte(2) {
					k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{Members: memberset.FromBytes(1, []byte{bits}).Bytes(), State: eventsv1.OutcomeState_OUTCOME_STATE_GREEN})
				}
			}
			node.Classes = append(node.Classes, k)
		}
	}
	return p
}

// BenchmarkBestOfClasses is the best builds from scratch where many paths wait for the same versions.
func BenchmarkBestOfClasses(b *testing.B) {
	for _, ahead := range []int{16, 64} {
		for _, proven := range []float64{0, 0.5, 0.9} {
			for _, threshold := range []float64{0, 0.05} {
				b.Run(fmt.Sprintf("n=1000/k=64/ahead=%d/proven=%g/threshold=%g", ahead, proven, threshold), func(b *testing.B) {
					b.ReportAllocs()
					r := New()
					r.Apply(classedQueue(1000, ahead, proven, &eventsv1.QueueSettings{Best: 64, Threshold: threshold}))
					for b.Loop() {
						r.lastWorth = 0
						for _, c := range r.pending {
							c.marginalKnown, c.lossesKnown, c.watchers = false, false, nil
							r.reweighAll(c)
						}
						if !r.best().Exact {
							b.ReportMetric(1, "inexact")
						}
					}
				})
			}
		}
	}
}
