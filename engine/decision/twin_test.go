package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// The decisions of so many random queues are held to the rule as it stands. Most have up to maxSmall changes; large of them
// have up to maxLarge, which is 12 ahead.
const (
	queues   = 8_000
	large    = 200
	maxSmall = 8
	maxLarge = 13
)

// The rule of M19 and M19a, by looking at all 2^|A| paths one by one.

// lands is a path of a change: which changes it lets land, by id.
type lands map[string]bool

// naiveQueue answers from the events alone.
type naiveQueue struct {
	nodes  map[string]*eventsv1.Node
	paused bool
}

func (q naiveQueue) held(n *eventsv1.Node) bool { return q.paused || len(n.Holds) > 0 }

// outcome is what is known of (n, s): M25 with M5, M5a and M21.
func (q naiveQueue) outcome(n *eventsv1.Node, s lands) eventsv1.OutcomeState {
	if n.MissingRequirement != "" {
		return graph.Red
	}
	none := true
	path := memberset.New(len(n.Ahead))
	for i, a := range n.Ahead {
		if s[a.Change.Change] {
			none = false
			path.Add(i)
		}
		if a.MergeConflict && s[a.Change.Change] || a.Required && !s[a.Change.Change] {
			return graph.Red
		}
	}
	if none && n.Guard != nil {
		return n.Guard.State
	}
	for _, o := range n.Paths {
		if string(o.Members) == string(path.Bytes()) {
			return o.State
		}
	}
	count := map[eventsv1.OutcomeState]int{}
	for _, k := range n.Classes {
		version := memberset.New(len(k.Members))
		for i, m := range k.Members {
			if path.Has(int(m)) {
				version.Add(i)
			}
		}
		state := graph.Unknown
		if len(k.Through) > 0 && !slices.ContainsFunc(k.Through, func(i uint32) bool { return version.Has(int(i)) }) {
			state = graph.Green
		}
		for _, o := range k.Outcomes {
			if state == graph.Unknown && string(o.Members) == string(version.Bytes()) {
				state = o.State
			}
		}
		count[state]++
	}
	for _, state := range []eventsv1.OutcomeState{graph.Red, graph.Blocked, graph.Exhausted, graph.Unknown} {
		if count[state] > 0 {
			return state
		}
	}
	return graph.Green
}

// shown reports, of a member on a path of c, whether M5 or M5a rule its landing out, whether it cannot land, and whether it lands for
// certain (M9).
func (q naiveQueue) shown(c *eventsv1.Node, place int, s lands) (ruledOut, red, green bool) {
	j := q.nodes[c.Ahead[place].Change.Change]
	if j == nil {
		return false, false, false
	}
	if j.MissingRequirement != "" {
		return true, true, false
	}
	inside := j.Analyzed
	for _, a := range j.Ahead {
		at := -1
		for i, m := range c.Ahead {
			if m.Change.Change == a.Change.Change {
				at = i
			}
		}
		in := s[a.Change.Change]
		if at >= 0 && at < place && (a.MergeConflict && in || a.Required && !in) {
			return true, true, false
		}
		inside = inside && at >= 0 && at < place
	}
	if !inside {
		return false, false, false
	}
	switch q.outcome(j, s) {
	case graph.Red, graph.Blocked:
		return false, true, false
	case graph.Green:
		return false, false, !q.held(j)
	}
	return false, false, false
}

// eachPath calls f for all 2^|A| of them.
func (q naiveQueue) eachPath(c *eventsv1.Node, f func(s lands, ruledOut, dead bool)) {
	for bits := range 1 << len(c.Ahead) {
		s := lands{}
		for i, a := range c.Ahead {
			s[a.Change.Change] = bits&(1<<i) != 0
		}
		ruledOut, dead := false, false
		for i, a := range c.Ahead {
			ruled, red, green := q.shown(c, i, s)
			ruledOut = ruledOut || ruled && s[a.Change.Change]
			dead = dead || red && s[a.Change.Change] || green && !s[a.Change.Change]
		}
		f(s, ruledOut, dead)
	}
}

