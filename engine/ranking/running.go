package ranking

import (
	"cmp"
	"maps"
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// nearlyDone is the part of its expected duration after which a build goes on whatever it is worth (M26, by the model).
const nearlyDone = 0.8

// remainingUS is the step in which the remaining durations of running builds are refreshed, in microseconds of log
// time.
const remainingUS = 1 << 24

// minRemaining is the least part of its expected duration that a build is taken to have left: one that is late may be
// stuck.
const minRemaining = 0.05

// run is a prepared build that may still run. Whether it was aborted is not known here.
type run struct {
	build   string
	change  *eventsv1.ChangeRef
	assumed map[string]uint64 // revisions, by change; without what has landed
	since   int64
	// worthless is as published.
	worthless bool
	// needed and alive are what Ranking.needed last returned, valid if weighed.
	weighed, alive bool    `snapshot:"index"`
	needed         float64 `snapshot:"index"`
	// rejected are the members of the node placedIn that the path rejects. allMembers reports whether all that the
	// build assumes are members. Both are computed when they are first needed.
	placedIn   *graph.Node `snapshot:"-"`
	rejected   []int32     `snapshot:"-"`
	allMembers bool        `snapshot:"-"`
}

// applyProgress folds the progress of a build. A build of the same path replaces an older one, which was aborted: if
// not for being worthless, then because the mainline moved, and the steps that both have went on.
func (r *Ranking) applyProgress(b *eventsv1.BuildProgress, stampUS int64) {
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
		c := r.changeOf(id)
		r.addRun(x)
		c.runs = append(c.runs, x)
		for i, o := range c.runs[:len(c.runs)-1] {
			if o.change.Revision == x.change.Revision && maps.Equal(o.assumed, x.assumed) {
				if !o.worthless {
					x.since = o.since
					c.runs[i], c.runs[len(c.runs)-1] = x, o // in the order in which they began
				}
				r.endRun(o)
				break
			}
		}
		r.unweighRuns(c)
	case eventsv1.BuildState_BUILD_STATE_FINISHED, eventsv1.BuildState_BUILD_STATE_OUTDATED:
		r.endRun(r.runs[b.Build])
	}
}

// findOldest finds the oldest build of a change whose path can still come about. That a build was aborted is known only
// if one of the same path has replaced it.
func (r *Ranking) findOldest(c *change) {
	c.oldest = nil
	for _, x := range c.runs { // in the order in which they began
		if r.alive(c, x) {
			c.oldest = x
			return
		}
	}
}

// addRun adds a build.
func (r *Ranking) addRun(x *run) {
	r.runs[x.build] = x
	if r.runsByName != nil {
		at, _ := indexOfRun(r.runsByName, x.build)
		r.runsByName = slices.Insert(r.runsByName, at, x)
	}
}

// endRun removes a build.
func (r *Ranking) endRun(x *run) {
	if x == nil {
		return
	}
	delete(r.runs, x.build)
	if at, found := indexOfRun(r.runsByName, x.build); found {
		r.runsByName = slices.Delete(r.runsByName, at, at+1)
	}
	if c := r.changes[x.change.Change]; c != nil {
		c.runs = slices.DeleteFunc(c.runs, func(o *run) bool { return o == x })
	}
}

// runsInOrder returns the builds by name. A caller that adds or ends one has to clone the slice.
func (r *Ranking) runsInOrder() []*run {
	if r.runsByName == nil {
		r.runsByName = slices.SortedFunc(maps.Values(r.runs), func(a, b *run) int { return cmp.Compare(a.build, b.build) })
	}
	return r.runsByName
}

// indexOfRun returns where a build is in a list by name.
func indexOfRun(ordered []*run, build string) (at int, found bool) {
	return slices.BinarySearchFunc(ordered, build, func(x *run, build string) int { return cmp.Compare(x.build, build) })
}

