package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/engine/memberset"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// randomEvidence is evidence with up to six members, of which the first few have landed.
func randomEvidence(r *rand.Rand) (s *buildEvidence, own float64, members []landedMember) {
	s, own = &buildEvidence{}, r.Float64()
	for i := range r.IntN(7) {
		members = append(members, landedMember{refKey{fmt.Sprint("k", i), 1}, []float64{0, 0.05, 0.5, 0.9}[r.IntN(4)]})
	}
	s.landed = members[:r.IntN(len(members)+1)]
	if s.sound = r.IntN(3) == 0; s.sound {
		s.passedWith = map[refKey]bool{}
		for _, m := range members {
			if r.IntN(3) == 0 {
				s.passedWith[m.refKey] = true
			}
		}
	}
	for range r.IntN(maxFailures + 1) {
		var suspects []refKey
		for _, m := range members {
			if r.IntN(2) == 0 {
				suspects = append(suspects, m.refKey)
			}
		}
		s.addFailure(suspects)
	}
	return s, own, members
}

// TestM10TheChancesAreThoseOfAllWaysToFail: every assignment of faults, those that the builds deny left out.
func TestM10TheChancesAreThoseOfAllWaysToFail(t *testing.T) {
	rnd := seedtest.Random(t)
	for range 5000 {
		s, own, members := randomEvidence(rnd)
		predicted := slices.Clone(members)
		success, conflict := s.posterior(own, func(k refKey) float64 {
			return predicted[slices.IndexFunc(predicted, func(m landedMember) bool { return m.refKey == k })].conflict
		})
		for i, m := range members {
			blamed := slices.ContainsFunc(s.failures, func(suspects []refKey) bool { return slices.Contains(suspects, m.refKey) })
			if blamed && !s.passedWith[m.refKey] {
				members[i].conflict = max(m.conflict, minConflict)
			}
		}
		// What is certain is cut where a build failed: over all that has to pass on the mainline, unless a green build showed it.
		failures := s.openFailures()
		passes := own
		if s.sound {
			passes = 1
		}
		for _, l := range s.landed {
			if !s.passedWith[l.refKey] {
				passes *= 1 - l.conflict
			}
		}
		if len(failures) > 0 && !s.sound {
			passes = min(passes, maxSuccess)
		}
		open := members[len(s.landed):]
		var all, fine float64
		with := make([]float64, len(open))
		for faults := range 2 << len(open) {
			p, sound := 1.0, faults&1 == 0
			if sound {
				p = passes
			} else {
				p = 1 - passes
			}
			for i, m := range open {
				c := m.conflict
				if s.passedWith[m.refKey] {
					c = 0
				}
				if faults&(2<<i) == 0 {
					c = 1 - c
				}
				p *= c
			}
			possible := true
			for _, suspects := range failures {
				blamed := !sound
				for i, m := range open {
					blamed = blamed || faults&(2<<i) != 0 && slices.Contains(suspects, m.refKey)
				}
				possible = possible && blamed
			}
			if !possible {
				continue
			}
			if all += p; sound {
				fine += p
				for i := range open {
					if faults&(2<<i) != 0 {
						with[i] += p
					}
				}
			}
		}
		if math.Abs(success*all-fine) > 1e-9 {
			t.Fatalf("%+v with %v: it passes with %g, want %g", s, members, success, fine/all)
		}
		for i, m := range open {
			if got := conflict(m.refKey); fine > 1e-6 && math.Abs(got*fine-with[i]) > 1e-9 {
				t.Fatalf("%+v with %v: it breaks with %s with %g, want %g", s, members, m.change, got, with[i]/fine)
			}
		}
	}
}

// queue is a profile of a change c behind a and b, with one class that both are in.
type queue struct {
	*Profile
	t      *testing.T
	builds int
	node   *eventsv1.Node
}

