package speculation

import (
	"maps"
	"slices"

	"landfall.build/engine/affected"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// analysis is what is known of the effect of a revision, or of a direct push, on the target graph.
type analysis struct {
	revision revision
	base     string
	outcome  eventsv1.AnalysisOutcome
	// targets holds, for each target of δ, the landing commits at which it changes, ascending.
	targets map[string][]uint32
	deleted map[string]bool
	// footprint finds the conflicts.
	footprint targets.Footprint
	all       bool
	textual   map[string]textual // by the other change
	message   string
	// outdated is set when something that meets the change came onto the mainline after the base: what stood in the
	// change's way may be gone.
	outdated bool
	// digests[i] stands for the change up to landing commit i, which counts from 1.
	digests []sum
	// structural is nil for a pending change. Once the change has left, it holds the targets that it affects through an
	// edge (M24): those of the changes that were in structural conflict with it.
	structural map[string]bool
}

// textual is the result of git's own merge with a revision that touches the same paths (M5).
type textual struct {
	revision      uint64
	mergeConflict bool
}

func newAnalysis(of revision, f *eventsv1.ChangeAnalyzed, parts int) *analysis {
	a := &analysis{
		revision: of, base: f.Base, outcome: f.Outcome, message: f.Message,
		targets: map[string][]uint32{}, deleted: map[string]bool{}, textual: map[string]textual{},
		digests: digestsOf(of, parts),
	}
	set := f.GetAffected()
	a.all = set.GetAll()
	for _, t := range set.GetTargets() {
		p := min(max(t.Part, 1), uint32(parts))
		if !slices.Contains(a.targets[t.Target], p) {
			a.targets[t.Target] = append(a.targets[t.Target], p)
			slices.Sort(a.targets[t.Target])
		}
	}
	if a.all && a.known() {
		a.targets[WholeRepository] = a.parts()
	}
	for _, t := range set.GetDeleted() {
		a.deleted[t] = true
	}
	a.footprint = affected.Footprint(set)
	// A change that does not merge, or is invalid, affects nothing: it meets others in paths.
	if a.footprint.All = a.all && a.known(); a.footprint.All {
		a.footprint.Touched = targets.Normal(slices.AppendSeq(slices.Collect(maps.Keys(a.deleted)), maps.Keys(a.targets)))
	}
	for _, t := range f.Textual {
		a.textual[t.GetOther().GetChange()] = textual{t.GetOther().GetRevision(), t.MergeConflict}
	}
	return a
}

// newPush returns the analysis of a commit that came past the queue. It counts as a change of one landing commit.
func newPush(f *eventsv1.MainlineAnalyzed) *analysis {
	a := newAnalysis(revision{kind: ofPush, change: f.To}, &eventsv1.ChangeAnalyzed{
		Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: f.Affected,
	}, 1)
	a.structural = map[string]bool{}
	return a
}

// digestsOf returns the digests of a revision up to each of its landing commits. A direct push is one commit.
func digestsOf(r revision, parts int) []sum {
	if r.kind == ofPush {
		whole := digest("mainline", r.change, 0, 0)
		return []sum{whole, whole}
	}
	digests := make([]sum, parts+1)
	for i := range digests {
		digests[i] = digest("change", r.change, r.number, uint32(i))
	}
	return digests
}

// names is how many targets and files the analysis of a change that left names.
func (a *analysis) names() int {
	return len(a.targets) + len(a.deleted) + len(a.structural) + len(a.footprint.Leaves) + len(a.footprint.Added)
}

// known reports whether the change merges, and its targets are valid, on the mainline that it was analysed on.
func (a *analysis) known() bool {
	return a.outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED
}

func (a *analysis) touches(target string) bool {
	return a.deleted[target] || len(a.targets[target]) > 0
}

// wholeDigest stands for all of the change.
func (a *analysis) wholeDigest() sum { return a.digests[len(a.digests)-1] }

// parts returns the numbers of all landing commits of the change.
func (a *analysis) parts() []uint32 {
	list := make([]uint32, 0, len(a.digests)-1)
	for p := 1; p < len(a.digests); p++ {
		list = append(list, uint32(p))
	}
	return list
}

// heldIn returns what the change, held whole, adds to the label of a target that it affects.
func (a *analysis) heldIn(target string) sum {
	if p := a.targets[target]; len(p) > 0 && !a.all {
		return a.digests[p[len(p)-1]]
	}
	return a.wholeDigest()
}

// textualWith returns what the analysis holds of a merge with exactly that revision.
func (a *analysis) textualWith(other revision) (merge textual, found bool) {
	merge, found = a.textual[other.change]
	return merge, found && other.kind == ofChange && merge.revision == other.number
}

// meetsInPath reports whether a and b touch a common path, as far as either analysis knows.
func (a *analysis) meetsInPath(b *analysis) bool {
	_, found := a.textualWith(b.revision)
	_, back := b.textualWith(a.revision)
	return found || back
}
