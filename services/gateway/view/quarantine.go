package view

import (
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// Sources of quarantines besides operators: the queue's configuration, and a rate of flakes above its bound.
const (
	QuarantineConfigured = "configuration"
	QuarantineOfRate     = "rate"
)

// Quarantine is one that is in force: the targets that it names run and are reported, and block no change (M24a).
type Quarantine struct {
	// Target is a name or, with *, several.
	Target string    `json:"target"`
	Until  time.Time `json:"until"`
	// Source is operator, configuration or rate.
	Source string    `json:"source"`
	Who    string    `json:"who,omitempty"`
	Why    string    `json:"why,omitempty"`
	Since  time.Time `json:"since"`
	// Unseen: no target that the queue has seen has the name. It may be a mistake.
	Unseen bool `json:"unseen,omitempty"`
}

func quarantineOf(f *eventsv1.TargetQuarantined) Quarantine {
	return Quarantine{
		Target: f.Target, Until: stamp(f.UntilUs, time.Time{}), Source: lowerEnum(f.Source.String(), "QUARANTINE_SOURCE_"), Who: f.Who, Why: f.Why,
		Since: stamp(f.StampUs, time.Time{}),
	}
}

// foldQuarantine folds a TargetQuarantined or QuarantineEnded. It is the view's own: the lineup knows nothing of targets.
func (q *Queue) foldQuarantine(m proto.Message) lineup.Consequence {
	next, changed := q.quarantines.With(m)
	if !changed {
		return lineup.Consequence{Why: "it is not quarantined, or there are too many quarantines"}
	}
	q.quarantines = next
	q.steps.generation++   // what failed may count otherwise now
	switch f := m.(type) { // the target counts from zero, as for the lander
	case *eventsv1.TargetQuarantined:
		q.flakes.Restart(f.Target)
	case *eventsv1.QuarantineEnded:
		if f.Who != events.ServiceLander {
			q.flakes.Restart(f.Target)
		}
	}
	return lineup.Consequence{Applied: true}
}

// Quarantines lists those in force, by name.
func (q *Queue) Quarantines() []Quarantine {
	out := []Quarantine{}
	unseen := q.unseenQuarantines()
	for _, f := range q.quarantines.List() {
		shown := quarantineOf(f)
		shown.Unseen = slices.Contains(unseen, f.Target)
		out = append(out, shown)
	}
	return out
}

// TargetNames returns the targets that the queue has seen, sorted: those that pending changes affect, that builds wanted, whose
// steps ran, or that have had a flake. Those of long ago are forgotten, and of a new queue there are none.
func (q *Queue) TargetNames() []string {
	names := slices.Collect(q.targetsSeen())
	slices.Sort(names)
	return names
}

// targetsSeen returns the targets that the queue has seen, each once. The whole repository is none of them.
func (q *Queue) targetsSeen() iter.Seq[string] {
	return func(yield func(string) bool) {
		seen, goOn := map[string]bool{targets.Repository: true}, true
		see := func(name string) bool {
			if !seen[name] {
				seen[name] = true
				goOn = yield(name)
			}
			return goOn
		}
		for _, t := range q.flakes.Targets() {
			if !see(t.Name) {
				return
			}
		}
		for v := range q.steps.attempts {
			if !see(v.target) {
				return
			}
		}
		for v := range q.steps.leases {
			if !see(v.target) {
				return
			}
		}
		for _, b := range q.builds.byID {
			for _, v := range b.prepared.GetVersions() {
				if !see(v.Target) {
					return
				}
			}
		}
		for _, entry := range q.lineup.Order() {
			for _, class := range q.node(q.changes[entry.ID()].ref()).GetClasses() {
				for _, v := range class.Targets {
					if !see(v.Target) {
						return
					}
				}
			}
		}
	}
}

// SeenTarget reports whether a name is that of one of the targets, or with * matches one.
func SeenTarget(names []string, target string) bool {
	return slices.ContainsFunc(names, targets.NewNamePatterns([]string{target}).Has)
}

// unseenQuarantines returns the quarantines that name no target which the queue has seen, by name. A queue that has not run a
// step yet has seen too little to doubt them.
func (q *Queue) unseenQuarantines() []string {
	if q.unseen.generation == q.steps.generation {
		return q.unseen.names
	}
	q.unseen.generation, q.unseen.names = q.steps.generation, nil
	if len(q.quarantines.List()) == 0 || len(q.steps.attempts) == 0 {
		return nil
	}
	type named struct {
		name string
		has  *targets.NamePatterns
	}
	var unseen []named
	for _, f := range q.quarantines.List() {
		unseen = append(unseen, named{f.Target, targets.NewNamePatterns([]string{f.Target})})
	}
	for target := range q.targetsSeen() {
		if unseen = slices.DeleteFunc(unseen, func(n named) bool { return n.has.Has(target) }); len(unseen) == 0 {
			break // as a rule soon: what is quarantined has run
		}
	}
	for _, n := range unseen {
		q.unseen.names = append(q.unseen.names, n.name)
	}
	return q.unseen.names
}

// QuarantineNamed returns the quarantine of exactly that name; false if there is none.
func (q *Queue) QuarantineNamed(name string) (Quarantine, bool) {
	if f := q.quarantines.Named(name); f != nil {
		return quarantineOf(f), true
	}
	return Quarantine{}, false
}

// QuarantinesFull reports whether no other name can be quarantined.
func (q *Queue) QuarantinesFull() bool { return len(q.quarantines.List()) >= evidence.MaxQuarantines }

// tolerated reports whether an attempt that did not pass does not count against its version.
func (q *Queue) tolerated(a *attempt) bool {
	switch a.outcome {
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
		return q.quarantines.Has(a.version.target)
	}
	return false
}

// LastDay returns the last day, as in 2026-12-31, of a quarantine that ends with a day in UTC; "" for one that ends within a day.
func LastDay(end time.Time) string {
	if end = end.UTC(); !end.Equal(end.Truncate(24 * time.Hour)) {
		return ""
	}
	return end.AddDate(0, 0, -1).Format(time.DateOnly)
}

// toleratedText returns a clause with the end and the reason of a target's quarantine; "" if it is not quarantined.
func (q *Queue) toleratedText(target string) string {
	f := q.quarantines.Of(target)
	if f == nil {
		return ""
	}
	end := stamp(f.UntilUs, time.Time{})
	text := "it is quarantined until " + end.Format(time.DateOnly)
	if day := LastDay(end); day != "" {
		text = "it is quarantined through " + day
	}
	if f.Why != "" {
		text += " (" + strings.TrimRight(f.Why, ".") + ")"
	}
	return text + ", so it does not block"
}

// toleratedBy returns the targets of a proof that did not pass, sorted.
func toleratedBy(proof []*eventsv1.Proof) (list []string) {
	for _, p := range proof {
		if p.Quarantined {
			list = append(list, p.GetVersion().GetTarget())
		}
	}
	return sortedUnique(list)
}

// toleratedNow returns the targets that did not pass in the newest build of a change and that are quarantined, sorted.
func (q *Queue) toleratedNow(of ref) (list []string) {
	mine := q.builds.ofChange[of]
	for i := len(mine) - 1; i >= 0; i-- {
		if b := mine[i]; b.prepared != nil && !b.unusable() {
			for _, w := range b.wants() {
				if a := q.steps.settling(version{w.Target, w.Hash}); a != nil && q.tolerated(a) {
					list = append(list, w.Target)
				}
			}
			break
		}
	}
	return sortedUnique(list)
}

// exceptQuarantined returns a clause that excepts targets from "all steps passed"; "" for none.
func exceptQuarantined(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " but " + names(list) + ", which " + verb(len(list), "is", "are") + " quarantined"
}
