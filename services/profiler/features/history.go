package features

import (
	"maps"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/profiler/recent"
)

// Bounds of what is kept of the past.
const (
	keptAuthors  = 4096
	keptFiles    = 16384
	keptTargets  = 16384
	keptVersions = 4096
	keptOutcomes = 50
	keptBuilds   = 50
	keptFlakes   = 256
	keptStamps   = 64 // so counts of 90 days end there, of an author as of each file
	// maxTouched is how many files and targets of one change the history looks at, and learns from.
	maxTouched = 512
)

const (
	day     = 24 * 3600 * 1_000_000
	quarter = 90 * day
)

// History is what a queue has seen, as far as predictions ask.
type History struct {
	// now is the stamp of the last record.
	now     int64
	pending map[string]*change
	builds  map[string]*build

	authors  *recent.Keys[person]
	teams    *recent.Keys[person]
	files    *recent.Keys[file]
	targets  *recent.Keys[target]
	versions *recent.Keys[bool] // of target versions: a failure was seen, and no pass yet

	outcomes      tally // of the queue, ever
	lastOutcomes  window[bool]
	hours         [24]tally
	sinceFailure  float64
	buildSeconds  window[float64]
	lastBuild     int64
	flakes        window[int64]
	pairs         tally
	mainlineMoves uint64
}

// person is an author, or a team.
type person struct {
	tally
	first  int64
	last   window[bool]
	stamps window[int64] // of admissions
}

type file struct {
	tally
	last   int64
	author string
	stamps window[int64]
}

type target struct {
	tally
	steps  tally // runs, and those that failed
	flakes float64
	pairs  tally // pairs that met there, and those that broke
}

// change is a pending revision.
type change struct {
	admission *eventsv1.Admission
	moves     uint64 // of the mainline, when it was admitted
	analysis  *analysis
	reason    eventsv1.ReasonClass
	refusals  float64
	// How its builds ended so far, and how many are open.
	succeeded, failed, aborted, open float64
}

// analysis is what is kept of ChangeAnalyzed.
type analysis struct {
	fact    *eventsv1.ChangeAnalyzed
	files   []string
	kinds   kinds
	targets []string // distinct, sorted
	textual map[string]int
}

type build struct {
	change       *eventsv1.ChangeRef
	first, last  int64
	failed, torn bool // torn: a step of it was aborted
	steps        int
}

// Ended is how many of the last changes that landed, or were rejected for what they did themselves, did the latter: of the last 50.
func (h *History) Ended() (changes, failed int) {
	for _, f := range h.lastOutcomes.last {
		if f {
			failed++
		}
	}
	return len(h.lastOutcomes.last), failed
}

// BuildSeconds are what the last builds that passed took, oldest first: the last 50. They are not to be changed.
func (h *History) BuildSeconds() []float64 { return h.buildSeconds.last }

// New is a history of nothing.
func New() *History {
	return &History{
		pending: map[string]*change{}, builds: map[string]*build{},
		authors: recent.New[person](keptAuthors), teams: recent.New[person](keptAuthors),
		files: recent.New[file](keptFiles), targets: recent.New[target](keptTargets), versions: recent.New[bool](keptVersions),
	}
}

// Apply folds a speculation. What it is asked afterwards is as of its stamp.
func (h *History) Apply(s *eventsv1.Speculation) {
	h.now = max(h.now, s.StampUs)
	var admitted []string
	for _, f := range s.Facts {
		if id := h.fact(f); id != "" {
			admitted = append(admitted, id)
		}
	}
	for _, b := range s.GetDelta().GetBuilds() {
		if b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
			h.finished(b.Build)
		}
	}
	for _, g := range s.GetDelta().GetGone() {
		h.gone(g)
	}
	// An admission that took no place in the lineup has no node: it was written twice, or came too late.
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

// fact folds one fact, and names the change that it admitted.
func (h *History) fact(f *eventsv1.Fact) (admitted string) {
	switch x := f.GetFact().(type) {
	case *eventsv1.Fact_ChangeAdmitted:
		return h.admitted(x.ChangeAdmitted.GetAdmission())
	case *eventsv1.Fact_ChangeRevised:
		return h.admitted(x.ChangeRevised.GetAdmission())
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
			c.reason = x.ChangeRejected.GetReason().GetClass()
		}
	case *eventsv1.Fact_ChangeLanded, *eventsv1.Fact_MainlineMoved:
		h.mainlineMoves++
	case *eventsv1.Fact_BuildPrepared:
		h.prepared(x.BuildPrepared)
	case *eventsv1.Fact_StepFinished:
		h.step(x.StepFinished)
	}
	return ""
}

func (h *History) admitted(a *eventsv1.Admission) string {
	id := a.GetChange()
	if c := h.pending[id]; c != nil && c.admission.Revision >= a.GetRevision() {
		return ""
	}
	h.forgetBuilds(id)
	h.pending[id] = &change{admission: a, moves: h.mainlineMoves}
	for _, p := range h.people(a) {
		if p.first == 0 {
			p.first = h.now
		}
		p.stamps.add(h.now, keptStamps)
	}
	return id
}

