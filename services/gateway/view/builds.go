package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// buildStore keeps the newest builds.
type buildStore struct {
	byID map[string]*build
	// order has the ids of builds, oldest first, of forgotten ones too.
	order []string
	// ofChange has the builds of each revision in the order in which they were read.
	ofChange map[ref][]*build
	// worthless has, by build, when it became worthless, and when it no longer was.
	worthless map[string][]worthless
	// wanting has the builds that are prepared, by the versions that they want proven; those that have passed are left out.
	wanting map[version][]*build `snapshot:"-"`
	// versions is how many target versions the builds hold, as the log names them.
	versions int `snapshot:"-"`
	// running is the number of builds that run, and of their steps that have not ended, as of a sequence number of the view.
	running struct {
		seq          uint64
		count, steps int
	} `snapshot:"-"`
}

// worthless is whether a build was known to be worthless after a position in landfall.speculations.
type worthless struct {
	position int64
	is       bool
}

const maxWorthless = 64

func newBuildStore() buildStore {
	return buildStore{byID: map[string]*build{}, ofChange: map[ref][]*build{}, worthless: map[string][]worthless{}, wanting: map[version][]*build{}}
}

// build is one that was scheduled, whatever became of it.
type build struct {
	id   string
	of   ref
	fact *eventsv1.BuildScheduled
	at   time.Time
	// position is the offset in landfall.speculations on which it was scheduled, item its place in that decision.
	position int64
	item     int
	prepared *eventsv1.BuildPrepared
	aborted  string
	endedAt  time.Time
	finished bool
	// scheduled is set once its schedule was read. Until then fact holds what its preparation says of it.
	scheduled bool
	// passed is set once every version that it wants was seen proven. Evidence that is forgotten later does not unset it.
	passed bool
	// settledAt is when the last version was seen proven. It is computed when it is first asked for.
	settledAt time.Time `snapshot:"-"`
	progress  progress  `snapshot:"-"`
	// held is how many of buildStore.versions are its own.
	held int `snapshot:"-"`
}

// progress caches how far the steps of a build are. The zero value holds nothing: the steps are counted again.
type progress struct {
	// tally is as of the generation at of the steps; 0 for none.
	tally tally
	at    uint64
	// All versions that the build wants before the index open were proven when they were last looked at.
	open int
}

func (q *Queue) foldDecision(d *eventsv1.Decision) {
	at := stamp(d.StampUs, time.Time{})
	for place, item := range d.Items {
		switch i := item.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			q.foldScheduled(i.BuildScheduled, d.Position, place, at)
		case *eventsv1.DecisionItem_BuildAborted:
			q.foldAborted(i.BuildAborted, at)
		case *eventsv1.DecisionItem_LandDecided:
			f := i.LandDecided
			q.foldDecided(f.Change, decision{StateLanded, f.Decision, d.Position, at}, q.landDecidedText(f))
		case *eventsv1.DecisionItem_RejectDecided:
			f := i.RejectDecided
			q.foldDecided(f.Change, decision{StateRejected, f.Decision, d.Position, at}, "It fails as things stand; the last check, on the mainline as it stands, comes before the rejection.")
		case *eventsv1.DecisionItem_EjectDecided:
			f := i.EjectDecided
			q.foldDecided(f.Change, decision{StateEjected, f.Decision, d.Position, at}, "It cannot be verified; the last check, on the mainline as it stands, comes before the ejection.")
		}
	}
}

// landDecidedText returns the event of a decision to land, with what was built for it.
func (q *Queue) landDecidedText(f *eventsv1.LandDecided) string {
	of := refOf(f.Change)
	switch c := q.keptAt(of); {
	case (c == nil || c.analysis == nil) && len(q.builds.ofChange[of]) == 0:
		return "Decided to land." // the analysis is in another topic: whether anything is built is not known
	case c != nil && c.analysis.whyUnbuilt() != "":
		return "Decided to land: nothing is built for it: " + c.analysis.whyUnbuilt() + "."
	}
	if ahead := refNames(f.Bypasses); len(ahead) > 0 {
		return "Decided to land: all steps passed" + exceptQuarantined(q.toleratedNow(of)) + ", whether or not " + names(ahead) + " " + verb(len(ahead), "lands", "land") + " before it."
	}
	return "Decided to land: all steps passed" + exceptQuarantined(q.toleratedNow(of)) + "."
}