// removeFromRuns folds into the builds that a change is gone. The selector aborts those that it has killed.
func (r *Ranking) removeFromRuns(g *eventsv1.NodeGone, touched *changeSet) {
	for _, x := range slices.Clone(r.runsInOrder()) {
		rev, assumed := x.assumed[g.Change.Change]
		if !graph.SameRef(x.change, g.Change) && (!assumed || rev != g.Change.Revision) {
			continue
		}
		touched.add(r.changeOf(x.change.Change))
		switch {
		case graph.SameRef(x.change, g.Change), g.How != eventsv1.GoneHow_GONE_HOW_LANDED:
			r.endRun(x)
		default:
			delete(x.assumed, g.Change.Change)
			x.placedIn = nil
		}
	}
}

// unweighRuns has the worth of a change's builds computed again.
func (r *Ranking) unweighRuns(c *change) {
	for _, x := range c.runs {
		x.weighed = false
	}
	r.queueRuns(c)
}

// queueRuns has a change's builds compared with the abort threshold again.
func (r *Ranking) queueRuns(c *change) {
	if len(c.runs) > 0 && !c.unweighed {
		c.unweighed = true
		r.unweighed = append(r.unweighed, c)
	}
}

// weighRunning returns the builds that have become worthless, and those that are no longer, since the last answer.
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
			case !x.worthless && r.becomesWorthless(c, x, abort):
				worthless = append(worthless, &eventsv1.WorthlessBuild{Build: x.build, Needed: x.needed})
			case x.worthless && r.recovers(c, x, abort):
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

// becomesWorthless reports whether a build is not worth going on with any more.
func (r *Ranking) becomesWorthless(c *change, x *run, abort float64) bool {
	if !r.byModel {
		return x.needed < abort*r.remainingPart(c, x)
	}
	mean := r.predictions[c.id].GetDurationMeanUs()
	return x.needed < abort && !(mean > 0 && float64(r.now-x.since) >= nearlyDone*mean)
}

// recovers reports whether a worthless build is worth going on with again.
func (r *Ranking) recovers(c *change, x *run, abort float64) bool {
	if !r.byModel {
		abort *= r.remainingPart(c, x)
	}
	return x.needed >= abort
}

// remainingPart returns the part of its expected duration that a build has left (M12). What it is needed with over what
// it still costs is what going on with it is worth (M25a, M26).
func (r *Ranking) remainingPart(c *change, x *run) float64 {
	q := r.predictions[c.id]
	d := profile.Duration{Mean: q.GetDurationMeanUs(), Std: q.GetDurationStdUs()}
	if d.Mean <= 0 {
		return 1
	}
	elapsed := max(0, float64(r.remainingAsOf-x.since))
	return min(1, max(minRemaining, (d.Beyond(elapsed).Mean-elapsed)/d.Mean))
}

// findRejected finds the members that the build's path rejects.
func (x *run) findRejected(c *change) {
	if x.placedIn == c.node {
		return
	}
	x.placedIn, x.rejected = c.node, nil
	lands := 0
	for j := range c.members {
		m := &c.members[j]
		if rev, in := x.assumed[m.of.id]; in && rev == m.ahead.Change.Revision {
			lands++
		} else {
			x.rejected = append(x.rejected, int32(j))
		}
	}
	x.allMembers = lands == len(x.assumed)
}

// alive reports whether a build's path is one of its change, is not dead and has no outcome. What is to be done about
// other builds the selector knows.
func (r *Ranking) alive(c *change, x *run) bool {
	return r.walk(c, x, func(*partial, int, bool, bool, bool) {})
}

// needed returns P_needed of a build's path (M14) if it is alive.
func (r *Ranking) needed(c *change, x *run) (needed float64, alive bool) {
	needed = 1
	alive = r.walk(c, x, func(before *partial, j int, in, land, fail bool) {
		q := r.chanceToLand(c, before, j, land, fail, nil)
		if !in {
			q = 1 - q
		}
		w := c.members[j].fundedBefore
		needed *= w + (1-w)*q
	})
	if !alive {
		return 0, false
	}
	return needed, true
}

// walk visits the members of a build's path in order, as long as the path is not dead, and reports whether it is alive.
// visit gets the path before the member, whether the member lands on the path, and whether by the evidence it may land
// or fail.
func (r *Ranking) walk(c *change, x *run, visit func(before *partial, j int, in, land, fail bool)) (alive bool) {
	if c.node == nil || c.node.Change.Revision != x.change.Revision || !c.node.Analyzed {
		return false
	}
	if x.findRejected(c); !x.allMembers {
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
