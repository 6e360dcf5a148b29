package bypass

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// maxReds is how many failed builds of a change are weighed together, the newest: each doubles the work.
const maxReds = 4

// soundness is what a model's certainty that a change passes is cut to where a build of it has failed: a model that is
// certain could not be told anything.
const soundness = 1 - 1e-4

// suspicion is what a model's certainty that a change does not break with another one is raised to, where a build with that failed:
// something in that build is at fault, however certain the model is of each part of it.
const suspicion = 1e-3

// refKey names a revision.
type refKey struct {
	change   string
	revision uint64
}

func keyOf(r *eventsv1.ChangeRef) refKey { return refKey{r.GetChange(), r.GetRevision()} }

// story is what has happened to a change since it is pending, as far as it bears on what is to be expected of it (M10).
// A change fails for a fault of its own, or with one of those that it meets: what a build has shown of these on one path
// holds on every other.
type story struct {
	of refKey
	// landed are the members that have landed since, each with r as it was foretold: they are part of the
	// mainline that it has to pass on (M6).
	landed []met
	// sound: a build passed, so it has no fault of its own. passed are those that such builds assumed.
	sound  bool
	passed map[refKey]bool
	// reds are, of failed builds, those whom they assumed and who can have to do with it.
	reds [][]refKey
	// running are its prepared builds, and whom they assume.
	running map[string][]*eventsv1.ChangeRef

	// observed are the members of which it was published whether it breaks with them.
	observed map[refKey]bool

	prediction *eventsv1.Prediction // as published
	pairs      map[string]*eventsv1.PairPrediction
}

type met struct {
	refKey
	conflict float64
}

// begin gives the story of a revision, and ends that of another one.
func (p *Profile) begin(c *eventsv1.ChangeRef) *story {
	s := p.stories[c.GetChange()]
	if s == nil || s.of != keyOf(c) {
		s = &story{of: keyOf(c), pairs: map[string]*eventsv1.PairPrediction{}}
		p.stories[c.GetChange()] = s
	}
	return s
}

// leave notes which of those behind the changes that leave have to pass on what has landed. The graph is still the one
// before.
func (p *Profile) leave(gone []*eventsv1.NodeGone) {
	for _, g := range gone {
		if g.How != eventsv1.GoneHow_GONE_HOW_LANDED {
			continue
		}
		p.graph.EachBehind(g.Change.Change, func(n *graph.Node) {
			if slices.ContainsFunc(gone, func(o *eventsv1.NodeGone) bool { return keyOf(o.Change) == keyOf(n.Change) }) {
				return
			}
			if a := n.Ahead[n.IndexOf(g.Change.Change)]; a.Conflicts && keyOf(a.Change) == keyOf(g.Change) {
				s := p.begin(n.Change)
				s.landed = append(s.landed, met{keyOf(g.Change), p.model.Pair(n, a).Conflict})
			}
		})
	}
}

// progress folds what is known of a build, once the graph holds what it has shown.
func (p *Profile) progress(b *eventsv1.BuildProgress) {
	n := p.graph.NodeAt(b.Change)
	if n == nil {
		return
	}
	s := p.begin(b.Change)
	if b.State == eventsv1.BuildState_BUILD_STATE_PREPARED {
		if s.running == nil {
			s.running = map[string][]*eventsv1.ChangeRef{}
		}
		s.running[b.Build] = b.Assumed
		return
	}
	assumed, known := s.running[b.Build]
	delete(s.running, b.Build)
	if known && b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
		s.learn(n, assumed)
	}
}

