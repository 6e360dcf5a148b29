package decision

import (
	"cmp"
	"fmt"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// verdicts returns, in queue order, a decision on every change that may be decided now (M19, M19a). A change that has to wait
// is not looked at again until an input concerns it.
func (s *Selection) verdicts() []*eventsv1.DecisionItem {
	if !s.graph.Mainline.GetAnalyzed() {
		return nil // what came past the queue is not known yet, so no label holds on this mainline
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

// Decide is the decision rule, M19 and M19a, for one change. It reads no probability.
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

// reasonOf returns the reason that the author of c reads, made of the outcome of (c, {}).
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

// everyLivePathGreen is M19's second condition for landing, beside that (c, {}) is green: every path that is not dead is
// green. It goes class by class: fifteen members that each meet the change in another target cost fifteen questions, not 2^15.
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

// classGreen reports whether every version of a class that a live path can make is green. The members before k.Members[i]
// are fixed, in set and in c. It stops at the first version that is not green, so it visits known ones only, plus one.
func classGreen(g *graph.Graph, n *graph.Node, k graph.Class, set memberset.Set, c graph.Constraint, i int) bool {
	if i > 0 && !g.Live(n, c) {
		return true
	}
	if i == len(k.Members) {
		if k.Outcome(set).GetState() == graph.Green {
			return true
		}
		// The guard may have proven the version that (c, {}) makes on this mainline.
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

// onlyEmpty reports whether no live path keeps the constraint but the one on which no member lands.
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

// everyPathRed reports whether a change is red however the changes ahead end, which is M19's condition for rejecting it. Results of a
// member rule no path out until the member is decided: a green one may be cancelled, and a red or blocked one may land once the mainline
// is repaired.
func everyPathRed(g *graph.Graph, n *graph.Node) bool {
	if n.MissingRequirement != "" {
		return true
	}
	// If the land guard has examined the change and not found it red, its tree has other versions than the labels name. A
	// pending requirement makes (c, {}) red all the same: to reject it for its labels would be refused again and again.
	borneOut := n.Guard == nil || n.Guard.State == graph.Red
	for _, k := range n.Classes {
		// A class that no member is in is red on every path or on none.
		if borneOut && len(k.Members) == 0 && len(k.Targets) > 0 && k.Outcome(memberset.New(0)).GetState() == graph.Red {
			return true
		}
	}
	for _, a := range n.Ahead {
		if a.Required {
			// What is red only because a requirement is pending becomes known when that is decided. Before that the
			// land guard, which judges by M as it stands, could not confirm it.
			return false
		}
	}
	red := true
	complete := g.EachEnding(n, func(s memberset.Set) bool {
		red = n.Path(s) == graph.Red
		return red
	})
	return red && complete
}

// onlyPathLeft reports whether (c, {}) is the one path that is not dead (M19a).
func onlyPathLeft(g *graph.Graph, n *graph.Node) bool {
	free := memberset.New(len(n.Ahead))
	return onlyEmpty(g, n, graph.Constraint{Fixed: free.Clone(), Value: free.Clone()})
}
