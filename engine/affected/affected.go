// Package affected reads the affected sets of the log for the conflict test (targets.Footprint.Meets). The analyzer uses it to
// find what outdates an analysis, and the enumerator to find who has to wait for whom, so both mean the same by a conflict.
package affected

import (
	"slices"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// Footprint returns what M1 compares of an affected set; nothing for nil. The set's lists may be unsorted and have
// repetitions. The footprint's lists share no memory with them.
func Footprint(f *eventsv1.Affected) targets.Footprint {
	touched := make([]string, 0, len(f.GetTargets())+len(f.GetDeleted()))
	for _, v := range f.GetTargets() {
		touched = append(touched, v.GetTarget())
	}
	return targets.Footprint{
		Touched: targets.Normal(append(touched, f.GetDeleted()...)),
		Leaves:  targets.Normal(slices.Clone(f.GetLeaves())), Added: targets.Normal(slices.Clone(f.GetAddedEdges())),
		All: f.GetAll(),
	}
}
