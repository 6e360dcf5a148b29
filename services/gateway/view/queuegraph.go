package view

import (
	"cmp"
	"slices"
)

const (
	// graphEdges, graphTargets and graphFutures are how many conflicts of a change, targets of a conflict, and builds of a change a
	// graph shows.
	graphEdges   = 16
	graphTargets = 3
	graphFutures = 6
)

// Graph is what is pending in a queue and how it depends on each other: conflicts as edges, builds as the paths that they assume.
type Graph struct {
	Queue string `json:"queue"`
	// Changes has the pending changes by their ids.
	Changes map[string]GraphNode `json:"changes"`
}

// GraphNode is a pending change.
type GraphNode struct {
	Position int    `json:"position"`
	State    string `json:"state"`
	Title    string `json:"title,omitempty"`
	Held     bool   `json:"held,omitempty"`
	// Ahead are the nearest changes ahead that it conflicts with or requires, AheadTotal is how many there are.
	Ahead      []GraphEdge `json:"ahead,omitempty"`
	AheadTotal int         `json:"ahead_total,omitempty"`
	// Futures are its builds that were not aborted, those first that were most likely to be needed. Each names the changes that it
	// assumes and that have not landed yet.
	Futures []GraphFuture `json:"futures,omitempty"`
}

// GraphEdge leads to a change ahead.
type GraphEdge struct {
	Change string `json:"change"`
	// Targets are the first in which the two meet.
	Targets       []string `json:"targets,omitempty"`
	MergeConflict bool     `json:"merge_conflict,omitempty"`
	Required      bool     `json:"required,omitempty"`
}

// GraphFuture is a build, as the path that it assumes.
type GraphFuture struct {
	Assumed []string `json:"assumed"`
	// State is that of the build.
	State string `json:"state"`
	// Needed is how likely its result is to be needed.
	Needed    float64 `json:"needed"`
	StepsDone int     `json:"steps_done"`
	// StepsRunning is how many run now.
	StepsRunning int `json:"steps_running,omitempty"`
	StepsTotal   int `json:"steps_total"`
	// Dead: a change that it assumes has left the queue without landing.
	Dead bool `json:"dead,omitempty"`
}

// Graph returns the pending changes and their conflicts.
func (q *Queue) Graph() Graph {
	g := Graph{Queue: q.name, Changes: map[string]GraphNode{}}
	for i, entry := range q.lineup.Order() {
		c := q.changes[entry.ID()]
		n := GraphNode{Position: i + 1, State: q.standingOf(c, i+1).state, Title: c.admission.Title, Held: len(entry.Holds) > 0}
		n.Ahead, n.AheadTotal = q.graphEdges(c)
		n.Futures = q.graphFutures(c)
		g.Changes[entry.ID()] = n
	}
	return g
}

func (q *Queue) graphEdges(c *change) (edges []GraphEdge, total int) {
	for _, a := range slices.Backward(q.node(c.ref()).GetAhead()) { // in queue order, so the last is the nearest
		if q.pendingAt(refOf(a.Change)) == nil {
			continue
		}
		if total++; len(edges) < graphEdges {
			edges = append(edges, GraphEdge{
				Change: a.Change.GetChange(), Targets: a.Targets[:min(len(a.Targets), graphTargets)], MergeConflict: a.MergeConflict, Required: a.Required,
			})
		}
	}
	return edges, total
}

func (q *Queue) graphFutures(c *change) (futures []GraphFuture) {
	for _, b := range q.builds.ofChange[c.ref()] {
		if b.aborted != "" || b.fact == nil {
			continue
		}
		t := q.tallyOf(b)
		f := GraphFuture{Assumed: []string{}, State: b.state(t), Needed: b.fact.Needed, StepsDone: t.done, StepsRunning: t.running, StepsTotal: t.total}
		for _, a := range b.assumedRefs() {
			of := refOf(a)
			if q.pendingAt(of) != nil {
				f.Assumed = append(f.Assumed, of.change)
			} else if other := q.keptAt(of); other == nil || other.end.landed == nil {
				f.Assumed, f.Dead = append(f.Assumed, of.change), true
			}
		}
		futures = append(futures, f)
	}
	slices.SortStableFunc(futures, func(a, b GraphFuture) int { return cmp.Compare(b.Needed, a.Needed) })
	return futures[:min(len(futures), graphFutures)]
}
