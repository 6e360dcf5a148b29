package speculation

import (
	"slices"
	"sort"

	"landfall.build/engine/evidence"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// classes groups the targets of a change by the members that affect each (M25). The targets are D(c), and those that c
// affects only on top of a member.
func (q *Queue) classes(a *analysis, ahead []member) []*eventsv1.Class {
	byMembers := map[string]*eventsv1.Class{}
	var keys []string
	through := q.through(a, ahead)
	names := make([]string, 0, len(a.targets)+len(through))
	for t := range a.targets {
		names = append(names, t)
	}
	for t := range through {
		names = append(names, t)
	}
	sort.Strings(names)
	for _, t := range names {
		set, ways := memberset.New(len(ahead)), memberset.New(len(ahead))
		var members, among []uint32
		for i, m := range ahead {
			// Members that are only required count too: a build on top of one holds it.
			if m.analysis == nil || !q.affects(m.analysis, t) {
				continue
			}
			if slices.Contains(through[t], i) {
				ways.Add(i)
				among = append(among, uint32(len(members)))
			}
			set.Add(i)
			members = append(members, uint32(i))
		}
		key := set.Key() + ways.Key()
		k := byMembers[key]
		if k == nil {
			k = &eventsv1.Class{Members: members, Through: among}
			byMembers[key] = k
			keys = append(keys, key)
		}
		parts := a.targets[t]
		if len(among) > 0 {
			parts = a.parts()
		}
		for _, p := range parts {
			k.Targets = append(k.Targets, &eventsv1.TargetVersion{Target: t, Part: p})
		}
	}
	sort.Strings(keys)
	out := make([]*eventsv1.Class, 0, len(keys))
	for _, key := range keys {
		k := byMembers[key]
		k.Outcomes = q.outcomes(a, k, ahead)
		out = append(out, k)
	}
	return out
}

// through returns the targets that the change affects only on top of members, which add edges into its targets, and the
// indices of these members. A member's analysis does not tell which of its targets lead there, so all of them count.
func (q *Queue) through(a *analysis, ahead []member) map[string][]int {
	var found map[string][]int
	for i, m := range ahead {
		if a.all || m.analysis == nil || m.analysis.all || !q.conflicts.structural[a.revision.change][m.analysis.revision.change] ||
			!m.analysis.footprint.LeadsInto(a.footprint) {
			continue
		}
		if found == nil {
			found = map[string][]int{}
		}
		for t := range m.analysis.targets {
			if a.targets[t] == nil {
				found[t] = append(found[t], i)
			}
		}
	}
	return found
}

// outcomes returns what is known of a class, for every set of members that some observation was made with.
func (q *Queue) outcomes(a *analysis, k *eventsv1.Class, ahead []member) []*eventsv1.Outcome {
	index := map[revision]int{}
	for i, m := range k.Members {
		index[ahead[m].analysis.revision] = i
	}
	candidates := map[string]memberset.Set{}
	none := memberset.New(len(k.Members))
	if len(k.Through) == 0 {
		candidates[none.Key()] = none
	}
	seen := ""
	for _, t := range k.Targets {
		if t.Target == seen {
			continue
		}
		seen = t.Target
		for _, o := range q.known.observed[t.Target] {
			// What the label counts, not all that the tree held: a change that it does not count may affect the
			// target by now, after another analysis.
			set := memberset.New(len(k.Members))
			for _, h := range o.summed {
				if i, ok := index[h]; ok {
					set.Add(i)
				}
			}
			if len(k.Through) > 0 && !set.HasAny(k.Through) {
				continue
			}
			candidates[set.Key()] = set
		}
	}
	keys := make([]string, 0, len(candidates))
	for key := range candidates {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var out []*eventsv1.Outcome
	for _, key := range keys {
		set := candidates[key]
		if o := q.outcome(a, k, ahead, set); o != nil {
			o.Members = set.Bytes()
			out = append(out, o)
		}
	}
	return out
}

// outcome returns the state of a class with exactly these members landed, nil if it is unknown.
func (q *Queue) outcome(a *analysis, k *eventsv1.Class, ahead []member, set memberset.Set) *eventsv1.Outcome {
	green := true
	var red, blocked, exhausted *eventsv1.Outcome
	policy := q.settings.GetSteps()
	for _, t := range k.Targets {
		s := q.landed.at(t.Target, q.landed.sequence).plus(a.digests[t.Part])
		for i, m := range k.Members {
			if set.Has(i) {
				s = s.plus(ahead[m].analysis.heldIn(t.Target))
			}
		}
		seen := q.known.labels[label{t.Target, s}]
		if seen == nil {
			green = false
			continue
		}
		hash := seen.hash
		v := evidence.Version{Target: t.Target, Hash: hash}
		switch q.known.ledger.State(v, policy) {
		case evidence.Unknown:
			green = false
		case evidence.Exhausted:
			green = false
			if exhausted == nil {
				exhausted = outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED, t, hash, q.known.ledger.Result(v))
			}
		case evidence.Red:
			green = false
			if q.isBlocked(t.Target) {
				blocked = outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED, t, hash, q.known.ledger.Result(v))
			} else if red == nil {
				red = outcomeOf(eventsv1.OutcomeState_OUTCOME_STATE_RED, t, hash, q.known.ledger.Result(v))
			}
		}
	}
	switch {
	case red != nil:
		return red
	case blocked != nil:
		return blocked
	case exhausted != nil:
		return exhausted
	case green:
		return &eventsv1.Outcome{State: eventsv1.OutcomeState_OUTCOME_STATE_GREEN}
	}
	return nil
}

// isBlocked reports whether the target is red, or not yet known, on the mainline itself because of a direct push: red with a
// change then tells nothing about the change (M23a).
func (q *Queue) isBlocked(target string) bool {
	return q.pushes.Blocks(target, q.known.ledger, q.settings.GetSteps())
}

func outcomeOf(s eventsv1.OutcomeState, t *eventsv1.TargetVersion, hash string, r *evidence.Result) *eventsv1.Outcome {
	o := &eventsv1.Outcome{State: s, Version: &eventsv1.TargetVersion{Target: t.Target, Hash: hash, Part: t.Part}}
	f := r.FailedBy
	o.Class = eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED
	if s == eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED {
		f = r.LastFruitless
		o.Class = eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE
		if f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT {
			o.Class = eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT
		}
	}
	o.Message = f.GetReason()
	return o
}
