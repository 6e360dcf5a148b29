package features

import (
	"math"

	eventsv1 "landfall.build/events/v1"
)

// PairContext is what the features of a pair need beside the history.
type PairContext struct {
	Behind, Ahead *eventsv1.ChangeRef
	// Edge is that between them in the speculation graph.
	Edge *eventsv1.Ahead
	// BehindSuccess and AheadSuccess are the predictions of the two, NaN without one.
	BehindSuccess, AheadSuccess float64
	// Distance counts the members of the A(c) of the change behind, from the one ahead to the last.
	Distance int
}

// pairQuery is what the features of one pair are computed from.
type pairQuery struct {
	PairContext
	h                       *History
	behind, ahead           *change
	targets, files, folders overlap
}

// overlap counts what both have, and what at least one of them has.
type overlap struct{ shared, either float64 }

func (o overlap) jaccard() float64 { return o.shared / o.either } // 0/0 is NaN, missing

var pairColumns = []column[*pairQuery]{
	{Feature{"shared_targets", Count, "targets", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return knownIf(x.targets.either > 0, x.targets.shared) }, true},
	{Feature{"jaccard_targets", Share, "", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return x.targets.jaccard() }, true},
	{Feature{"shared_files", Count, "files", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return knownIf(x.files.either > 0, x.files.shared) }, true},
	{Feature{"jaccard_files", Share, "", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return x.files.jaccard() }, true},
	{Feature{"shared_folders", Count, "folders", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return knownIf(x.folders.either > 0, x.folders.shared) }, true},
	{Feature{"jaccard_folders", Share, "", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return x.folders.jaccard() }, true},
	{Feature{"textual_paths", Count, "files", "ChangeAnalyzed", "pair"}, textualPaths, true},
	{Feature{"through_edges_only", Truth, "", "ChangeAnalyzed", "pair"}, func(x *pairQuery) float64 { return knownIf(x.targets.either > 0, indicator(x.targets.shared == 0)) }, true},
	{Feature{"whole_repository", Truth, "", "ChangeAnalyzed", "pair"}, ofBoth(func(a, b *analysis) float64 {
		return indicator(a.wholeRepository || b.wholeRepository)
	}), true},
	{Feature{"behind_churn", Count, "lines", "ChangeAnalyzed", "pair"}, ofBoth(func(a, _ *analysis) float64 { return ifCountedLines(a, a.linesAdded+a.linesDeleted) }), true},
	{Feature{"ahead_churn", Count, "lines", "ChangeAnalyzed", "pair"}, ofBoth(func(_, b *analysis) float64 { return ifCountedLines(b, b.linesAdded+b.linesDeleted) }), true},
	{Feature{"behind_targets", Count, "targets", "ChangeAnalyzed", "pair"}, ofBoth(func(a, _ *analysis) float64 { return float64(len(a.targets)) }), true},
	{Feature{"ahead_targets", Count, "targets", "ChangeAnalyzed", "pair"}, ofBoth(func(_, b *analysis) float64 { return float64(len(b.targets)) }), true},
	{Feature{"both_build_files", Truth, "", "ChangeAnalyzed", "pair"}, ofBoth(func(a, b *analysis) float64 {
		return knownIf(a.kinds.files > 0 && b.kinds.files > 0, indicator(a.kinds.build+a.kinds.lock > 0 && b.kinds.build+b.kinds.lock > 0))
	}), true},
	{Feature{"same_author", Truth, "", "ChangeAdmitted", "pair"}, func(x *pairQuery) float64 {
		return knownIf(x.behind.admission.Author != "" && x.ahead.admission.Author != "", indicator(x.behind.admission.Author == x.ahead.admission.Author))
	}, true},
	{Feature{"same_team", Truth, "", "ChangeAdmitted", "pair"}, func(x *pairQuery) float64 {
		return knownIf(x.behind.admission.Team != "" && x.ahead.admission.Team != "", indicator(x.behind.admission.Team == x.ahead.admission.Team))
	}, true},
	{Feature{"required", Truth, "", "ChangeAdmitted", "pair"}, func(x *pairQuery) float64 { return indicator(x.Edge.Required) }, true},
	{Feature{"gap", Seconds, "s", "ChangeAdmitted", "pair"}, func(x *pairQuery) float64 {
		return knownIf(x.behind.admission.ReceivedUs > 0 && x.ahead.admission.ReceivedUs > 0, math.Abs(float64(x.behind.admission.ReceivedUs-x.ahead.admission.ReceivedUs))/1e6)
	}, true},
	{Feature{"apart", Count, "changes", "Node", "pair"}, func(x *pairQuery) float64 { return float64(x.Distance) }, false},
	{Feature{PairRate, Share, "", "PairObserved", "pair"}, func(x *pairQuery) float64 {
		return knownIf(x.h.queue.pairs.n > 0, x.h.queue.pairs.failed/x.h.queue.pairs.n)
	}, false},
	{Feature{"target_conflict_rate", Share, "", "PairObserved", "pair"}, targetConflicts, false},
	{Feature{"behind_success", Share, "", "Prediction", "pair"}, func(x *pairQuery) float64 { return x.BehindSuccess }, false},
	{Feature{"ahead_success", Share, "", "Prediction", "pair"}, func(x *pairQuery) float64 { return x.AheadSuccess }, false},
}

// PairRate is the feature that models of conflicts have to beat: the share of all observed pairs that broke.
const PairRate = "pair_conflict_rate"

var pairSchema = schemaOf(pairColumns)

// PairVector returns the vector of two pending changes, in the order of OfPair; nil unless both are analysed.
func (h *History) PairVector(x PairContext) []float32 {
	m := &pairQuery{PairContext: x, h: h, behind: h.at(x.Behind), ahead: h.at(x.Ahead)}
	if m.behind == nil || m.ahead == nil || m.behind.analysis == nil || m.ahead.analysis == nil {
		return nil
	}
	a, b := m.behind.analysis, m.ahead.analysis
	m.targets = overlapOf(a.targets, b.targets)
	m.files = overlapOf(a.files, b.files)
	for folder := range a.kinds.folders {
		m.folders.either++
		if b.kinds.folders[folder] > 0 {
			m.folders.shared++
		}
	}
	m.folders.either += float64(len(b.kinds.folders)) - m.folders.shared
	out := make([]float32, len(pairColumns))
	for i, col := range pairColumns {
		out[i] = toFloat32(col.value(m))
	}
	return out
}

// overlapOf compares two sorted lists.
func overlapOf(a, b []string) (o overlap) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			o.shared++
			i++
			j++
		}
	}
	o.either = float64(len(a)+len(b)) - o.shared
	return o
}

func ofBoth(of func(behind, ahead *analysis) float64) func(*pairQuery) float64 {
	return func(x *pairQuery) float64 { return of(x.behind.analysis, x.ahead.analysis) }
}

// textualPaths counts the paths whose differences overlap. The analysis of the later one of the two has them.
func textualPaths(x *pairQuery) float64 {
	return float64(max(x.behind.analysis.textual[x.Ahead.Change], x.ahead.analysis.textual[x.Behind.Change]))
}

// targetConflicts is the largest share of broken pairs among the targets that the two share.
func targetConflicts(x *pairQuery) float64 {
	largest := missing
	for _, name := range x.Edge.Targets {
		t := x.h.targets.Peek(name)
		if t == nil {
			continue
		}
		if r := t.pairs.rate(x.h.queue.pairs.failed / math.Max(1, x.h.queue.pairs.n)); r > largest || largest != largest && r == r {
			largest = r
		}
	}
	return largest
}
