package decision

import (
	"fmt"
	"strconv"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// proposal is a ranked build that stands up to what the graph says.
type proposal struct {
	ranked  *eventsv1.RankedBuild
	node    *graph.Node
	set     memberset.Set
	targets []*eventsv1.TargetVersion
	running *running
}

// builds compares the best builds with what runs (M26): aborts first, then schedules while slots are free.
func (s *Selection) builds(deciding map[string]bool) []*eventsv1.DecisionItem {
	var out []*eventsv1.DecisionItem
	slots := int(s.graph.Settings.GetWorkers())
	s.indexRunning()
	proposals := s.proposals(deciding)
	wanted := map[string]bool{}
	for i, p := range proposals {
		if p.running != nil && i < slots {
			wanted[p.running.id] = true
		}
	}
	needed := s.neededBy(proposals)
	held := 0
	replaced := map[string]*running{} // by change and path: a stale build that a new one takes over from
	aborts := map[string]string{}
	for _, r := range s.running {
		switch {
		case r.over:
		case r.dead != "":
			aborts[r.id] = r.dead
		case !r.check && deciding[r.change.Change]:
			aborts[r.id] = "the change is decided"
		case r.stale != "":
			aborts[r.id] = r.stale
			replaced[r.change.Change] = r
		case !r.check && !r.guard && !wanted[r.id] && !s.worthKeeping(r, needed):
			aborts[r.id] = "other builds are worth more"
		default:
			held++
		}
	}
	superseded := map[string]string{}
	var schedules []*eventsv1.DecisionItem
	for _, p := range proposals {
		if p.running != nil && aborts[p.running.id] == "" {
			continue
		}
		if held >= slots {
			break
		}
		missing := s.uncovered(p, aborts)
		if len(missing) == 0 {
			continue // what it waits for is being built under another path
		}
		b := s.schedule(p, missing)
		if r := replaced[p.ranked.Change.Change]; r != nil {
			superseded[r.id] = b.Build
		}
		schedules = append(schedules, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: b}})
		s.cover(p, b)
		held++
	}
	s.uncover()
	s.byChange = nil
	for _, r := range s.running {
		if why := aborts[r.id]; why != "" {
			out = append(out, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{
				Build: r.id, Why: why, SupersededBy: superseded[r.id]}}})
		}
	}
	return append(schedules, out...)
}

// proposals is the ranking, without what is not so: paths of changes that are not pending at that
// revision, members that are none, dead or known paths, paths for which nothing is outstanding.
func (s *Selection) proposals(deciding map[string]bool) []proposal {
	var out []proposal
	for _, b := range s.ranking.GetBest() {
		if b.Change.GetChange() == "" {
			if n := s.graph.Check; n != nil {
				if _, targets := n.Outstanding(memberset.New(0)); len(targets) > 0 {
					out = append(out, proposal{ranked: b, node: n, set: memberset.New(0), targets: targets, running: s.runningCheck(targets)})
				}
			}
			continue
		}
		n := s.graph.NodeAt(b.Change)
		if n == nil || !n.Analyzed || n.Intended || deciding[b.Change.Change] {
			continue
		}
		set, ok := s.setOf(n, b.Assumed)
		if !ok || n.Path(set) != graph.Unknown || s.deadPath(n, set) {
			continue
		}
		_, targets := n.Outstanding(set)
		if len(targets) == 0 {
			continue
		}
		out = append(out, proposal{ranked: b, node: n, set: set, targets: targets, running: s.runningFor(n, set, targets)})
	}
	return out
}

// setOf is false for a member that is none, or that left in this very delta.
func (s *Selection) setOf(n *graph.Node, assumed []*eventsv1.ChangeRef) (memberset.Set, bool) {
	set := memberset.New(len(n.Ahead))
	for _, a := range assumed {
		i := n.IndexOf(a.Change)
		if i < 0 || n.Ahead[i].Change.Revision != a.Revision || s.graph.NodeAt(a) == nil {
			return set, false
		}
		set.Add(i)
	}
	return set, true
}

// indexRunning finds what runs by its change: for each of many proposals only those of its own matter.
func (s *Selection) indexRunning() {
	s.byChange = make(map[string][]*running, len(s.running))
	for _, r := range s.running {
		s.byChange[r.change.Change] = append(s.byChange[r.change.Change], r)
	}
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
	for _, r := range s.running {
		if r.check && !r.over && r.dead == "" && r.stale == "" && hasAll(r, targets) {
			return r
		}
	}
	return nil
}