// learn takes what is known of the path that a build was of. If that path is gone it is too late to say.
func (s *story) learn(n *graph.Node, assumed []*eventsv1.ChangeRef) {
	path := memberset.New(len(n.Ahead))
	members := 0
	for i, a := range n.Ahead {
		if slices.ContainsFunc(assumed, func(r *eventsv1.ChangeRef) bool { return keyOf(r) == keyOf(a.Change) }) {
			path.Add(i)
			members++
		}
	}
	gone := len(assumed) - members
	for _, l := range s.landed {
		if slices.ContainsFunc(assumed, func(r *eventsv1.ChangeRef) bool { return keyOf(r) == l.refKey }) {
			gone--
		}
	}
	if gone > 0 || len(n.Paths) > 0 || n.Guard != nil {
		return
	}
	switch n.Path(path) {
	case graph.Green:
		s.sound = true
		if s.passed == nil {
			s.passed = map[refKey]bool{}
		}
		for _, r := range assumed {
			s.passed[keyOf(r)] = true
		}
	case graph.Red:
		for _, k := range n.Classes {
			if k.Outcome(k.Restrict(path)).GetState() != graph.Red {
				continue
			}
			var red []refKey
			for _, m := range k.Members {
				if path.Has(int(m)) {
					red = append(red, keyOf(n.Ahead[m].Change))
				}
			}
			s.fail(red)
		}
	}
}

// fail notes whom a failed build assumed of those who affect what failed.
func (s *story) fail(red []refKey) {
	if slices.ContainsFunc(s.reds, func(o []refKey) bool { return slices.Equal(o, red) }) {
		return
	}
	if s.reds = append(s.reds, red); len(s.reds) > maxReds {
		s.reds = s.reds[1:]
	}
}

// chances are what is to be expected of a change, given its story: that it passes on the mainline as it stands, and
// of each member that it then fails with that. own is p before anything was built, foretold r.
//
// With faults that are independent before anything is built, and T those of its own and with what has landed, a build
// that failed says that T or one of those it assumed is at fault. Let P(all, U) be the probability that none of those
// assumed by the builds in U is at fault; then that all reds come about without T is A = Σ_U (−1)^|U| P(all, U), and
// p′ = p·A / (1 − p + p·A), r′(k) = r(k)·A_k / A, with A_k over the reds that did not assume k.
func (s *story) chances(own float64, foretold func(refKey) float64) (success float64, conflict func(refKey) float64) {
	if s.sound {
		own = 1
	}
	r := func(k refKey) float64 { return s.doubted(k, foretold(k)) }
	for _, l := range s.landed {
		own *= 1 - s.doubted(l.refKey, l.conflict)
	}
	reds := s.openReds()
	if len(reds) == 0 {
		return own, r
	}
	if !s.sound {
		own = min(own, soundness) // else the faults lie with others, and are doubted there
	}
	all := blamed(reds, r)
	if all <= 0 {
		return 0, r
	}
	return own * all / (1 - own + own*all), func(k refKey) float64 {
		if r(k) == 0 {
			return 0
		}
		others := slices.DeleteFunc(slices.Clone(reds), func(red []refKey) bool { return slices.Contains(red, k) })
		return min(1, r(k)*blamed(others, r)/all)
	}
}

// doubted is what was foretold of breaking with another change, in the light of the builds that held it.
func (s *story) doubted(k refKey, foretold float64) float64 {
	switch {
	case s.passed[k]:
		return 0
	case slices.ContainsFunc(s.reds, func(red []refKey) bool { return slices.Contains(red, k) }):
		return max(foretold, suspicion)
	}
	return foretold
}

// openReds are the reds without those that have landed since. One that says nothing but what a green build denies – a
// flake, or an interplay of three – is left out.
func (s *story) openReds() (reds [][]refKey) {
	for _, red := range s.reds {
		denied := s.sound
		for _, k := range red {
			denied = denied && s.passed[k]
		}
		if denied {
			continue
		}
		reds = append(reds, slices.DeleteFunc(slices.Clone(red), func(k refKey) bool {
			return slices.ContainsFunc(s.landed, func(l met) bool { return l.refKey == k })
		}))
	}
	return reds
}

// blamed is how likely each of the reds has one at fault among those it assumed.
func blamed(reds [][]refKey, r func(refKey) float64) float64 {
	sum := 0.0
	for u := range 1 << len(reds) {
		sign, free := 1.0, 1.0
		counted := map[refKey]bool{}
		for i, red := range reds {
			if u&(1<<i) == 0 {
				continue
			}
			sign = -sign
			for _, k := range red {
				if !counted[k] {
					counted[k] = true
					free *= 1 - r(k)
				}
			}
		}
		sum += sign * free
	}
	return max(0, sum)
}
