package ranking

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// nearlyDone is the part of its expected duration behind which a build is let go on (M26).
const nearlyDone = 0.8

// run is a prepared build that may still be running: whether it was aborted is not known here.
type run struct {
	build   string
	change  *eventsv1.ChangeRef
	assumed map[string]uint64 // revisions, by change; what landed has left it
	since   int64
	// worthless as published.
	worthless bool
}

// progress folds what is known of a build. It says whether when its change began is another time now.
func (r *Ranking) progress(b *eventsv1.BuildProgress, stampUS int64) (moved bool) {
	id := b.Change.GetChange()
	was, running := r.started[id]
	switch b.State {
	case eventsv1.BuildState_BUILD_STATE_PREPARED:
		if id != "" && r.runs[b.Build] == nil {
			x := &run{build: b.Build, change: b.Change, assumed: map[string]uint64{}, since: stampUS}
			for _, a := range b.Assumed {
				x.assumed[a.Change] = a.Revision
			}
			r.runs[b.Build] = x
			c := r.named(id)
			c.runs = append(c.runs, x)
			r.unweigh(c)
		}
		if running {
			return false
		}
		r.started[id] = started{b.Build, stampUS}
	case eventsv1.BuildState_BUILD_STATE_FINISHED:
		r.end(r.runs[b.Build])
		if was.build != b.Build {
			return false
		}
		delete(r.started, id)
	}
	return true
}

// end forgets a build.
func (r *Ranking) end(x *run) {
	if x == nil {
		return
	}
	delete(r.runs, x.build)
	if c := r.changes[x.change.Change]; c != nil {
		c.runs = slices.DeleteFunc(c.runs, func(o *run) bool { return o == x })
	}
}

// left takes a change that left out of what runs. The selector ends what that has killed.
func (r *Ranking) left(c *change, g *eventsv1.NodeGone) {
	for _, x := range slices.Clone(c.runs) {
		if x.change.Revision == g.Change.Revision {
			r.end(x)
		}
	}
	for _, b := range c.behind {
		for _, x := range slices.Clone(b.of.runs) {
			if x.assumed[c.id] != g.Change.Revision {
				continue
			}
			if delete(x.assumed, c.id); g.How != eventsv1.GoneHow_GONE_HOW_LANDED {
				r.end(x)
			}
		}
	}
}

// unweigh notes that the worth of a change's builds may have moved.
func (r *Ranking) unweigh(c *change) {
	if len(c.runs) > 0 && !c.unweighed {
		c.unweighed = true
		r.unweighed = append(r.unweighed, c)
	}
}

// weighRunning lists the builds that have become worthless since that was last told, and those that are no longer.
func (r *Ranking) weighRunning() (worthless []*eventsv1.WorthlessBuild, recovered []string) {
	abort := r.graph.Settings.GetAbortThreshold()
	open := r.unweighed[:0]
	for _, c := range r.unweighed {
		before := len(worthless) + len(recovered)
		for _, x := range c.runs {
			needed, alive := r.needed(c, x)
			switch {
			case !alive:
			case !x.worthless && needed < abort && !r.isNearlyDone(c, x):
				worthless = append(worthless, &eventsv1.WorthlessBuild{Build: x.build, Needed: needed})
			case x.worthless && needed >= abort:
				recovered = append(recovered, x.build)
			}
		}
		if c.unweighed = len(worthless)+len(recovered) > before; c.unweighed {
			open = append(open, c) // until it is published
		}
	}
	clear(r.unweighed[len(open):])
	r.unweighed = open
	slices.SortFunc(worthless, func(a, b *eventsv1.WorthlessBuild) int { return cmp.Compare(a.Build, b.Build) })
	slices.Sort(recovered)
	return worthless, recovered
}

func (r *Ranking) foldRunning(p *eventsv1.Priority) {
	for _, w := range p.GetWorthless() {
		if x := r.runs[w.Build]; x != nil {
			x.worthless = true
		}
	}
	for _, id := range p.GetRecovered() {
		if x := r.runs[id]; x != nil {
			x.worthless = false
		}
	}
}

func (r *Ranking) isNearlyDone(c *change, x *run) bool {
	mean := r.predictions[c.id].GetDurationMeanUs()
	return mean > 0 && float64(r.now-x.since) >= nearlyDone*mean
}

// needed is P_needed of a build's path (M14). alive is false where nothing is to be said of it: the selector
// sees for itself that the path is none any more, is dead, or known.
func (r *Ranking) needed(c *change, x *run) (needed float64, alive bool) {
	if c.node == nil || c.node.Change.Revision != x.change.Revision || !c.node.Analyzed {
		return 0, false
	}
	p := partial{needed: 1}
	lands := 0
	for j := range c.members {
		m := &c.members[j]
		rev, in := x.assumed[m.of.id]
		if in = in && rev == m.ahead.Change.Revision; in {
			lands++
		}
		land, fail := true, true
		if of := m.at(); of != nil && !of.node.Unproven() {
			land, fail = r.graph.May(c.node, r.scratch.set(len(c.members), &p), j)
		}
		if in && (!land || m.ahead.MergeConflict) || !in && (!fail || m.ahead.Required) {
			return 0, false
		}
		q := r.lands(c, &p, j, land, fail)
		if !in {
			q = 1 - q
			p.rejected = append(p.rejected, int32(j))
		}
		p.needed *= m.before + (1-m.before)*q
		p.depth++
	}
	if lands < len(x.assumed) || c.node.Path(r.scratch.set(len(c.members), &p)) != graph.Unknown {
		return 0, false
	}
	return p.needed, true
}