func (q naiveQueue) decide(c *eventsv1.Node) Verdict {
	none := lands{}
	land := q.outcome(c, none) == graph.Green && !q.held(c)
	reject := q.outcome(c, none) == graph.Red
	eject := q.outcome(c, none) == graph.Exhausted
	// What no member affects is the same on every path, also on one whose tree could not be made, but for what the land
	// guard has looked at and not found red.
	everywhere := c.MissingRequirement != ""
	borneOut := c.Guard == nil || c.Guard.State == graph.Red
	for _, k := range c.Classes {
		for _, o := range k.Outcomes {
			everywhere = everywhere || borneOut && len(k.Members) == 0 && len(k.Targets) > 0 && o.State == graph.Red
		}
	}
	pendingRequirement := false
	for _, a := range c.Ahead {
		pendingRequirement = pendingRequirement || a.Required
	}
	everyPath := true
	q.eachPath(c, func(s lands, ruledOut, dead bool) {
		empty := true
		for _, in := range s {
			empty = empty && !in
		}
		o := q.outcome(c, s)
		land = land && (dead || o == graph.Green)
		everyPath = everyPath && (ruledOut || o == graph.Red)
		eject = eject && (dead || empty)
	})
	// Red only because a requirement is pending is no reason yet: the land guard could not confirm it.
	reject = reject && (everywhere || everyPath && !pendingRequirement)
	switch {
	case land:
		return Land
	case reject:
		return Reject
	case eject:
		return Eject
	}
	return Wait
}

// TestWhatTheGuardHasRefusedIsNotDecidedAgainForARequirement: c's own target is red on every path for all that labels tell,
// and is not on its own tree, as the guard found. That c requires one that is pending makes (c, {}) red nevertheless; to
// decide it for that would be refused, and decided, for ever.
func TestWhatTheGuardHasRefusedIsNotDecidedAgainForARequirement(t *testing.T) {
	red := []*eventsv1.Outcome{{State: graph.Red}}
	behind := &eventsv1.Node{
		Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, Position: 2, Analyzed: true,
		Ahead:   []*eventsv1.Ahead{{Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}, Required: true}},
		Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "t", Part: 1}}, Outcomes: red}},
	}
	for state, want := range map[eventsv1.OutcomeState]Verdict{graph.Unknown: Wait, graph.Green: Wait, graph.Blocked: Wait, graph.Red: Reject} {
		behind.Guard = &eventsv1.Guard{Base: "m", State: state}
		g := graph.New()
		g.Fold(&eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}, Nodes: []*eventsv1.Node{
			{Change: behind.Ahead[0].Change, Position: 1, Analyzed: true}, behind,
		}})
		if v, _ := Decide(g, g.Node("c")); v != want {
			t.Errorf("the guard has found %v: %v, want %v", state, v, want)
		}
	}
}

// TestM19AChangeIsNotRejectedForLackingOneThatMayStillLand: c fails without a and passes with it, and a does not pass as the mainline
// stands. A mainline that is repaired lets both land.
func TestM19AChangeIsNotRejectedForLackingOneThatMayStillLand(t *testing.T) {
	a, c := &eventsv1.ChangeRef{Change: "a", Revision: 1}, &eventsv1.ChangeRef{Change: "c", Revision: 1}
	node := func(c *eventsv1.ChangeRef, position int64, ahead []*eventsv1.Ahead, class *eventsv1.Class) *eventsv1.Node {
		return &eventsv1.Node{Change: c, Position: position, Analyzed: true, Ahead: ahead, Classes: []*eventsv1.Class{class}}
	}
	needs := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "c", Part: 1}}, Members: []uint32{0}, Outcomes: []*eventsv1.Outcome{
		{State: graph.Red}, {State: graph.Green, Members: []byte{1}},
	}}
	for _, state := range []eventsv1.OutcomeState{graph.Unknown, graph.Blocked, graph.Red, graph.Exhausted, graph.Green} {
		g := graph.New()
		g.Fold(&eventsv1.GraphDelta{Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true}, Nodes: []*eventsv1.Node{
			node(a, 1, nil, &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "a", Part: 1}}, Outcomes: []*eventsv1.Outcome{{State: state}}}),
			node(c, 2, []*eventsv1.Ahead{{Change: a, Conflicts: true}}, needs),
		}})
		if v, _ := Decide(g, g.Node("c")); v != Wait {
			t.Errorf("%v while the change ahead is %v, want wait", v, state)
		}
		g.Fold(&eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: a}}, Nodes: []*eventsv1.Node{
			node(c, 2, nil, &eventsv1.Class{Targets: needs.Targets, Outcomes: needs.Outcomes[:1]}),
		}})
		if v, _ := Decide(g, g.Node("c")); v != Reject {
			t.Errorf("%v once the change ahead, which was %v, is gone, want reject", v, state)
		}
	}
}

