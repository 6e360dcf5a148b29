package profile

import (
	"slices"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// maxFailures is how many failed builds of a change are weighed together, the newest: each doubles the work.
const maxFailures = 4

// maxSuccess bounds p once a build has failed: no evidence could move a model that is certain.
const maxSuccess = 1 - 1e-4

// minConflict bounds r with the members that a failed build assumed. Something in that build is at fault, however certain the model is
// of each part of it.
const minConflict = 1e-3

// buildEvidence is what the builds of a pending revision have shown (M10). A change fails for a fault of its own, or with a change
// that it conflicts with. What a build shows of these faults on one path holds on every path.
type buildEvidence struct {
	// landed are the former members of A(c) that have landed. The change has to pass on top of them (M6).
	landed []landedMember
	// sound is set once a build has passed: the change has no fault of its own. passedWith are the members that such builds assumed.
	sound      bool
	passedWith map[refKey]bool
	// failures has, for each failed build, the members that it assumed and that affect what failed.
	failures [][]refKey
	// running has, for each build that is prepared and not finished, the members that it assumes.
	running map[string][]*eventsv1.ChangeRef
}

// landedMember is a member of A(c) that has landed, with r as it was predicted last.
type landedMember struct {
	refKey
	conflict float64
}

// noteLanded moves members that land to the evidence of the changes behind them. It is called before the graph takes the delta.
func (p *Profile) noteLanded(gone []*eventsv1.NodeGone) {
	for _, g := range gone {
		if g.How != eventsv1.GoneHow_GONE_HOW_LANDED {
			continue
		}
		p.graph.EachBehind(g.Change.Change, func(n *graph.Node) {
			if slices.ContainsFunc(gone, func(o *eventsv1.NodeGone) bool { return keyOf(o.Change) == keyOf(n.Change) }) {
				return
			}
			if a := n.Ahead[n.IndexOf(g.Change.Change)]; a.Conflicts && keyOf(a.Change) == keyOf(g.Change) {
				e := &p.at(n.Change).builds
				e.landed = append(e.landed, landedMember{keyOf(g.Change), p.predictor.Pair(n, a).Conflict})
			}
		})
	}
}

// applyBuild takes a build that was prepared or has ended. The graph already holds the outcomes of its steps.
func (p *Profile) applyBuild(b *eventsv1.BuildProgress) {
	n := p.graph.NodeAt(b.Change)
	if n == nil {
		return
	}
	e := &p.at(b.Change).builds
	if b.State == eventsv1.BuildState_BUILD_STATE_PREPARED {
		if e.running == nil {
			e.running = map[string][]*eventsv1.ChangeRef{}
		}
		e.running[b.Build] = b.Assumed
		return
	}
	assumed, known := e.running[b.Build]
	delete(e.running, b.Build)
	if known && b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
		e.addPath(n, assumed)
	}
}

// addPath takes the outcome of the path that a build verified. A path that no longer exists shows nothing.
func (e *buildEvidence) addPath(n *graph.Node, assumed []*eventsv1.ChangeRef) {
	path := memberset.New(len(n.Ahead))
	members := 0
	for i, a := range n.Ahead {
		if slices.ContainsFunc(assumed, func(r *eventsv1.ChangeRef) bool { return keyOf(r) == keyOf(a.Change) }) {
			path.Add(i)
			members++
		}
	}
	gone := len(assumed) - members
	for _, l := range e.landed {
		if slices.ContainsFunc(assumed, func(r *eventsv1.ChangeRef) bool { return keyOf(r) == l.refKey }) {
			gone--
		}
	}
	if gone > 0 || len(n.Paths) > 0 || n.Guard != nil {
		return
	}
	switch n.Path(path) {
	case graph.Green:
		e.sound = true
		if e.passedWith == nil {
			e.passedWith = map[refKey]bool{}
		}
		for _, r := range assumed {
			e.passedWith[keyOf(r)] = true
		}
	case graph.Red:
		for _, k := range n.Classes {
			if k.Outcome(k.Restrict(path)).GetState() != graph.Red {
				continue
			}
			var suspects []refKey
			for _, m := range k.Members {
				if path.Has(int(m)) {
					suspects = append(suspects, keyOf(n.Ahead[m].Change))
				}
			}
			e.addFailure(suspects)
		}
	}
}

