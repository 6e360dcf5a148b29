package decision

import (
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// proposal is a ranked build, with what was concluded of it.
type proposal struct {
	ranked *eventsv1.RankedBuild
	// known is set while the conclusion holds.
	known      bool       `snapshot:"-"` // what is not known is concluded again
	conclusion conclusion `snapshot:"-"`
}

// conclusion is whether a ranked build should run, and what runs for it.
type conclusion struct {
	// viable is set for a path of a pending change that can still come about, and for which something is outstanding. For
	// others the rest is not set.
	viable   bool
	node     *graph.Node
	path     memberset.Set
	versions []graph.ClassVersion
	targets  []*eventsv1.TargetVersion
	// running is the build of that very path that has all the targets that are outstanding for it.
	running *running
	// covered is set if other running builds of the change make all that it waits for.
	covered bool
}

// rank takes the ranking as it is now. What was concluded of builds that stay in it is kept.
func (s *Selection) rank(now *eventsv1.Ranking) {
	if now == s.ranking {
		return
	}
	// A build that stays is the very same message (graph.EditedRanking).
	old := make(map[*eventsv1.RankedBuild]*proposal, len(s.proposals))
	for _, p := range s.proposals {
		old[p.ranked] = p
	}
	before := s.proposals
	s.ranking, s.proposals = now, make([]*proposal, 0, len(now.Best))
	for _, b := range now.Best {
		p := old[b]
		if p == nil {
			p = s.propose(b)
		}
		delete(old, b)
		s.proposals = append(s.proposals, p)
	}
	for _, p := range before {
		if old[p.ranked] != nil {
			remove(s.proposalsOf, subjectOf(p.ranked.Change), func(o *proposal) bool { return o == p })
		}
	}
}

func (s *Selection) propose(b *eventsv1.RankedBuild) *proposal {
	p, of := &proposal{ranked: b}, subjectOf(b.Change)
	s.proposalsOf[of] = append(s.proposalsOf[of], p)
	return p
}

// conclude decides whether a ranked build should run. It should not if its change is not pending at that revision, if one
// of its members is none any more, if its path is dead or known, or if nothing is outstanding for it.
func (s *Selection) conclude(b *eventsv1.RankedBuild) (c conclusion) {
	if subjectOf(b.Change).mainline {
		if c.node = s.graph.Check; c.node != nil {
			c.versions, c.targets = c.node.Outstanding(memberset.New(0))
			c.viable, c.running = len(c.targets) > 0, s.runningCheck(c.targets)
		}
		return c
	}
	n := s.graph.NodeAt(b.Change)
	if n == nil || !n.Analyzed || n.Intended {
		return c
	}
	path, ok := pathAssuming(n, b.Assumed)
	if !ok || n.Path(path) != graph.Unknown || !s.graph.LivePath(n, path) {
		return c
	}
	c.node, c.path = n, path
	c.versions, c.targets = n.Outstanding(path)
	if c.viable = len(c.targets) > 0; !c.viable {
		return c
	}
	c.running = s.runningFor(n, path, c.targets)
	c.covered = c.running == nil && s.covered(n, c.versions)
	return c
}

// pathAssuming returns the path of n on which some members land; ok is false if one of them is no member, or left in the
// last delta.
func pathAssuming(n *graph.Node, assumed []*eventsv1.ChangeRef) (path memberset.Set, ok bool) {
	path = memberset.New(len(n.Ahead))
	for _, a := range assumed {
		i := n.IndexOf(a.Change)
		if i < 0 || n.Ahead[i].Change.Revision != a.Revision || n.Member(i) == nil {
			return path, false
		}
		path.Add(i)
	}
	return path, true
}

// runningFor returns the build of that very path that has all the targets that are outstanding for it, nil if none does.
func (s *Selection) runningFor(n *graph.Node, path memberset.Set, targets []*eventsv1.TargetVersion) *running {
	for _, r := range s.runningOf[subjectOf(n.Change)] {
		if !r.end.goesOn() {
			continue
		}
		if of, ok := r.pathOf(n); ok && of.Equal(path) && r.hasAll(targets) {
			return r
		}
	}
	return nil
}

// runningCheck returns the build of the mainline itself that has all these targets, nil if none does.
func (s *Selection) runningCheck(targets []*eventsv1.TargetVersion) *running {
	for _, r := range s.runningOf[subject{mainline: true}] {
		if r.end.goesOn() && r.hasAll(targets) {
			return r
		}
	}
	return nil
}

// covered reports whether running builds of the change make all of these versions.
func (s *Selection) covered(n *graph.Node, versions []graph.ClassVersion) bool {
	for _, v := range versions {
		if !slices.ContainsFunc(s.runningOf[subjectOf(n.Change)], func(r *running) bool { return r.makes(n, v) }) {
			return false
		}
	}
	return true
}

// makes reports whether a build of the change makes the version of the class.
func (r *running) makes(n *graph.Node, v graph.ClassVersion) bool {
	if v.Class == graph.Guarded || r.subject.mainline || r.guard || !r.end.goesOn() {
		return false
	}
	k := n.Classes[v.Class]
	path, ok := r.pathOf(n)
	return ok && k.MakesOn(path, v.Members) && r.hasAll(k.Targets)
}
