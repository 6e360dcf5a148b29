package features

import (
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/lru"
	eventsv1 "landfall.build/events/v1"
)

// Bounds of the history.
const (
	keptAuthors  = 4096
	keptFiles    = 16384
	keptTargets  = 16384
	keptVersions = 4096
	keptOutcomes = 50
	keptBuilds   = 50
	keptFlakes   = 256
	// keptAdmissions is per author, team and file; counts over 90 days therefore end there.
	keptAdmissions = 64
	// keptAuthorOutcomes is the window of author_failed_last_5.
	keptAuthorOutcomes = 5
	// maxTouched bounds the files and targets of one change that the history reads and updates.
	maxTouched = 512
)

const (
	day     = 24 * 3600 * 1_000_000
	quarter = 90 * day
)

// History is what features of a queue are computed from: its pending changes, and statistics of those that have left.
type History struct {
	// now is the stamp of the last record.
	now     int64
	pending map[string]*change
	builds  map[string]*build // those that are open
	queue   queueStatistics

	authors, teams *lru.Cache[string, person]
	files          *lru.Cache[string, file]
	targets        *lru.Cache[string, target]
	// failing has the target versions whose last run failed or passed; true is failed. A pass after a failure is a flake.
	failing *lru.Cache[version, bool]
}

// queueStatistics are of the queue as a whole.
type queueStatistics struct {
	outcomes      tally // of all changes
	lastOutcomes  window[bool]
	hours         [24]tally // by the hour of the day
	sinceFailure  float64
	buildSeconds  window[float64] // of builds that passed
	lastBuild     int64
	flakes        window[int64] // when
	pairs         tally         // of all pairs that were observed; a failure is a conflict
	mainlineMoves uint64
}

// person is an author or a team.
type person struct {
	tally
	first        int64
	lastOutcomes window[bool]
	admissions   window[int64]
}

type file struct {
	tally
	lastChanged int64
	lastAuthor  string
	changes     window[int64]
}

type target struct {
	tally        // of changes that affect it
	runs   tally // of its steps
	flakes float64
	pairs  tally // of pairs that share it; a failure is a conflict
}

type version struct{ target, hash string }

// change is a pending revision.
type change struct {
	admission *eventsv1.Admission
	// mainlineMoves is the queue's count when the revision was admitted.
	mainlineMoves uint64
	analysis      *analysis // nil before it is analysed
	rejection     eventsv1.ReasonClass
	refusals      float64
	builds        buildCounts
}

// buildCounts counts the builds of a revision.
type buildCounts struct{ succeeded, failed, aborted, open float64 }

// analysis is what features use of ChangeAnalyzed.
type analysis struct {
	analyzed bool // else the analysis failed
	// filesChanged, linesAdded and linesDeleted are 0 where nothing was counted; difference is nil then.
	filesChanged, linesAdded, linesDeleted uint32
	difference                             *eventsv1.Difference
	// wholeRepository is set where the targets could not be computed (M4).
	wholeRepository            bool
	deletedTargets, addedEdges int

	files   []string // sorted
	targets []string // distinct, sorted
	kinds   fileKinds
	// textual has, by change, how many paths of its difference this one's overlaps.
	textual map[string]int
}

// build is an open build.
type build struct {
	change *eventsv1.ChangeRef
	// started is when its first step started, finished when its last one finished.
	started, finished int64
	steps             int
	failed, aborted   bool // a step of it was
}

// New returns an empty history.
func New() *History {
	return &History{
		pending: map[string]*change{}, builds: map[string]*build{},
		authors: lru.New[string, person](keptAuthors), teams: lru.New[string, person](keptAuthors),
		files: lru.New[string, file](keptFiles), targets: lru.New[string, target](keptTargets), failing: lru.New[version, bool](keptVersions),
	}
}

// LastOutcomes returns how many of the last 50 changes that landed or were rejected for a fault of their own there are, and how many
// of them were rejected.
func (h *History) LastOutcomes() (changes, failed int) {
	for _, f := range h.queue.lastOutcomes.values {
		if f {
			failed++
		}
	}
	return len(h.queue.lastOutcomes.values), failed
}

// BuildSeconds returns the durations of the last 50 builds that passed, oldest first. The caller must not change them.
func (h *History) BuildSeconds() []float64 { return h.queue.buildSeconds.values }

