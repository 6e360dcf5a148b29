package ranking

import (
	"cmp"
	"maps"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/profiler/bypass"
)

// nearlyDone is the part of its expected duration behind which a build is let go on (M26, as the model has it).
const nearlyDone = 0.8

// glance is how often it is looked how much is left of what runs, in microseconds.
const glance = 1 << 24

// leastLeft is the least part of its expected duration that a build is taken to have before it: one that is late may
// be stuck.
const leastLeft = 0.05

// run is a prepared build that may still be running: whether it was aborted is not known here.
type run struct {
	build   string
	change  *eventsv1.ChangeRef
	assumed map[string]uint64 // revisions, by change; what landed has left it
	since   int64
	// worthless as published.
	worthless bool
	// needed and alive are what Ranking.needed last said, if weighed.
	weighed, alive bool
	needed         float64
	// rejected are the members of the node that the path rejects, whole says that all that it assumes are members: made when
	// they are first asked for.
	placed   *graph.Node `snapshot:"-"`
	rejected []int32     `snapshot:"-"`
	whole    bool        `snapshot:"-"`
}

// progress folds what is known of a build. One of the same path takes the place of an older one, which was aborted: if
// not for being worthless, then because the mainline moved under it, and the steps that both have went on.
func (r *Ranking) progress(b *eventsv1.BuildProgress, stampUS int64) {
	id := b.Change.GetChange()
	switch b.State {
	case eventsv1.BuildState_BUILD_STATE_PREPARED:
		if r.graph.NodeAt(b.Change) == nil || r.runs[b.Build] != nil {
			return
		}
		x := &run{build: b.Build, change: b.Change, assumed: map[string]uint64{}, since: stampUS}
		for _, a := range b.Assumed {
			x.assumed[a.Change] = a.Revision
		}
		c := r.named(id)
		r.add(x)
		c.runs = append(c.runs, x)
		for i, o := range c.runs[:len(c.runs)-1] {
			if o.change.Revision == x.change.Revision && maps.Equal(o.assumed, x.assumed) {
				if !o.worthless {
					x.since = o.since
					c.runs[i], c.runs[len(c.runs)-1] = x, o // in the order in which they began
				}
				r.end(o)
				break
			}
		}
		r.unweigh(c)
	case eventsv1.BuildState_BUILD_STATE_FINISHED:
		r.end(r.runs[b.Build])
	}
}

// findOldest finds the build of a change that began first, of those whose path can still come about: what was aborted
// for another reason is known only where one of the same path has taken its place.
func (r *Ranking) findOldest(c *change) {
	c.oldest = nil
	for _, x := range c.runs { // in the order in which they began
		if r.alive(c, x) {
			c.oldest = x
			return
		}
	}
}

// add keeps a build.
func (r *Ranking) add(x *run) {
	r.runs[x.build] = x
	if r.ordered != nil {
		at, _ := placeOf(r.ordered, x.build)
		r.ordered = slices.Insert(r.ordered, at, x)
	}
}

// end forgets a build.
func (r *Ranking) end(x *run) {
	if x == nil {
		return
	}
	delete(r.runs, x.build)
	if at, found := placeOf(r.ordered, x.build); found {
		r.ordered = slices.Delete(r.ordered, at, at+1)
	}
	if c := r.changes[x.change.Change]; c != nil {
		c.runs = slices.DeleteFunc(c.runs, func(o *run) bool { return o == x })
	}
}

// runsInOrder are the builds that run, by name. Callers that end or add one take a copy.
func (r *Ranking) runsInOrder() []*run {
	if r.ordered == nil {
		r.ordered = slices.SortedFunc(maps.Values(r.runs), func(a, b *run) int { return cmp.Compare(a.build, b.build) })
	}
	return r.ordered
}

// placeOf is where a build stands among those in order.
func placeOf(ordered []*run, build string) (at int, found bool) {
	return slices.BinarySearchFunc(ordered, build, func(x *run, build string) int { return cmp.Compare(x.build, build) })
}

// left takes a change that left out of what runs. The selector ends what that has killed.
func (r *Ranking) left(g *eventsv1.NodeGone, touched *changeSet) {
	for _, x := range slices.Clone(r.runsInOrder()) {
		rev, assumed := x.assumed[g.Change.Change]
		if !graph.SameRef(x.change, g.Change) && (!assumed || rev != g.Change.Revision) {
			continue
		}
		touched.add(r.named(x.change.Change))
		switch {
		case graph.SameRef(x.change, g.Change), g.How != eventsv1.GoneHow_GONE_HOW_LANDED:
			r.end(x)
		default:
			delete(x.assumed, g.Change.Change)
			x.placed = nil
		}
	}
}

