package speculation

import (
	"cmp"
	"maps"
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

// outcomes returns the known outcomes of a class, one for each set of members, in the order of the sets. An observation counts if its
// label is the one that its set has on the present mainline.
func (q *Queue) outcomes(a *analysis, k *eventsv1.Class, ahead []member) []*eventsv1.Outcome {
	index := make(map[revision]int, len(k.Members))
	for i, m := range k.Members {
		index[ahead[m].analysis.revision] = i
	}
	places := map[*revision][]int{} // by the list that observations share: which members it has
	bySet := map[string]*setOutcome{}
	set := memberset.New(len(k.Members))
	heldBy := make([]sum, len(k.Members))
	for _, t := range k.Targets {
		observed := q.known.observed[t.Target]
		if len(observed) == 0 {
			continue
		}
		own := q.landed.at(t.Target, q.landed.sequence).plus(a.digests[t.Part])
		for i, m := range k.Members {
			heldBy[i] = ahead[m].analysis.heldIn(t.Target)
		}
		for _, o := range observed {
			at, known := places[&o.summed[0]]
			if !known {
				for _, r := range o.summed {
					if i, is := index[r]; is {
						at = append(at, i)
					}
				}
				places[&o.summed[0]] = at
			}
			// What the label counts, not all that the tree held: a change that it does not count may affect the
			// target by now, after another analysis.
			held := own
			for _, i := range at {
				held = held.plus(heldBy[i])
			}
			if held != o.label.held || q.known.labels[o.label] != o {
				continue
			}
			set.Clear()
			for _, i := range at {
				set.Add(i)
			}
			if len(k.Through) > 0 && !set.HasAny(k.Through) {
				continue
			}
			of := memberset.Get(bySet, set)
			if of == nil {
				of = &setOutcome{members: set.Bytes()}
				bySet[set.Key()] = of
			}
			q.addTo(of, t, o.hash)
		}
	}
	var out []*eventsv1.Outcome
	for _, key := range slices.Sorted(maps.Keys(bySet)) {
		if o := bySet[key].outcome(len(k.Targets)); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// setOutcome collects the outcome of a class with exactly these members landed: the number of its green targets, and the outcomes of
// those that are red, blocked or exhausted.
type setOutcome struct {
	members                 []byte
	green                   int
	red, blocked, exhausted *eventsv1.Outcome
}

// addTo adds the state of a target's version to the outcome of a set.
func (q *Queue) addTo(of *setOutcome, t *eventsv1.TargetVersion, hash string) {
	v := evidence.Version{Target: t.Target, Hash: hash}
	as := func(s eventsv1.OutcomeState) *eventsv1.Outcome {
		return outcomeOf(s, t, hash, q.known.ledger.Result(v))
	}
	switch q.known.ledger.State(v, q.settings.GetSteps()) {
	case evidence.Green:
		of.green++
	case evidence.Exhausted:
		if of.exhausted == nil {
			of.exhausted = as(eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED)
		}
	case evidence.Red:
		if q.isBlocked(t.Target) {
			of.blocked = as(eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED)
		} else if of.red == nil {
			of.red = as(eventsv1.OutcomeState_OUTCOME_STATE_RED)
		}
	}
}

// outcome returns the outcome of a class with that number of targets, nil if it is unknown.
func (s *setOutcome) outcome(targets int) *eventsv1.Outcome {
	o := cmp.Or(s.red, s.blocked, s.exhausted)
	if o == nil && s.green == targets {
		o = &eventsv1.Outcome{State: eventsv1.OutcomeState_OUTCOME_STATE_GREEN}
	}
	if o != nil {
		o.Members = s.members
	}
	return o
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
