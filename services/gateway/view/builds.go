package view

import (
	"fmt"
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
)

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
	// scheduled: its schedule was read; before that fact holds what its preparation says of it.
	scheduled bool
	// passed once every version that it wants is proven: evidence does not change its mind.
	passed bool
	// tally is as of a generation of the steps; 0 where the build itself has changed since.
	tally     tally
	talliedAt uint64
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
			q.foldDecided(f.Change, ruling{StateLanded, f.Decision, d.Position, at}, q.landDecidedText(f))
		case *eventsv1.DecisionItem_RejectDecided:
			f := i.RejectDecided
			q.foldDecided(f.Change, ruling{StateRejected, f.Decision, d.Position, at}, "Decided to reject"+because(f.Reason.GetMessage())+".")
		case *eventsv1.DecisionItem_EjectDecided:
			f := i.EjectDecided
			q.foldDecided(f.Change, ruling{StateEjected, f.Decision, d.Position, at}, "Decided to eject"+because(f.Reason.GetMessage())+".")
		}
	}
}

// landDecidedText says why, unless that would speak of builds where there is nothing to build.
func (q *Queue) landDecidedText(f *eventsv1.LandDecided) string {
	if c := q.keptAt(refOf(f.Change)); c != nil && c.analysis.affectsNothing() {
		return "Decided to land: it affects no target, so there is nothing to build."
	}
	return "Decided to land" + because(f.Why) + "."
}

func (q *Queue) foldDecided(r *eventsv1.ChangeRef, d ruling, text string) {
	of := refOf(r)
	if q.gone(of) {
		return
	}
	if c := q.keptAt(of); (c == nil || c.settled == 0) && !q.answered[d.decision] {
		q.decided[of] = decided{d.kind, d.decision}
	}
	q.rule(of, d)
	q.noteAt(of, d.at, "decided", text)
}

func (q *Queue) foldScheduled(f *eventsv1.BuildScheduled, position int64, item int, at time.Time) {
	of := refOf(f.Change.GetChange())
	b := q.builds[f.Build]
	if (b != nil && b.scheduled) || (of.change != "" && q.gone(of)) {
		return
	}
	if b == nil {
		b = q.addBuild(f.Build, of)
	}
	b.fact, b.at, b.position, b.item, b.scheduled, b.talliedAt = f, at, position, item, true, 0
	q.noteAt(of, at, "build_scheduled", "Build "+short(b.id)+" scheduled "+b.place()+because(f.Why)+".")
}

func (q *Queue) addBuild(id string, of ref) *build {
	b := &build{id: id, of: of}
	q.builds[id] = b
	q.buildOrder = append(q.buildOrder, id)
	q.ofChange[of] = append(q.ofChange[of], b)
	for mine := q.ofChange[of]; len(mine) > maxBuildsOfChange; mine = q.ofChange[of] {
		q.forgetBuild(mine[0])
	}
	for len(q.buildOrder) > q.limits.Builds {
		oldest := q.builds[q.buildOrder[0]]
		q.buildOrder = q.buildOrder[1:]
		if oldest != nil {
			q.forgetBuild(oldest)
		}
	}
	return b
}

func (b *build) place() string {
	text := "on " + short(b.fact.Base)
	if assumed := b.assumed(); len(assumed) > 0 {
		text += " assuming that " + names(assumed) + " " + verb(len(assumed), "lands", "land")
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
	b := q.builds[f.Build]
	if b == nil || b.aborted != "" {
		return
	}
	b.aborted, b.endedAt, b.talliedAt = "no longer wanted", at, 0
	if f.Why != "" {
		b.aborted = f.Why
	}
	q.noteAt(b.of, at, "build_aborted", "Build "+short(b.id)+" aborted"+because(f.Why)+".")
}

func (q *Queue) foldPrepared(f *eventsv1.BuildPrepared) {
	b := q.builds[f.Build]
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
	b.prepared, b.talliedAt = f, 0
	if f.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		b.endedAt = stamp(f.FinishedUs, time.Time{})
		q.noteAt(b.of, b.endedAt, "build_unusable", "Build "+short(b.id)+" could not be prepared: "+f.Message)
	} else if c := q.keptAt(b.of); c != nil {
		q.touch(c)
	}
}

