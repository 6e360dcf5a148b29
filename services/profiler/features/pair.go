package features

import (
	"math"

	eventsv1 "landfall.build/events/v1"
)

// PairContext is what the profiler knows of a pair beside the history.
type PairContext struct {
	Behind, Ahead *eventsv1.ChangeRef
	// Between is the edge between them, as the graph has it.
	Between *eventsv1.Ahead
	// BehindSuccess and AheadSuccess are predicted, NaN where nothing is.
	BehindSuccess, AheadSuccess float64
	// Apart is how many places stand between them in the queue.
	Apart int
}

// met is a pair at the moment that it is asked about.
type met struct {
	PairContext
	h             *History
	behind, ahead *change
	// shared and either count what both have, and what one of them has.
	targets, files, folders overlap
}

type overlap struct{ shared, either float64 }

func (o overlap) jaccard() float64 { return o.shared / o.either } // 0/0 is missing

var pairColumns = []column[*met]{
	{Feature{"shared_targets", Count, "targets", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return known(x.targets.either > 0, x.targets.shared) }, true},
	{Feature{"jaccard_targets", Share, "", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return x.targets.jaccard() }, true},
	{Feature{"shared_files", Count, "files", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return known(x.files.either > 0, x.files.shared) }, true},
	{Feature{"jaccard_files", Share, "", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return x.files.jaccard() }, true},
	{Feature{"shared_folders", Count, "folders", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return known(x.folders.either > 0, x.folders.shared) }, true},
	{Feature{"jaccard_folders", Share, "", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return x.folders.jaccard() }, true},
	{Feature{"textual_paths", Count, "files", "ChangeAnalyzed", "pair"}, textualPaths, true},
	{Feature{"through_edges_only", Truth, "", "ChangeAnalyzed", "pair"}, func(x *met) float64 { return known(x.targets.either > 0, truth(x.targets.shared == 0)) }, true},
	{Feature{"whole_repository", Truth, "", "ChangeAnalyzed", "pair"}, ofBoth(func(a, b *analysis) float64 {
		return truth(a.fact.GetAffected().GetAll() || b.fact.GetAffected().GetAll())
	}), true},
	{Feature{"behind_churn", Count, "lines", "ChangeAnalyzed", "pair"}, ofBoth(func(a, _ *analysis) float64 { return lined(a, a.fact.LinesAdded+a.fact.LinesDeleted) }), true},
	{Feature{"ahead_churn", Count, "lines", "ChangeAnalyzed", "pair"}, ofBoth(func(_, b *analysis) float64 { return lined(b, b.fact.LinesAdded+b.fact.LinesDeleted) }), true},
	{Feature{"behind_targets", Count, "targets", "ChangeAnalyzed", "pair"}, ofBoth(func(a, _ *analysis) float64 { return float64(len(a.targets)) }), true},
	{Feature{"ahead_targets", Count, "targets", "ChangeAnalyzed", "pair"}, ofBoth(func(_, b *analysis) float64 { return float64(len(b.targets)) }), true},
	{Feature{"both_build_files", Truth, "", "ChangeAnalyzed", "pair"}, ofBoth(func(a, b *analysis) float64 {
		return known(a.kinds.files > 0 && b.kinds.files > 0, truth(a.kinds.build+a.kinds.lock > 0 && b.kinds.build+b.kinds.lock > 0))
	}), true},
	{Feature{"same_author", Truth, "", "ChangeAdmitted", "pair"}, func(x *met) float64 {
		return known(x.behind.admission.Author != "" && x.ahead.admission.Author != "", truth(x.behind.admission.Author == x.ahead.admission.Author))
	}, true},
	{Feature{"same_team", Truth, "", "ChangeAdmitted", "pair"}, func(x *met) float64 {
		return known(x.behind.admission.Team != "" && x.ahead.admission.Team != "", truth(x.behind.admission.Team == x.ahead.admission.Team))
	}, true},
	{Feature{"required", Truth, "", "ChangeAdmitted", "pair"}, func(x *met) float64 { return truth(x.Between.Required) }, true},
	{Feature{"gap", Seconds, "s", "ChangeAdmitted", "pair"}, func(x *met) float64 {
		return known(x.behind.admission.ReceivedUs > 0 && x.ahead.admission.ReceivedUs > 0, math.Abs(float64(x.behind.admission.ReceivedUs-x.ahead.admission.ReceivedUs))/1e6)
	}, true},
	{Feature{"apart", Count, "changes", "Node", "pair"}, func(x *met) float64 { return float64(x.Apart) }, false},
	{Feature{PairRate, Share, "", "PairObserved", "pair"}, func(x *met) float64 { return known(x.h.pairs.n > 0, x.h.pairs.failed/x.h.pairs.n) }, false},
	{Feature{"target_conflict_rate", Share, "", "PairObserved", "pair"}, targetConflicts, false},
	{Feature{"behind_success", Share, "", "Prediction", "pair"}, func(x *met) float64 { return x.BehindSuccess }, false},
	{Feature{"ahead_success", Share, "", "Prediction", "pair"}, func(x *met) float64 { return x.AheadSuccess }, false},
}

// PairRate is the feature that is the rolling baseline of conflicts: how many of the pairs that were seen broke.
const PairRate = "pair_conflict_rate"

var pairSchema = schemaOf(pairColumns)

// Pair is the vector of two pending changes, in the order of OfPair, nil where one of them is not known.
func (h *History) Pair(x PairContext) []float32 {
	m := &met{PairContext: x, h: h, behind: h.at(x.Behind), ahead: h.at(x.Ahead)}
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
		out[i] = single(col.value(m))
	}
	return out
}

// overlapOf looks at two sorted lists.
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

func ofBoth(of func(behind, ahead *analysis) float64) func(*met) float64 {
	return func(x *met) float64 { return of(x.behind.analysis, x.ahead.analysis) }
}

// textualPaths are the paths that both touch: whichever of the two was analysed later has said so.
func textualPaths(x *met) float64 {
	return float64(max(x.behind.analysis.textual[x.Ahead.Change], x.ahead.analysis.textual[x.Behind.Change]))
}

// targetConflicts is the largest share of pairs that broke in a target in which these two meet.
func targetConflicts(x *met) float64 {
	most := unknown
	for _, name := range x.Between.Targets {
		t := x.h.targets.Look(name)
		if t == nil {
			continue
		}
		if r := t.pairs.rate(x.h.pairs.failed / math.Max(1, x.h.pairs.n)); r > most || most != most && r == r {
			most = r
		}
	}
	return most
}
