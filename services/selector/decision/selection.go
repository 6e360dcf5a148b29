// Package decision is the selector's core: when a change may be decided (M19, M19a), and which builds hold
// the workers (M26). What the prioritizer proposes chooses builds only; no landing, rejection or ejection
// reads a probability.
package decision

import (
	"slices"
	"strconv"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// Selection is the state of one queue. An input costs what it changes: what was concluded of a change and of
// what is ranked or running for it holds until something is said of it, or of what it has ahead.
type Selection struct {
	graph   *graph.Graph
	ranking *eventsv1.Ranking
	// proposals are what was concluded of the ranked builds, in their order, and ofChange the same by
	// change, in the order in which they came to be ranked.
	proposals []*proposal
	ofChange  map[string][]*proposal
	// running are the builds that hold a slot, in the order in which they were scheduled, byChange the same by
	// change.
	running  []*running
	byChange map[string][]*running
	// decided are the changes for which a decision waits for its effect, by the decision's id.
	decided map[string]string
	// undecided are those of which nobody has concluded that they have to wait.
	undecided map[string]bool
	queue     string
	ids       IDs `snapshot:"-"`

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
	// targets are what it was scheduled for.
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
	// worthless says that it was told to be.
	worthless *eventsv1.WorthlessBuild
	// path is what it assumes, as members of node; valid says that all of it is.
	path  memberset.Set
	node  *graph.Node
	valid bool
	// ranked says, while Decide runs, that its path is ranked.
	ranked bool
}

type targetPart struct {
	target string
	part   uint32
}

// New is a selection of a queue of which nothing is known.
func New(queue string, ids IDs) *Selection {
	return &Selection{
		graph: graph.New(), ofChange: map[string][]*proposal{}, byChange: map[string][]*running{},
		decided: map[string]string{}, undecided: map[string]bool{}, queue: queue, ids: ids,
	}
}

// Apply folds one record of priorities.
func (s *Selection) Apply(p *eventsv1.Priority) {
	s.position, s.fresh = p.Position, true
	touched := touches{}
	for _, r := range s.running {
		if r.over {
			touched[r.change.Change] = true
		}
	}
	s.drop(func(r *running) bool { return r.over })
	settings, mainline, check := s.graph.Settings, s.graph.Mainline, s.graph.Check
	for _, g := range p.Delta.GetGone() {
		s.gone(g, touched)
	}
	shed := s.graph.Fold(p.Delta)
	if after, err := graph.EditedRanking(s.ranking, p); err == nil {
		s.rank(after)
	}
	for _, a := range p.Delta.GetAnswered() {
		if s.decided[a.Change.Change] == a.Decision {
			delete(s.decided, a.Change.Change)
		}
		touched[a.Change.Change] = true
	}
	for _, b := range p.Delta.GetBuilds() {
		if b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
			s.finished(b, touched)
		}
	}
	for _, w := range p.Worthless {
		s.setWorthless(w.Build, w)
	}
	for _, id := range p.Recovered {
		s.setWorthless(id, nil)
	}
	for _, n := range shed {
		touched[n.Change.Change] = true
	}
	s.graph.EachBehindAny(shed, func(n *graph.Node) { touched[n.Change.Change] = true })
	for _, n := range p.Delta.GetNodes() {
		touched.withBehind(s.graph, n.GetChange().GetChange())
	}
	now := s.graph.Mainline
	if s.graph.Settings != settings || now.GetPaused() != mainline.GetPaused() || now.GetAnalyzed() != mainline.GetAnalyzed() {
		touched.all(s)
	}
	if s.graph.Check != check {
		touched[""] = true
	}
	if head := mainline.GetHead(); now.GetHead() != head {
		for _, r := range s.running {
			if r.guard {
				r.stale = moved
				touched[r.change.Change] = true
			}
		}
	}
	for id := range touched {
		s.touch(id)
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
func (s *Selection) refresh(r *running) {
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
// Callers must not change it.
func (s *Selection) pathOf(r *running, n *graph.Node) (path memberset.Set, ok bool) {
	if r.node == n {
		return r.path, r.valid
	}
	r.node, r.path, r.valid = n, memberset.New(len(n.Ahead)), true
	for id, rev := range r.assumed {
		i := n.IndexOf(id)
		if i < 0 || n.Ahead[i].Change.Revision != rev {
			r.path, r.valid = memberset.Set{}, false
			break
		}
		r.path.Add(i)
	}
	return r.path, r.valid
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
	deciding := make(map[string]bool, len(s.decided)+len(verdicts))
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
			s.drop(func(r *running) bool {
				if r.id == x.BuildAborted.Build {
					s.reconsider(r.change.Change)
				}
				return r.id == x.BuildAborted.Build
			})
		case *eventsv1.DecisionItem_BuildScheduled:
			r := s.runningOf(x.BuildScheduled)
			s.running = append(s.running, r)
			s.byChange[r.change.Change] = append(s.byChange[r.change.Change], r)
			s.reconsider(r.change.Change)
		case *eventsv1.DecisionItem_LandDecided:
			s.decided[x.LandDecided.Change.Change] = x.LandDecided.Decision
		case *eventsv1.DecisionItem_RejectDecided:
			s.decided[x.RejectDecided.Change.Change] = x.RejectDecided.Decision
		case *eventsv1.DecisionItem_EjectDecided:
			s.decided[x.EjectDecided.Change.Change] = x.EjectDecided.Decision
		}
	}
}

// drop frees the slots of builds that are over or aborted.
func (s *Selection) drop(gone func(*running) bool) {
	kept := s.running[:0]
	for _, r := range s.running {
		if !gone(r) {
			kept = append(kept, r)
			continue
		}
		id := r.change.Change
		of := slices.DeleteFunc(s.byChange[id], func(o *running) bool { return o == r })
		if s.byChange[id] = of; len(of) == 0 {
			delete(s.byChange, id)
		}
	}
	clear(s.running[len(kept):])
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
