package agenda

import (
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
)

// meets says whether an analysis is outdated by what came onto the mainline after its base. It may say
// yes too often, which costs an analysis, and never no too often.
func meets(a *analysis, landed *effect) bool {
	if a.affected.All || landed.affected.All {
		return true
	}
	if landed.ref == nil {
		// Which paths an unmergeable or invalid change touches is not in its analysis.
		if a.outcome != eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED {
			return true
		}
	} else if a.neighbours[keyOf(landed.ref)] || landed.neighbours[keyOf(a.ref)] {
		return true
	}
	if commonFile(a.affected.Leaves, landed.affected.Leaves) {
		return true
	}
	conflict, _ := targets.Conflict(a.affected, landed.affected)
	return conflict
}

// commonFile says whether two sorted lists of labels share a file.
func commonFile(a, b []string) bool {
	a, b = files(a), files(b)
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, label := range a {
		i, found := slices.BinarySearch(b, label)
		if found {
			return true
		}
		b = b[i:]
	}
	return false
}

// files is the part of a sorted list of labels that are files.
func files(labels []string) []string {
	prefix := targets.Label(targets.KindFile, "")
	from, _ := slices.BinarySearch(labels, prefix)
	to := from
	for to < len(labels) && strings.HasPrefix(labels[to], prefix) {
		to++
	}
	return labels[from:to]
}

// analysisOf reads an affected set. The test of a conflict must not depend on whether its writer sorted.
func analysisOf(f *eventsv1.Affected) targets.Analysis {
	a := targets.Analysis{
		Deleted: sorted(f.GetDeleted()), Leaves: sorted(f.GetLeaves()), Added: sorted(f.GetAddedEdges()),
		All: f.GetAll(), Reasons: f.GetReasons(),
	}
	names := make([]string, 0, len(f.GetTargets()))
	for _, v := range f.GetTargets() {
		names = append(names, v.Target)
	}
	for _, name := range sorted(names) {
		a.Affected = append(a.Affected, targets.TargetVersion{Name: name})
	}
	return a
}

// sorted leaves the list itself, which belongs to an event, as it is.
func sorted(list []string) []string {
	if slices.IsSorted(list) {
		return list
	}
	return slices.Sorted(slices.Values(list))
}