func (q *Queue) foldDecided(r *eventsv1.ChangeRef, d decision, text string) {
	of := refOf(r)
	if q.gone(of) {
		return
	}
	if c := q.keptAt(of); (c == nil || c.pending()) && !q.early.answered[d.id] {
		q.open[of] = openDecision{d.kind, d.id}
	}
	again := slices.ContainsFunc(q.history.decisions[of], func(o decision) bool { return o.kind == d.kind })
	q.noteDecision(of, d)
	if c := q.keptAt(of); again || c != nil && c.pushRefused() && d.kind == StateLanded {
		return // the last one was refused, or its push is tried again: how that ends is told
	}
	q.noteAt(of, d.at, "decided", text)
}

func (q *Queue) foldScheduled(f *eventsv1.BuildScheduled, position int64, item int, at time.Time) {
	of := refOf(f.Change.GetChange())
	b := q.builds.byID[f.Build]
	if (b != nil && b.scheduled) || (of.change != "" && q.gone(of)) {
		return
	}
	if b == nil {
		b = q.addBuild(f.Build, of)
	}
	b.fact, b.at, b.position, b.item, b.scheduled, b.progress = f, at, position, item, true, progress{}
	q.boundVersions(b)
	q.noteAt(of, at, "build_scheduled", "Build "+events.ShortID(b.id)+" scheduled "+b.place()+because(b.why())+".")
}

func (q *Queue) addBuild(id string, of ref) *build {
	b := &build{id: id, of: of}
	q.builds.byID[id] = b
	q.builds.order = append(q.builds.order, id)
	q.builds.ofChange[of] = append(q.builds.ofChange[of], b)
	for mine := q.builds.ofChange[of]; len(mine) > maxBuildsOfChange; mine = q.builds.ofChange[of] {
		q.forgetBuild(mine[0])
	}
	for len(q.builds.order) > q.limits.Builds {
		oldest := q.builds.byID[q.builds.order[0]]
		q.builds.order = q.builds.order[1:]
		if oldest != nil {
			q.forgetBuild(oldest)
		}
	}
	return b
}

// why returns why the build was scheduled, without its value, which means nothing by itself. It is "" if place shows it.
func (b *build) why() string {
	if len(b.fact.Assumed) > 0 {
		return ""
	}
	why, _, _ := strings.Cut(b.fact.Why, " (worth ")
	return why
}

// place returns on which commit the build is made, and on top of which changes.
func (b *build) place() string {
	text := "on " + events.ShortID(b.fact.Base)
	if assumed := b.assumed(); len(assumed) > 0 {
		text += ", assuming that " + names(assumed) + " " + verb(len(assumed), "lands", "land")
	}
	return text
}

func (b *build) assumed() []string {
	out := make([]string, 0, len(b.fact.Assumed))
	for _, a := range b.fact.Assumed {
		out = append(out, a.GetChange().GetChange())
	}
	return out
}

func (q *Queue) foldAborted(f *eventsv1.BuildAborted, at time.Time) {
	b := q.builds.byID[f.Build]
	if b == nil || b.aborted != "" {
		return
	}
	b.aborted, b.endedAt, b.progress = "no longer wanted", at, progress{}
	if f.Why != "" {
		b.aborted = abortedText(f.Why)
	}
	q.noteAt(b.of, at, "build_aborted", "Build "+events.ShortID(b.id)+" aborted: "+b.aborted+".")
}

// abortedText returns why a build was aborted, without the words of the selector.
func abortedText(why string) string {
	switch {
	case strings.HasPrefix(why, "its path is hardly needed"):
		return "other builds are needed more"
	case why == "its path can no longer come about":
		return "what it assumed of the changes ahead cannot happen any more"
	}
	return why
}

