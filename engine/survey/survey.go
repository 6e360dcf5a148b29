// Package survey folds which targets the mainline had before the queue, and which of them nothing has proven since (M23b). They
// are proven in rounds while workers are idle, so that it is known what was red before anybody is suspected of it.
package survey

import (
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// roundTargets bounds the targets that one build is to prove.
const roundTargets = 64

// Survey holds the target versions of one queue that are left to prove. The zero value is not usable; see New.
type Survey struct {
	// known is set once the mainline was surveyed.
	known bool
	// open holds the hash of each target that is left.
	open map[string]string
	// order has the targets of open, sorted, and perhaps some that are no longer left.
	order []string `snapshot:"-"` // made by Restore of open
	// round holds the versions that the next build is to prove. A version that passed stays in it until all are settled or the
	// build is over, so that a round is written once and not at each result.
	round []*eventsv1.TargetVersion
}

// New returns the state of a mainline that was not surveyed.
func New() *Survey { return &Survey{open: map[string]string{}} }

// Known reports whether the mainline was surveyed.
func (s *Survey) Known() bool { return s.known }

// Renew folds a survey in place of the one before.
func (s *Survey) Renew(f *eventsv1.MainlineSurveyed, left func(evidence.Version) bool) {
	s.known, s.round = false, nil
	clear(s.open)
	s.Begin(f, left)
}

// Begin folds the survey. left reports whether a version of it is still the mainline's, and not settled. Only the first survey
// counts.
func (s *Survey) Begin(f *eventsv1.MainlineSurveyed, left func(evidence.Version) bool) {
	if s.known {
		return
	}
	s.known = true
	for _, v := range f.Targets {
		if left(evidence.Version{Target: v.Target, Hash: v.Hash}) {
			s.open[v.Target] = v.Hash
		}
	}
	s.order = slices.Sorted(maps.Keys(s.open))
	s.ask()
}

// Has reports whether a version is left to prove.
func (s *Survey) Has(v evidence.Version) bool {
	hash, open := s.open[v.Target]
	return open && hash == v.Hash
}

// Left returns how many targets are left.
func (s *Survey) Left() int { return len(s.open) }

// Round returns the versions that the next build is to prove, in the order of the targets. Callers must not change it.
func (s *Survey) Round() []*eventsv1.TargetVersion { return s.round }

// Observe folds that a build of the mainline found another version of a target than the survey did.
func (s *Survey) Observe(v evidence.Version) {
	if hash, open := s.open[v.Target]; open && hash != v.Hash {
		s.open[v.Target] = v.Hash
		s.ask()
	}
}

// Drop folds that nothing of some targets is left to prove: they have another version now, or a result that is not green.
func (s *Survey) Drop(targets ...string) {
	again := false
	for _, t := range targets {
		_, open := s.open[t]
		again = again || open || slices.ContainsFunc(s.round, func(v *eventsv1.TargetVersion) bool { return v.Target == t })
		delete(s.open, t)
	}
	if again {
		s.ask()
	}
}

// End folds that a build of the round is over: what passed is not built again.
func (s *Survey) End() {
	if slices.ContainsFunc(s.round, func(v *eventsv1.TargetVersion) bool { return !s.isLeft(v) }) {
		s.ask()
	}
}

// Clear folds that no version of the survey is the mainline's any more.
func (s *Survey) Clear() {
	clear(s.open)
	s.ask()
}

// Pass folds that a version is green.
func (s *Survey) Pass(v evidence.Version) {
	if !s.Has(v) {
		return
	}
	delete(s.open, v.Target)
	if !slices.ContainsFunc(s.round, s.isLeft) {
		s.ask()
	}
}

func (s *Survey) isLeft(v *eventsv1.TargetVersion) bool {
	return s.Has(evidence.Version{Target: v.Target, Hash: v.Hash})
}

// ask makes the round again: of what it had, what is left; if that is nothing, the next targets.
func (s *Survey) ask() {
	targets := make([]string, 0, roundTargets)
	for _, v := range s.round {
		if _, open := s.open[v.Target]; open {
			targets = append(targets, v.Target)
		}
	}
	if len(targets) == 0 {
		s.order = slices.DeleteFunc(s.order, func(t string) bool { _, open := s.open[t]; return !open })
		targets = s.order[:min(roundTargets, len(s.order))]
	}
	s.round = nil
	for _, t := range targets {
		s.round = append(s.round, &eventsv1.TargetVersion{Target: t, Hash: s.open[t]})
	}
}

// Settled returns, sorted, the targets that are left and whose version is settled by now, as after a change of the policy.
func (s *Survey) Settled(state func(evidence.Version) evidence.State) []evidence.Version {
	var list []evidence.Version
	for t, hash := range s.open {
		if v := (evidence.Version{Target: t, Hash: hash}); state(v) != evidence.Unknown {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b evidence.Version) int { return strings.Compare(a.Target, b.Target) })
	return list
}
