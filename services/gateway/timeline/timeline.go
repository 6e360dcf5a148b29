// Package timeline makes the timeline of a pool of what the views of its queues have: which worker ran what when, and why it was idle in
// between, as far as the log tells. It is pure.
package timeline

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/services/gateway/view"
)

const (
	// MaxSteps, MaxIdle and MaxWorkers bound a timeline. Where there is more, it begins later. Of more workers those come first that live,
	// then those that ran something last; living ones beyond MaxWorkers are not told.
	MaxSteps   = 5000
	MaxIdle    = 10_000
	MaxWorkers = 1000
	// Shortest is the shortest idle time that is told: shorter ones lie between two steps.
	Shortest = 100 * time.Millisecond
)

// Timeline holds the runs and idle times of the workers of a pool between two times.
type Timeline struct {
	Pool string    `json:"pool"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Since is given if less than what was asked for is told: from then on all is.
	Since time.Time `json:"since,omitzero"`
	// Queues are those of the pool that the caller may read.
	Queues []PoolQueue `json:"queues"`
	// Workers ran something in the time or, as of now, live; by name.
	Workers []WorkerTimeline `json:"workers"`
	// BusyMS is the time in which workers ran steps, LostMS what of it was spent on runs that left no result, and Idle the time in which
	// they ran none, by cause, most first. All three are sums over the workers.
	BusyMS int64     `json:"busy_ms"`
	LostMS int64     `json:"lost_ms"`
	Idle   []IdleSum `json:"idle"`
}

// PoolQueue is a queue of a pool.
type PoolQueue struct {
	Name string `json:"name"`
	// Workers is how many the pool has by the queue's settings.
	Workers int `json:"workers"`
	// Paused is set if the queue lands nothing as of the end of the time. Its builds go on.
	Paused bool `json:"paused,omitempty"`
}

// WorkerTimeline holds the runs and idle times of one worker.
type WorkerTimeline struct {
	Worker string `json:"worker"`
	// Instance is its builder, and Alive whether that is at work now.
	Instance string   `json:"instance"`
	Alive    bool     `json:"alive,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	// Steps are in the order in which they began. Those of a group, which one invocation verifies, overlap.
	Steps []StepRun `json:"steps"`
	// Idle has the times without a step while the worker is known to have been there: since its first step or the start of its builder,
	// until its last step, or now if its builder lives.
	Idle []IdleTime `json:"idle"`
	// BusyMS and LostMS are what the worker has of those of the timeline.
	BusyMS int64 `json:"busy_ms"`
	LostMS int64 `json:"lost_ms"`
}

// StateOther is the state of a step of a queue that the caller may not read.
const StateOther = "other"

