package api_test

import (
	"fmt"
	"reflect"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

func TestTheGraphHasConflictsAndPaths(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"a", "b", "c"} {
		s.admit(id, "title of "+id)
	}
	s.Graph("main", &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{
		{Change: apitest.Ref("a"), Analyzed: true},
		{Change: apitest.Ref("b"), Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: apitest.Ref("a"), Targets: []string{"//1", "//2", "//3", "//4"}}}},
		{Change: apitest.Ref("c"), Analyzed: true, Ahead: []*eventsv1.Ahead{{Change: apitest.Ref("a"), MergeConflict: true}, {Change: apitest.Ref("b"), Required: true}}},
	}})
	s.Schedule("main", "c-on-ab", "c", []string{"a", "b"}, "//x", "//y")
	s.Prepare("main", "c-on-ab", "c", "//x", "//y")
	s.Finish("main", "c-on-ab", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "", "")
	graph := func() (g view.Graph) {
		s.Read("main", func(q *view.Queue) { g = q.Graph() })
		return g
	}
	g := graph()
	if got, want := g.Changes["b"].Ahead, []view.GraphEdge{{Change: "a", Targets: []string{"//1", "//2", "//3"}}}; !reflect.DeepEqual(got, want) {
		t.Errorf("b has ahead %+v, want %+v", got, want)
	}
	c := g.Changes["c"]
	if want := []view.GraphEdge{{Change: "b", Required: true}, {Change: "a", MergeConflict: true}}; !reflect.DeepEqual(c.Ahead, want) || c.AheadTotal != 2 || c.Position != 3 || c.Title != "title of c" {
		t.Errorf("c is %+v", c)
	}
	if want := []view.GraphFuture{{Assumed: []string{"a", "b"}, State: view.BuildRunning, Needed: 0.9, StepsDone: 1, StepsTotal: 2}}; !reflect.DeepEqual(c.Futures, want) {
		t.Errorf("c has the futures %+v, want %+v", c.Futures, want)
	}
	s.LandIt("main", "a", "build", nil)
	if f := graph().Changes["c"].Futures[0]; f.Dead || !reflect.DeepEqual(f.Assumed, []string{"b"}) {
		t.Errorf("after a has landed the future is %+v", f)
	}
	s.Fold("main", "landfall.changes", &eventsv1.ChangeCancelled{Change: "b", Who: "Ada"})
	g = graph()
	if f := g.Changes["c"].Futures[0]; !f.Dead {
		t.Errorf("after b was cancelled the future is %+v", f)
	}
	if len(g.Changes) != 1 || len(g.Changes["c"].Ahead) != 0 || g.Changes["c"].Position != 1 {
		t.Errorf("what is left is %+v", g.Changes)
	}
}

// TestTheGraphIsBounded: a change that conflicts with all others names the nearest.
func TestTheGraphIsBounded(t *testing.T) {
	s := serve(t)
	last := &eventsv1.Node{Change: apitest.Ref("z"), Analyzed: true}
	for i := range 40 {
		id := fmt.Sprint("n", i)
		s.admit(id, "")
		last.Ahead = append(last.Ahead, &eventsv1.Ahead{Change: apitest.Ref(id)})
	}
	s.admit("z", "")
	s.Graph("main", &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{last}})
	s.Read("main", func(q *view.Queue) {
		z := q.Graph().Changes["z"]
		if len(z.Ahead) != 16 || z.AheadTotal != 40 || z.Ahead[0].Change != "n39" {
			t.Errorf("z has %d changes ahead of %d, the first %v", len(z.Ahead), z.AheadTotal, z.Ahead[0])
		}
	})
}
