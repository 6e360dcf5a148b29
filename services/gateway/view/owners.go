package view

import (
	"cmp"
	"slices"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// FlakyTarget is a target of a change that passed only after it had failed, with nothing changed.
type FlakyTarget struct {
	Target string `json:"target"`
	// Owners are those of the target, by the mainline's manifests and CODEOWNERS file.
	Owners []string `json:"owners,omitempty"`
}

// ownersOf returns the owners of a target of the build, nil if it has none or they are not known.
func (b *build) ownersOf(target string) []string {
	for _, owned := range b.prepared.GetOwned() {
		for _, place := range owned.Versions {
			if int(place) < len(b.prepared.Versions) && b.prepared.Versions[place].Target == target {
				return owned.Owners
			}
		}
	}
	return nil
}

// foldOwners notes the owners of targets that have had a flake.
func (q *Queue) foldOwners(b *build) {
	if len(q.owners) == 0 {
		return
	}
	for _, v := range b.prepared.Versions {
		if _, flaky := q.owners[v.Target]; flaky && !v.Trivial && !v.Absent {
			q.owners[v.Target] = b.ownersOf(v.Target)
		}
	}
}

// flakyTargets returns the targets of a change that passed only after a failure, in any of its builds that are kept.
func (q *Queue) flakyTargets(c *change) (list []FlakyTarget) {
	seen := map[string]bool{}
	for _, b := range q.builds.ofChange[c.ref()] {
		for _, w := range b.wants() {
			if w.Hash != "" && !seen[w.Target] && q.steps.contradicted(version{w.Target, w.Hash}) {
				seen[w.Target] = true
				list = append(list, FlakyTarget{w.Target, b.ownersOf(w.Target)})
			}
		}
	}
	slices.SortFunc(list, func(a, b FlakyTarget) int { return cmp.Compare(a.Target, b.Target) })
	return list
}

// contradicted reports whether a version passed after it had failed.
func (s *stepStore) contradicted(v version) bool {
	failed := false
	for _, a := range s.attempts[v] {
		switch a.outcome {
		case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
			failed = true
		case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
			return failed
		}
	}
	return false
}

// ownedBy returns a clause that names the owners; "" for none.
func ownedBy(owners []string) string {
	if len(owners) == 0 {
		return ""
	}
	return ", owned by " + names(owners)
}

func (q *Queue) ownersSnapshot() (list []*snapshotv1.GatewayOwners) {
	for target, owners := range q.owners {
		list = append(list, &snapshotv1.GatewayOwners{Target: target, Owners: owners})
	}
	slices.SortFunc(list, func(a, b *snapshotv1.GatewayOwners) int { return cmp.Compare(a.Target, b.Target) })
	return list
}