func newQueue(t *testing.T) *queue {
	q := &queue{Profile: New(), t: t}
	q.apply(&eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Hash: "s", PriorSuccess: 0.9, PriorConflict: 0.1, PriorDurationMeanUs: 1},
		Nodes:    []*eventsv1.Node{{Change: ref("a"), Position: 1, Analyzed: true}, {Change: ref("b"), Position: 2, Analyzed: true}},
	})
	q.node = &eventsv1.Node{
		Change: ref("c"), Position: 3, Analyzed: true,
		Ahead:   []*eventsv1.Ahead{{Change: ref("a"), Conflicts: true}, {Change: ref("b"), Conflicts: true}},
		Classes: []*eventsv1.Class{{Members: []uint32{0, 1}, Targets: []*eventsv1.TargetVersion{{Target: "//t"}}}},
	}
	q.apply(&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{q.node}})
	return q
}

func ref(id string) *eventsv1.ChangeRef { return &eventsv1.ChangeRef{Change: id, Revision: 1} }

func (q *queue) apply(d *eventsv1.GraphDelta) *eventsv1.Profile {
	q.Apply(&eventsv1.Speculation{Delta: d})
	out := q.Decide()
	q.Fold(out)
	return out
}

// build runs c on a path, and says how it ended.
func (q *queue) build(state eventsv1.OutcomeState, on ...int) *eventsv1.Profile {
	q.builds++
	id, set := fmt.Sprint("b", q.builds), memberset.New(2)
	b := &eventsv1.BuildProgress{Build: id, Change: ref("c"), State: eventsv1.BuildState_BUILD_STATE_PREPARED}
	for _, i := range on {
		set.Add(i)
		b.Assumed = append(b.Assumed, q.node.Ahead[i].Change)
	}
	q.apply(&eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{b}})
	q.node.Classes[0].Outcomes = append(q.node.Classes[0].Outcomes, &eventsv1.Outcome{Members: set.Bytes(), State: state})
	return q.apply(&eventsv1.GraphDelta{
		Nodes:  []*eventsv1.Node{q.node},
		Builds: []*eventsv1.BuildProgress{{Build: id, Change: ref("c"), State: eventsv1.BuildState_BUILD_STATE_FINISHED}},
	})
}

// expect holds p and r against what was last said of c.
func (q *queue) expect(what string, success, withA, withB float64) {
	q.t.Helper()
	s := q.revisions["c"].published
	if p := s.prediction.Success; math.Abs(p-success) > 1e-9 {
		q.t.Errorf("%s: c passes with %g (%s), want %g", what, p, s.prediction.SuccessSource, success)
	}
	for id, want := range map[string]float64{"a": withA, "b": withB} {
		if p := s.pairs[id]; math.Abs(p.Conflict-want) > 1e-9 {
			q.t.Errorf("%s: c breaks with %s with %g (%s), want %g", what, id, p.Conflict, p.Source, want)
		}
	}
}

// TestM10WhatABuildShowedHoldsOnEveryPath: green on one it has no fault of its own, red on one it may have.
func TestM10WhatABuildShowedHoldsOnEveryPath(t *testing.T) {
	q := newQueue(t)
	q.expect("before anything was built", 0.9, 0.1, 0.1)
	q.build(eventsv1.OutcomeState_OUTCOME_STATE_GREEN, 0)
	q.expect("green on a", 1, 0, 0.1)
	q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED, 0, 1)
	q.expect("and red on a and b", 1, 0, 1)

	q = newQueue(t)
	q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED, 0)
	q.expect("red on a, which says nothing of b", 0.9*0.1/(0.1+0.9*0.1), 1, 0.1)

	q = newQueue(t)
	q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED, 0, 1)
	blamed := 1 - 0.9*0.9
	q.expect("red on a and b", 0.9*blamed/(0.1+0.9*blamed), 0.1/blamed, 0.1/blamed)
	q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED)
	q.expect("and red on neither: whom it would break with does not matter", 0, 0.1, 0.1)
}