func (q *Queue) foldPrepared(f *eventsv1.BuildPrepared) {
	b := q.builds.byID[f.Build]
	if b == nil {
		// Its schedule is on another topic and may come later.
		of := refOf(f.Change)
		if of.change != "" && q.gone(of) {
			return
		}
		b = q.addBuild(f.Build, of)
		b.fact = &eventsv1.BuildScheduled{Build: f.Build, Base: f.Base}
		for _, a := range f.Assumed {
			b.fact.Assumed = append(b.fact.Assumed, &eventsv1.AssumedChange{Change: a})
		}
		b.at = stamp(f.StartedUs, time.Time{})
	}
	if b.prepared != nil {
		return
	}
	b.prepared, b.progress = f, progress{}
	q.builds.index(b)
	q.markPassed(b)
	q.foldOwners(b)
	q.boundVersions(b)
	if f.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		b.endedAt = stamp(f.FinishedUs, time.Time{})
		q.noteAt(b.of, b.endedAt, "build_unusable", "Build "+events.ShortID(b.id)+" could not be prepared: "+f.Message)
	} else if c := q.keptAt(b.of); c != nil {
		q.touch(c)
	}
}

func (q *Queue) foldStep(f *eventsv1.StepFinished) {
	if !q.steps.finish(f, q.retriable) {
		return
	}
	defer q.foldFlake(f)
	if f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		for _, b := range slices.Clone(q.builds.wanting[version{f.Target, f.Hash}]) {
			q.markPassed(b)
		}
	}
	b := q.builds.byID[f.Build]
	if b == nil {
		return
	}
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		text := fmt.Sprintf("Step %s %s (attempt %d)%s", f.Target, outcomeText(f.Outcome), f.Attempt, because(f.Reason))
		if before := q.steps.find(version{f.Target, f.Hash}, f.Attempt-1); before != nil && before.outcome == f.Outcome && before.reason == f.Reason {
			text = fmt.Sprintf("Step %s %s again (attempt %d)", f.Target, outcomeText(f.Outcome), f.Attempt)
		}
		q.noteAt(b.of, stamp(f.FinishedUs, time.Time{}), "step_"+outcomeName(f.Outcome), joined(text, q.toleratedText(f.Target))+".")
	} else if c := q.keptAt(b.of); c != nil {
		q.touch(c)
	}
}

func outcomeText(o eventsv1.StepOutcome) string {
	switch o {
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		return "failed"
	case eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
		return "ran out of time"
	case eventsv1.StepOutcome_STEP_OUTCOME_ABORTED:
		return "was aborted"
	case eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN:
		return "could not run"
	}
	return "ended"
}

// index notes which versions a prepared build wants, unless it has passed.
func (s *buildStore) index(b *build) {
	if b.passed {
		return
	}
	for _, w := range b.prepared.GetVersions() {
		if v := (version{w.Target, w.Hash}); w.Hash != "" && !slices.Contains(s.wanting[v], b) {
			s.wanting[v] = append(s.wanting[v], b)
		}
	}
}

// unindex takes back what index noted.
func (s *buildStore) unindex(b *build) {
	for _, w := range b.prepared.GetVersions() {
		v := version{w.Target, w.Hash}
		rest := slices.DeleteFunc(s.wanting[v], func(x *build) bool { return x == b })
		if s.wanting[v] = rest; len(rest) == 0 {
			delete(s.wanting, v)
		}
	}
}

// markPassed notes that a build has passed if every version that it wants is proven. It is called when a version was, and when the
// build was prepared, so that it does not depend on who looks when.
func (q *Queue) markPassed(b *build) {
	if b.passed || b.unusable() {
		return
	}
	// Counting all versions after each step would be quadratic, so they are counted once none is open.
	for wants := b.wants(); b.progress.open < len(wants); b.progress.open++ {
		if !q.seenProven(b, wants[b.progress.open]) {
			return
		}
	}
	b.progress.open = 0
	if t := q.tallyOf(b); b.settled(t) && t.failed+t.tolerated == 0 {
		q.builds.unindex(b)
		b.passed = true
	}
}

// seenProven reports whether a version has passed, as countSteps counts that, or needs no step.
func (q *Queue) seenProven(b *build, w *eventsv1.TargetVersion) bool {
	if w.Trivial || w.Absent {
		return true
	}
	a := q.steps.settlingIn(version{w.Target, w.Hash}, q.diedAt(b))
	return a != nil && w.Hash != "" && a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED && !(b.aborted != "" && a.finished.After(b.endedAt))
}