// randomQueue makes a queue of n changes with whatever evidence, most of it of one colour, so that something is decided
// often enough.
func randomQueue(r *rand.Rand, n int) (*graph.Graph, []*eventsv1.Node) {
	mood := []eventsv1.OutcomeState{graph.Green, graph.Red, graph.Exhausted}[r.IntN(3)]
	state := func() eventsv1.OutcomeState {
		if r.IntN(4) != 0 {
			return mood
		}
		return eventsv1.OutcomeState(r.IntN(5))
	}
	d := &eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Hash: "s"},
		Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true, Paused: r.IntN(20) == 0},
	}
	dense := 1 + r.IntN(4)
	ref := func(i int) *eventsv1.ChangeRef {
		return &eventsv1.ChangeRef{Change: fmt.Sprintf("c%d", i), Revision: 1}
	}
	for i := range n {
		e := &eventsv1.Node{Change: ref(i), Position: int64(i + 1), Analyzed: r.IntN(12) != 0}
		if r.IntN(8) == 0 {
			e.Holds = []*eventsv1.Hold{{Name: "h"}}
		}
		if r.IntN(24) == 0 {
			e.MissingRequirement = "gone"
		}
		for j := range i {
			if r.IntN(4) < dense {
				e.Ahead = append(e.Ahead, &eventsv1.Ahead{Change: ref(j), Conflicts: true, MergeConflict: r.IntN(10) == 0, Required: r.IntN(14) == 0})
			}
		}
		if i+1 < n && r.IntN(20) == 0 {
			// Moved behind, but still required.
			e.Ahead = append(e.Ahead, &eventsv1.Ahead{Change: ref(i + 1), Required: true})
		}
		e.Classes, e.Paths, e.Guard = randomEvidence(r, len(e.Ahead), state)
		d.Nodes = append(d.Nodes, e)
	}
	if n > 1 && r.IntN(20) == 0 {
		// A member that left in this very delta.
		d.Nodes = append(d.Nodes[:1:1], d.Nodes[2:]...)
	}
	g := graph.New()
	g.Fold(d)
	return g, d.Nodes
}

func randomEvidence(r *rand.Rand, ahead int, state func() eventsv1.OutcomeState) (classes []*eventsv1.Class, paths []*eventsv1.Outcome, guard *eventsv1.Guard) {
	known := func(members int) (list []*eventsv1.Outcome) {
		share := r.IntN(5)
		for bits := range 1 << members {
			set := memberset.New(members)
			for i := range members {
				if bits&(1<<i) != 0 {
					set.Add(i)
				}
			}
			if s := state(); share > 0 && r.IntN(8) != 0 && s != graph.Unknown {
				list = append(list, &eventsv1.Outcome{Members: set.Bytes(), State: s})
			}
		}
		return list
	}
	for i := range r.IntN(4) {
		k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: fmt.Sprintf("t%d", i), Part: 1}}}
		for m := range ahead {
			if r.IntN(2) == 0 {
				k.Members = append(k.Members, uint32(m))
			}
		}
		for m := range k.Members {
			if r.IntN(8) == 0 {
				k.Through = append(k.Through, uint32(m))
			}
		}
		k.Outcomes = known(len(k.Members))
		classes = append(classes, k)
	}
	if r.IntN(10) == 0 {
		for _, o := range known(ahead) {
			if o.State != graph.Green && r.IntN(4) == 0 {
				paths = append(paths, o)
			}
		}
	}
	if r.IntN(6) == 0 {
		guard = &eventsv1.Guard{Base: "m", State: state()}
	}
	return classes, paths, guard
}

// M19, M19a: on queues with up to 12 ahead, with random conflicts, classes, evidence, holds, requirements and
// merge conflicts, the decision is the one that looking at every path gives.
func TestM19DecidesAsLookingAtEveryPathDoes(t *testing.T) {
	r := seedtest.Random(t)
	count := map[Verdict]int{}
	bypassed, most := 0, 0
	for x := range queues {
		n := 1 + r.IntN(maxSmall)
		if x%(queues/large) == 0 {
			n = maxSmall + 1 + r.IntN(maxLarge-maxSmall)
		}
		g, nodes := randomQueue(r, n)
		q := naiveQueue{map[string]*eventsv1.Node{}, g.Mainline.Paused}
		for _, n := range nodes {
			q.nodes[n.Change.Change] = n
		}
		for _, n := range g.Order() {
			most = max(most, len(n.Ahead))
			got, reason := Decide(g, n)
			want := q.decide(n.Node)
			if got != want {
				var all strings.Builder
				for _, n := range nodes {
					fmt.Fprintf(&all, "%v\n", n)
				}
				t.Fatalf("%s: %v, want %v; paused %v\n%s", n.Change.Change, got, want, q.paused, all.String())
			}
			if (got == Reject || got == Eject) && reason == nil {
				t.Fatalf("%s: %v without a reason", n.Change.Change, got)
			}
			count[got]++
			if got != Wait && len(n.Ahead) > 1 {
				bypassed++
			}
		}
	}
	t.Logf("%d queues, %d ahead at most: %v, %d of them with several members undecided", queues, most, count, bypassed)
	for _, v := range []Verdict{Wait, Land, Reject, Eject} {
		if count[v] < 300 {
			t.Errorf("only %d times: %v", count[v], v)
		}
	}
	if bypassed < 300 {
		t.Errorf("only %d decisions with several members undecided", bypassed)
	}
}
