package explanation

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// run is a prepared build of a pending change: whether it was aborted no profile says. What became of it is noted with the
// moment, and worked out when somebody asks: which build took which other one's place hangs on what the ranking had said by
// then, and that is told elsewhere.
type run struct {
	build   string
	change  *eventsv1.ChangeRef
	assumed map[string]*assumption // by change
	since   int64
	// position is that of the profile that told of it.
	position int64
	// prepared and over are moments; over is 0 while it may run.
	prepared, over int64
}

// assumption is a revision that a build lets land, and the moment from which on it has landed, 0 for none.
type assumption struct {
	revision uint64
	landed   int64
}

// maxRuns bounds the builds that are kept of one pending change, the newest.
const maxRuns = 256

// progress folds what is known of a build.
func (s *State) progress(b *eventsv1.BuildProgress) {
	s.moments++
	switch b.State {
	case eventsv1.BuildState_BUILD_STATE_FINISHED:
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

// left takes a change that left out of what runs.
func (s *State) left(g *eventsv1.NodeGone) {
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

// isOver says that a build had ended by a moment.
func (x *run) isOver(moment int64) bool { return x.over != 0 && x.over <= moment }

// sameAs says that at a moment both were of one path.
func (x *run) sameAs(o *run, moment int64) bool {
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

// isOpen says that by a moment it had not landed.
func (a *assumption) isOpen(moment int64) bool { return a.landed == 0 || a.landed > moment }

// active is a build that may run, and since when it is taken to.
type active struct {
	*run
	since int64
}

// active lists the builds of a change that may run, in the order in which they began. One of the same path takes the place of an
// older one, and its steps go on, unless that had been told to be worthless (ranking.progress).
func (e *Explainer) active(id string) []active {
	if list, known := e.running[id]; known {
		return list
	}
	var list []active
	for _, x := range e.s.ofChange[id] {
		list = slices.DeleteFunc(list, func(o active) bool { return o.isOver(x.prepared) })
		now := active{x, x.since}
		at := slices.IndexFunc(list, func(o active) bool { return x.sameAs(o.run, x.prepared) })
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

// path is a run's, as it is now; alive says that it is one of its change still, can come about, and is not known.
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

// members are those that a run lets land; ok says that all that it assumes and has not landed are some.
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