// hadPassed reports whether a build of a change that left had passed. It is shown as passed even if its versions have failed on the
// mainline since.
func (q *Queue) hadPassed(b *build) bool {
	return b.passed && b.aborted == "" && q.pendingAt(b.of) == nil
}

// count takes the versions that a build holds into those of all.
func (s *buildStore) count(b *build) {
	held := len(b.fact.GetTargets()) + len(b.prepared.GetVersions())
	s.versions += held - b.held
	b.held = held
}

// boundVersions forgets the oldest builds that are over, but for one that has just changed, while all together hold too many versions.
func (q *Queue) boundVersions(changed *build) {
	q.builds.count(changed)
	for _, id := range q.builds.order {
		if q.builds.versions <= maxVersionsOfBuilds {
			return
		}
		if b := q.builds.byID[id]; b != nil && b != changed && (b.isOver() || b.of.change != "" && q.pendingAt(b.of) == nil) {
			q.forgetBuild(b)
		}
	}
}

func (q *Queue) forgetBuild(b *build) {
	q.builds.versions -= b.held
	q.builds.unindex(b)
	delete(q.builds.byID, b.id)
	delete(q.builds.worthless, b.id)
	mine := slices.DeleteFunc(q.builds.ofChange[b.of], func(x *build) bool { return x == b })
	if q.builds.ofChange[b.of] = mine; len(mine) == 0 {
		delete(q.builds.ofChange, b.of)
	}
}

func (q *Queue) forgetBuilds(of ref) {
	for _, b := range slices.Clone(q.builds.ofChange[of]) {
		q.forgetBuild(b)
	}
}

// foldWorthless notes which builds have become worthless, and which no longer are. A priority may be read before the schedule
// of a build that it names, so builds that are not known are noted too, up to the number of builds that are kept.
func (q *Queue) foldWorthless(p *eventsv1.Priority) {
	put := func(build string, is bool) {
		list := append(q.builds.worthless[build], worthless{p.Position, is})
		q.builds.worthless[build] = list[max(0, len(list)-maxWorthless):]
	}
	for _, w := range p.Worthless {
		put(w.Build, true)
	}
	for _, build := range p.Recovered {
		put(build, false)
	}
	if len(q.builds.worthless) > q.limits.Builds {
		maps.DeleteFunc(q.builds.worthless, func(build string, _ []worthless) bool { return q.builds.byID[build] == nil })
	}
}

// wants returns the target versions that the build is to prove.
func (b *build) wants() []*eventsv1.TargetVersion {
	if b.prepared != nil && len(b.prepared.Versions) > 0 {
		return b.prepared.Versions
	}
	return b.fact.Targets
}

// stepOf returns what is known of one target version now, for a build that wants it.
func (q *Queue) stepOf(b *build, w *eventsv1.TargetVersion) Step {
	step := Step{Target: w.Target, Hash: w.Hash, Commit: w.Part, State: StepOutstanding}
	if w.Trivial || w.Absent {
		step.State = StepTrivial
		return step
	}
	if w.Hash == "" {
		return step
	}
	v, died := version{w.Target, w.Hash}, q.diedAt(b)
	a := q.steps.settlingIn(v, died)
	if q.hadPassed(b) {
		a = cmp.Or(q.steps.passing(v), a)
	}
	if a != nil {
		step = a.shown()
		step.Commit, step.Quarantined, step.Flaky = w.Part, q.toleratedIn(b, a, died), q.steps.contradicted(v)
		if step.Flaky || step.State != StepPassed {
			step.Owners = b.ownersOf(w.Target)
		}
	}
	if l := q.steps.leaseIn(v, died); l != nil && step.State != StepPassed && b.aborted == "" {
		// What an earlier attempt has left is not of this one.
		step = Step{Target: w.Target, Hash: w.Hash, Commit: w.Part, State: StepRunning, Attempt: l.Attempt, Worker: l.Worker, Build: l.Build, StartedAt: stamp(l.StampUs, time.Time{}), Flaky: step.Flaky, Owners: step.Owners}
		if l.Filling != "" {
			step.Message = "The " + fillingText(l.Filling) + "."
		}
	}
	return step
}

