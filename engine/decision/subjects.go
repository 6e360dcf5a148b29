package decision

import (
	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// subjects collects what an input concerns: whatever it changes, and whatever has that ahead.
type subjects map[subject]bool

func (c subjects) add(ref *eventsv1.ChangeRef) { c[subjectOf(ref)] = true }

// addWithBehind adds a change and every change that has it ahead.
func (c subjects) addWithBehind(g *graph.Graph, ref *eventsv1.ChangeRef) {
	c.add(ref)
	g.EachBehind(ref.GetChange(), func(n *graph.Node) { c.add(n.Change) })
}

func (c subjects) addAll(s *Selection) {
	c[subject{mainline: true}], c[idleSubject] = true, true
	for _, n := range s.graph.Order() {
		c.add(n.Change)
	}
	for of := range s.runningOf {
		c[of] = true
	}
	for of := range s.proposalsOf {
		c[of] = true
	}
}

// reconsider gives up what was concluded of a subject, and sets again how its builds end.
func (s *Selection) reconsider(c subject) {
	if !c.mainline {
		s.undecided[c.change] = true
	}
	s.forgetConclusions(c)
	for _, r := range s.runningOf[c] {
		r.openKnown = false
		s.setEnding(r)
	}
}

// forgetConclusions gives up what was concluded of the builds that are ranked for a subject.
func (s *Selection) forgetConclusions(c subject) {
	for _, p := range s.proposalsOf[c] {
		p.known = false
	}
}