// addFailure takes the members that a failed build assumed and that affect what failed.
func (e *buildEvidence) addFailure(suspects []refKey) {
	if slices.ContainsFunc(e.failures, func(o []refKey) bool { return slices.Equal(o, suspects) }) {
		return
	}
	if e.failures = append(e.failures, suspects); len(e.failures) > maxFailures {
		e.failures = e.failures[1:]
	}
}

// posterior returns p on the mainline as it stands, and r with each member on top of that, given the evidence. success is p before
// anything was built, predicted the same of r.
//
// Take faults as independent before anything is built, and let T be a fault of the change's own or with one of those that have landed.
// A failed build shows that T holds, or that a suspect is at fault. Let P(U) be the probability that no suspect of the failures in U is
// at fault. Then the probability of all failures without T is A = Σ_U (−1)^|U| P(U), and p′ = p·A / (1 − p + p·A). With A_k over the
// failures that do not suspect k, r′(k) = r(k)·A_k / A.
func (e *buildEvidence) posterior(success float64, predicted func(refKey) float64) (p float64, conflict func(refKey) float64) {
	if e.sound {
		success = 1
	}
	r := func(k refKey) float64 { return e.prior(k, predicted(k)) }
	for _, l := range e.landed {
		success *= 1 - e.prior(l.refKey, l.conflict)
	}
	failures := e.openFailures()
	if len(failures) == 0 {
		return success, r
	}
	if !e.sound {
		success = min(success, maxSuccess) // if it is sound, the fault is that of a suspect, which prior allows for
	}
	all := explained(failures, r)
	if all <= 0 {
		return 0, r
	}
	return success * all / (1 - success + success*all), func(k refKey) float64 {
		if r(k) == 0 {
			return 0
		}
		others := slices.DeleteFunc(slices.Clone(failures), func(suspects []refKey) bool { return slices.Contains(suspects, k) })
		return min(1, r(k)*explained(others, r)/all)
	}
}

// prior returns r with a change before failures are weighed: 0 after a build that passed with it, and not quite 0 for a suspect.
func (e *buildEvidence) prior(k refKey, predicted float64) float64 {
	switch {
	case e.passedWith[k]:
		return 0
	case slices.ContainsFunc(e.failures, func(suspects []refKey) bool { return slices.Contains(suspects, k) }):
		return max(predicted, minConflict)
	}
	return predicted
}

// openFailures returns the failures, without the suspects that have landed since. It leaves out those that builds which passed
// contradict: a flake, or an interplay of three changes.
func (e *buildEvidence) openFailures() (failures [][]refKey) {
	for _, suspects := range e.failures {
		contradicted := e.sound
		for _, k := range suspects {
			contradicted = contradicted && e.passedWith[k]
		}
		if contradicted {
			continue
		}
		failures = append(failures, slices.DeleteFunc(slices.Clone(suspects), func(k refKey) bool {
			return slices.ContainsFunc(e.landed, func(l landedMember) bool { return l.refKey == k })
		}))
	}
	return failures
}

// explained returns the probability that each failure has a suspect that is at fault, by inclusion and exclusion.
func explained(failures [][]refKey, r func(refKey) float64) float64 {
	sum := 0.0
	for u := range 1 << len(failures) {
		sign, innocent := 1.0, 1.0
		counted := map[refKey]bool{}
		for i, suspects := range failures {
			if u&(1<<i) == 0 {
				continue
			}
			sign = -sign
			for _, k := range suspects {
				if !counted[k] {
					counted[k] = true
					innocent *= 1 - r(k)
				}
			}
		}
		sum += sign * innocent
	}
	return max(0, sum)
}