func hasAll(r *running, targets []*eventsv1.TargetVersion) bool {
	for _, t := range targets {
		if !r.targets[targetPart{t.Target, t.Part}] {
			return false
		}
	}
	return true
}

// neededBy is the worth of each running build's path as ranked now.
func (s *Selection) neededBy(proposals []proposal) map[string]float64 {
	m := map[string]float64{}
	for _, p := range proposals {
		if p.running != nil {
			m[p.running.id] = p.ranked.Needed
		}
	}
	return m
}

// worthKeeping is the hysteresis of M26: a build that fell out of the best goes on while it is above the
// abort threshold. One that is not ranked at all, but whose versions some path waits for, is kept too.
func (s *Selection) worthKeeping(r *running, needed map[string]float64) bool {
	if w, ranked := needed[r.id]; ranked {
		return w >= s.graph.Settings.GetAbortThreshold()
	}
	// Beyond the K best its worth is not known; it has a slot and its path is alive.
	return true
}

// uncovered is what is outstanding for a path and not being built under another path of the change.
func (s *Selection) uncovered(p proposal, aborts map[string]string) []*eventsv1.TargetVersion {
	if p.node.Mainline {
		return p.targets
	}
	versions, _ := p.node.Outstanding(p.set)
	var out []*eventsv1.TargetVersion
	for _, v := range versions {
		if v.Class == graph.Guarded {
			return p.targets
		}
		if !s.covered(p.node, v, aborts) {
			out = append(out, p.node.Classes[v.Class].Targets...)
		}
	}
	return out
}

// covered says that a running build makes the version of the class.
func (s *Selection) covered(n *graph.Node, v graph.ClassVersion, aborts map[string]string) bool {
	k := n.Classes[v.Class]
	for _, r := range s.byChange[n.Change.Change] {
		if r.check || r.guard || r.over || r.stale != "" || r.dead != "" || aborts[r.id] != "" {
			continue
		}
		path, ok := s.pathOf(r, n)
		if ok && k.Restrict(path).Key() == v.Members && hasAll(r, k.Targets) {
			return true
		}
	}
	return false
}

// cover notes a build that this very decision schedules, so that the next path shares what it makes.
// Decide changes nothing for good: uncover takes these back, and Fold adds the build as published.
func (s *Selection) cover(p proposal, b *eventsv1.BuildScheduled) {
	r := s.runningOf(b)
	r.id = ""
	s.running = append(s.running, r)
	s.byChange[r.change.Change] = append(s.byChange[r.change.Change], r)
}

func (s *Selection) uncover() { s.dropRunning("") }

func (s *Selection) schedule(p proposal, targets []*eventsv1.TargetVersion) *eventsv1.BuildScheduled {
	n := p.node
	parts := []string{"build", s.queue, n.Change.Change, strconv.FormatUint(n.Change.Revision, 10), s.graph.Mainline.Head, strconv.FormatInt(s.position, 10)}
	b := &eventsv1.BuildScheduled{
		Change: &eventsv1.AssumedChange{Change: n.Change, LandingCommits: n.LandingCommits},
		Base:   s.graph.Mainline.Head, Targets: targets, Needed: p.ranked.Needed, Value: p.ranked.Value,
		Steps: s.graph.Settings.Steps, Repository: s.graph.Settings.Repository, Branch: s.graph.Settings.Branch,
	}
	var names []string
	for i, a := range n.Ahead {
		if !p.set.Has(i) {
			continue
		}
		b.Assumed = append(b.Assumed, &eventsv1.AssumedChange{Change: a.Change, LandingCommits: s.graph.NodeAt(a.Change).LandingCommits})
		parts = append(parts, a.Change.Change, strconv.FormatUint(a.Change.Revision, 10))
		names = append(names, a.Change.Change)
	}
	b.Build = s.ids(parts...)
	b.Why = why(n, names, p.ranked)
	return b
}

func why(n *graph.Node, assumed []string, b *eventsv1.RankedBuild) string {
	switch {
	case n.Mainline:
		return "a direct push is to be verified"
	case n.Guard != nil && len(assumed) == 0:
		return "the land guard asked for it"
	case len(n.Ahead) == 0:
		return "nothing ahead conflicts with it"
	case len(assumed) == 0 && len(n.Ahead) == 1:
		return fmt.Sprintf("in case that %s does not land before it (worth %.2f)", n.Ahead[0].Change.Change, b.Value)
	case len(assumed) == 0:
		return fmt.Sprintf("in case that none of the %d ahead lands before it (worth %.2f)", len(n.Ahead), b.Value)
	}
	return fmt.Sprintf("on top of %s (worth %.2f)", strings.Join(assumed, ", "), b.Value)
}