// Apply takes the next speculation. Vectors are then as of its stamp.
func (h *History) Apply(s *eventsv1.Speculation) {
	h.now = max(h.now, s.StampUs)
	var admitted []string
	for _, f := range s.Facts {
		if id := h.applyFact(f); id != "" {
			admitted = append(admitted, id)
		}
	}
	for _, b := range s.GetDelta().GetBuilds() {
		if b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
			h.finishBuild(b.Build)
		}
	}
	for _, g := range s.GetDelta().GetGone() {
		h.endRevision(g)
	}
	// An admission that took no place in the queue has no node: it was written twice, or came too late.
	for _, id := range admitted {
		if c := h.pending[id]; c != nil && !hasNode(s.Delta, id, c.admission.Revision) {
			delete(h.pending, id)
		}
	}
}

func hasNode(d *eventsv1.GraphDelta, id string, revision uint64) bool {
	return slices.ContainsFunc(d.GetNodes(), func(n *eventsv1.Node) bool {
		return n.GetChange().GetChange() == id && n.GetChange().GetRevision() == revision
	})
}

// applyFact takes a fact, and returns the change that it admitted.
func (h *History) applyFact(f *eventsv1.Fact) (admitted string) {
	switch x := f.GetFact().(type) {
	case *eventsv1.Fact_ChangeAdmitted:
		return h.admit(x.ChangeAdmitted.GetAdmission())
	case *eventsv1.Fact_ChangeRevised:
		return h.admit(x.ChangeRevised.GetAdmission())
	case *eventsv1.Fact_ChangeAnalyzed:
		if c := h.at(x.ChangeAnalyzed.GetChange()); c != nil {
			c.analysis = newAnalysis(x.ChangeAnalyzed)
		}
	case *eventsv1.Fact_Refused:
		if c := h.at(x.Refused.GetChange()); c != nil {
			c.refusals++
		}
	case *eventsv1.Fact_ChangeRejected:
		if c := h.at(x.ChangeRejected.GetChange()); c != nil {
			c.rejection = x.ChangeRejected.GetReason().GetClass()
		}
	case *eventsv1.Fact_ChangeLanded, *eventsv1.Fact_MainlineMoved:
		h.queue.mainlineMoves++
	case *eventsv1.Fact_BuildPrepared:
		h.startBuild(x.BuildPrepared)
	case *eventsv1.Fact_StepFinished:
		h.finishStep(x.StepFinished)
	}
	return ""
}

func (h *History) admit(a *eventsv1.Admission) (admitted string) {
	id := a.GetChange()
	if c := h.pending[id]; c != nil && c.admission.Revision >= a.GetRevision() {
		return ""
	}
	h.forgetBuilds(id)
	h.pending[id] = &change{admission: a, mainlineMoves: h.queue.mainlineMoves}
	for _, p := range h.touchPeople(a) {
		if p.first == 0 {
			p.first = h.now
		}
		p.admissions.add(h.now, keptAdmissions)
	}
	return id
}

// touchPeople returns the author and the team of a change, as far as it names them, and counts as a use of both.
func (h *History) touchPeople(a *eventsv1.Admission) (out []*person) {
	if a.GetAuthor() != "" {
		out = append(out, h.authors.Touch(a.Author))
	}
	if a.GetTeam() != "" {
		out = append(out, h.teams.Touch(a.Team))
	}
	return out
}

func newAnalysis(f *eventsv1.ChangeAnalyzed) *analysis {
	affected := f.GetAffected()
	a := &analysis{
		analyzed:     f.Outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		filesChanged: f.FilesChanged, linesAdded: f.LinesAdded, linesDeleted: f.LinesDeleted, difference: f.Difference,
		wholeRepository: affected.GetAll(), deletedTargets: len(affected.GetDeleted()), addedEdges: len(affected.GetAddedEdges()),
		files: filesOf(affected), textual: map[string]int{},
	}
	slices.Sort(a.files)
	a.kinds = kindsOf(a.files)
	for _, t := range affected.GetTargets() {
		a.targets = append(a.targets, t.Target)
	}
	slices.Sort(a.targets)
	a.targets = slices.Compact(a.targets)
	for _, t := range f.Textual {
		a.textual[t.GetOther().GetChange()] = len(t.Paths)
	}
	return a
}

