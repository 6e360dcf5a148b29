package view

import (
	"maps"
	"slices"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// Activity is what a queue had workers do in a time, and what it had for them: what a timeline is made of. It shares nothing with the
// view but what never changes.
type Activity struct {
	Queue string
	// Pool is that of the queue, "" where builds hold slots.
	Pool string
	// Workers is how many the pool has by the queue's settings, and Limit how many steps of the queue may run at a time; 0 for all.
	Workers, Limit int
	// OtherLimits is set if there are limits for teams or authors too.
	OtherLimits bool
	Paused      bool
	// Since is from when on all of it is known; the zero time is the beginning.
	Since time.Time
	// Runs overlap the time that was asked for.
	Runs []WorkerRun
	// Seen has the time from a worker's first known run to the end of its last one, whether or not these overlap the time.
	Seen map[string]Span
	// Asks are the builds that asked for steps in the time, Attempts the finished runs of the versions that they want, by number.
	Asks     []Asking
	Attempts map[Version][]Span
}

// Span is from a time to another.
type Span struct {
	From, To time.Time
	// Settled is set of a run that left its version with a result.
	Settled, Failed bool
}

// Version is a target in one tree.
type Version struct{ Target, Hash string }

// WorkerRun is a run of a step by a worker.
type WorkerRun struct {
	Worker, Target, Hash, Build string
	Attempt                     uint32
	// State is that of a Step, or StepLost.
	State string
	// Preempted is set if it was ended for a change that an operator had moved to the front.
	Preempted bool
	Reason    string
	HasLog    bool
	// Change is what it was run for, with its title; "" for the mainline, or if the build is not kept (Unknown).
	Change, Title string
	Mainline      bool
	// From is when the worker was given the run, or when it began it where the former is not known. To of one that runs is the zero time.
	From, To time.Time
}

// StepLost is the state of a run whose lease lapsed: its worker was killed, or cut off from the log.
const StepLost = "lost"

// Asking is a build for as long as it asked for steps.
type Asking struct {
	// Scheduled is when it was put among those that run: its tree is made from then on.
	Scheduled time.Time
	// From is when its tree was made, and its steps were asked for; the zero time until then.
	From time.Time
	// Until is when it asked no more; the zero time if it still does.
	Until time.Time
	// Prepared has its steps; nil until its tree is made. It is shared with the view, and never changes.
	Prepared *eventsv1.BuildPrepared
}

// maxAsked bounds the versions of all builds in an Activity.
const maxAsked = 200_000

// Pool is the pool whose workers run the queue's steps, "" where builds hold slots.
func (q *Queue) Pool() string { return q.known.Settings().GetPool() }

// Activity returns what there is of a time.
func (q *Queue) Activity(from, to time.Time) Activity {
	settings := q.known.Settings()
	a := Activity{
		Queue: q.name, Pool: q.Pool(), Workers: int(settings.GetPoolWorkers()), Limit: int(settings.GetQuotas().GetQueue()),
		OtherLimits: settings.GetQuotas().GetAuthor() > 0 || len(settings.GetQuotas().GetAuthors())+len(settings.GetQuotas().GetTeams()) > 0,
		Paused:      q.lineup.Paused != nil, Since: q.knownSince(), Seen: map[string]Span{}, Attempts: map[Version][]Span{},
	}
	for _, x := range q.steps.order {
		begun := x.began()
		a.see(x.worker, begun, x.finished)
		if !x.finished.Before(from) && !begun.After(to) {
			a.Runs = append(a.Runs, q.runOfAttempt(x))
		}
	}
	for _, l := range q.steps.leases {
		run := q.runOfLease(l, to)
		a.see(run.Worker, run.From, run.To)
		if !run.From.After(to) && (run.To.IsZero() || !run.To.Before(from)) {
			a.Runs = append(a.Runs, run)
		}
	}
	lost := map[version][]Span{}
	for _, l := range q.steps.lost {
		v := version{l.Target, l.Hash}
		lost[v] = append(lost[v], Span{From: stamp(l.StampUs, time.Time{}), To: stamp(l.UntilUs, time.Time{})})
		run := q.runOfLease(l, stamp(l.UntilUs+1, time.Time{}))
		a.see(run.Worker, run.From, run.To)
		if !run.From.After(to) && !run.To.Before(from) {
			a.Runs = append(a.Runs, run)
		}
	}
	asked := 0
	for _, id := range slices.Backward(q.builds.order) {
		b := q.builds.byID[id]
		if b == nil {
			continue
		}
		ask, is := q.asking(b, from, to)
		if !is {
			continue
		}
		if asked += len(ask.Prepared.GetVersions()); asked > maxAsked {
			a.Since = Later(a.Since, ask.Until)
			if ask.Until.IsZero() {
				a.Since = to
			}
			continue
		}
		a.Asks = append(a.Asks, ask)
		for _, w := range ask.Prepared.GetVersions() {
			v := Version{w.Target, w.Hash}
			if _, had := a.Attempts[v]; !had && w.Hash != "" {
				a.Attempts[v] = q.spansOf(version{v.Target, v.Hash}, lost[version{v.Target, v.Hash}], to)
			}
		}
	}
	return a
}

func (a *Activity) see(worker string, from, to time.Time) {
	if to.IsZero() {
		to = from
	}
	s, had := a.Seen[worker]
	if !had || from.Before(s.From) {
		s.From = from
	}
	s.To = Later(s.To, to)
	a.Seen[worker] = s
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// began is when the worker was given the run, or began it where the former is not known.
func (x *attempt) began() time.Time {
	if x.leasedUs > 0 {
		return stamp(x.leasedUs, time.Time{})
	}
	return x.started
}

// spansOf returns the runs of a version in order, with those that were lost before the present one; the last of one that runs as of now has
// no end.
func (q *Queue) spansOf(v version, lost []Span, now time.Time) (list []Span) {
	for _, x := range q.steps.attempts[v] {
		list = append(list, Span{x.began(), x.finished, x.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED, x.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	}
	if len(lost) > 0 {
		list = append(list, lost...)
		slices.SortStableFunc(list, func(a, b Span) int { return a.From.Compare(b.From) })
	}
	if l := q.steps.leases[v]; l != nil {
		list = append(list, Span{From: stamp(l.StampUs, time.Time{}), To: lapsed(l, now)})
	}
	return list
}

func (q *Queue) runOfAttempt(x *attempt) WorkerRun {
	run := WorkerRun{
		Worker: x.worker, Target: x.version.target, Hash: x.version.hash, Build: x.build, Attempt: x.number, State: outcomeName(x.outcome), Reason: x.reason,
		HasLog: x.log != "" || len(x.tail) > 0, From: x.began(), To: x.finished,
		Preempted: x.outcome == eventsv1.StepOutcome_STEP_OUTCOME_ABORTED && strings.Contains(x.reason, events.PreemptedReason),
	}
	q.nameRun(&run)
	return run
}

// lapsed is when a lease ended that had lapsed by now; else the zero time.
func lapsed(l *eventsv1.StepLeased, now time.Time) time.Time {
	if until := stamp(l.UntilUs, time.Time{}); until.Before(now) {
		return until
	}
	return time.Time{}
}

func (q *Queue) runOfLease(l *eventsv1.StepLeased, now time.Time) WorkerRun {
	run := WorkerRun{Worker: l.Worker, Target: l.Target, Hash: l.Hash, Build: l.Build, Attempt: l.Attempt, State: StepRunning, From: stamp(l.StampUs, time.Time{})}
	if run.To = lapsed(l, now); !run.To.IsZero() {
		run.State = StepLost
		run.Reason = "Its worker said nothing more of it."
	}
	q.nameRun(&run)
	return run
}

// nameRun says what a run was for.
func (q *Queue) nameRun(run *WorkerRun) {
	b := q.builds.byID[run.Build]
	if b == nil {
		return
	}
	run.Change, run.Mainline = b.of.change, b.of.change == ""
	if c := q.changes[b.of.change]; c != nil {
		run.Title = c.admission.Title
	}
}

// asking returns for how long a build asked for steps: until it was aborted, could not be prepared, was red or had passed, or its change
// left the queue or had another revision. It reports whether that is a part of a time. Versions are looked at last: there may be many.
func (q *Queue) asking(b *build, from, to time.Time) (ask Asking, is bool) {
	if b.at.After(to) {
		return ask, false
	}
	ask = Asking{Scheduled: b.at, Prepared: b.prepared}
	until := func(t time.Time) {
		if !t.IsZero() && (ask.Until.IsZero() || t.Before(ask.Until)) {
			ask.Until = t
		}
	}
	if b.prepared != nil {
		ask.From = stamp(b.prepared.FinishedUs, b.at)
	}
	until(b.endedAt)
	if b.of.change != "" {
		switch c := q.changes[b.of.change]; {
		case c == nil: // it was not admitted yet when this was read, or is forgotten
		case c.admission.Revision > b.of.revision:
			until(c.admittedAt)
		case !c.pending():
			until(c.end.at)
		}
	}
	over := func() bool { return !ask.Until.IsZero() && ask.Until.Before(from) }
	if over() {
		return ask, false
	}
	if until(b.settledAt); over() {
		return ask, false
	} else if !b.settledAt.IsZero() {
		return ask, true
	}
	var last time.Time
	for _, w := range b.prepared.GetVersions() {
		a := q.steps.settling(version{w.Target, w.Hash})
		if a == nil {
			continue
		}
		last = Later(last, a.finished)
		if a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && q.steps.leases[a.version] == nil && !q.tolerated(a) {
			until(a.finished) // the rest would prove nothing
		}
	}
	if b.passed {
		b.settledAt = last
		until(last)
	}
	return ask, !over()
}

// knownSince returns from when on nothing is forgotten that an Activity has.
func (q *Queue) knownSince() (since time.Time) {
	if n := len(q.steps.order); n > 0 && n >= q.limits.Attempts {
		since = Later(since, q.steps.order[0].finished)
	}
	if len(q.builds.order) >= q.limits.Builds {
		if i := slices.IndexFunc(q.builds.order, func(id string) bool { return q.builds.byID[id] != nil }); i >= 0 {
			since = Later(since, q.builds.byID[q.builds.order[i]].at)
		}
	}
	if len(q.finished) >= q.limits.Finished {
		if c := q.stillFinished(q.finished[0]); c != nil {
			since = Later(since, c.end.at)
		}
	}
	for mine := range maps.Values(q.builds.ofChange) {
		if len(mine) >= maxBuildsOfChange {
			since = Later(since, mine[0].at)
		}
	}
	return since
}
