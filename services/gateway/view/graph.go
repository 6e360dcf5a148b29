package view

import (
	"cmp"
	"slices"
	"time"

	"landfall.build/engine/graph"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// foldDelta takes what the speculation graph's changes mean for builds and decisions.
func (q *Queue) foldDelta(d *eventsv1.GraphDelta) {
	for _, n := range d.GetNodes() {
		if n.Mainline {
			q.check = n
		}
	}
	if d.GetSurvey() != nil {
		q.survey = d.Survey
	}
	for _, g := range d.GetGone() {
		delete(q.priority.estimates, refOf(g.Change))
	}
	for _, p := range d.GetBuilds() {
		if b := q.builds.byID[p.Build]; b != nil && p.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
			b.finished = true
		}
	}
	for _, a := range d.GetAnswered() {
		q.answer(a.Change, a.Decision)
	}
}

// foldRanking takes the ranking that a priority makes of the one before. An edit that does not fit changes
// nothing: ranks are only shown.
func (q *Queue) foldRanking(p *eventsv1.Priority) {
	r, err := graph.EditedRanking(q.priority.ranking, p)
	if err == nil {
		q.priority.ranking = r
	}
}

// inLine returns the place of a change among those that wait for a slot, from 1, by the rank of their best builds; 0 if no
// build of it is ranked. The places are made again only if a record was folded since.
func (q *Queue) inLine(of ref) int {
	p := &q.priority
	if p.line.seq != q.seq {
		p.line.seq, p.line.places = q.seq, make(map[ref]int, len(p.ranking.GetBest()))
		waiting := 0
		for _, b := range p.ranking.GetBest() {
			of := refOf(b.Change)
			if _, ranked := p.line.places[of]; ranked {
				continue
			}
			if !slices.ContainsFunc(q.builds.ofChange[of], q.active) {
				waiting++
			}
			p.line.places[of] = waiting
		}
	}
	return p.line.places[of]
}

// foldModels takes which models came into use, and which no longer are.
func (q *Queue) foldModels(models []*eventsv1.ModelUse) {
	for _, m := range models {
		if m.Version == "" {
			delete(q.priority.models, m.Kind)
		} else {
			q.priority.models[m.Kind] = m
		}
	}
}

// onMainline returns the outcome of the change on the mainline as it stands, with no other change:
// unspecified while some of its targets have none.
func onMainline(n *eventsv1.Node) eventsv1.OutcomeState {
	if n == nil || !n.Analyzed {
		return eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED
	}
	if g := n.Guard; g != nil {
		return g.State
	}
	for _, p := range n.Paths {
		if len(p.Members) == 0 && p.State != eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
			return p.State
		}
	}
	result := eventsv1.OutcomeState_OUTCOME_STATE_GREEN
	for _, class := range n.Classes {
		if len(class.Through) > 0 {
			continue // only on top of another change are these its targets
		}
		state := eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED
		for _, o := range class.Outcomes {
			if len(o.Members) == 0 {
				state = o.State
			}
		}
		switch state {
		case eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
		case eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED:
			result = state
		default:
			return state
		}
	}
	return result
}

// mainlineRed returns the targets that are red on the mainline as it stands.
func (q *Queue) mainlineRed() []string {
	var out []string
	for _, v := range q.redVersionsOfMainline() {
		out = append(out, v.target)
	}
	return sortedUnique(out)
}

// redVersionsOfMainline returns the target versions that are red on the mainline as it stands.
func (q *Queue) redVersionsOfMainline() (out []version) {
	for _, class := range q.check.GetClasses() {
		for _, o := range class.Outcomes {
			if o.State == eventsv1.OutcomeState_OUTCOME_STATE_RED && o.Version.GetTarget() != "" {
				out = append(out, version{o.Version.Target, o.Version.Hash})
			}
		}
	}
	return out
}

// maxMainlineFailures is how many red targets of the mainline are shown with why.
const maxMainlineFailures = 8

