package view

import (
	"fmt"
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// build is one that was scheduled, whatever became of it.
type build struct {
	id       string
	of       ref
	fact     *eventsv1.BuildScheduled
	at       time.Time
	prepared *eventsv1.BuildPrepared
	aborted  string
	endedAt  time.Time
	finished bool
	// scheduled: its schedule was read; before that fact holds what its preparation says of it.
	scheduled bool
}

func (q *Queue) foldDecision(d *eventsv1.Decision) {
	at := stamp(d.StampUs, time.Time{})
	for _, item := range d.Items {
		switch i := item.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			q.foldScheduled(i.BuildScheduled, at)
		case *eventsv1.DecisionItem_BuildAborted:
			q.foldAborted(i.BuildAborted, at)
		case *eventsv1.DecisionItem_LandDecided:
			f := i.LandDecided
			q.foldDecided(f.Change, decided{StateLanded, f.Decision}, at, "Decided to land"+because(f.Why)+".")
		case *eventsv1.DecisionItem_RejectDecided:
			f := i.RejectDecided
			q.foldDecided(f.Change, decided{StateRejected, f.Decision}, at, "Decided to reject"+because(f.Reason.GetMessage())+".")
		case *eventsv1.DecisionItem_EjectDecided:
			f := i.EjectDecided
			q.foldDecided(f.Change, decided{StateEjected, f.Decision}, at, "Decided to eject"+because(f.Reason.GetMessage())+".")
		}
	}
}

func (q *Queue) foldDecided(r *eventsv1.ChangeRef, d decided, at time.Time, text string) {
	of := refOf(r)
	if q.gone(of) {
		return
	}
	if c := q.keptAt(of); (c == nil || c.settled == 0) && !q.answered[d.decision] {
		q.decided[of] = d
	}
	q.noteAt(of, at, "decided", text)
}

func (q *Queue) foldScheduled(f *eventsv1.BuildScheduled, at time.Time) {
	of := refOf(f.Change.GetChange())
	b := q.builds[f.Build]
	if (b != nil && b.scheduled) || (of.change != "" && q.gone(of)) {
		return
	}
	if b == nil {
		b = q.addBuild(f.Build, of)
	}
	b.fact, b.at, b.scheduled = f, at, true
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
	b.aborted, b.endedAt = "no longer wanted", at
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
	b.prepared = f
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
	mine := slices.DeleteFunc(q.ofChange[b.of], func(x *build) bool { return x == b })
	if q.ofChange[b.of] = mine; len(mine) == 0 {
		delete(q.ofChange, b.of)
	}
}

func (q *Queue) forgetBuilds(of ref) {
	for _, b := range q.ofChange[of] {
		delete(q.builds, b.id)
	}
	delete(q.ofChange, of)
}

// stepsOf lists what the build wants proven, with what is known of each version now.
func (q *Queue) stepsOf(b *build) []Step {
	wanted := b.fact.Targets
	if b.prepared != nil && len(b.prepared.Versions) > 0 {
		wanted = b.prepared.Versions
	}
	out := make([]Step, 0, len(wanted))
	for _, w := range wanted {
		v := version{w.Target, w.Hash}
		step := Step{Target: w.Target, Hash: w.Hash, Commit: w.Part, State: StepOutstanding}
		switch a := q.steps.settling(v); {
		case w.Trivial || w.Absent:
			step.State = StepTrivial
		case w.Hash != "" && a != nil:
			step = a.shown(v)
			step.Commit = w.Part
			if l := q.steps.leases[v]; l != nil && a.outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED && b.aborted == "" {
				step.State, step.Attempt, step.Worker, step.Build = StepRunning, l.Attempt, l.Worker, l.Build
			}
		case w.Hash != "" && q.steps.leases[v] != nil:
			l := q.steps.leases[v]
			step.State, step.Attempt, step.Worker, step.Build = StepRunning, l.Attempt, l.Worker, l.Build
		}
		out = append(out, step)
	}
	return out
}

// shownBuild says how a build stands. Its verdict is about its own tree, not about the change.
func (q *Queue) shownBuild(b *build, withSteps bool) Build {
	out := Build{
		Build: b.id, Base: b.fact.Base, Assumed: b.assumed(), Why: b.fact.Why, Needed: b.fact.Needed,
		ScheduledAt: b.at, EndedAt: b.endedAt, State: BuildRunning,
	}
	steps := q.stepsOf(b)
	out.StepsTotal = len(steps)
	failed := 0
	for _, s := range steps {
		switch s.State {
		case StepPassed, StepTrivial:
			out.StepsDone++
		case StepFailed:
			out.StepsDone++
			failed++
		}
		if s.FinishedAt.After(out.EndedAt) && b.aborted == "" {
			out.EndedAt = s.FinishedAt
		}
	}
	if withSteps {
		out.Steps = steps
	}
	unusable := b.prepared != nil && b.prepared.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED
	switch {
	case unusable:
		out.State, out.Message = BuildUnusable, b.prepared.Message
	case b.prepared != nil && out.StepsDone == out.StepsTotal && failed == 0:
		out.State = BuildPassed
	case b.aborted != "":
		out.State, out.Message = BuildAborted, b.aborted
	case b.prepared != nil && out.StepsDone == out.StepsTotal, b.finished && failed > 0:
		out.State = BuildFailed
	case b.finished:
		out.State = BuildFinished
	case b.prepared == nil:
		out.State = BuildPreparing
	}
	if out.State == BuildRunning || out.State == BuildPreparing {
		out.EndedAt = time.Time{}
	}
	return out
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
