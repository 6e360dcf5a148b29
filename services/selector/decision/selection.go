// Package decision is the selector's core: when a change may be decided (M19, M19a), and which builds hold
// the workers (M26). What the prioritizer proposes chooses builds only; no landing, rejection or ejection
// reads a probability.
package decision

import (
	"strconv"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// Selection is the state of one queue.
type Selection struct {
	graph   *graph.Graph
	ranking *eventsv1.Ranking
	// running are the builds that hold a slot, in the order in which they were scheduled.
	running []*running
	// byChange is the same by change; it is there only while Decide runs.
	byChange map[string][]*running
	// decided are the changes for which a decision waits for its effect, by the decision's id.
	decided map[string]string
	queue   string
	ids     IDs

	position int64
	fresh    bool
}

// IDs derives ids from the log's own id, so that nothing is repeated by a log made anew.
type IDs func(parts ...string) string

// running is a build that was scheduled and is neither over nor aborted.
type running struct {
	id     string
	change *eventsv1.ChangeRef
	// assumed holds the members that are still pending; one that landed has left it.
	assumed map[string]uint64
	// versions and targets are what it was scheduled for.
	targets map[targetPart]bool
	epoch   uint64
	// stale says why another build takes over from it: the mainline moved in a way that it did not assume,
	// so it may make versions of no path.
	stale string
	// steps is the policy that it was scheduled with: the builder retries by that one, for good.
	steps *eventsv1.StepPolicy
	// dead says why nobody can need it any more.
	dead string
	// over: its steps have ended; it is dropped at the next input.
	over bool
	// check builds verify the mainline itself, guard builds what the land guard asked for.
	check, guard bool
}

type targetPart struct {
	target string
	part   uint32
}

// New is a selection of a queue of which nothing is known.
func New(queue string, ids IDs) *Selection {
	return &Selection{graph: graph.New(), decided: map[string]string{}, queue: queue, ids: ids}
}

// Apply folds one record of priorities.
func (s *Selection) Apply(p *eventsv1.Priority) {
	s.position, s.fresh = p.Position, true
	s.dropOver()
	head := s.graph.Mainline.GetHead()
	for _, g := range p.Delta.GetGone() {
		s.gone(g)
	}
	s.graph.Fold(p.Delta)
	if p.Ranking != nil {
		s.ranking = p.Ranking
	}
	for _, a := range p.Delta.GetAnswered() {
		if s.decided[a.Change.Change] == a.Decision {
			delete(s.decided, a.Change.Change)
		}
	}
	for _, b := range p.Delta.GetBuilds() {
		if b.State != eventsv1.BuildState_BUILD_STATE_FINISHED {
			continue
		}
		for _, r := range s.running {
			if r.id == b.Build {
				r.over = true
			}
		}
	}
	for _, r := range s.running {
		s.refresh(r, head)
	}
}

// gone takes a change that left out of what runs: a build that assumed it goes on if it landed, and is
// dead if it did not.
func (s *Selection) gone(g *eventsv1.NodeGone) {
	node := s.graph.NodeAt(g.Change)
	delete(s.decided, g.Change.Change)
	landed := g.How == eventsv1.GoneHow_GONE_HOW_LANDED
	for _, r := range s.running {
		if r.change.Change == g.Change.Change && r.change.Revision == g.Change.Revision {
			r.dead = "the change is no longer pending"
			continue
		}
		if rev, assumed := r.assumed[g.Change.Change]; assumed && rev == g.Change.Revision {
			delete(r.assumed, g.Change.Change)
			if !landed {
				r.dead = g.Change.Change + ", which it assumed, did not land"
			}
			continue
		}
		if !landed {
			continue
		}
		own := s.graph.NodeAt(r.change)
		if own != nil && own.IndexOf(g.Change.Change) >= 0 && own.Ahead[own.IndexOf(g.Change.Change)].Conflicts {
			r.dead = g.Change.Change + ", which it assumed to be rejected, landed"
		} else if own != nil && node != nil && node.IndexOf(r.change.Change) >= 0 {
			r.stale = moved // it was bypassed: other versions are outstanding now (M20)
		}
	}
}

// moved is why most builds grow stale.
const moved = "the mainline moved under it"

// sameRetries says that two policies call the same version settled.
func sameRetries(a, b *eventsv1.StepPolicy) bool {
	return a.GetFailedRetries() == b.GetFailedRetries() && a.GetTimedOutRetries() == b.GetTimedOutRetries() &&
		a.GetInfrastructureRetries() == b.GetInfrastructureRetries()
}

// refresh marks what the new state of the graph has killed.
func (s *Selection) refresh(r *running, head string) {
	if settings := s.graph.Settings; settings != nil && !sameRetries(r.steps, settings.Steps) {
		r.stale = "the retry policy changed"
	}
	if r.check {
		if !s.mainlineUnproven() {
			r.dead = "nothing on the mainline is unverified any more"
		}
		return
	}
	n := s.graph.NodeAt(r.change)
	if n == nil {
		if r.dead == "" {
			r.dead = "the change is no longer pending"
		}
		return
	}
	if n.Epoch != r.epoch {
		r.stale = moved
	}
	if r.guard && s.graph.Mainline.GetHead() != head {
		r.stale = moved
	}
	set, ok := s.pathOf(r, n)
	if !ok {
		r.stale = moved
		return
	}
	if n.Path(set) != graph.Unknown {
		r.dead = "its outcome is known"
	} else if s.deadPath(n, set) {
		r.dead = "its path can no longer come about"
	}
}

// mainlineUnproven says that something that came past the queue is still to be built.
func (s *Selection) mainlineUnproven() bool {
	if s.graph.Check == nil {
		return false
	}
	_, targets := s.graph.Check.Outstanding(memberset.New(0))
	return len(targets) > 0
}

// pathOf is the set of members that the build assumes; ok is false if one of them is no member any more.
func (s *Selection) pathOf(r *running, n *graph.Node) (memberset.Set, bool) {
	set := memberset.New(len(n.Ahead))
	for id, rev := range r.assumed {
		i := n.IndexOf(id)
		if i < 0 || n.Ahead[i].Change.Revision != rev {
			return set, false
		}
		set.Add(i)
	}
	return set, true
}

// deadPath says that evidence forbids what the path assumes of some member (M9).
func (s *Selection) deadPath(n *graph.Node, set memberset.Set) bool {
	prefix := memberset.New(len(n.Ahead))
	for j := range n.Ahead {
		land, fail := s.graph.May(n, prefix, j)
		if set.Has(j) && !land || !set.Has(j) && !fail {
			return true
		}
		if set.Has(j) {
			prefix.Add(j)
		}
	}
	return false
}

// Decide gives everything that is to be done now, nil if nothing is.
func (s *Selection) Decide() *eventsv1.Decision {
	if !s.fresh || s.graph.Settings == nil {
		return nil
	}
	d := &eventsv1.Decision{}
	verdicts := s.verdicts()
	deciding := map[string]bool{}
	for id := range s.decided {
		deciding[id] = true
	}
	for _, v := range verdicts {
		deciding[changeOf(v)] = true
	}
	d.Items = append(s.builds(deciding), verdicts...)
	if len(d.Items) == 0 {
		return nil
	}
	if len(verdicts) > 0 {
		d.Steps = s.graph.Settings.Steps
	}
	return d
}

func changeOf(i *eventsv1.DecisionItem) string {
	switch x := i.Item.(type) {
	case *eventsv1.DecisionItem_LandDecided:
		return x.LandDecided.Change.Change
	case *eventsv1.DecisionItem_RejectDecided:
		return x.RejectDecided.Change.Change
	case *eventsv1.DecisionItem_EjectDecided:
		return x.EjectDecided.Change.Change
	}
	return ""
}

// Fold takes a decision as published. It says nothing about the inputs: those come through Apply.
func (s *Selection) Fold(d *eventsv1.Decision) {
	s.fresh = false
	for _, i := range d.GetItems() {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildAborted:
			s.dropRunning(x.BuildAborted.Build)
		case *eventsv1.DecisionItem_BuildScheduled:
			s.running = append(s.running, s.runningOf(x.BuildScheduled))
		case *eventsv1.DecisionItem_LandDecided:
			s.decided[x.LandDecided.Change.Change] = x.LandDecided.Decision
		case *eventsv1.DecisionItem_RejectDecided:
			s.decided[x.RejectDecided.Change.Change] = x.RejectDecided.Decision
		case *eventsv1.DecisionItem_EjectDecided:
			s.decided[x.EjectDecided.Change.Change] = x.EjectDecided.Decision
		}
	}
}

