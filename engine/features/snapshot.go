package features

import (
	"errors"
	"slices"

	"landfall.build/engine/lru"
	"landfall.build/engine/snapshotv1"
)

// Snapshot returns the history as a message, whose texts are added to those given. It shares the messages of events, which nobody
// changes.
func (h *History) Snapshot(texts *snapshotv1.Texts) *snapshotv1.FeatureHistory {
	m := &snapshotv1.FeatureHistory{Now: h.now, Queue: h.queue.snapshot()}
	for _, c := range h.pending {
		m.Pending = append(m.Pending, c.snapshot(texts))
	}
	for id, b := range h.builds {
		m.Builds = append(m.Builds, &snapshotv1.FeatureBuild{
			Build: id, Change: b.change, Started: b.started, Finished: b.finished, Steps: uint32(b.steps), Failed: b.failed, Aborted: b.aborted,
		})
	}
	m.Authors, m.Teams = snapshotPeople(h.authors), snapshotPeople(h.teams)
	for path, f := range h.files.All() {
		m.Files = append(m.Files, &snapshotv1.FeatureFile{
			Path: texts.Number(path), N: uint64(f.n), Failed: uint64(f.failed), LastChanged: f.lastChanged, LastAuthor: texts.Number(f.lastAuthor),
			Changes: differences(f.changes.values),
		})
	}
	for name, t := range h.targets.All() {
		m.Targets = append(m.Targets, &snapshotv1.FeatureTarget{
			Target: texts.Number(name), N: uint64(t.n), Failed: uint64(t.failed), Runs: uint64(t.runs.n), RunsFailed: uint64(t.runs.failed),
			Flakes: uint64(t.flakes), Pairs: uint64(t.pairs.n), PairsFailed: uint64(t.pairs.failed),
		})
	}
	for v, failing := range h.failing.All() {
		m.Versions = append(m.Versions, &snapshotv1.FeatureVersion{Target: texts.Number(v.target), Hash: v.hash, Failed: *failing})
	}
	return m
}

// Restore returns the history that a message was made of.
func Restore(m *snapshotv1.FeatureHistory, texts *snapshotv1.TextsOf) (*History, error) {
	h := New()
	h.now = m.GetNow()
	if err := h.queue.restore(m.GetQueue()); err != nil {
		return nil, err
	}
	for _, x := range m.GetPending() {
		if x.Admission == nil {
			return nil, errors.New("a pending change has no admission in the snapshot")
		}
		c, err := restoreChange(x, texts)
		if err != nil {
			return nil, err
		}
		h.pending[x.Admission.Change] = c
	}
	for _, b := range m.GetBuilds() {
		h.builds[b.Build] = &build{change: b.Change, started: b.Started, finished: b.Finished, steps: int(b.Steps), failed: b.Failed, aborted: b.Aborted}
	}
	restorePeople(h.authors, m.GetAuthors())
	restorePeople(h.teams, m.GetTeams())
	for _, x := range m.GetFiles() {
		*h.files.Touch(texts.At(x.Path)) = file{
			tally: tally{float64(x.N), float64(x.Failed)}, lastChanged: x.LastChanged, lastAuthor: texts.At(x.LastAuthor), changes: window[int64]{sums(x.Changes)},
		}
	}
	for _, x := range m.GetTargets() {
		*h.targets.Touch(texts.At(x.Target)) = target{
			tally: tally{float64(x.N), float64(x.Failed)}, runs: tally{float64(x.Runs), float64(x.RunsFailed)}, flakes: float64(x.Flakes),
			pairs: tally{float64(x.Pairs), float64(x.PairsFailed)},
		}
	}
	for _, x := range m.GetVersions() {
		*h.failing.Touch(version{texts.At(x.Target), x.Hash}) = x.Failed
	}
	return h, nil
}

func (c *change) snapshot(texts *snapshotv1.Texts) *snapshotv1.FeatureChange {
	m := &snapshotv1.FeatureChange{
		Admission: c.admission, MainlineMoves: c.mainlineMoves, Rejection: c.rejection, Refusals: uint32(c.refusals),
		BuildsSucceeded: uint32(c.builds.succeeded), BuildsFailed: uint32(c.builds.failed), BuildsAborted: uint32(c.builds.aborted), BuildsOpen: uint32(c.builds.open),
	}
	a := c.analysis
	if a == nil {
		return m
	}
	m.Analysis = &snapshotv1.FeatureAnalysis{
		Analyzed: a.analyzed, FilesChanged: a.filesChanged, LinesAdded: a.linesAdded, LinesDeleted: a.linesDeleted, Difference: a.difference,
		WholeRepository: a.wholeRepository, DeletedTargets: uint32(a.deletedTargets), AddedEdges: uint32(a.addedEdges),
		Files: numbers(a.files, texts), Targets: numbers(a.targets, texts),
	}
	for id, paths := range a.textual {
		m.Analysis.Textual, m.Analysis.TextualPaths = append(m.Analysis.Textual, texts.Number(id)), append(m.Analysis.TextualPaths, uint32(paths))
	}
	return m
}