// StepRun is a run of a step. Of a queue that the caller may not read only the time is told.
type StepRun struct {
	Queue string `json:"queue,omitempty"`
	// Change is what it ran for, with its title; absent for the mainline and where the build is no longer kept.
	Change   string `json:"change,omitempty"`
	Title    string `json:"title,omitempty"`
	Mainline bool   `json:"mainline,omitempty"`
	Build    string `json:"build,omitempty"`
	Target   string `json:"target,omitempty"`
	Hash     string `json:"hash,omitempty"`
	Attempt  uint32 `json:"attempt,omitempty"`
	// State is passed, failed, timed_out, aborted, could_not_run, running, lost (its worker said nothing more of it), or other: it is of a
	// queue that the caller may not read.
	State string `json:"state"`
	// Preempted is set if it was ended for a change that an operator had moved to the front.
	Preempted bool   `json:"preempted,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Log is set if there is output.
	Log bool `json:"log,omitempty"`
	// From is when the worker was given the step: laying out the tree is part of it. To is absent while it runs.
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
}

// IdleTime is a time without a step.
type IdleTime struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Cause Cause     `json:"cause"`
	// Needs are the labels and resources that all open steps needed some of, without those of queues that the caller may not read.
	Needs []string `json:"needs,omitempty"`
}

// IdleSum is how long workers were idle for a cause.
type IdleSum struct {
	Cause Cause `json:"cause"`
	MS    int64 `json:"ms"`
}

// Cause is why a worker was idle.
type Cause string

// Causes. Where several hold, the first of these that does is told.
const (
	// NotKnown: a step was open that any worker can run, so the log does not tell why this one did not.
	NotKnown Cause = "not_known"
	// Limited: as many steps of the queue ran as may (quotas.queue), and further ones were open.
	Limited Cause = "quota"
	// Needs: all open steps needed labels or resources of a machine.
	Needs Cause = "needs"
	// Exclusive: the open steps waited for what another step had to itself.
	Exclusive Cause = "exclusive"
	// Dependencies: the open steps waited for what other steps leave for them.
	Dependencies Cause = "dependencies"
	// Preparing: no step was open, and the tree of a build was being made.
	Preparing Cause = "preparing"
	// NoStep: no step was open.
	NoStep Cause = "no_open_step"
)

// Causes lists them in the order in which one is told before another.
func Causes() []Cause {
	return []Cause{NotKnown, Limited, Needs, Exclusive, Dependencies, Preparing, NoStep}
}

// Machine is a builder that lives.
type Machine struct {
	Instance string
	Workers  int
	Labels   []string
	// Started is when it began, so that its workers are known to be there since.
	Started time.Time
}

// Activity is that of a queue. Hidden is set if the caller may not read the queue.
type Activity struct {
	view.Activity
	Hidden bool
}

// Make returns the timeline of a pool from a time to another, which is now or before. The activities are of its queues.
func Make(pool string, from, to time.Time, activities []Activity, machines []Machine) Timeline {
	t := Timeline{Pool: pool, From: from, To: to, Queues: []PoolQueue{}, Workers: []WorkerTimeline{}, Idle: []IdleSum{}}
	begin := from
	rows := map[string]*row{}
	at := func(worker string) *row {
		if rows[worker] == nil {
			instance := worker
			if i := strings.LastIndexByte(worker, '/'); i > 0 {
				instance = worker[:i]
			}
			rows[worker] = &row{WorkerTimeline: WorkerTimeline{Worker: worker, Instance: instance, Steps: []StepRun{}, Idle: []IdleTime{}}}
		}
		return rows[worker]
	}
	for _, a := range activities {
		begin = view.Later(begin, a.Since)
		if !a.Hidden {
			t.Queues = append(t.Queues, PoolQueue{a.Queue, a.Workers, a.Paused})
		}
		for _, run := range a.Runs {
			r := at(run.Worker)
			r.Steps = append(r.Steps, stepOf(run, a))
		}
	}
	for worker, r := range rows { // a worker may run steps of several queues
		for _, a := range activities {
			if s, seen := a.Seen[worker]; seen {
				r.see(s)
			}
		}
	}
	for _, m := range machines {
		for n := range min(m.Workers, MaxWorkers) {
			r := at(m.Instance + "/" + strconv.Itoa(n+1))
			r.Alive, r.Labels = true, m.Labels
			r.see(view.Span{From: m.Started, To: to})
		}
	}
	begin = view.Later(begin, leaveOut(rows, to))
	begin = view.Later(begin, latest(rows))
	causes := merge(activities, begin, to)
	sums := map[Cause]int64{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		r.finish(begin, to, causes)
		t.Workers = append(t.Workers, r.WorkerTimeline)
	}
	begin = t.bound(begin)
	for i := range t.Workers {
		w := &t.Workers[i]
		busy, lost := w.measure(begin, to)
		w.BusyMS, w.LostMS = busy.Milliseconds(), lost.Milliseconds()
		t.BusyMS, t.LostMS = t.BusyMS+w.BusyMS, t.LostMS+w.LostMS
		for _, x := range w.Idle {
			sums[x.Cause] += x.To.Sub(x.From).Milliseconds()
		}
	}
	for _, c := range Causes() {
		if sums[c] > 0 {
			t.Idle = append(t.Idle, IdleSum{c, sums[c]})
		}
	}
	slices.SortStableFunc(t.Idle, func(a, b IdleSum) int { return cmp.Compare(b.MS, a.MS) })
	if begin.After(from) {
		t.Since = begin
	}
	return t
}

func stepOf(run view.WorkerRun, a Activity) StepRun {
	s := StepRun{State: run.State, From: run.From, To: run.To}
	if a.Hidden {
		s.State = StateOther
		return s
	}
	s.Queue, s.Change, s.Title, s.Mainline, s.Build = a.Queue, run.Change, run.Title, run.Mainline, run.Build
	s.Target, s.Hash, s.Attempt, s.Preempted, s.Reason, s.Log = run.Target, run.Hash, run.Attempt, run.Preempted, run.Reason, run.HasLog
	return s
}

// row is a worker as it is made.
type row struct {
	WorkerTimeline
	// there is the time in which the worker is known to have been there.
	there view.Span
}

func (r *row) see(s view.Span) {
	if r.there.From.IsZero() || s.From.Before(r.there.From) {
		r.there.From = s.From
	}
	r.there.To = view.Later(r.there.To, s.To)
}

// leaveOut drops the workers beyond MaxWorkers, and returns from when on those of them ran nothing whose builder is gone.
func leaveOut(rows map[string]*row, to time.Time) (begin time.Time) {
	if len(rows) <= MaxWorkers {
		return begin
	}
	last := map[string]time.Time{}
	for name, r := range rows {
		for _, s := range r.Steps {
			end := s.To
			if end.IsZero() {
				end = to
			}
			last[name] = view.Later(last[name], earlier(end, to))
		}
	}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		if rows[a].Alive != rows[b].Alive {
			if rows[a].Alive {
				return -1
			}
			return 1
		}
		return cmp.Or(last[b].Compare(last[a]), cmp.Compare(a, b))
	})
	for _, name := range names[MaxWorkers:] {
		if !rows[name].Alive {
			begin = view.Later(begin, last[name])
		}
		delete(rows, name)
	}
	return begin
}

// latest returns from when on there are at most MaxSteps steps.
func latest(rows map[string]*row) (begin time.Time) {
	var ends []time.Time
	for _, r := range rows {
		for _, s := range r.Steps {
			if !s.To.IsZero() {
				ends = append(ends, s.To)
			}
		}
	}
	if len(ends) <= MaxSteps {
		return begin
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[MaxSteps-1]
}

// finish drops what ended before the timeline begins, orders the rest, and finds out when the worker was idle, and why.
func (r *row) finish(begin, to time.Time, causes []moment) {
	r.Steps = slices.DeleteFunc(r.Steps, func(s StepRun) bool { return !s.To.IsZero() && s.To.Before(begin) })
	slices.SortStableFunc(r.Steps, func(a, b StepRun) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Target, b.Target))
	})
	free := view.Later(begin, r.there.From)
	end := earlier(to, r.there.To)
	for _, s := range r.Steps {
		r.idle(free, earlier(s.From, end), causes)
		if s.To.IsZero() {
			return
		}
		free = view.Later(free, s.To)
	}
	r.idle(free, end, causes)
}

// idle appends the time between two steps, by cause.
func (r *row) idle(from, to time.Time, causes []moment) {
	if to.Sub(from) < Shortest {
		return
	}
	// The first one is where the timeline begins, so there is always one at or before.
	i, found := slices.BinarySearchFunc(causes, from, func(m moment, t time.Time) int { return m.at.Compare(t) })
	if !found {
		i--
	}
	for ; i < len(causes) && causes[i].at.Before(to); i++ {
		m := causes[i]
		part := IdleTime{From: view.Later(from, m.at), To: to, Cause: m.cause, Needs: m.needs}
		if i+1 < len(causes) {
			part.To = earlier(to, causes[i+1].at)
		}
		if m.cause == Needs && r.Alive && slices.ContainsFunc(m.kinds, func(kind string) bool { return has(r.Labels, strings.Split(kind, between)) }) {
			part.Cause, part.Needs = NotKnown, nil
		}
		if n := len(r.Idle); n > 0 && r.Idle[n-1].To.Equal(part.From) && r.Idle[n-1].Cause == part.Cause && slices.Equal(r.Idle[n-1].Needs, part.Needs) {
			r.Idle[n-1].To = part.To
		} else if part.To.After(part.From) {
			r.Idle = append(r.Idle, part)
		}
	}
}

func has(labels, needs []string) bool {
	return !slices.ContainsFunc(needs, func(n string) bool { return !slices.Contains(labels, n) })
}

// bound drops the oldest idle times if there are too many, and returns from when on the timeline is whole.
func (t *Timeline) bound(begin time.Time) time.Time {
	var ends []time.Time
	for _, w := range t.Workers {
		for _, x := range w.Idle {
			ends = append(ends, x.To)
		}
	}
	if len(ends) <= MaxIdle {
		return begin
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	begin = view.Later(begin, ends[MaxIdle])
	for i := range t.Workers {
		w := &t.Workers[i]
		w.Steps = slices.DeleteFunc(w.Steps, func(s StepRun) bool { return !s.To.IsZero() && s.To.Before(begin) })
		w.Idle = slices.DeleteFunc(w.Idle, func(x IdleTime) bool { return !x.To.After(begin) })
		for j := range w.Idle {
			w.Idle[j].From = view.Later(w.Idle[j].From, begin)
		}
	}
	return begin
}

// measure returns how long the worker ran steps, and how much of that was spent on runs without a result.
func (w *WorkerTimeline) measure(begin, to time.Time) (busy, lost time.Duration) {
	until := begin
	for _, s := range w.Steps {
		end := to
		if !s.To.IsZero() {
			end = earlier(to, s.To)
		}
		begun := view.Later(view.Later(begin, s.From), until)
		if !end.After(begun) {
			continue
		}
		busy += end.Sub(begun)
		switch s.State {
		case view.StepAborted, view.StepCouldNotRun, view.StepLost:
			lost += end.Sub(begun)
		}
		until = end
	}
	return busy, lost
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
