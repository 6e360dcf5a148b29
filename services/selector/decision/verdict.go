package decision

import (
	"cmp"
	"fmt"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// verdicts decides, in queue order, every change that may be decided on the present state (M19, M19a). One that
// has to wait has to until something is said of it or of what it has ahead.
func (s *Selection) verdicts() []*eventsv1.DecisionItem {
	if !s.graph.Mainline.GetAnalyzed() {
		return nil // what came past the queue is not known yet: no label speaks of this mainline
	}
	var nodes []*graph.Node
	for id := range s.undecided {
		if n := s.graph.Node(id); n == nil {
			delete(s.undecided, id)
		} else if s.decided[id] == "" && n.Analyzed && !n.Intended {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *graph.Node) int { return cmp.Compare(a.Position, b.Position) })
	var out []*eventsv1.DecisionItem
	for _, n := range nodes {
		switch v, reason := Decide(s.graph, n); v {
		case Wait:
			delete(s.undecided, n.Change.Change)
		case Land:
			d := &eventsv1.LandDecided{Change: n.Change, Decision: s.decisionID("land", n.Change), Why: "every path that can still come about is green"}
			for _, a := range n.Ahead {
				if a.Conflicts {
					d.Bypasses = append(d.Bypasses, a.Change)
				}
			}
			out = append(out, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: d}})
		case Reject:
			out = append(out, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{
				Change: n.Change, Decision: s.decisionID("reject", n.Change), Reason: reason}}})
		case Eject:
			out = append(out, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_EjectDecided{EjectDecided: &eventsv1.EjectDecided{
				Change: n.Change, Decision: s.decisionID("eject", n.Change), Reason: reason}}})
		}
	}
	return out
}

// Verdict is what may be done with a change.
type Verdict int

// The verdicts.
const (
	Wait Verdict = iota
	Land
	Reject
	Eject
)

func (v Verdict) String() string { return [...]string{"wait", "land", "reject", "eject"}[v] }

// Decide is the decision rule: M19 and M19a on one change. It never reads a probability.
func Decide(g *graph.Graph, n *graph.Node) (Verdict, *eventsv1.Reason) {
	none := memberset.New(len(n.Ahead))
	alone := n.PathOutcome(none)
	switch alone.State {
	case graph.Green:
		if !g.Held(n) && everyLivePathGreen(g, n) {
			return Land, nil
		}
	case graph.Red:
		if everyPathRed(g, n) {
			return Reject, reasonOf(n, alone)
		}
	case graph.Exhausted:
		if onlyPathLeft(g, n) {
			return Eject, reasonOf(n, alone)
		}
	}
	return Wait, nil
}

// reasonOf turns what settled (c, {}) into the reason that its author reads.
func reasonOf(n *graph.Node, o *eventsv1.Outcome) *eventsv1.Reason {
	r := &eventsv1.Reason{Class: o.Class, Message: o.Message}
	if o.Version != nil {
		r.Failed = []*eventsv1.Proof{{Version: o.Version}}
		if r.Message == "" {
			r.Message = fmt.Sprintf("%s is red", o.Version.Target)
		}
	}
	if o.Class == eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT {
		r.Other = n.MissingRequirement
	}
	if n.Guard != nil && n.Guard.Reason != nil {
		return n.Guard.Reason
	}
	return r
}

// everyLivePathGreen is M19's condition for landing beyond (c, {}): no path that is not dead is anything
// but green. It goes class by class, so that fifteen members that each meet the change in another target
// cost fifteen looks, not 2^15.
func everyLivePathGreen(g *graph.Graph, n *graph.Node) bool {
	free := memberset.New(len(n.Ahead))
	for j, a := range n.Ahead {
		if !a.MergeConflict && !a.Required {
			continue
		}
		// M5: paths with it are red. M5a: paths without it are.
		c := graph.Constraint{Fixed: free.Clone(), Value: free.Clone()}
		c.Fixed.Add(j)
		if a.MergeConflict {
			c.Value.Add(j)
		}
		if g.Live(n, c) {
			return false
		}
	}
	for _, o := range n.Paths {
		all := memberset.New(len(n.Ahead))
		for j := range n.Ahead {
			all.Add(j)
		}
		if o.State != graph.Green && len(o.Members) > 0 && g.Live(n, graph.Constraint{Fixed: all, Value: memberset.FromBytes(len(n.Ahead), o.Members)}) {
			return false
		}
	}
	for _, k := range n.Classes {
		if !classGreen(g, n, k, memberset.New(len(k.Members)), graph.Constraint{Fixed: free.Clone(), Value: free.Clone()}, 0) {
			return false
		}
	}
	return true
}

// classGreen walks the versions of one class that live paths can make, and stops at the first that is not
// green: it visits known versions only, plus one.
func classGreen(g *graph.Graph, n *graph.Node, k graph.Class, set memberset.Set, c graph.Constraint, i int) bool {
	if i > 0 && !g.Live(n, c) {
		return true
	}
	if i == len(k.Members) {
		if k.Outcome(set).GetState() == graph.Green {
			return true
		}
		// The version that (c, {}) makes on this mainline may be proven by the guard's own look at it.
		return n.Guard != nil && onlyEmpty(g, n, c)
	}
	m := int(k.Members[i])
	c.Fixed.Add(m)
	defer c.Fixed.Remove(m)
	if !classGreen(g, n, k, set, c, i+1) {
		return false
	}
	set.Add(i)
	c.Value.Add(m)
	defer func() { set.Remove(i); c.Value.Remove(m) }()
	return classGreen(g, n, k, set, c, i+1)
}

// onlyEmpty says that no live path but the one without any member keeps the constraint.
func onlyEmpty(g *graph.Graph, n *graph.Node, c graph.Constraint) bool {
	for j := range n.Ahead {
		if c.Fixed.Has(j) {
			if c.Value.Has(j) {
				return false
			}
			continue
		}
		x := graph.Constraint{Fixed: c.Fixed.Clone(), Value: c.Value.Clone()}
		x.Fixed.Add(j)
		x.Value.Add(j)
		if g.Live(n, x) {
			return false
		}
	}
	return true
}

// everyPathRed is M19's condition for rejecting: (c, S) is red for every S but those in which a member
// that lands is shown red there. Paths that are dead because a member is green count: that member may
// yet be cancelled.
func everyPathRed(g *graph.Graph, n *graph.Node) bool {
	if n.MissingRequirement != "" {
		return true
	}
	// Where the land guard has looked at the change and does not say so, its tree has other versions than the labels tell. If
	// it requires a pending one, (c, {}) is red all the same: it would be decided, and refused, for ever.
	borneOut := n.Guard == nil || n.Guard.State == graph.Red
	for _, k := range n.Classes {
		// A class that no member is in is red on every path or on none.
		if borneOut && len(k.Members) == 0 && len(k.Targets) > 0 && k.Outcome(memberset.New(0)).GetState() == graph.Red {
			return true
		}
	}
	for _, a := range n.Ahead {
		if a.Required {
			// What is red only because a requirement is still pending becomes known when that is
			// decided. The land guard looks at M as it stands and could not confirm it before.
			return false
		}
	}
	red := true
	complete := g.EachPath(n, true, func(s memberset.Set) bool {
		red = n.Path(s) == graph.Red
		return red
	})
	return red && complete
}

// onlyPathLeft says that (c, {}) is the one path that is not dead (M19a).
func onlyPathLeft(g *graph.Graph, n *graph.Node) bool {
	free := memberset.New(len(n.Ahead))
	return onlyEmpty(g, n, graph.Constraint{Fixed: free.Clone(), Value: free.Clone()})
}
