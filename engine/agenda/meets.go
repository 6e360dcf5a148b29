package agenda

import (
	"slices"
	"strings"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// meets reports whether what came onto the mainline after its base outdates an analysis. A false yes costs an analysis; there
// is no false no.
func meets(a *analysis, landed *effect) bool {
	if a.footprint.All || landed.footprint.All {
		return true
	}
	if landed.ref == nil {
		// The analysis of an unmergeable or invalid change does not hold the paths that it touches.
		if a.outcome != eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED {
			return true
		}
	} else if a.neighbours[KeyOf(landed.ref)] || landed.neighbours[KeyOf(a.ref)] {
		return true
	}
	if commonFile(a.footprint.Leaves, landed.footprint.Leaves) {
		return true
	}
	// Hubs count here: an analysis that names the hub's new version costs little.
	return a.footprint.Conflicts(landed.footprint)
}

// commonFile reports whether two sorted lists of labels share a file.
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

// files returns the part of a sorted list of labels that are files.
func files(labels []string) []string {
	prefix := targets.Label(targets.KindFile, "")
	from, _ := slices.BinarySearch(labels, prefix)
	to := from
	for to < len(labels) && strings.HasPrefix(labels[to], prefix) {
		to++
	}
	return labels[from:to]
}
