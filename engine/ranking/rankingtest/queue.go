// Package rankingtest makes random inputs of the ranking, for its own tests and for those of package explanation.
package rankingtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Queue makes the profiles of a queue that changes at random.
type Queue struct {
	r     *rand.Rand
	nodes []*eventsv1.Node // in queue order
	made  int
	stamp int64
	// left are the ids of changes that have left. Now and then one comes back.
	left []string
	// prepared counts the builds that were prepared.
	prepared int
	// most bounds how many changes are pending, but for those that come back.
	most int
}

// New returns a queue that is empty, and never has more than a few changes.
func New(r *rand.Rand) *Queue { return Sized(r, 7) }

// Sized returns a queue that is empty, of up to most changes; 15 at most.
func Sized(r *rand.Rand, most int) *Queue { return &Queue{r: r, most: most} }

// Profile returns the next profile. The first one lacks settings.
func (q *Queue) Profile() *eventsv1.Profile {
	q.stamp += q.r.Int64N(60_000_000)
	p := &eventsv1.Profile{StampUs: q.stamp, Delta: &eventsv1.GraphDelta{}}
	for len(q.nodes) > 0 && q.r.IntN(3) == 0 {
		i := q.r.IntN(len(q.nodes))
		p.Delta.Gone = append(p.Delta.Gone, &eventsv1.NodeGone{Change: q.nodes[i].Change, How: eventsv1.GoneHow(1 + q.r.IntN(5))})
		q.left = append(q.left, q.nodes[i].Change.Change)
		q.nodes = slices.Delete(q.nodes, i, i+1)
	}
	for _, g := range p.Delta.Gone {
		if q.r.IntN(4) == 0 { // it comes back at the end, as a new revision
			q.enter(p, &eventsv1.ChangeRef{Change: g.Change.Change, Revision: g.Change.Revision + 1})
		}
	}
	for len(q.nodes) < q.most && q.r.IntN(3) > 0 {
		q.made++
		id, revision := fmt.Sprint("c", q.made), uint64(1)
		if len(q.left) > 0 && q.r.IntN(4) == 0 {
			id, revision = q.left[q.r.IntN(len(q.left))], uint64(q.made)
			if slices.ContainsFunc(q.nodes, func(n *eventsv1.Node) bool { return n.Change.Change == id }) ||
				slices.ContainsFunc(p.Delta.Gone, func(g *eventsv1.NodeGone) bool { return g.Change.Change == id }) {
				continue
			}
		}
		q.enter(p, &eventsv1.ChangeRef{Change: id, Revision: revision})
	}
	if q.r.IntN(12) == 0 {
		p.Delta.Mainline = &eventsv1.Mainline{Head: "m", Analyzed: true, Paused: q.r.IntN(2) == 0}
	}
	for i := range q.nodes {
		if q.r.IntN(3) == 0 {
			q.replace(p, i)
		}
	}
	for _, n := range q.nodes {
		if q.r.IntN(8) > 0 {
			continue
		}
		// What is predicted changes by itself, too.
		p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: n.Change, Success: q.r.Float64(), DurationMeanUs: 60e6 * q.r.Float64()})
		for _, a := range n.Ahead {
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: q.r.Float64()})
		}
	}
	if q.r.IntN(5) == 0 && len(q.nodes) > 0 {
		c := q.nodes[q.r.IntN(len(q.nodes))].Change
		p.Delta.Builds = append(p.Delta.Builds, &eventsv1.BuildProgress{Build: "b" + c.Change, Change: c, State: eventsv1.BuildState(1 + q.r.IntN(2))})
	}
	if q.r.IntN(2) == 0 && len(q.nodes) > 0 {
		q.prepared++
		n := q.nodes[q.r.IntN(len(q.nodes))]
		b := &eventsv1.BuildProgress{Build: fmt.Sprint("p", q.prepared), Change: n.Change, State: eventsv1.BuildState_BUILD_STATE_PREPARED}
		for _, a := range n.Ahead {
			if q.r.IntN(2) == 0 {
				b.Assumed = append(b.Assumed, a.Change)
			}
		}
		p.Delta.Builds = append(p.Delta.Builds, b)
	}
	return p
}