// mainlineFailures returns the run that made each of the first red targets of the mainline red, by target, and behind them the last one
// of targets without a result for which changes need a retry.
func (q *Queue) mainlineFailures() (out []Step) {
	red := q.redVersionsOfMainline()
	slices.SortFunc(red, func(a, b version) int { return cmp.Compare(a.target, b.target) })
	for _, v := range red {
		a := q.steps.settling(v)
		if a == nil || a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED || len(out) == maxMainlineFailures {
			continue
		}
		s := a.shown()
		s.Lines = a.lines()
		out = append(out, s)
	}
	var held []string
	for _, id := range q.needRetry() {
		held = append(held, q.BlockOf(id).Targets...)
	}
	for _, a := range q.fruitless(held) {
		if len(out) < maxMainlineFailures {
			out = append(out, a.shown())
		}
	}
	return out
}

// redUnproven returns the targets that are red on the mainline, that no direct push broke, and of which nothing that counts proves
// that they were green there.
func (q *Queue) redUnproven() []string {
	return slices.DeleteFunc(q.mainlineRed(), func(t string) bool { return !slices.Contains(q.check.GetInherited(), t) })
}

// passedBefore returns the time at which a version that is red on the mainline last passed there (M23c).
func (q *Queue) passedBefore(target string) (at time.Time, did bool) {
	for _, v := range q.redVersionsOfMainline() {
		if v.target == target {
			return q.steps.passedBefore(v)
		}
	}
	return time.Time{}, false
}

// runsAgain returns the targets among some that run once more on the mainline, where they passed before (M23c).
func (q *Queue) runsAgain(of []string) (out []string) {
	for _, class := range q.check.GetClasses() {
		for _, t := range class.Targets {
			if _, did := q.steps.passedBefore(version{t.Target, t.Hash}); did && len(class.Outcomes) == 0 && slices.Contains(of, t.Target) {
				out = append(out, t.Target)
			}
		}
	}
	return sortedUnique(out)
}

// redBeforeQueue returns those of redUnproven that were red before the queue: nothing since has given them another version. The
// whole repository has another one with each commit, so of it that is known at the first head alone.
func (q *Queue) redBeforeQueue() []string {
	if q.surveyedAgain {
		return nil
	}
	return slices.DeleteFunc(q.redUnproven(), func(t string) bool {
		_, passed := q.passedBefore(t)
		return passed || len(q.verifiedByLandings([]string{t}))+len(q.landedQuarantined([]string{t})) > 0 || t == targets.Repository && q.lineup.Sequence > 1
	})
}

// targetLanding is a target in the proof of a change that landed.
type targetLanding struct{ target, change string }

// verifiedByLandings returns those of some targets that a landing which is kept has verified, each with the last change that did.
func (q *Queue) verifiedByLandings(of []string) []targetLanding { return q.landingsWith(of, false) }

// landedQuarantined returns those of some targets that were quarantined when a change which is kept landed, and did not pass, each with the
// last such change.
func (q *Queue) landedQuarantined(of []string) []targetLanding { return q.landingsWith(of, true) }

func (q *Queue) landingsWith(of []string, quarantined bool) (out []targetLanding) {
	for _, t := range of {
		for _, x := range slices.Backward(q.finished) {
			c := q.stillFinished(x)
			if c != nil && slices.ContainsFunc(c.end.landed.GetProof(), func(p *eventsv1.Proof) bool {
				v := p.GetVersion()
				return v.GetTarget() == t && p.Attempt > 0 && p.Quarantined == quarantined
			}) {
				out = append(out, targetLanding{t, c.admission.Change})
				break
			}
		}
	}
	return out
}

// blockedTargets returns the targets that keep a change waiting because the mainline itself is red in them, or not
// known yet (M23a).
func blockedTargets(n *eventsv1.Node) []string {
	var out []string
	for _, class := range n.GetClasses() {
		for _, o := range class.Outcomes {
			if o.State == eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED && o.Version.GetTarget() != "" {
				out = append(out, o.Version.Target)
			}
		}
	}
	return sortedUnique(out)
}