// tally is how far a build is.
type tally struct {
	total, done, failed int
	// tolerated are quarantined ones among done that did not pass: they may run again.
	tolerated int
	// running is how many run now.
	running int
	last    time.Time
}

// tallyOf returns how far a build is. It counts again only if something changed since it last did.
func (q *Queue) tallyOf(b *build) tally {
	if b.progress.at != q.steps.generation {
		b.progress.tally, b.progress.at = q.countSteps(b), q.steps.generation
	}
	return b.progress.tally
}

// settled reports whether every step that the build wants has ended.
func (b *build) settled(t tally) bool { return b.prepared != nil && t.done == t.total }

// countSteps returns the tally of what stepOf shows. It makes no Step, since it is called far more often.
func (q *Queue) countSteps(b *build) (t tally) {
	died := q.diedAt(b)
	for _, w := range b.wants() {
		t.total++
		if w.Trivial || w.Absent {
			t.done++
			continue
		}
		v := version{w.Target, w.Hash}
		a, lease := q.steps.settlingIn(v, died), q.steps.leaseIn(v, died)
		running := lease != nil && w.Hash != "" && b.aborted == "" && (a == nil || a.outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
		if running {
			t.running++
		}
		if a == nil || w.Hash == "" || b.aborted != "" && a.finished.After(b.endedAt) { // another build proved it later
			continue
		}
		if a.finished.After(t.last) {
			t.last = a.finished
		}
		switch {
		case a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
			t.done++
		case running:
		case q.toleratedIn(b, a, died):
			t.done++
			t.tolerated++
		case a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
			t.done++
			t.failed++
		}
	}
	return t
}

func (b *build) unusable() bool {
	return b.prepared != nil && b.prepared.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED
}

// isOver reports whether the build has ended. It does not count steps: a build whose last step has just ended may not be over yet.
func (b *build) isOver() bool { return b.aborted != "" || b.finished || b.passed || b.unusable() }

// active reports whether the build holds a slot.
func (q *Queue) active(b *build) bool {
	if b.isOver() {
		return false
	}
	s := b.state(q.tallyOf(b))
	return s == BuildRunning || s == BuildPreparing
}

// state returns a build's verdict about its own tree, which is none about the change.
func (b *build) state(t tally) string {
	switch {
	case b.unusable():
		return BuildUnusable
	case b.settled(t) && t.failed == 0:
		return BuildPassed
	case b.aborted != "":
		return BuildAborted
	case b.settled(t), b.finished && t.failed > 0:
		return BuildFailed
	case b.finished:
		return BuildFinished
	case b.prepared == nil:
		return BuildPreparing
	}
	return BuildRunning
}

func (q *Queue) shownBuild(b *build, withSteps bool) Build {
	t := q.tallyOf(b)
	out := Build{
		Build: b.id, Base: b.fact.Base, Assumed: b.assumed(), Why: b.why(), Needed: b.fact.Needed, Message: b.aborted,
		ScheduledAt: b.at, EndedAt: b.endedAt, State: b.state(t), StepsDone: t.done, StepsRunning: t.running, StepsTotal: t.total,
	}
	switch out.State {
	case BuildRunning, BuildPreparing:
		out.EndedAt = time.Time{}
	case BuildUnusable:
		out.Message = b.prepared.Message
	default:
		out.EndedAt = q.endOf(b, t)
	}
	if q.hadPassed(b) && out.State != BuildPassed {
		out.State, out.StepsDone, out.EndedAt = BuildPassed, t.total, time.Time{}
		for _, w := range b.wants() {
			if a := q.steps.passing(version{w.Target, w.Hash}); a != nil && a.finished.After(out.EndedAt) {
				out.EndedAt = a.finished
			}
		}
	}
	if withSteps {
		out.Steps = make([]Step, 0, t.total)
		for _, w := range b.wants() {
			out.Steps = append(out.Steps, q.stepOf(b, w))
		}
		out.Earlier = q.earlierRuns(b, out.Steps)
		if since := q.toleratedSince(out.Steps); since != "" {
			out.Message = joined(strings.TrimRight(out.Message, "."), since)
		}
	}
	return out
}

// verb returns the form of a verb for a number.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