// unweigh notes that the worth of a change's builds may have moved.
func (r *Ranking) unweigh(c *change) {
	for _, x := range c.runs {
		x.weighed = false
	}
	r.reconsider(c)
}

// reconsider has it looked whether a change's builds are worth going on with.
func (r *Ranking) reconsider(c *change) {
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
			if !x.weighed {
				x.needed, x.alive = r.needed(c, x)
				x.weighed = true
			}
			switch {
			case !x.alive:
			case !x.worthless && r.falls(c, x, abort):
				worthless = append(worthless, &eventsv1.WorthlessBuild{Build: x.build, Needed: x.needed})
			case x.worthless && r.rises(c, x, abort):
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

// falls says that a build that goes on is not worth it any more.
func (r *Ranking) falls(c *change, x *run, abort float64) bool {
	if !r.byModel {
		return x.needed < abort*r.remaining(c, x)
	}
	mean := r.predictions[c.id].GetDurationMeanUs()
	return x.needed < abort && !(mean > 0 && float64(r.now-x.since) >= nearlyDone*mean)
}

// rises says that one that was not worth it is again.
func (r *Ranking) rises(c *change, x *run, abort float64) bool {
	if !r.byModel {
		abort *= r.remaining(c, x)
	}
	return x.needed >= abort
}

// remaining is the part of its expected duration that a build still has before it (M12): what it is needed with over what it
// still costs is what it is worth to go on with (M25a, M26).
func (r *Ranking) remaining(c *change, x *run) float64 {
	q := r.predictions[c.id]
	d := bypass.Duration{Mean: q.GetDurationMeanUs(), Std: q.GetDurationStdUs()}
	if d.Mean <= 0 {
		return 1
	}
	elapsed := max(0, float64(r.glanced-x.since))
	return min(1, max(leastLeft, (d.Beyond(elapsed).Mean-elapsed)/d.Mean))
}

// place finds the members that the build's path rejects.
func (x *run) place(c *change) {
	if x.placed == c.node {
		return
	}
	x.placed, x.rejected = c.node, nil
	lands := 0
	for j := range c.members {
		m := &c.members[j]
		if rev, in := x.assumed[m.of.id]; in && rev == m.ahead.Change.Revision {
			lands++
		} else {
			x.rejected = append(x.rejected, int32(j))
		}
	}
	x.whole = lands == len(x.assumed)
}

// alive says that a build's path is one of its change still, is not dead and not known: of others there is nothing to
// say, the selector sees that for itself.
func (r *Ranking) alive(c *change, x *run) bool {
	return r.follow(c, x, func(*partial, int, bool, bool, bool) {})
}

// needed is P_needed of a build's path (M14) if it is alive.
func (r *Ranking) needed(c *change, x *run) (needed float64, alive bool) {
	needed = 1
	alive = r.follow(c, x, func(before *partial, j int, in, land, fail bool) {
		q := r.lands(c, before, j, land, fail, nil)
		if !in {
			q = 1 - q
		}
		w := c.members[j].before
		needed *= w + (1-w)*q
	})
	if !alive {
		return 0, false
	}
	return needed, true
}

// follow goes along a build's path for as long as it is not dead. visit gets each member: the path before it, whether
// the path has it land, and what the evidence lets become of it.
func (r *Ranking) follow(c *change, x *run, visit func(before *partial, j int, in, land, fail bool)) (alive bool) {
	if c.node == nil || c.node.Change.Revision != x.change.Revision || !c.node.Analyzed {
		return false
	}
	if x.place(c); !x.whole {
		return false
	}
	p := partial{}
	for j := range c.members {
		m := &c.members[j]
		n := len(p.rejected)
		in := n == len(x.rejected) || x.rejected[n] != int32(j)
		land, fail := r.may(c, &p, j)
		if in && (!land || m.ahead.MergeConflict) || !in && (!fail || m.ahead.Required) {
			return false
		}
		visit(&p, j, in, land, fail)
		if !in {
			p.rejected = x.rejected[:n+1]
		}
		p.depth++
	}
	return c.node.Path(r.scratch.set(len(c.members), &p)) == graph.Unknown
}
