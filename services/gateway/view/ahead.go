package view

import (
	"slices"
	"strings"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// keepsWaiting reports whether a change ahead keeps another from being decided before it: it is pending and the two conflict, or do not
// merge.
func (q *Queue) keepsWaiting(a *eventsv1.Ahead) bool {
	return q.pendingAt(refOf(a.Change)) != nil && (a.Conflicts || a.MergeConflict)
}

// waitsBehind returns the changes ahead that keep a change waiting. For a change that has passed, it leaves out those on which alone it is
// green too.
func (q *Queue) waitsBehind(s standing) (all []*eventsv1.Ahead) {
	var others []*eventsv1.Ahead
	passed := s.state == StatePassed
	for i, a := range s.node.GetAhead() {
		if !q.keepsWaiting(a) {
			continue
		}
		all = append(all, a)
		if passed && (a.MergeConflict || !greenOn(s.node, uint32(i))) {
			others = append(others, a)
		}
	}
	if len(others) > 0 {
		return others
	}
	return all
}

// greenOn reports whether all that a change affects is known to be green with a change ahead, given by its place, and no other one.
func greenOn(n *eventsv1.Node, ahead uint32) bool {
	known := false
	for _, class := range n.Classes {
		i, is := slices.BinarySearch(class.Members, ahead)
		if !is || len(class.Through) > 0 && !slices.Contains(class.Through, uint32(i)) {
			continue
		}
		known = slices.ContainsFunc(class.Outcomes, func(o *eventsv1.Outcome) bool {
			return o.State == eventsv1.OutcomeState_OUTCOME_STATE_GREEN && membersIn(o) == 1 && memberset.FromBytes(len(class.Members), o.Members).Has(i)
		})
		if !known {
			return false
		}
	}
	return known
}

// aheadReasons returns which changes ahead keep a change waiting and how, and what those wait for where that does not pass by itself.
func (q *Queue) aheadReasons(c *change, s standing) []Reason {
	var all, unmerged, breaking, meeting, broken, targets []string
	everything, breaks := c.affectsEverything(), q.brokenWith(s.node)
	for _, a := range q.waitsBehind(s) {
		id := a.Change.GetChange()
		all = append(all, id)
		switch {
		case a.MergeConflict:
			unmerged = append(unmerged, id)
		case len(breaks[id]) > 0:
			breaking, broken = append(breaking, id), append(broken, breaks[id]...)
		default:
			meeting, targets = append(meeting, id), append(targets, a.Targets...)
			everything = everything || q.keptAt(refOf(a.Change)).affectsEverything()
		}
	}
	if len(all) == 0 {
		return nil
	}
	var said []string
	are := func(of []string) string { return names(of) + " " + verb(len(of), "is", "are") + " ahead of it" }
	if len(unmerged) > 0 {
		said = append(said, are(unmerged)+" and "+verb(len(unmerged), "has", "have")+" a merge conflict with it")
	}
	if len(breaking) > 0 {
		said = append(said, are(breaking)+" and "+verb(len(breaking), "breaks", "break")+" "+names(sortedUnique(broken))+" together with it")
	}
	if len(meeting) > 0 {
		text := are(meeting)
		switch targets = sortedUnique(targets); {
		case len(targets) > 0:
			text += " and " + verb(len(meeting), "conflicts", "conflict") + " with it in " + names(targets)
		case c.affectsEverything():
			text += ", and it conflicts with everything"
		case everything:
			text += " and " + verb(len(meeting), "conflicts", "conflict") + " with everything"
		}
		said = append(said, text)
	}
	for _, id := range all {
		if quota, _ := q.overQuota(q.changes[id].ref()); quota != nil {
			said = append(said, id+" waits: "+quota.clause())
			break
		}
	}
	text := strings.Join(said, "; ") + "."
	if by, stuck := q.stuckAhead(all); stuck != "" {
		if by != stuck {
			text += " " + by + " waits for " + stuck + " in turn."
			all = append(all, stuck)
		}
		text += q.whatItWaitsFor(stuck)
	}
	return []Reason{{Code: ReasonAhead, Changes: all, Targets: sortedUnique(slices.Concat(broken, targets)), Sentence: text}}
}

// brokenWith returns the targets that are red with a change on top of the fewest changes ahead, by these, and not without them. Targets
// that such a change fails in by itself are left out.
func (q *Queue) brokenWith(n *eventsv1.Node) map[string][]string {
	out := map[string][]string{}
	for _, class := range n.GetClasses() {
		green, fewest := len(class.Through) > 0, 0
		for _, o := range class.Outcomes {
			switch m := membersIn(o); {
			case m == 0:
				green = o.State == eventsv1.OutcomeState_OUTCOME_STATE_GREEN
			case o.State == eventsv1.OutcomeState_OUTCOME_STATE_RED && (fewest == 0 || m < fewest):
				fewest = m
			}
		}
		if !green || fewest == 0 {
			continue
		}
		for _, o := range class.Outcomes {
			if o.State != eventsv1.OutcomeState_OUTCOME_STATE_RED || membersIn(o) != fewest {
				continue
			}
			landed := memberset.FromBytes(len(class.Members), o.Members)
			for i, at := range class.Members {
				id, target := n.Ahead[at].GetChange().GetChange(), o.Version.GetTarget()
				if landed.Has(i) && target != "" && !q.failsIn(id, target) {
					out[id] = append(out[id], target)
				}
			}
		}
	}
	return out
}

// stuck is which pending changes wait for what does not pass by itself, as of a sequence number of the view: each with the change that
// does, which is itself, or one ahead of it with which it breaks something, or does not merge.
type stuck struct {
	seq uint64
	by  map[string]string
}

// stuckAhead returns the first of some changes that waits for what does not pass by itself, and the change whose hold or failure that
// is; "" if none does.
func (q *Queue) stuckAhead(ahead []string) (by, of string) {
	if q.stuck.seq != q.seq {
		q.stuck = stuck{q.seq, map[string]string{}}
		for _, entry := range q.lineup.Order() {
			id := entry.ID()
			n := q.node(q.changes[id].ref())
			if len(entry.Holds) > 0 || len(blockedTargets(n)) > 0 {
				q.stuck.by[id] = id
				continue
			}
			if len(q.stuck.by) == 0 {
				continue
			}
			breaks := q.brokenWith(n)
			for _, a := range n.GetAhead() {
				if first := q.stuck.by[a.Change.GetChange()]; first != "" && (a.MergeConflict || len(breaks[a.Change.GetChange()]) > 0) {
					q.stuck.by[id] = first
					break
				}
			}
		}
	}
	for _, id := range ahead {
		if q.stuck.by[id] == id {
			return id, id
		}
	}
	for _, id := range ahead {
		if of := q.stuck.by[id]; of != "" {
			return id, of
		}
	}
	return "", ""
}

// maxWaits bounds what is said of the reason that another change waits for, in bytes.
const maxWaits = 600

// whatItWaitsFor says what a pending change waits for that does not pass by itself, "" if there is nothing.
func (q *Queue) whatItWaitsFor(id string) string {
	if waits := q.stuckReasons(q.changes[id]); len(waits) > 0 {
		return " What " + id + " waits for: " + clip(waits[0].Sentence, maxWaits)
	}
	return ""
}
