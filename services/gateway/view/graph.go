package view

import (
	"maps"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
)

// foldDelta takes the speculation graph's changes. They refer to revisions; a node of one whose
// admission has not been read yet waits for it.
func (q *Queue) foldDelta(d *eventsv1.GraphDelta) {
	if d == nil {
		return
	}
	if d.Settings != nil {
		q.settings = d.Settings
	}
	if d.Mainline != nil {
		q.mainline = d.Mainline
	}
	for n := range graph.EachWithout(maps.Values(q.nodes), d) {
		q.nodes[refOf(n.Change)] = n
		if c := q.pendingAt(refOf(n.Change)); c != nil {
			q.touch(c)
		}
	}
	for _, n := range d.Nodes {
		q.nodes[refOf(n.Change)] = n
		if c := q.pendingAt(refOf(n.Change)); c != nil {
			q.touch(c)
		}
	}
	for _, g := range d.Gone {
		delete(q.nodes, refOf(g.Change))
		delete(q.estimates, refOf(g.Change))
	}
	for _, p := range d.Builds {
		if b := q.builds[p.Build]; b != nil && p.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
			b.finished = true
			if c := q.pendingAt(b.of); c != nil {
				q.touch(c)
			}
		}
	}
	for _, a := range d.Answered {
		q.answer(a.Change, a.Decision)
	}
}

// foldRanking takes the ranking that a priority leaves. One that does not fit to the ones before it changes
// nothing: the ranks are for people.
func (q *Queue) foldRanking(p *eventsv1.Priority) {
	r, err := graph.EditedRanking(q.ranking, p)
	if err == nil {
		q.ranking = r
	}
}

// rank is the place of the best build of a change among those that are wanted, from 1. Places are looked up once somebody
// asks: most rankings are replaced before that.
func (q *Queue) rank(of ref) (rank int, wanted bool) {
	if q.ranked != q.ranking {
		clear(q.ranks)
		for i, b := range q.ranking.GetBest() {
			of := refOf(b.Change)
			if _, ranked := q.ranks[of]; !ranked {
				q.ranks[of] = i + 1
			}
		}
		q.ranked = q.ranking
	}
	rank, wanted = q.ranks[of]
	return rank, wanted
}

// foldModels takes by what each kind is predicted.
func (q *Queue) foldModels(told []*eventsv1.ModelUse) {
	for _, m := range told {
		if m.Version == "" {
			delete(q.models, m.Kind)
		} else {
			q.models[m.Kind] = m
		}
	}
}

// onMainline is what the graph knows of the change on the mainline as it stands, with nobody else:
// unspecified while anything of it is unknown.
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

// mainlineRed lists the targets that are red on the mainline as it stands.
func (q *Queue) mainlineRed() []string {
	var out []string
	for _, n := range q.nodes {
		if !n.Mainline {
			continue
		}
		for _, class := range n.Classes {
			for _, o := range class.Outcomes {
				if o.State == eventsv1.OutcomeState_OUTCOME_STATE_RED && o.Version.GetTarget() != "" {
					out = append(out, o.Version.Target)
				}
			}
		}
	}
	return sortedUnique(out)
}

// blockedTargets are those that keep a change waiting because the mainline itself is red in them, or not
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
