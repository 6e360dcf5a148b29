// Package affected reads the affected sets of the log as the conflict test takes them: there is one reading, and
// one test (targets.Footprint.Meets), for the analyzer, which asks what outdates an analysis, and for the
// enumerator, which asks who has to wait for whom.
package affected

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
)

// Footprint is what M1 looks at of an affected set; of nil, nothing. It rests on nothing that the set's writer
// may have left out of order or repeated, and shares no memory that could be written to.
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
