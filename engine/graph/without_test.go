package graph

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/memberset"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// knownNode returns a node with much evidence: about paths, about versions, and about targets that it affects only through members.
func knownNode(r *rand.Rand, id string, position int64, ahead []*eventsv1.ChangeRef) *eventsv1.Node {
	n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: id, Revision: 1 + uint64(r.IntN(2))}, Position: position, Analyzed: true}
	for _, a := range ahead {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: a, Conflicts: true, MergeConflict: r.IntN(20) == 0, Required: r.IntN(20) == 0})
	}
	some := func(n int) (list []*eventsv1.Outcome) {
		for range r.IntN(4) {
			set := memberset.New(n)
			for i := range n {
				if r.IntN(2) == 0 {
					set.Add(i)
				}
			}
			if !slices.ContainsFunc(list, func(o *eventsv1.Outcome) bool { return string(o.Members) == string(set.Bytes()) }) {
				list = append(list, &eventsv1.Outcome{Members: set.Bytes(), State: eventsv1.OutcomeState(1 + r.IntN(4)), Message: fmt.Sprint(r.Int())})
			}
		}
		return list
	}
	for range r.IntN(4) {
		k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}
		for i := range n.Ahead {
			if r.IntN(3) > 0 {
				if r.IntN(10) == 0 {
					k.Through = append(k.Through, uint32(len(k.Members)))
				}
				k.Members = append(k.Members, uint32(i))
			}
		}
		k.Outcomes = some(len(k.Members))
		if len(k.Through) > 0 { // without those there is no version
			k.Outcomes = slices.DeleteFunc(k.Outcomes, func(o *eventsv1.Outcome) bool {
				return !memberset.FromBytes(len(k.Members), o.Members).HasAny(k.Through)
			})
		}
		n.Classes = append(n.Classes, k)
	}
	if r.IntN(4) == 0 {
		n.Paths = some(len(n.Ahead))
	}
	return n
}

// TestWhatIsKnownWithoutAMemberIsWhatWasKnownWithItsFate compares a node that a member has left with the one before, on every path.
func TestWhatIsKnownWithoutAMemberIsWhatWasKnownWithItsFate(t *testing.T) {
	r := seedtest.Random(t)
	known := 0
	for range 5000 {
		var ahead []*eventsv1.ChangeRef
		for i := range 1 + r.IntN(9) {
			ahead = append(ahead, &eventsv1.ChangeRef{Change: fmt.Sprint("a", i), Revision: 1})
		}
		e := knownNode(r, "c", 1, ahead)
		at := r.IntN(len(ahead))
		e.Ahead[at].MergeConflict, e.Ahead[at].Required = false, false // its fate would be known
		gone := &eventsv1.NodeGone{Change: ahead[at], How: eventsv1.GoneHow(1 + r.IntN(5))}
		kept := proto.Clone(e)
		before, after := newNode(e), newNode(Without(e, gone))
		for bits := range 1 << (len(ahead) - 1) {
			fewer, all := memberset.New(len(ahead)-1), memberset.New(len(ahead))
			for i := range len(ahead) - 1 {
				if bits&(1<<i) == 0 {
					continue
				}
				if fewer.Add(i); i < at {
					all.Add(i)
				} else {
					all.Add(i + 1)
				}
			}
			if gone.How == eventsv1.GoneHow_GONE_HOW_LANDED {
				all.Add(at)
			}
			if want, got := before.PathOutcome(all), after.PathOutcome(fewer); want.State != got.State {
				t.Fatalf("without member %d, which %v, path %b is %v, and was %v\n%v\n%v", at, gone.How, bits, got, want, e, after.Node)
			} else if got.State != Unknown {
				known++
			}
		}
		if !proto.Equal(kept, e) {
			t.Fatalf("the node itself is another now: %v, was %v", e, kept)
		}
	}
	if known < 5000 {
		t.Errorf("only %d paths were known", known)
	}
}