// people are the author and the team of a change.
func (h *History) people(a *eventsv1.Admission) (out []*person) {
	if a.GetAuthor() != "" {
		out = append(out, h.authors.Touch(a.Author))
	}
	if a.GetTeam() != "" {
		out = append(out, h.teams.Touch(a.Team))
	}
	return out
}

func newAnalysis(f *eventsv1.ChangeAnalyzed) *analysis {
	a := &analysis{fact: f, files: filesOf(f.Affected), textual: map[string]int{}}
	slices.Sort(a.files)
	a.kinds = kindsOf(a.files)
	seen := map[string]bool{}
	for _, t := range f.GetAffected().GetTargets() {
		if !seen[t.Target] {
			seen[t.Target] = true
			a.targets = append(a.targets, t.Target)
		}
	}
	slices.Sort(a.targets)
	for _, t := range f.Textual {
		a.textual[t.GetOther().GetChange()] = len(t.Paths)
	}
	return a
}

// at gives what is kept of exactly that revision.
func (h *History) at(r *eventsv1.ChangeRef) *change {
	if c := h.pending[r.GetChange()]; c != nil && c.admission.Revision == r.GetRevision() {
		return c
	}
	return nil
}

func (h *History) prepared(f *eventsv1.BuildPrepared) {
	c := h.at(f.Change)
	if c == nil || h.builds[f.Build] != nil {
		return
	}
	h.lastBuild = h.now
	if f.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		c.open++
		h.builds[f.Build] = &build{change: f.Change}
	}
}

func (h *History) step(f *eventsv1.StepFinished) {
	passed, failed := f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED, f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	if passed || failed {
		t := h.targets.Touch(f.Target)
		t.steps.add(failed)
		seen := h.versions.Touch(f.Target + "\x00" + f.Hash)
		if passed && *seen {
			t.flakes++
			h.flakes.add(h.now, keptFlakes)
		}
		*seen = failed
	}
	b := h.builds[f.Build]
	if b == nil {
		return
	}
	b.steps++
	b.failed = b.failed || failed
	b.torn = b.torn || !passed && !failed
	if b.first == 0 || f.StartedUs < b.first {
		b.first = f.StartedUs
	}
	b.last = max(b.last, f.FinishedUs)
}

// finished closes a build: nothing of it is outstanding any more.
func (h *History) finished(id string) {
	b := h.builds[id]
	if b == nil {
		return
	}
	delete(h.builds, id)
	c := h.at(b.change)
	if c != nil {
		c.open--
	}
	switch {
	case b.torn && c != nil:
		c.aborted++
	case b.failed && c != nil:
		c.failed++
	case !b.torn && !b.failed:
		if c != nil {
			c.succeeded++
		}
		if b.steps > 0 {
			h.buildSeconds.add(float64(max(0, b.last-b.first))/1e6, keptBuilds)
		}
	}
}

func (h *History) forgetBuilds(change string) {
	maps.DeleteFunc(h.builds, func(_ string, b *build) bool { return b.change.GetChange() == change })
}

// gone folds the end of a revision, and what it says of those who made it and of what it touched.
func (h *History) gone(g *eventsv1.NodeGone) {
	c := h.at(g.Change)
	if c == nil {
		return
	}
	delete(h.pending, g.Change.Change)
	h.forgetBuilds(g.Change.Change)
	failed := g.How == eventsv1.GoneHow_GONE_HOW_REJECTED && c.reason != eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT && c.reason != eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT
	if !failed && g.How != eventsv1.GoneHow_GONE_HOW_LANDED {
		return // it was taken back, or could not be tried: that says nothing about it
	}
	h.outcomes.add(failed)
	h.lastOutcomes.add(failed, keptOutcomes)
	h.hours[hourOf(h.now)].add(failed)
	h.sinceFailure++
	if failed {
		h.sinceFailure = 0
	}
	for _, p := range h.people(c.admission) {
		p.add(failed)
		p.last.add(failed, 5)
	}
	if c.analysis == nil {
		return
	}
	for _, path := range c.analysis.files[:min(len(c.analysis.files), maxTouched)] {
		f := h.files.Touch(path)
		f.add(failed)
		f.last, f.author = h.now, c.admission.Author
		f.stamps.add(h.now, keptStamps)
	}
	for _, t := range c.analysis.targets[:min(len(c.analysis.targets), maxTouched)] {
		h.targets.Touch(t).add(failed)
	}
}

// Observed folds what came true of a pair that met in some targets.
func (h *History) Observed(conflict bool, met []string) {
	h.pairs.add(conflict)
	for _, t := range met {
		h.targets.Touch(t).pairs.add(conflict)
	}
}

// within counts stamps that are younger than an age.
func (h *History) within(w *window[int64], age int64) float64 {
	n := 0.0
	for _, s := range w.last {
		if h.now-s < age {
			n++
		}
	}
	return n
}

func hourOf(stamp int64) int { return int(stamp / (3600 * 1_000_000) % 24) }

// packageOf is the package of a target: what stands before its last colon, or its last slash.
func packageOf(target string) string {
	if i := strings.LastIndexByte(target, ':'); i > 0 {
		return target[:i]
	}
	return folderOf(target)
}
