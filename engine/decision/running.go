package decision

import (
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// running is a build that was scheduled and is neither aborted nor dropped.
type running struct {
	id      string
	change  *eventsv1.ChangeRef
	subject subject
	// assumed maps the changes on whose landing the build rests, and which are still pending, to their revisions.
	assumed map[string]uint64
	// targets is what it was scheduled for.
	targets map[targetPart]bool
	// epoch is that of its node when it was scheduled.
	epoch uint64
	// steps is the policy that it was scheduled with: the builder retries by that one.
	steps *eventsv1.StepPolicy
	// guard is set if the land guard asked for it.
	guard bool

	end ending
	// worthless is set while the prioritizer does not find it worth a slot.
	worthless *eventsv1.WorthlessBuild
	// value is what it was last written to be worth.
	value float64
	path  pathCache `snapshot:"-"` // made by pathOf
	// open is how many of its targets have no result, if openKnown is set.
	open      int  `snapshot:"-"`
	openKnown bool `snapshot:"-"`
}

type targetPart struct {
	target string
	part   uint32
}

// ending is why a running build is to make room.
type ending struct {
	// over is set once all its steps have ended. The next input drops it.
	over bool
	// dead is why no change can need it any more, "" if one may.
	dead string
	// stale is why another build has to take over from it, "" if none has to. What it builds may be on no path any more.
	stale string
}

// goesOn reports whether nothing ends the build.
func (e ending) goesOn() bool { return e == ending{} }

// mainlineMoved is why most builds grow stale.
const mainlineMoved = "the mainline moved under it"

// readOtherwise is why all builds grow stale when the configuration of the analysis or a tool is another one.
const readOtherwise = "targets have other versions: the configuration or a tool has changed"

// pathCache is what a build assumes, as members of node; valid is set if all of it still are.
type pathCache struct {
	node  *graph.Node
	path  memberset.Set
	valid bool
}

func (s *Selection) newRunning(b *eventsv1.BuildScheduled) *running {
	c := b.Change.Change
	r := &running{id: b.Build, change: c, subject: subjectOf(c), assumed: map[string]uint64{}, targets: map[targetPart]bool{}, steps: b.Steps, value: b.Value}
	if b.Idle {
		r.subject = idleSubject
	}
	for _, a := range b.Assumed {
		r.assumed[a.Change.Change] = a.Change.Revision
	}
	for _, t := range b.Targets {
		r.targets[targetPart{t.Target, t.Part}] = true
		r.guard = r.guard || t.Hash != "" && !r.subject.mainline
	}
	if n := s.graph.NodeAt(c); n != nil {
		r.epoch = n.Epoch
	}
	return r
}

func (r *running) hasAll(targets []*eventsv1.TargetVersion) bool {
	for _, t := range targets {
		if !r.targets[targetPart{t.Target, t.Part}] {
			return false
		}
	}
	return true
}

// add gives a build a slot.
func (s *Selection) add(r *running) {
	s.running = append(s.running, r)
	s.runningOf[r.subject] = append(s.runningOf[r.subject], r)
	s.forgetConclusions(r.subject)
}

// drop frees the slots of builds.
func (s *Selection) drop(gone func(*running) bool) {
	for _, r := range s.running {
		if gone(r) {
			s.forgetConclusions(r.subject)
			remove(s.runningOf, r.subject, gone)
		}
	}
	s.running = slices.DeleteFunc(s.running, gone)
}

// remove takes elements out of a list of a map, and the list out of the map once it is empty.
func remove[V any](lists map[subject][]V, of subject, gone func(V) bool) {
	if left := slices.DeleteFunc(lists[of], gone); len(left) > 0 {
		lists[of] = left
	} else {
		delete(lists, of)
	}
}

func (s *Selection) markOver(build string, concerned subjects) {
	for _, r := range s.running {
		if r.id == build {
			r.end.over = true
			concerned[r.subject] = true
		}
	}
}

// markOutdated marks a build whose versions no tree has any more, as trees are read in another way.
func (s *Selection) markOutdated(build string, concerned subjects) {
	for _, r := range s.running {
		if r.id == build {
			r.end.stale = readOtherwise
			concerned[r.subject] = true
		}
	}
}

func (s *Selection) setWorthless(build string, w *eventsv1.WorthlessBuild) {
	for _, r := range s.running {
		if r.id == build {
			r.worthless = w
		}
	}
}

// guardBuildsStale: what the land guard asked for was the tree on the head that is not the head any more.
func (s *Selection) guardBuildsStale(concerned subjects) {
	for _, r := range s.running {
		if r.guard {
			r.end.stale = mainlineMoved
			concerned[r.subject] = true
		}
	}
}

// changeGone folds what it means for the running builds that a change left the queue.
func (s *Selection) changeGone(g *eventsv1.NodeGone, concerned subjects) {
	node := s.graph.NodeAt(g.Change)
	delete(s.decided, g.Change.Change)
	concerned.addWithBehind(s.graph, g.Change)
	for _, r := range s.running {
		before := r.end
		s.endWithout(r, g, node)
		if r.end != before {
			concerned[r.subject] = true
		}
	}
}

// endWithout sets how a build ends once a change, whose node is given, has left the queue. A build that assumed it goes on
// if it landed, and is dead if it did not.
func (s *Selection) endWithout(r *running, g *eventsv1.NodeGone, node *graph.Node) {
	landed := g.How == eventsv1.GoneHow_GONE_HOW_LANDED
	if graph.SameRef(r.change, g.Change) {
		r.end.dead = "the change is no longer pending"
		return
	}
	if rev, assumed := r.assumed[g.Change.Change]; assumed && rev == g.Change.Revision {
		delete(r.assumed, g.Change.Change)
		r.path = pathCache{}
		if !landed {
			r.end.dead = g.Change.Change + ", which it assumed, did not land"
		}
		return
	}
	own := s.graph.NodeAt(r.change)
	if !landed || own == nil {
		return
	}
	if at := own.IndexOf(g.Change.Change); at >= 0 && own.Ahead[at].Conflicts {
		r.end.dead = g.Change.Change + ", which it assumed to be rejected, landed"
	} else if node != nil && node.IndexOf(r.change.Change) >= 0 {
		r.end.stale = mainlineMoved // it was bypassed: other versions are outstanding now (M20)
	}
}

// setEnding sets how a build ends by the graph as it is now.
func (s *Selection) setEnding(r *running) {
	if settings := s.graph.Settings; settings != nil && !sameRetries(r.steps, settings.Steps) {
		r.end.stale = "the retry policy changed"
	}
	if r.subject.idle {
		if !slices.ContainsFunc(s.graph.Survey.GetTargets(), func(v *eventsv1.TargetVersion) bool { return r.targets[targetPart{v.Target, v.Part}] }) {
			r.end.dead = "nothing of it is left to prove"
		}
		return
	}
	if r.subject.mainline {
		if !s.mainlineUnproven() {
			r.end.dead = "nothing on the mainline is unverified any more"
		}
		return
	}
	n := s.graph.NodeAt(r.change)
	if n == nil {
		if r.end.dead == "" {
			r.end.dead = "the change is no longer pending"
		}
		return
	}
	// A change that was moved ahead of it is being analysed. What the build proves is of use whatever comes of that; older logs,
	// which have no pools, aborted it.
	if !n.Analyzed && s.graph.Settings.GetPoolWorkers() > 0 {
		return
	}
	if n.Epoch != r.epoch {
		r.end.stale = mainlineMoved
	}
	set, ok := r.pathOf(n)
	if !ok {
		r.end.stale = mainlineMoved
		return
	}
	if n.Path(set) != graph.Unknown {
		r.end.dead = "its outcome is known"
	} else if !s.graph.LivePath(n, set) {
		r.end.dead = "its path can no longer come about"
	}
}

// sameRetries reports whether two policies settle every version at the same attempt.
func sameRetries(a, b *eventsv1.StepPolicy) bool {
	return a.GetFailedRetries() == b.GetFailedRetries() && a.GetTimedOutRetries() == b.GetTimedOutRetries() &&
		a.GetInfrastructureRetries() == b.GetInfrastructureRetries()
}

// mainlineUnproven reports whether something that came past the queue is still to be built.
func (s *Selection) mainlineUnproven() bool {
	if s.graph.Check == nil {
		return false
	}
	_, targets := s.graph.Check.Outstanding(memberset.New(0))
	return len(targets) > 0
}

// pathOf returns the set of members that the build assumes; ok is false if one of them is no member any more. Callers must
// not change it.
func (r *running) pathOf(n *graph.Node) (path memberset.Set, ok bool) {
	if r.path.node == n {
		return r.path.path, r.path.valid
	}
	set := memberset.New(len(n.Ahead))
	for id, rev := range r.assumed {
		i := n.IndexOf(id)
		if i < 0 || n.Ahead[i].Change.Revision != rev {
			r.path = pathCache{node: n}
			return r.path.path, false
		}
		set.Add(i)
	}
	r.path = pathCache{n, set, true}
	return set, true
}