func (s *Selection) dropRunning(id string) {
	kept := s.running[:0]
	for _, r := range s.running {
		if r.id != id {
			kept = append(kept, r)
		}
	}
	s.running = kept
}

// dropOver frees the slots of builds that are over; their steps have ended.
func (s *Selection) dropOver() {
	kept := s.running[:0]
	for _, r := range s.running {
		if !r.over {
			kept = append(kept, r)
		}
	}
	s.running = kept
}

func (s *Selection) runningOf(b *eventsv1.BuildScheduled) *running {
	r := &running{
		id: b.Build, change: b.Change.Change,
		assumed: map[string]uint64{}, targets: map[targetPart]bool{}, steps: b.Steps,
	}
	for _, a := range b.Assumed {
		r.assumed[a.Change.Change] = a.Change.Revision
	}
	for _, t := range b.Targets {
		r.targets[targetPart{t.Target, t.Part}] = true
		r.guard = r.guard || (t.Hash != "" && r.change.Change != "")
	}
	r.check = r.change.Change == ""
	if n := s.graph.NodeAt(r.change); n != nil {
		r.epoch = n.Epoch
	}
	return r
}

// decisionID is derived from the position, so that deciding the same again, after a refusal, is another
// decision.
func (s *Selection) decisionID(kind string, c *eventsv1.ChangeRef) string {
	return s.ids(kind, s.queue, c.Change, strconv.FormatUint(c.Revision, 10), strconv.FormatInt(s.position, 10))
}