func restoreChange(m *snapshotv1.FeatureChange, texts *snapshotv1.TextsOf) (*change, error) {
	c := &change{
		admission: m.Admission, mainlineMoves: m.MainlineMoves, rejection: m.Rejection, refusals: float64(m.Refusals),
		builds: buildCounts{float64(m.BuildsSucceeded), float64(m.BuildsFailed), float64(m.BuildsAborted), float64(m.BuildsOpen)},
	}
	x := m.Analysis
	if x == nil {
		return c, nil
	}
	if len(x.Textual) != len(x.TextualPaths) {
		return nil, errors.New("an analysis has lists of different lengths in the snapshot")
	}
	c.analysis = &analysis{
		analyzed: x.Analyzed, filesChanged: x.FilesChanged, linesAdded: x.LinesAdded, linesDeleted: x.LinesDeleted, difference: x.Difference,
		wholeRepository: x.WholeRepository, deletedTargets: int(x.DeletedTargets), addedEdges: int(x.AddedEdges),
		files: textsAt(x.Files, texts), targets: textsAt(x.Targets, texts), textual: make(map[string]int, len(x.Textual)),
	}
	c.analysis.kinds = kindsOf(c.analysis.files)
	for i, id := range x.Textual {
		c.analysis.textual[texts.At(id)] = int(x.TextualPaths[i])
	}
	return c, nil
}

func (q *queueStatistics) snapshot() *snapshotv1.FeatureQueue {
	m := &snapshotv1.FeatureQueue{
		Outcomes: q.outcomes.snapshot(), LastOutcomes: slices.Clone(q.lastOutcomes.values), SinceFailure: uint64(q.sinceFailure), BuildSeconds: slices.Clone(q.buildSeconds.values),
		LastBuild: q.lastBuild, Flakes: slices.Clone(q.flakes.values), Pairs: q.pairs.snapshot(), MainlineMoves: q.mainlineMoves,
	}
	for i := range q.hours {
		m.Hours = append(m.Hours, q.hours[i].snapshot())
	}
	return m
}

func (q *queueStatistics) restore(m *snapshotv1.FeatureQueue) error {
	if len(m.GetHours()) > len(q.hours) {
		return errors.New("a day has more than 24 hours in the snapshot")
	}
	*q = queueStatistics{
		outcomes: restoreTally(m.GetOutcomes()), lastOutcomes: window[bool]{slices.Clone(m.GetLastOutcomes())}, sinceFailure: float64(m.GetSinceFailure()),
		buildSeconds: window[float64]{slices.Clone(m.GetBuildSeconds())}, lastBuild: m.GetLastBuild(), flakes: window[int64]{slices.Clone(m.GetFlakes())}, pairs: restoreTally(m.GetPairs()),
		mainlineMoves: m.GetMainlineMoves(),
	}
	for i, t := range m.GetHours() {
		q.hours[i] = restoreTally(t)
	}
	return nil
}

func (t *tally) snapshot() *snapshotv1.FeatureTally {
	return &snapshotv1.FeatureTally{N: uint64(t.n), Failed: uint64(t.failed)}
}

func restoreTally(m *snapshotv1.FeatureTally) tally {
	return tally{float64(m.GetN()), float64(m.GetFailed())}
}

func snapshotPeople(people *lru.Cache[string, person]) (out []*snapshotv1.FeaturePerson) {
	for name, p := range people.All() {
		out = append(out, &snapshotv1.FeaturePerson{
			Name: name, Outcomes: p.tally.snapshot(), First: p.first, LastOutcomes: slices.Clone(p.lastOutcomes.values), Admissions: differences(p.admissions.values),
		})
	}
	return out
}

func restorePeople(people *lru.Cache[string, person], m []*snapshotv1.FeaturePerson) {
	for _, x := range m {
		*people.Touch(x.Name) = person{
			tally: restoreTally(x.Outcomes), first: x.First, lastOutcomes: window[bool]{slices.Clone(x.LastOutcomes)}, admissions: window[int64]{sums(x.Admissions)},
		}
	}
}

// differences returns each value but the first as the difference to the one before: times near each other take fewer bytes so.
func differences(values []int64) []int64 {
	out := make([]int64, len(values))
	before := int64(0)
	for i, v := range values {
		out[i], before = v-before, v
	}
	return out
}

// sums undoes differences.
func sums(values []int64) []int64 {
	out := make([]int64, len(values))
	sum := int64(0)
	for i, v := range values {
		sum += v
		out[i] = sum
	}
	return out
}

func numbers(list []string, texts *snapshotv1.Texts) []uint32 {
	out := make([]uint32, len(list))
	for i, s := range list {
		out[i] = texts.Number(s)
	}
	return out
}

func textsAt(list []uint32, texts *snapshotv1.TextsOf) []string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = texts.At(n)
	}
	return out
}
