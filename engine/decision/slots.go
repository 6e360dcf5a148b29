package decision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// builds returns what has to be scheduled and aborted so that the best builds run (M26).
func (s *Selection) builds(deciding map[string]bool) []*eventsv1.DecisionItem {
	settings := s.graph.Settings
	a := &assignment{s: s, deciding: deciding, slots: int(settings.GetWorkers()), workers: int(settings.GetPoolWorkers()), ranked: map[*running]bool{}}
	if a.workers > 0 {
		a.slots = int(settings.GetBest())
		a.budget = budget{quotas: s.quotas, queue: &account{limit: unbound}}
	}
	a.collect()
	a.abort()
	if a.workers > 0 {
		a.weigh()
	}
	a.schedule()
	a.proveWhileIdle()
	out := a.schedules
	for _, r := range s.running {
		if why := a.aborts[r]; why != "" {
			out = append(out, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{
				Build: r.id, Why: why, SupersededBy: a.superseded[r]}}})
		}
	}
	return append(out, a.revaluations...)
}

// assignment gives the slots of a queue to builds.
type assignment struct {
	s        *Selection
	deciding map[string]bool
	// slots is how many builds there may be, taken how many there are.
	slots, taken int
	// workers is the number of workers of the queue's pool, 0 if its builds hold slots (M26). Then budget has the builds
	// that they are busy with, and revaluations what of those is worth something else now.
	workers      int
	budget       budget
	revaluations []*eventsv1.DecisionItem
	// best holds the proposals that should run, best first; ranked has the builds that run for them.
	best   []*proposal
	ranked map[*running]bool

	// aborts maps the builds that are aborted to the reason; aborted has their subjects.
	aborts  map[*running]string
	aborted map[subject]bool
	// replaced has the aborted builds from which a new one of the change takes over, superseded the id of that one.
	replaced   map[subject]*running
	superseded map[*running]string
	// added has the builds that this very decision schedules: the next path of a change shares what they make.
	added     map[subject][]*running
	schedules []*eventsv1.DecisionItem
}

// collect finds the proposals that should run, and the builds that run for them.
func (a *assignment) collect() {
	for _, p := range a.s.proposals {
		if !p.known {
			p.known, p.conclusion = true, a.s.conclude(p.ranked)
		}
		if !p.conclusion.viable || a.deciding[p.ranked.Change.GetChange()] {
			continue
		}
		a.best = append(a.best, p)
		if r := p.conclusion.running; r != nil {
			a.ranked[r] = true
		}
	}
}

// abort ends what is dead, decided or stale.
func (a *assignment) abort() {
	for _, r := range a.s.running {
		switch {
		case r.end.over:
		case r.end.dead != "":
			a.end(r, r.end.dead)
		case !r.subject.mainline && a.deciding[r.change.Change]:
			a.end(r, "the change is decided")
		case r.end.stale != "":
			a.end(r, r.end.stale)
			put(&a.replaced, r.subject, r)
		case r.subject.idle:
		default:
			a.taken++
		}
	}
}

func (a *assignment) end(r *running, why string) {
	put(&a.aborts, r, why)
	put(&a.aborted, r.subject, true)
}

// put makes the map first if there is none: most decisions need none of them.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

// evict frees the slot of the least needed of the builds that are no longer worth their slot (M26), and reports whether
// there was one. Where nobody waits for a slot they go on: what they prove may be asked for again.
func (a *assignment) evict() bool {
	var least *running
	for _, r := range a.s.running {
		if r.worthless == nil || a.ranked[r] || r.end.over || r.subject.mainline || r.guard || a.aborts[r] != "" {
			continue
		}
		if least == nil || r.worthless.Needed < least.worthless.Needed {
			least = r
		}
	}
	if least == nil {
		return false
	}
	a.end(least, fmt.Sprintf("its path is hardly needed any more (%.2g)", least.worthless.Needed))
	a.taken--
	return true
}

// schedule schedules the best that nobody builds.
func (a *assignment) schedule() {
	for _, p := range a.best {
		if r := p.conclusion.running; r != nil && a.aborts[r] == "" {
			continue
		}
		missing := a.uncovered(p.conclusion)
		if len(missing) == 0 {
			continue // what it waits for is being built under another path
		}
		if a.workers > 0 && !p.conclusion.node.Urgent && !a.soon(p.ranked.Change, a.s.inPool(p.ranked), len(missing)) {
			continue
		}
		for a.taken >= a.slots { // more than one too many where queues.*.workers was lowered
			if !a.evict() {
				return
			}
		}
		build, of := a.s.build(p, missing), subjectOf(p.ranked.Change)
		if r := a.replaced[of]; r != nil {
			put(&a.superseded, r, build.Build)
		}
		a.schedules = append(a.schedules, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: build}})
		put(&a.added, of, append(a.added[of], a.s.newRunning(build)))
		a.taken++
		a.addLoad(p.ranked.Change, a.s.inPool(p.ranked), len(missing))
	}
}

// uncovered returns what is outstanding for a path and not being built under another path of the change.
func (a *assignment) uncovered(c conclusion) []*eventsv1.TargetVersion {
	if c.node.Mainline {
		return c.targets
	}
	if c.covered && !a.aborted[subjectOf(c.node.Change)] {
		return nil
	}
	var out []*eventsv1.TargetVersion
	for _, v := range c.versions {
		if v.Class == graph.Guarded {
			return c.targets
		}
		if !a.covers(c.node, v) {
			out = append(out, c.node.Classes[v.Class].Targets...)
		}
	}
	return out
}

// covers reports whether a build that goes on, or that this decision schedules, makes the version of the class.
func (a *assignment) covers(n *graph.Node, v graph.ClassVersion) bool {
	of := subjectOf(n.Change)
	makes := func(r *running) bool { return a.aborts[r] == "" && r.makes(n, v) }
	return slices.ContainsFunc(a.added[of], makes) || slices.ContainsFunc(a.s.runningOf[of], makes)
}

// build returns the schedule of a proposal that is to verify these targets.
func (s *Selection) build(p *proposal, targets []*eventsv1.TargetVersion) *eventsv1.BuildScheduled {
	n := p.conclusion.node
	parts := []string{"build", s.queue, n.Change.Change, strconv.FormatUint(n.Change.Revision, 10), s.graph.Mainline.Head, strconv.FormatInt(s.position, 10)}
	b := &eventsv1.BuildScheduled{
		Change: &eventsv1.AssumedChange{Change: n.Change, LandingCommits: n.LandingCommits},
		Base:   s.graph.Mainline.Head, Targets: targets, Needed: p.ranked.Needed, Value: s.inPool(p.ranked),
		Steps: s.graph.Settings.Steps, Repository: s.graph.Settings.Repository, Branch: s.graph.Settings.Branch,
	}
	var names []string
	for i, a := range n.Ahead {
		if !p.conclusion.path.Has(i) {
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
