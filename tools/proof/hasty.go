package proof

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// leaving is a stage that leaves out the rule, if it is one of its own.
func (m *machine) leaving(s runner.Stage) runner.Stage {
	make := s.New
	switch {
	case m.leaves == WrittenStands:
		s.New = func(queue string) runner.QueueCore { return &forgetful{QueueCore: make(queue), recomputes: true} }
	case m.leaves == SentIsState:
		s.New = func(queue string) runner.QueueCore { return &forgetful{QueueCore: make(queue)} }
	case s.Name != events.ServiceSelector:
	case m.leaves == M19aEject:
		return saying(s, withoutEjections)
	case m.leaves == M19Land, m.leaves == M19Reject, m.leaves == M19GreenMembers:
		s.New = func(queue string) runner.QueueCore {
			return &hasty{QueueCore: make(queue), rule: m.leaves, graph: graph.New(), decided: map[string]string{}}
		}
	}
	return s
}

// forgetful is a core that does not hold what it has written: it decides it again when it starts
// (recomputes), or does not hold what it has sent.
type forgetful struct {
	runner.QueueCore
	recomputes bool
	sent       proto.Message
}

// Decide implements runner.QueueCore.
func (c *forgetful) Decide() proto.Message {
	c.sent = c.QueueCore.Decide()
	return c.sent
}

// Fold implements runner.QueueCore.
func (c *forgetful) Fold(m proto.Message) {
	live := m == c.sent
	switch {
	case live && !c.recomputes:
		return
	case !live && c.recomputes:
		if again := c.QueueCore.Decide(); again != nil {
			m = again
		}
	}
	c.QueueCore.Fold(m)
}

func withoutEjections(m proto.Message) proto.Message {
	d := m.(*eventsv1.Decision)
	var kept []*eventsv1.DecisionItem
	for _, i := range d.Items {
		if i.GetEjectDecided() == nil {
			kept = append(kept, i)
		}
	}
	d.Items = kept
	return d
}

// hasty is a selector that decides before M19 allows it.
type hasty struct {
	runner.QueueCore
	rule    Rule
	graph   *graph.Graph
	in      *eventsv1.Priority
	decided map[string]string
}

// Apply implements runner.QueueCore.
func (c *hasty) Apply(m proto.Message, offset int64) {
	if p, is := m.(*eventsv1.Priority); is {
		c.in = p
		c.graph.Fold(p.Delta)
		for _, a := range p.Delta.GetAnswered() {
			if c.decided[a.Change.Change] == a.Decision {
				delete(c.decided, a.Change.Change)
			}
		}
		for _, g := range p.Delta.GetGone() {
			delete(c.decided, g.Change.Change)
		}
	}
	c.QueueCore.Apply(m, offset)
}

// Decide implements runner.QueueCore.
func (c *hasty) Decide() proto.Message {
	var d *eventsv1.Decision
	if out := c.QueueCore.Decide(); out != nil {
		d = out.(*eventsv1.Decision)
	}
	if c.graph.Settings == nil || !c.graph.Mainline.GetAnalyzed() {
		return orNil(d)
	}
	known := map[string]bool{}
	for _, i := range d.GetItems() {
		if id, _ := decisionOf(i); id != "" {
			known[id] = true
		}
	}
	for _, n := range c.graph.Order() {
		if c.decided[n.Change.Change] != "" || known[n.Change.Change] || !n.Analyzed || n.Intended {
			continue
		}
		item := c.early(n)
		if item == nil {
			continue
		}
		if d == nil {
			d = &eventsv1.Decision{Position: c.in.Position, StampUs: c.in.StampUs, Positions: c.in.Positions}
		}
		d.Items, d.Steps = append(d.Items, item), c.graph.Settings.Steps
	}
	return orNil(d)
}

func orNil(d *eventsv1.Decision) proto.Message {
	if d == nil {
		return nil
	}
	return d
}

// early is the decision on a change that the rule would not allow yet.
func (c *hasty) early(n *graph.Node) *eventsv1.DecisionItem {
	none := memberset.New(len(n.Ahead))
	alone := n.PathOutcome(none)
	id := fmt.Sprintf("hasty %s@%d %d", n.Change.Change, n.Change.Revision, c.in.Position)
	reject := &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_RejectDecided{RejectDecided: &eventsv1.RejectDecided{
		Change: n.Change, Decision: id, Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED},
	}}}
	switch {
	case c.rule == M19Land && alone.State == graph.Green && !c.graph.Held(n):
		d := &eventsv1.LandDecided{Change: n.Change, Decision: id}
		for _, a := range n.Ahead {
			if a.Conflicts {
				d.Bypasses = append(d.Bypasses, a.Change)
			}
		}
		return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: d}}
	case c.rule == M19Reject && alone.State == graph.Red:
		return reject
	case c.rule == M19GreenMembers:
		red, any := true, false
		complete := c.graph.EachPath(n, func(s memberset.Set) bool {
			any = true
			red = n.Path(s) == graph.Red
			return red
		})
		if red && any && complete {
			return reject
		}
	}
	return nil
}

// Fold implements runner.QueueCore.
func (c *hasty) Fold(m proto.Message) {
	for _, i := range m.(*eventsv1.Decision).Items {
		if change, decision := decisionOf(i); change != "" {
			c.decided[change] = decision
		}
	}
	c.QueueCore.Fold(m)
}

// decisionOf names the change that an item decides, "" for one that decides none, and the decision.
func decisionOf(i *eventsv1.DecisionItem) (change, decision string) {
	switch x := i.Item.(type) {
	case *eventsv1.DecisionItem_LandDecided:
		return x.LandDecided.Change.Change, x.LandDecided.Decision
	case *eventsv1.DecisionItem_RejectDecided:
		return x.RejectDecided.Change.Change, x.RejectDecided.Decision
	case *eventsv1.DecisionItem_EjectDecided:
		return x.EjectDecided.Change.Change, x.EjectDecided.Decision
	}
	return "", ""
}
