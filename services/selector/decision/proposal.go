package decision

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// proposal is a ranked build, with what was concluded of it.
type proposal struct {
	ranked *eventsv1.RankedBuild

	// known: what follows holds.
	known bool
	// stands: it is a path of a pending change that can come about, and something is outstanding for it.
	stands   bool
	node     *graph.Node
	set      memberset.Set
	versions []graph.ClassVersion
	targets  []*eventsv1.TargetVersion
	// running is the build of that very path that has all the targets that are outstanding for it.
	running *running
	// covered: other running builds of the change make all that it waits for.
	covered bool
}

// rank takes the ranking as it is now; of builds that were ranked before, what was concluded stays.
func (s *Selection) rank(now *eventsv1.Ranking) {
	if now == s.ranking {
		return
	}
	// The ranking's own elements tell what stays: a thawed proposal has a copy of its own.
	before := s.proposals
	old := make(map[*eventsv1.RankedBuild]*proposal, len(before))
	for i, b := range s.ranking.GetBest() {
		old[b] = before[i]
	}
	s.proposals = make([]*proposal, 0, len(now.Best))
	for _, b := range now.Best {
		p := old[b]
		if p == nil {
			p = &proposal{}
			id := b.Change.GetChange()
			s.ofChange[id] = append(s.ofChange[id], p)
		}
		delete(old, b)
		p.ranked = b
		s.proposals = append(s.proposals, p)
	}
	for i, b := range s.ranking.GetBest() {
		if old[b] != nil {
			s.unrank(before[i])
		}
	}
	s.ranking = now
}

func (s *Selection) unrank(p *proposal) {
	id := p.ranked.Change.GetChange()
	of := slices.DeleteFunc(s.ofChange[id], func(o *proposal) bool { return o == p })
	if s.ofChange[id] = of; len(of) == 0 {
		delete(s.ofChange, id)
	}
}

// reconsider gives up what was concluded of the builds that are ranked for a change.
func (s *Selection) reconsider(id string) {
	for _, p := range s.ofChange[id] {
		p.known = false
	}
}

// consider looks whether a ranked build is so: no path of a change that is not pending at that revision, of
// members that are none, dead or known, or for which nothing is outstanding.
func (s *Selection) consider(p *proposal) {
	*p = proposal{ranked: p.ranked, known: true}
	if p.ranked.Change.GetChange() == "" {
		p.node, p.set = s.graph.Check, memberset.New(0)
		if p.node != nil {
			p.versions, p.targets = p.node.Outstanding(p.set)
			p.stands, p.running = len(p.targets) > 0, s.runningCheck(p.targets)
		}
		return
	}
	n := s.graph.NodeAt(p.ranked.Change)
	if n == nil || !n.Analyzed || n.Intended {
		return
	}
	set, ok := s.setOf(n, p.ranked.Assumed)
	if !ok || n.Path(set) != graph.Unknown || s.deadPath(n, set) {
		return
	}
	p.node, p.set = n, set
	p.versions, p.targets = n.Outstanding(set)
	if p.stands = len(p.targets) > 0; !p.stands {
		return
	}
	p.running = s.runningFor(n, set, p.targets)
	p.covered = p.running == nil && s.covered(n, p.versions)
}

// setOf is false for a member that is none, or that left in this very delta.
func (s *Selection) setOf(n *graph.Node, assumed []*eventsv1.ChangeRef) (memberset.Set, bool) {
	set := memberset.New(len(n.Ahead))
	for _, a := range assumed {
		i := n.IndexOf(a.Change)
		if i < 0 || n.Ahead[i].Change.Revision != a.Revision || n.Member(i) == nil {
			return set, false
		}
		set.Add(i)
	}
	return set, true
}

// runningFor is the build of that very path that has all the targets that are outstanding for it.
func (s *Selection) runningFor(n *graph.Node, set memberset.Set, targets []*eventsv1.TargetVersion) *running {
	for _, r := range s.byChange[n.Change.Change] {
		if r.check || r.over || r.dead != "" || r.stale != "" {
			continue
		}
		if path, ok := s.pathOf(r, n); ok && path.Equal(set) && hasAll(r, targets) {
			return r
		}
	}
	return nil
}

func (s *Selection) runningCheck(targets []*eventsv1.TargetVersion) *running {
	for _, r := range s.byChange[""] {
		if r.check && !r.over && r.dead == "" && r.stale == "" && hasAll(r, targets) {
			return r
		}
	}
	return nil
}

// covered says that running builds of the change make all of these versions.
func (s *Selection) covered(n *graph.Node, versions []graph.ClassVersion) bool {
	for _, v := range versions {
		made := false
		for _, r := range s.byChange[n.Change.Change] {
			made = made || s.makes(r, n, v)
		}
		if !made {
			return false
		}
	}
	return true
}

// makes says that a build makes the version of the class.
func (s *Selection) makes(r *running, n *graph.Node, v graph.ClassVersion) bool {
	if v.Class == graph.Guarded || r.check || r.guard || r.over || r.stale != "" || r.dead != "" {
		return false
	}
	k := n.Classes[v.Class]
	path, ok := s.pathOf(r, n)
	return ok && k.MakesOn(path, v.Members) && hasAll(r, k.Targets)
}

func hasAll(r *running, targets []*eventsv1.TargetVersion) bool {
	for _, t := range targets {
		if !r.targets[targetPart{t.Target, t.Part}] {
			return false
		}
	}
	return true
}
