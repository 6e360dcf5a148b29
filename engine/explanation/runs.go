package explanation

import (
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// run is a prepared build of a pending change. Profiles do not say whether it was aborted. Which build has replaced which other one
// depends on what the ranking had published by then, which the state does not hold; so the events of a build are kept with their
// moments, and Explainer.active works the rest out.
type run struct {
	build   string
	change  *eventsv1.ChangeRef
	assumed map[string]*assumption // by change
	since   int64
	// position is that of the profile in which it was prepared.
	position int64
	// prepared and over are moments (State.moments). over is 0 while the build may run.
	prepared, over int64
}

// assumption is a revision that a build assumes to land. landed is the moment at which it landed, 0 if it has not.
type assumption struct {
	revision uint64
	landed   int64
}

// maxRuns bounds the builds that are kept of one pending change: the newest are.
const maxRuns = 256

// applyProgress folds the progress of a build.
func (s *State) applyProgress(b *eventsv1.BuildProgress) {
	s.moments++
	switch b.State {
	case eventsv1.BuildState_BUILD_STATE_FINISHED, eventsv1.BuildState_BUILD_STATE_OUTDATED:
		if x := s.runs[b.Build]; x != nil && x.over == 0 {
			x.over = s.moments
		}
	case eventsv1.BuildState_BUILD_STATE_PREPARED:
		if s.at(b.Change) == nil || s.runs[b.Build] != nil {
			return
		}
		x := &run{build: b.Build, change: b.Change, assumed: map[string]*assumption{}, since: s.stamp, position: s.position, prepared: s.moments}
		for _, a := range b.Assumed {
			x.assumed[a.Change] = &assumption{revision: a.Revision}
		}
		id := b.Change.Change
		s.runs[b.Build] = x
		of := append(s.ofChange[id], x)
		if len(of) > maxRuns {
			delete(s.runs, of[0].build)
			of = slices.Delete(of, 0, 1)
		}
		s.ofChange[id] = of
	}
}

// removeFromRuns folds into the builds that a change is gone.
func (s *State) removeFromRuns(g *eventsv1.NodeGone) {
	s.moments++
	id := g.Change.GetChange()
	s.ofChange[id] = slices.DeleteFunc(s.ofChange[id], func(x *run) bool {
		own := x.change.GetRevision() == g.Change.GetRevision()
		if own {
			delete(s.runs, x.build)
		}
		return own
	})
	if len(s.ofChange[id]) == 0 {
		delete(s.ofChange, id)
	}
	for _, x := range s.runs {
		a := x.assumed[id]
		switch {
		case a == nil || a.revision != g.Change.GetRevision() || a.landed != 0 || x.over != 0:
		case g.How == eventsv1.GoneHow_GONE_HOW_LANDED:
			a.landed = s.moments
		default:
			x.over = s.moments
		}
	}
}

// isOver reports whether a build had ended by a moment.
func (x *run) isOver(moment int64) bool { return x.over != 0 && x.over <= moment }

// sharesPath reports whether two builds of a change were of one path at a moment.
func (x *run) sharesPath(o *run, moment int64) bool {
	if x.change.Revision != o.change.Revision {
		return false
	}
	open := 0
	for id, a := range x.assumed {
		if a.isOpen(moment) {
			open++
			if b := o.assumed[id]; b == nil || !b.isOpen(moment) || b.revision != a.revision {
				return false
			}
		}
	}
	for _, b := range o.assumed {
		if b.isOpen(moment) {
			open--
		}
	}
	return open == 0
}

// isOpen reports whether the assumed change had not landed by a moment.
func (a *assumption) isOpen(moment int64) bool { return a.landed == 0 || a.landed > moment }

// active is a build that may run. since is when the oldest build whose steps it goes on with began.
type active struct {
	*run
	since int64
}

// active returns the builds of a change that may run, in the order in which they began. A build replaces an older one of the same path
// and goes on with its steps, unless the older one had been published as worthless (Ranking.applyProgress).
func (e *Explainer) active(id string) []active {
	if list, known := e.running[id]; known {
		return list
	}
	var list []active
	for _, x := range e.s.ofChange[id] {
		list = slices.DeleteFunc(list, func(o active) bool { return o.isOver(x.prepared) })
		now := active{x, x.since}
		at := slices.IndexFunc(list, func(o active) bool { return x.sharesPath(o.run, x.prepared) })
		switch {
		case at < 0:
			list = append(list, now)
		case e.how.Worthless != nil && e.how.Worthless(list[at].build, x.position):
			list = append(slices.Delete(list, at, at+1), now)
		default:
			now.since = list[at].since
			list[at] = now
		}
	}
	list = slices.DeleteFunc(list, func(o active) bool { return o.over != 0 })
	e.running[id] = list
	return list
}

// path returns the path of a build as it is now. alive reports whether it is a path of the change, can come about and has no result yet.
func (e *Explainer) path(x *run) (path memberset.Set, alive bool) {
	n, path, ok := e.members(x)
	if !ok || !n.Analyzed {
		return path, false
	}
	prefix := memberset.New(len(n.Ahead))
	for j, a := range n.Ahead {
		land, fail := e.g.May(n, prefix, j)
		in := path.Has(j)
		if in && (!land || a.MergeConflict) || !in && (!fail || a.Required) {
			return path, false
		}
		if in {
			prefix.Add(j)
		}
	}
	return path, n.Path(path) == graph.Unknown
}

// members returns the members that a build assumes to land. ok reports whether all that it assumes are members, but for what has landed.
func (e *Explainer) members(x *run) (n *graph.Node, path memberset.Set, ok bool) {
	if n = e.g.NodeAt(x.change); n == nil {
		return nil, path, false
	}
	path = memberset.New(len(n.Ahead))
	missing := 0
	for _, a := range x.assumed {
		if a.landed == 0 {
			missing++
		}
	}
	for j, a := range n.Ahead {
		if of := x.assumed[a.Change.Change]; of != nil && of.landed == 0 && of.revision == a.Change.Revision {
			path.Add(j)
			missing--
		}
	}
	return n, path, missing == 0
}
