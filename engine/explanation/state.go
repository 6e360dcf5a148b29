// Package explanation explains the worth of a build, factor by factor, each with its value and its source (M8, M9, M11–M16), and the
// state of a change: what is known of its paths, and what is missing to decide it (M19).
//
// Its results are for people; nothing is decided by them. It shares no arithmetic with package ranking, which multiplies as it
// searches, but evaluates the formulas of the model one by one, so that an explanation is also a check on the ranking. A State only
// keeps what profiles say: all arithmetic is done when a question is asked.
package explanation

import (
	"maps"
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// State holds what the profiles of one queue, up to one of them, say of the changes that are pending then.
type State struct {
	// position is the offset in landfall.speculations that the last profile answered, stamp its time.
	position, stamp int64
	settings        *eventsv1.QueueSettings
	mainline        *eventsv1.Mainline
	nodes           map[string]*eventsv1.Node // of the pending changes
	predictions     map[string]*eventsv1.Prediction
	pairs           map[string]map[string]pair // behind → ahead
	// owned holds the changes behind whose map of pairs is shared with no clone. A restored state owns none, and copies a map once it changes.
	owned    map[string]bool   `snapshot:"-"`
	runs     map[string]*run   // by build
	ofChange map[string][]*run // the same by change, in the order in which they were prepared
	// sources holds each name of a predictor once: there are few, and many predictions. It is filled as they are restored.
	sources map[string]string `snapshot:"-"`
	// moments counts the events of builds, to number them.
	moments int64
}

// pair is what is predicted of two revisions.
type pair struct {
	behind, ahead uint64
	conflict      float64 // r
	source        string
}

// maxSources bounds State.sources: models come and go.
const maxSources = 256

// New returns the state before the first profile, or before one that has every pending change. Settings and mainline are those before
// that profile, nil if there are none.
func New(settings *eventsv1.QueueSettings, mainline *eventsv1.Mainline) *State {
	return &State{
		settings: settings, mainline: mainline, nodes: map[string]*eventsv1.Node{}, predictions: map[string]*eventsv1.Prediction{},
		pairs: map[string]map[string]pair{}, owned: map[string]bool{}, runs: map[string]*run{}, ofChange: map[string][]*run{}, sources: map[string]string{},
	}
}

// Position is the offset in landfall.speculations that the last profile answered, Stamp its time in microseconds.
func (s *State) Position() int64 { return s.position }

// Stamp is the time of the last profile, in microseconds.
func (s *State) Stamp() int64 { return s.stamp }

// Settings returns the queue's settings, nil before the first ones.
func (s *State) Settings() *eventsv1.QueueSettings { return s.settings }

// Mainline returns the mainline as of the last profile that has it, nil before the first one.
func (s *State) Mainline() *eventsv1.Mainline { return s.mainline }

// Node returns the node of a change that is pending at a revision, else nil.
func (s *State) Node(change string, revision uint64) *eventsv1.Node {
	if n := s.nodes[change]; n != nil && n.Change.GetRevision() == revision {
		return n
	}
	return nil
}

// Prediction returns what is predicted of a pending change, without its features, nil before that is.
func (s *State) Prediction(change string) *eventsv1.Prediction { return s.predictions[change] }

// Nodes returns how many nodes there are.
func (s *State) Nodes() int { return len(s.nodes) }

// Apply folds the next counted profile.
func (s *State) Apply(p *eventsv1.Profile) {
	s.position, s.stamp = p.Position, p.StampUs
	d := p.GetDelta()
	if d.GetSettings() != nil {
		s.settings = d.Settings
	}
	if d.GetMainline() != nil {
		s.mainline = d.Mainline
	}
	for _, g := range d.GetGone() {
		if s.at(g.Change) != nil {
			delete(s.nodes, g.Change.Change)
		}
	}
	for n := range graph.EachWithout(maps.Values(s.nodes), d) {
		s.nodes[n.Change.GetChange()] = n
	}
	for _, n := range d.GetNodes() {
		if !n.Mainline {
			s.nodes[n.Change.GetChange()] = n
		}
	}
	for _, q := range p.Predictions {
		// The vector of features is large, and not needed here.
		s.predictions[q.Change.GetChange()] = &eventsv1.Prediction{
			Change: q.Change, Success: q.Success, SuccessSource: s.source(q.SuccessSource),
			DurationMeanUs: q.DurationMeanUs, DurationStdUs: q.DurationStdUs, DurationSource: s.source(q.DurationSource),
		}
	}
	for _, q := range p.Pairs {
		s.pairsOf(q.Behind.GetChange())[q.Ahead.GetChange()] = pair{q.Behind.GetRevision(), q.Ahead.GetRevision(), q.Conflict, s.source(q.Source)}
	}
	for _, b := range d.GetBuilds() {
		s.applyProgress(b)
	}
	for _, g := range d.GetGone() {
		s.removeFromRuns(g)
		id := g.Change.GetChange()
		if s.nodes[id] != nil {
			continue
		}
		delete(s.predictions, id)
		delete(s.pairs, id)
		delete(s.owned, id)
		for behind, of := range s.pairs {
			if _, has := of[id]; has && !names(s.nodes[behind], id) {
				delete(s.pairsOf(behind), id)
			}
		}
	}
}

// pairsOf returns the pairs of a change, not shared with a clone.
func (s *State) pairsOf(behind string) map[string]pair {
	of := s.pairs[behind]
	switch {
	case of == nil:
		of = map[string]pair{}
	case s.owned[behind]:
		return of
	default:
		of = maps.Clone(of)
	}
	s.pairs[behind], s.owned[behind] = of, true
	return of
}

// names reports whether a change is a member of the node's A(c).
func names(n *eventsv1.Node, id string) bool {
	return slices.ContainsFunc(n.GetAhead(), func(a *eventsv1.Ahead) bool { return a.Change.GetChange() == id })
}

func (s *State) source(name string) string {
	kept, known := s.sources[name]
	if !known {
		if len(s.sources) >= maxSources {
			clear(s.sources)
		}
		kept = name
		s.sources[name] = name
	}
	return kept
}

// at returns the node of a change that is pending at that revision, else nil.
func (s *State) at(c *eventsv1.ChangeRef) *eventsv1.Node {
	return s.Node(c.GetChange(), c.GetRevision())
}

// Clone is a state of its own, which says the same whatever the other one is told. It is quick: of the pairs, the bulk of it, each has
// the other's until one is told of them.
func (s *State) Clone() *State {
	c := *s
	c.nodes, c.predictions, c.sources = maps.Clone(s.nodes), maps.Clone(s.predictions), maps.Clone(s.sources)
	c.pairs, c.owned = maps.Clone(s.pairs), map[string]bool{}
	clear(s.owned)
	c.runs, c.ofChange = make(map[string]*run, len(s.runs)), make(map[string][]*run, len(s.ofChange))
	for id, of := range s.ofChange {
		for _, x := range of {
			y := *x
			y.assumed = make(map[string]*assumption, len(x.assumed))
			for change, a := range x.assumed {
				b := *a
				y.assumed[change] = &b
			}
			c.runs[y.build], c.ofChange[id] = &y, append(c.ofChange[id], &y)
		}
	}
	return &c
}
