package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// randomQueue writes the deltas of a queue as the enumerator does: nodes come, lose members, are replaced, and leave.
type randomQueue struct {
	r     *rand.Rand
	nodes []*eventsv1.Node // as they have to be, in queue order
	last  int64
}

func (q *randomQueue) delta() *eventsv1.GraphDelta {
	d, r := &eventsv1.GraphDelta{}, q.r
	for range r.IntN(3) {
		if len(q.nodes) > 0 {
			i := r.IntN(len(q.nodes)) * r.IntN(2) // the head, half of the times
			d.Gone = append(d.Gone, &eventsv1.NodeGone{Change: q.nodes[i].Change, How: eventsv1.GoneHow(1 + r.IntN(5))})
			q.nodes = slices.Delete(q.nodes, i, i+1)
		}
	}
	for i, n := range q.nodes {
		for _, gone := range d.Gone {
			n = Without(n, gone)
		}
		if n != q.nodes[i] && r.IntN(4) == 0 { // the enumerator knows something else of it
			n = knownNode(r, n.Change.Change, n.Position, someOf(r, q.nodes[:i]))
			n.Change.Revision = q.nodes[i].Change.Revision
			d.Nodes = append(d.Nodes, n)
		}
		q.nodes[i] = n
	}
	for range r.IntN(3) {
		q.last += 10
		n := knownNode(r, fmt.Sprint("c", q.last), q.last, someOf(r, q.nodes))
		q.nodes = append(q.nodes, n)
		d.Nodes = append(d.Nodes, n)
	}
	switch r.IntN(7) {
	case 6:
		d.Survey = &eventsv1.Survey{Unproven: r.Uint32N(100)}
	case 0:
		d.Mainline = &eventsv1.Mainline{Head: fmt.Sprint("m", r.IntN(100))}
	case 1:
		d.Settings = &eventsv1.QueueSettings{Workers: r.Uint32N(100)}
	case 2:
		d.Nodes = append(d.Nodes, &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true})
	}
	return d
}

// TestARestoredGraphGoesOnAsTheOneThatItsSnapshotWasTakenOf over random deltas, as bytes and back.
func TestARestoredGraphGoesOnAsTheOneThatItsSnapshotWasTakenOf(t *testing.T) {
	r, fields := seedtest.Random(t), snapshottest.New(t)
	for range 100 {
		q, original := &randomQueue{r: r}, New()
		var restored *Graph
		for range 40 {
			d := q.delta()
			lost := original.Fold(d)
			if restored != nil {
				again := restored.Fold(proto.CloneOf(d))
				if !slices.EqualFunc(lost, again, func(a, b *Node) bool { return proto.Equal(a.Node, b.Node) }) {
					t.Fatalf("it takes members from %v, not from %v", again, lost)
				}
			}
			if restored == nil || r.IntN(4) == 0 {
				restored = throughBytes(t, original)
			}
			fields.Same(original, restored)
			sameGraph(t, original, restored)
		}
	}
	fields.Done()
}

func throughBytes(t testing.TB, g *Graph) *Graph {
	t.Helper()
	restored, err := Restore(snapshottest.ThroughBytes(t, g.Snapshot()))
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	ref := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	for name, n := range map[string]*eventsv1.Node{
		"a node without a change":          {},
		"a member without a change":        {Change: ref, Ahead: []*eventsv1.Ahead{{}}},
		"a class of a member beyond all":   {Change: ref, Classes: []*eventsv1.Class{{Members: []uint32{0}}}},
		"a class through one beyond all":   {Change: ref, Classes: []*eventsv1.Class{{Through: []uint32{0}}}},
		"a class through more than it has": {Change: ref, Ahead: []*eventsv1.Ahead{{Change: ref}}, Classes: []*eventsv1.Class{{Members: []uint32{0}, Through: []uint32{0, 0}}}},
	} {
		if _, err := Restore(&snapshotv1.Graph{Nodes: []*eventsv1.Node{n}}); err == nil {
			t.Errorf("%s is restored", name)
		}
		if _, err := Restore(&snapshotv1.Graph{Check: n}); err == nil {
			t.Errorf("%s is restored as the check", name)
		}
	}
	if _, err := Restore(&snapshotv1.Graph{Nodes: []*eventsv1.Node{{Change: ref}, {Change: ref}}}); err == nil {
		t.Error("two nodes of one change are restored")
	}
	if g, err := Restore(nil); err != nil || g.Mainline == nil || len(g.Order()) > 0 {
		t.Errorf("of no message there is %v, %v", g, err)
	}
}