func (q *Queue) foldStep(f *eventsv1.StepFinished) {
	if !q.steps.finish(f) {
		return
	}
	b := q.builds[f.Build]
	if b == nil {
		return
	}
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		text := fmt.Sprintf("Step %s %s (attempt %d)%s.", f.Target, outcomeText(f.Outcome), f.Attempt, because(f.Reason))
		q.noteAt(b.of, stamp(f.FinishedUs, time.Time{}), "step_"+outcomeName(f.Outcome), text)
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

func (q *Queue) forgetBuild(b *build) {
	delete(q.builds, b.id)
	delete(q.flags, b.id)
	mine := slices.DeleteFunc(q.ofChange[b.of], func(x *build) bool { return x == b })
	if q.ofChange[b.of] = mine; len(mine) == 0 {
		delete(q.ofChange, b.of)
	}
}

func (q *Queue) forgetBuilds(of ref) {
	for _, b := range q.ofChange[of] {
		delete(q.builds, b.id)
		delete(q.flags, b.id)
	}
	delete(q.ofChange, of)
}

// wants lists the target versions that the build is to prove.
func (b *build) wants() []*eventsv1.TargetVersion {
	if b.prepared != nil && len(b.prepared.Versions) > 0 {
		return b.prepared.Versions
	}
	return b.fact.Targets
}

// stepOf shows what is known of one target version now, for a build that wants it.
func (q *Queue) stepOf(b *build, w *eventsv1.TargetVersion) Step {
	step := Step{Target: w.Target, Hash: w.Hash, Commit: w.Part, State: StepOutstanding}
	if w.Trivial || w.Absent {
		step.State = StepTrivial
	}
	if step.State == StepTrivial || w.Hash == "" {
		return step
	}
	v := version{w.Target, w.Hash}
	a := q.steps.settling(v)
	if a != nil {
		step = a.shown(v)
		step.Commit = w.Part
	}
	if l := q.steps.leases[v]; l != nil && step.State != StepPassed && b.aborted == "" {
		step.State, step.Attempt, step.Worker, step.Build = StepRunning, l.Attempt, l.Worker, l.Build
	}
	return step
}

// tally is how far a build is.
type tally struct {
	total, done, failed int
	last                time.Time
}

// tallyOf counts what stepOf shows, without making it: it is asked for far more often.
func (q *Queue) tallyOf(b *build) tally {
	if b.talliedAt != q.steps.generation {
		b.tally, b.talliedAt = q.count(b), q.steps.generation
	}
	return b.tally
}

func (q *Queue) count(b *build) (t tally) {
	for _, w := range b.wants() {
		t.total++
		if w.Trivial || w.Absent {
			t.done++
			continue
		}
		v := version{w.Target, w.Hash}
		a := q.steps.settling(v)
		if a == nil || w.Hash == "" {
			continue
		}
		if a.finished.After(t.last) {
			t.last = a.finished
		}
		switch a.outcome {
		case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
			t.done++
		case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
			if l := q.steps.leases[v]; l == nil || b.aborted != "" {
				t.done++
				t.failed++
			}
		}
	}
	return t
}

func (b *build) unusable() bool {
	return b.prepared != nil && b.prepared.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED
}

// active says whether the build holds a worker's slot.
func (q *Queue) active(b *build) bool {
	if b.aborted != "" || b.finished || b.passed || b.unusable() {
		return false
	}
	s := q.stateOf(b, q.tallyOf(b))
	return s == BuildRunning || s == BuildPreparing
}

// stateOf is a build's verdict about its own tree; it says nothing about the change.
func (q *Queue) stateOf(b *build, t tally) string {
	settled := b.prepared != nil && t.done == t.total
	switch {
	case b.unusable():
		return BuildUnusable
	case settled && t.failed == 0:
		b.passed = true
		return BuildPassed
	case b.aborted != "":
		return BuildAborted
	case settled, b.finished && t.failed > 0:
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
		Build: b.id, Base: b.fact.Base, Assumed: b.assumed(), Why: b.fact.Why, Needed: b.fact.Needed, Message: b.aborted,
		ScheduledAt: b.at, EndedAt: b.endedAt, State: q.stateOf(b, t), StepsDone: t.done, StepsTotal: t.total,
	}
	switch out.State {
	case BuildRunning, BuildPreparing:
		out.EndedAt = time.Time{}
	case BuildUnusable:
		out.Message = b.prepared.Message
	default:
		if b.aborted == "" {
			out.EndedAt = t.last
		}
	}
	if withSteps {
		out.Steps = make([]Step, 0, t.total)
		for _, w := range b.wants() {
			out.Steps = append(out.Steps, q.stepOf(b, w))
		}
	}
	return out
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