// at returns the pending change if it is of exactly that revision, else nil.
func (h *History) at(r *eventsv1.ChangeRef) *change {
	if c := h.pending[r.GetChange()]; c != nil && c.admission.Revision == r.GetRevision() {
		return c
	}
	return nil
}

func (h *History) startBuild(f *eventsv1.BuildPrepared) {
	c := h.at(f.Change)
	if c == nil || h.builds[f.Build] != nil {
		return
	}
	h.queue.lastBuild = h.now
	if f.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		c.builds.open++
		h.builds[f.Build] = &build{change: f.Change}
	}
}

func (h *History) finishStep(f *eventsv1.StepFinished) {
	passed, failed := f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED, f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	if passed || failed {
		t := h.targets.Touch(f.Target)
		t.runs.add(failed)
		failing := h.failing.Touch(version{f.Target, f.Hash})
		if passed && *failing {
			t.flakes++
			h.queue.flakes.add(h.now, keptFlakes)
		}
		*failing = failed
	}
	b := h.builds[f.Build]
	if b == nil {
		return
	}
	b.steps++
	b.failed = b.failed || failed
	b.aborted = b.aborted || !passed && !failed
	if b.started == 0 || f.StartedUs < b.started {
		b.started = f.StartedUs
	}
	b.finished = max(b.finished, f.FinishedUs)
}

// finishBuild closes a build of which no step is outstanding.
func (h *History) finishBuild(id string) {
	b := h.builds[id]
	if b == nil {
		return
	}
	delete(h.builds, id)
	if !b.aborted && !b.failed && b.steps > 0 {
		h.queue.buildSeconds.add(float64(max(0, b.finished-b.started))/1e6, keptBuilds)
	}
	c := h.at(b.change)
	if c == nil {
		return
	}
	c.builds.open--
	switch {
	case b.aborted:
		c.builds.aborted++
	case b.failed:
		c.builds.failed++
	default:
		c.builds.succeeded++
	}
}

func (h *History) forgetBuilds(change string) {
	maps.DeleteFunc(h.builds, func(_ string, b *build) bool { return b.change.GetChange() == change })
}

// endRevision removes a revision, and adds its outcome to the statistics of the queue, of its author and team, and of its files and
// targets. Only landing, and a rejection for a fault of its own, is an outcome.
func (h *History) endRevision(g *eventsv1.NodeGone) {
	c := h.at(g.Change)
	if c == nil {
		return
	}
	delete(h.pending, g.Change.Change)
	h.forgetBuilds(g.Change.Change)
	failed := g.How == eventsv1.GoneHow_GONE_HOW_REJECTED && c.rejection != eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT && c.rejection != eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT
	if !failed && g.How != eventsv1.GoneHow_GONE_HOW_LANDED {
		return
	}
	q := &h.queue
	q.outcomes.add(failed)
	q.lastOutcomes.add(failed, keptOutcomes)
	q.hours[hourOf(h.now)].add(failed)
	q.sinceFailure++
	if failed {
		q.sinceFailure = 0
	}
	for _, p := range h.touchPeople(c.admission) {
		p.add(failed)
		p.lastOutcomes.add(failed, keptAuthorOutcomes)
	}
	if c.analysis == nil {
		return
	}
	for _, path := range c.analysis.files[:min(len(c.analysis.files), maxTouched)] {
		f := h.files.Touch(path)
		f.add(failed)
		f.lastChanged, f.lastAuthor = h.now, c.admission.Author
		f.changes.add(h.now, keptAdmissions)
	}
	for _, t := range c.analysis.targets[:min(len(c.analysis.targets), maxTouched)] {
		h.targets.Touch(t).add(failed)
	}
}

// ObservePair takes whether two changes that share some targets break each other.
func (h *History) ObservePair(conflict bool, shared []string) {
	h.queue.pairs.add(conflict)
	for _, t := range shared {
		h.targets.Touch(t).pairs.add(conflict)
	}
}

// countWithin returns how many stamps are younger than an age.
func (h *History) countWithin(w *window[int64], age int64) float64 {
	n := 0.0
	for _, s := range w.values {
		if h.now-s < age {
			n++
		}
	}
	return n
}

func hourOf(stamp int64) int { return int(stamp / (3600 * 1_000_000) % 24) }

// packageOf returns the package of a target: the text before its last colon, or its last slash.
func packageOf(target string) string {
	if i := strings.LastIndexByte(target, ':'); i > 0 {
		return target[:i]
	}
	return folderOf(target)
}