// TestM10NobodyIsCertainBehindARedBuild: the forecast is certain of the change, and that it breaks with neither. A red build leaves
// open who is at fault, and together with a green one it says who: without that one the change passes.
func TestM10NobodyIsCertainBehindARedBuild(t *testing.T) {
	for _, first := range []eventsv1.OutcomeState{eventsv1.OutcomeState_OUTCOME_STATE_GREEN, eventsv1.OutcomeState_OUTCOME_STATE_RED} {
		q := newQueue(t)
		q.apply(&eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Hash: "s", PriorSuccess: 1, PriorConflict: 0, PriorDurationMeanUs: 1}})
		q.expect("before anything was built", 1, 0, 0)
		if first == eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
			q.build(eventsv1.OutcomeState_OUTCOME_STATE_GREEN, 0)
			q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED, 0, 1)
		} else {
			q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED, 0, 1)
			one := 1 - (1-minConflict)*(1-minConflict)
			q.expect("red on both", maxSuccess*one/(1-maxSuccess+maxSuccess*one), minConflict/one, minConflict/one)
			q.build(eventsv1.OutcomeState_OUTCOME_STATE_GREEN, 0)
		}
		q.expect("green on a, red on a and b", 1, 0, 1)
	}
}

// TestM6WhatLandedIsPartOfWhatItHasToPassOn: its factor stays when it leaves A(c), unless c was built green with it.
func TestM6WhatLandedIsPartOfWhatItHasToPassOn(t *testing.T) {
	for _, built := range []bool{false, true} {
		q, want := newQueue(t), 0.9*0.9
		if built {
			q.build(eventsv1.OutcomeState_OUTCOME_STATE_GREEN, 0)
			want = 1
		}
		q.node = &eventsv1.Node{Change: ref("c"), Position: 3, Analyzed: true, Ahead: q.node.Ahead[1:],
			Classes: []*eventsv1.Class{{Members: []uint32{0}, Targets: q.node.Classes[0].Targets}}}
		q.apply(&eventsv1.GraphDelta{
			Gone:  []*eventsv1.NodeGone{{Change: ref("a"), How: eventsv1.GoneHow_GONE_HOW_LANDED}},
			Nodes: []*eventsv1.Node{q.node},
		})
		if got := q.revisions["c"].published.prediction.Success; math.Abs(got-want) > 1e-9 {
			t.Errorf("a has landed, built green with it is %v: c passes with %g, want %g", built, got, want)
		}
	}
}

// TestM10AFailureOnTopOfOneThatLeftSaysNoMoreThanBefore: c failed, and then a leaves without landing, or goes behind c. It may have been the two
// together still, so p and r are as they were.
func TestM10AFailureOnTopOfOneThatLeftSaysNoMoreThanBefore(t *testing.T) {
	for _, how := range []eventsv1.GoneHow{eventsv1.GoneHow_GONE_HOW_REJECTED, eventsv1.GoneHow_GONE_HOW_EJECTED, eventsv1.GoneHow_GONE_HOW_CANCELLED, eventsv1.GoneHow_GONE_HOW_REVISED, 0} {
		for _, on := range [][]int{{0, 1}, {0}, {1}, {}} {
			q := newQueue(t)
			q.build(eventsv1.OutcomeState_OUTCOME_STATE_RED, on...)
			shown := func() []float64 {
				s := q.revisions["c"].published
				return []float64{s.prediction.Success, s.pairs["b"].Conflict}
			}
			want := shown()
			d := &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: ref("c"), Position: 3, Analyzed: true, Ahead: q.node.Ahead[1:],
				Classes: []*eventsv1.Class{{Members: []uint32{0}, Targets: q.node.Classes[0].Targets}}}}}
			if how != 0 {
				d.Gone = []*eventsv1.NodeGone{{Change: ref("a"), How: how}}
			}
			q.apply(d)
			if got := shown(); math.Abs(got[0]-want[0]) > 1e-9 || math.Abs(got[1]-want[1]) > 1e-9 {
				t.Errorf("red on %v, a is gone (%s): c passes and breaks with b with %v, want %v as before", on, how, got, want)
			}
		}
	}
}