// TestWithoutKeepsEveryOtherField so that one that is added to the schema is not forgotten here.
func TestWithoutKeepsEveryOtherField(t *testing.T) {
	e := &eventsv1.Node{
		Change: &eventsv1.ChangeRef{Change: "c", Revision: 2}, Position: 3, Analyzed: true, Benefit: 4, AdmittedUs: 5, MissingRequirement: "m", Epoch: 6,
		Intended: true, Mainline: true, Inherited: []string{"//t"}, Urgent: true, Author: "a", Holds: []*eventsv1.Hold{{Name: "h"}}, LandingCommits: []*eventsv1.LandingCommit{{Head: "x"}},
		Guard: &eventsv1.Guard{Base: "b"}, Ahead: []*eventsv1.Ahead{{Change: &eventsv1.ChangeRef{Change: "a"}}, {Change: &eventsv1.ChangeRef{Change: "k"}}},
		Paths:   []*eventsv1.Outcome{{State: Red, Message: "p", Class: 1, Version: &eventsv1.TargetVersion{Target: "//p"}}},
		Classes: []*eventsv1.Class{{Members: []uint32{0, 1}, Through: []uint32{1}, Targets: []*eventsv1.TargetVersion{{Target: "//t"}}, Outcomes: []*eventsv1.Outcome{{Members: []byte{2}, State: Green}}}},
	}
	everyField(t, e)
	n := Without(e, &eventsv1.NodeGone{Change: e.Ahead[0].Change, How: eventsv1.GoneHow_GONE_HOW_CANCELLED})
	everyField(t, n)
	if len(n.Ahead) != 1 || n.Ahead[0] != e.Ahead[1] || !reflect.DeepEqual(n.Classes[0].Members, []uint32{0}) || n.Classes[0].Through[0] != 0 || n.Classes[0].Outcomes[0].Members[0] != 1 {
		t.Errorf("without the first member it is %v", n)
	}
	if Without(e, &eventsv1.NodeGone{Change: &eventsv1.ChangeRef{Change: "a", Revision: 7}}) != e {
		t.Error("another revision of a member takes it out")
	}
}

func everyField(t *testing.T, n *eventsv1.Node) {
	t.Helper()
	for _, m := range []proto.Message{n, n.Paths[0], n.Classes[0]} {
		r := m.ProtoReflect()
		for i := range r.Descriptor().Fields().Len() {
			if f := r.Descriptor().Fields().Get(i); !r.Has(f) && (f.Name() != "members" || m == proto.Message(n.Classes[0])) {
				t.Errorf("%s.%s is not there", r.Descriptor().Name(), f.Name())
			}
		}
	}
}

// TestAGraphThatLosesMembersIsTheOneMadeOfItsNodes folds random deltas into one graph, and makes another of what each node should be.
func TestAGraphThatLosesMembersIsTheOneMadeOfItsNodes(t *testing.T) {
	r := seedtest.Random(t)
	lost := 0
	for range 300 {
		q, g := &randomQueue{r: r}, New()
		for range 30 {
			d := q.delta()
			if r.IntN(2) == 0 { // Places has been asked for
				n := g.Order()
				if len(n) > 0 && len(n[len(n)-1].Ahead) > 0 && n[len(n)-1].Member(0) != nil {
					g.Places(n[len(n)-1], 0)
				}
			}
			lost += len(g.Fold(d))
			made := New()
			made.Fold(&eventsv1.GraphDelta{Nodes: q.nodes})
			sameGraph(t, g, made)
		}
	}
	if lost < 1000 {
		t.Errorf("only %d nodes lost a member", lost)
	}
}

func someOf(r *rand.Rand, nodes []*eventsv1.Node) (refs []*eventsv1.ChangeRef) {
	for _, n := range nodes {
		if r.IntN(3) > 0 {
			refs = append(refs, n.Change)
		}
	}
	return refs
}

func sameGraph(t *testing.T, a, b *Graph) {
	t.Helper()
	if len(a.changes) != len(b.changes) || len(a.order) != len(b.order) {
		t.Fatalf("%d changes and %d nodes, not %d and %d", len(a.changes), len(a.order), len(b.changes), len(b.order))
	}
	behind := func(g *Graph, id string) (ids []string) {
		g.EachBehind(id, func(n *Node) { ids = append(ids, n.Change.Change) })
		slices.Sort(ids)
		return ids
	}
	once, any := map[string]int{}, map[string]bool{}
	a.EachBehindAny(a.order[:len(a.order)/2], func(n *Node) { once[n.Change.Change]++ })
	for _, n := range a.order[:len(a.order)/2] {
		for _, id := range behind(a, n.Change.Change) {
			if any[id] = true; once[id] != 1 {
				t.Fatalf("%s is behind %s, and was named %d times", id, n.Change.Change, once[id])
			}
		}
	}
	if len(once) != len(any) {
		t.Fatalf("%v are behind the first half, and %v were named", any, once)
	}
	for i, n := range a.order {
		o := b.order[i]
		if !proto.Equal(n.Node, o.Node) || n.fixed != o.fixed || n.unproven != o.unproven || a.Node(n.Change.Change) != n {
			t.Fatalf("it is %v, not %v", n, o)
		}
		if x, y := behind(a, n.Change.Change), behind(b, n.Change.Change); !slices.Equal(x, y) {
			t.Fatalf("behind %s are %v, not %v", n.Change.Change, x, y)
		}
		for j := range n.Ahead {
			m := n.Member(j)
			if (m == nil) != (o.Member(j) == nil) || m != nil && m != a.Node(m.Change.Change) {
				t.Fatalf("member %d of %s is %v, not %v", j, n.Change.Change, m, o.Member(j))
			}
			if m != nil && !slices.Equal(a.Places(n, j), b.Places(o, j)) {
				t.Fatalf("%s has those ahead of member %d at %v, not %v", n.Change.Change, j, a.Places(n, j), b.Places(o, j))
			}
		}
	}
}
