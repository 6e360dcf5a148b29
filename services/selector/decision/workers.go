package decision

import (
	"fmt"
	"strconv"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// builds compares the best builds with what runs (M26): schedules while slots are free, then aborts.
func (s *Selection) builds(deciding map[string]bool) []*eventsv1.DecisionItem {
	b := &balance{s: s, deciding: deciding, slots: int(s.graph.Settings.GetWorkers())}
	b.weigh()
	b.abort()
	b.schedule()
	out := b.schedules
	for _, r := range s.running {
		r.ranked = false
		if why := b.aborts[r]; why != "" {
			out = append(out, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{
				Build: r.id, Why: why, SupersededBy: b.superseded[r]}}})
		}
	}
	return out
}

// balance is one comparison of what is ranked with what runs.
type balance struct {
	s        *Selection
	deciding map[string]bool
	slots    int
	// held are the slots that are taken.
	held int
	// best are the proposals that stand up, in order.
	best       []*proposal
	aborts     map[*running]string
	superseded map[*running]string
	// ended are the changes of which a build is aborted.
	ended map[string]bool
	// replaced are stale builds that a new one takes over from, by change.
	replaced map[string]*running
	// added are the builds that this very decision schedules, by change: the next path shares what they make.
	added     map[string][]*running
	schedules []*eventsv1.DecisionItem
}

// weigh finds the proposals that stand up, and what runs for them.
func (b *balance) weigh() {
	for _, p := range b.s.proposals {
		if !p.known {
			b.s.consider(p)
		}
		if !p.stands || b.deciding[p.ranked.Change.GetChange()] {
			continue
		}
		b.best = append(b.best, p)
		if p.running != nil {
			p.running.ranked = true
		}
	}
}

// abort ends what is dead, decided or stale.
func (b *balance) abort() {
	for _, r := range b.s.running {
		switch {
		case r.over:
		case r.dead != "":
			b.end(r, r.dead)
		case !r.check && b.deciding[r.change.Change]:
			b.end(r, "the change is decided")
		case r.stale != "":
			b.end(r, r.stale)
			if b.replaced == nil {
				b.replaced = map[string]*running{}
			}
			b.replaced[r.change.Change] = r
		default:
			b.held++
		}
	}
}

func (b *balance) end(r *running, why string) {
	if b.aborts == nil {
		b.aborts, b.ended = map[*running]string{}, map[string]bool{}
	}
	b.aborts[r], b.ended[r.change.Change] = why, true
}

// evict frees a slot: it ends the build that is worth least of those that are no longer worth their worker (M26).
// Where nobody waits for a slot they go on, for what they prove may be asked for again.
func (b *balance) evict() bool {
	var least *running
	for _, r := range b.s.running {
		if r.worthless == nil || r.ranked || r.over || r.check || r.guard || b.aborts[r] != "" {
			continue
		}
		if least == nil || r.worthless.Needed < least.worthless.Needed {
			least = r
		}
	}
	if least == nil {
		return false
	}
	b.end(least, fmt.Sprintf("its path is hardly needed any more (%.2g)", least.worthless.Needed))
	b.held--
	return true
}

// schedule gives the free slots to the best that nobody builds.
func (b *balance) schedule() {
	for _, p := range b.best {
		if p.running != nil && b.aborts[p.running] == "" {
			continue
		}
		missing := b.uncovered(p)
		if len(missing) == 0 {
			continue // what it waits for is being built under another path
		}
		for b.held >= b.slots { // more than one too many where the budget was lowered
			if !b.evict() {
				return
			}
		}
		build := b.s.build(p, missing)
		id := p.ranked.Change.GetChange()
		if r := b.replaced[id]; r != nil {
			if b.superseded == nil {
				b.superseded = map[*running]string{}
			}
			b.superseded[r] = build.Build
		}
		b.schedules = append(b.schedules, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: build}})
		if b.added == nil {
			b.added = map[string][]*running{}
		}
		b.added[id] = append(b.added[id], b.s.runningOf(build))
		b.held++
	}
}

// uncovered is what is outstanding for a path and not being built under another path of the change.
func (b *balance) uncovered(p *proposal) []*eventsv1.TargetVersion {
	if p.node.Mainline {
		return p.targets
	}
	if p.covered && !b.ended[p.node.Change.Change] {
		return nil // whoever covers it goes on
	}
	var out []*eventsv1.TargetVersion
	for _, v := range p.versions {
		if v.Class == graph.Guarded {
			return p.targets
		}
		if !b.covers(p.node, v) {
			out = append(out, p.node.Classes[v.Class].Targets...)
		}
	}
	return out
}

// covers says that a build that runs, or will, makes the version of the class.
func (b *balance) covers(n *graph.Node, v graph.ClassVersion) bool {
	id := n.Change.Change
	for _, r := range b.added[id] {
		if b.s.makes(r, n, v) {
			return true
		}
	}
	for _, r := range b.s.byChange[id] {
		if b.aborts[r] == "" && b.s.makes(r, n, v) {
			return true
		}
	}
	return false
}

func (s *Selection) build(p *proposal, targets []*eventsv1.TargetVersion) *eventsv1.BuildScheduled {
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
