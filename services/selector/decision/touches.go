package decision

import (
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// touches are the changes of which, or of what they have ahead, something was said. That of the mainline itself
// has no id.
type touches map[string]bool

func (t touches) withBehind(g *graph.Graph, id string) {
	t[id] = true
	g.EachBehind(id, func(n *graph.Node) { t[n.Change.Change] = true })
}

func (t touches) all(s *Selection) {
	t[""] = true
	for _, n := range s.graph.Order() {
		t[n.Change.Change] = true
	}
	for id := range s.byChange {
		t[id] = true
	}
	for id := range s.ofChange {
		t[id] = true
	}
}

// touch gives up what was concluded of a change, and marks what the new state of the graph has killed.
func (s *Selection) touch(id string) {
	s.undecided[id] = true
	s.reconsider(id)
	for _, r := range s.byChange[id] {
		s.refresh(r)
	}
}

func (s *Selection) setWorthless(build string, w *eventsv1.WorthlessBuild) {
	for _, r := range s.running {
		if r.id == build {
			r.worthless = w
		}
	}
}

// finished notes that nothing of a build is outstanding.
func (s *Selection) finished(b *eventsv1.BuildProgress, touched touches) {
	for _, r := range s.running {
		if r.id == b.Build {
			r.over = true
			touched[r.change.Change] = true
		}
	}
}

// gone takes a change that left out of what runs.
func (s *Selection) gone(g *eventsv1.NodeGone, touched touches) {
	node := s.graph.NodeAt(g.Change)
	delete(s.decided, g.Change.Change)
	touched.withBehind(s.graph, g.Change.Change)
	for _, r := range s.running {
		dead, stale := r.dead, r.stale
		s.left(r, g, node)
		if r.dead != dead || r.stale != stale {
			touched[r.change.Change] = true
		}
	}
}

// left is what it means for a build that a change left: if it assumed it, it goes on if it landed, and is dead
// if it did not.
func (s *Selection) left(r *running, g *eventsv1.NodeGone, node *graph.Node) {
	landed := g.How == eventsv1.GoneHow_GONE_HOW_LANDED
	if graph.SameRef(r.change, g.Change) {
		r.dead = "the change is no longer pending"
		return
	}
	if rev, assumed := r.assumed[g.Change.Change]; assumed && rev == g.Change.Revision {
		delete(r.assumed, g.Change.Change)
		r.node = nil
		if !landed {
			r.dead = g.Change.Change + ", which it assumed, did not land"
		}
		return
	}
	if !landed {
		return
	}
	own := s.graph.NodeAt(r.change)
	if own == nil {
		return
	}
	if at := own.IndexOf(g.Change.Change); at >= 0 && own.Ahead[at].Conflicts {
		r.dead = g.Change.Change + ", which it assumed to be rejected, landed"
	} else if node != nil && node.IndexOf(r.change.Change) >= 0 {
		r.stale = moved // it was bypassed: other versions are outstanding now (M20)
	}
}