func (q *Queue) enter(p *eventsv1.Profile, c *eventsv1.ChangeRef) {
	position := int64(1)
	if n := len(q.nodes); n > 0 {
		position = q.nodes[n-1].Position + 1
	}
	q.nodes = append(q.nodes, &eventsv1.Node{Change: c, Position: position})
	p.Predictions = append(p.Predictions, &eventsv1.Prediction{
		Change: c, Success: []float64{0.3, 0.5, 0.9, 1}[q.r.IntN(4)],
		DurationMeanUs: 60e6 * float64(1+q.r.IntN(3)), DurationStdUs: 10e6 * float64(q.r.IntN(2)),
	})
	q.replace(p, len(q.nodes)-1)
}

// replace writes a new node of a change, with members among the changes ahead, and predictions for them.
func (q *Queue) replace(p *eventsv1.Profile, i int) {
	n := &eventsv1.Node{Change: q.nodes[i].Change, Position: q.nodes[i].Position, Author: fmt.Sprint("a", q.nodes[i].Position%3), Analyzed: q.r.IntN(8) > 0, Benefit: float64(q.r.IntN(3))}
	for _, o := range q.nodes[:i] {
		if q.r.IntN(2) > 0 {
			continue
		}
		a := &eventsv1.Ahead{Change: o.Change, Conflicts: q.r.IntN(8) > 0, MergeConflict: q.r.IntN(12) == 0}
		a.Required = !a.Conflicts || q.r.IntN(12) == 0
		n.Ahead = append(n.Ahead, a)
		if a.Conflicts {
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: n.Change, Ahead: a.Change, Conflict: []float64{0, 0.05, 0.5, 1}[q.r.IntN(4)]})
		}
	}
	for x := range 1 + q.r.IntN(3) {
		k := &eventsv1.Class{}
		for j := range n.Ahead {
			if q.r.IntN(2) == 0 {
				k.Members = append(k.Members, uint32(j))
			}
		}
		for j := range k.Members {
			if q.r.IntN(10) == 0 {
				k.Through = append(k.Through, uint32(j))
			}
		}
		if q.r.IntN(15) > 0 {
			k.Targets = append(k.Targets, &eventsv1.TargetVersion{Target: fmt.Sprint("//t", x), Part: 1})
		}
		for bits := range uint16(1) << len(k.Members) {
			if len(k.Through) > 0 && !slices.ContainsFunc(k.Through, func(i uint32) bool { return bits&(1<<i) != 0 }) {
				continue
			}
			if q.r.IntN(4) == 0 {
				k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{
					Members: memberset.FromBytes(len(k.Members), []byte{byte(bits), byte(bits >> 8)}[:(len(k.Members)+7)/8]).Bytes(), State: eventsv1.OutcomeState(1 + q.r.IntN(4)),
				})
			}
		}
		if q.r.IntN(2) == 0 {
			k.Outcomes = nil
		}
		n.Classes = append(n.Classes, k)
	}
	switch q.r.IntN(16) {
	case 0:
		n.Holds = []*eventsv1.Hold{{Name: "h"}}
	case 1:
		n.Guard = &eventsv1.Guard{Missing: []*eventsv1.TargetVersion{{Target: "//t0", Hash: "x"}}}
	case 2:
		n.MissingRequirement = "gone"
	case 3:
		n.Intended = true
	}
	q.nodes[i] = n
	p.Delta.Nodes = slices.DeleteFunc(p.Delta.Nodes, func(o *eventsv1.Node) bool { return o.Change.Change == n.Change.Change })
	p.Delta.Nodes = append(p.Delta.Nodes, n)
}
