// Package dispatch chooses the step that a free worker of a pool runs next. Production's core does that (engine/steps); beside it
// stand the order that production had before, by whole builds, and what the oracle uses.
package dispatch

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
)

// Dispatch is a fold of what the log has of a queue, as the builder's core is.
type Dispatch interface {
	// Apply folds a record, and reports whether it means anything here.
	Apply(message proto.Message, origin steps.Origin) bool
	// Next returns at most limit steps that no worker runs, in the order in which they should start.
	Next(nowUs int64, limit int, taken []steps.Version, fits func(*eventsv1.StepClaims) bool) []steps.Step
	// Wants reports whether some build needs a result about a version.
	Wants(v steps.Version) bool
}

var _ Dispatch = (*steps.Queue)(nil)

// Truth is what an oracle knows of a step of a build: how long it takes, with its repetitions, and whether it fails. It is nil for
// everyone else.
type Truth func(build string, v steps.Version) (us int64, fails bool)

// Build is what an order sees of a build with steps that no worker runs. Times are in microseconds.
type Build struct {
	// Value is that of the schedule.
	Value float64
	// Waited is how long ago its change arrived, Remaining how long its outstanding steps take by what is known, and Mean how long
	// those of the last builds took together when they began.
	Waited, Remaining, Mean int64
}

// Order says how soon the steps of a build should start: those of the highest first.
type Order func(Build) float64

// queue orders builds, and has the steps of the first one start before all others.
type queue struct {
	order Order
	truth Truth

	builds  map[string]*build
	list    []*build // as they were scheduled
	asking  map[steps.Version][]*build
	leased  map[steps.Version]bool
	ledger  *evidence.Ledger
	runs    map[string]*mean
	all     mean
	work    mean
	arrived map[string]int64
}

type build struct {
	scheduled *eventsv1.BuildScheduled
	origin    steps.Origin
	arrived   int64
	steps     []*step
	byVersion map[steps.Version]*step
	// first is the place of the first step that may be open; outstanding counts those without a result.
	first, outstanding int
	remaining          int64
}

type step struct {
	steps.Version
	part  uint32
	costs int64
	open  bool
}

// mean goes back a few runs, so that a target that became slow is soon known for it.
type mean struct{ count, us int64 }

// How many runs of a target, and how many builds, the means go back.
const (
	weighed       = 16
	weighedBuilds = 64
)

func (m *mean) add(us, window int64) {
	m.count = min(m.count+1, window)
	m.us += (us - m.us) / m.count
}

// New returns a dispatch of whole builds in an order.
func New(order Order, truth Truth) Dispatch {
	return &queue{
		order: order, truth: truth, builds: map[string]*build{}, asking: map[steps.Version][]*build{}, leased: map[steps.Version]bool{},
		ledger: evidence.NewLedger(), runs: map[string]*mean{}, arrived: map[string]int64{},
	}
}

// Apply folds a record.
func (q *queue) Apply(message proto.Message, origin steps.Origin) bool {
	switch m := message.(type) {
	case *eventsv1.ChangeAdmitted:
		q.arrived[m.GetAdmission().GetChange()] = m.GetAdmission().GetReceivedUs()
	case *eventsv1.ChangeLanded:
		delete(q.arrived, m.GetChange().GetChange())
	case *eventsv1.ChangeRejected:
		delete(q.arrived, m.GetChange().GetChange())
	case *eventsv1.ChangeCancelled:
		delete(q.arrived, m.GetChange())
	case *eventsv1.Decision:
		for _, item := range m.GetItems() {
			switch x := item.GetItem().(type) {
			case *eventsv1.DecisionItem_BuildScheduled:
				b := &build{scheduled: x.BuildScheduled, origin: origin, arrived: q.arrived[x.BuildScheduled.GetChange().GetChange().GetChange()]}
				q.builds[x.BuildScheduled.GetBuild()] = b
			case *eventsv1.DecisionItem_BuildAborted:
				q.drop(q.builds[x.BuildAborted.GetBuild()])
			}
		}
	case *eventsv1.BuildPrepared:
		q.prepared(m)
	case *eventsv1.StepLeased:
		q.leased[steps.Version{Target: m.GetTarget(), Hash: m.GetHash()}] = true
		for _, v := range m.GetGroup() {
			q.leased[steps.Version{Target: v.GetTarget(), Hash: v.GetHash()}] = true
		}
	case *eventsv1.StepFinished:
		q.finished(m)
	case *eventsv1.EvidenceForgotten:
		q.ledger.Forget(m, nil)
	default:
		return false
	}
	return true
}

func (q *queue) prepared(p *eventsv1.BuildPrepared) {
	b := q.builds[p.GetBuild()]
	if b == nil || b.steps != nil {
		return
	}
	b.byVersion = make(map[steps.Version]*step, len(p.GetVersions()))
	failing := false
	for _, t := range p.GetVersions() {
		s := &step{Version: steps.Version{Target: t.GetTarget(), Hash: t.GetHash()}, part: t.GetPart()}
		switch q.ledger.State(s.Version, b.scheduled.GetSteps()) {
		case evidence.Red:
			q.drop(b)
			return
		case evidence.Unknown:
			s.open = true
			b.outstanding++
		}
		s.costs = q.predicted(s.Target)
		if q.truth != nil && s.open {
			us, fails := q.truth(p.GetBuild(), s.Version)
			if s.costs = us; fails && !failing {
				failing, b.remaining = true, us // the others cannot change its outcome
			}
		}
		if s.open && !failing {
			b.remaining += q.known(s.costs)
		}
		b.steps, b.byVersion[s.Version] = append(b.steps, s), s
	}
	if b.outstanding == 0 {
		q.drop(b)
		return
	}
	q.work.add(b.remaining, weighedBuilds)
	q.sort(p.GetBuild(), b.steps)
	q.list = append(q.list, b)
	for _, s := range b.steps {
		q.asking[s.Version] = append(q.asking[s.Version], b)
	}
}

// sort puts the longest steps first; an oracle begins with those that fail.
func (q *queue) sort(id string, list []*step) {
	fails := map[*step]int{}
	if q.truth != nil {
		for _, s := range list {
			if _, red := q.truth(id, s.Version); red {
				fails[s] = -1
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *step) int {
		return cmp.Or(cmp.Compare(fails[a], fails[b]), cmp.Compare(b.costs, a.costs), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Hash, b.Hash))
	})
}

// unpredicted is longer than every step: what has never run goes first (M27).
const unpredicted = int64(1) << 62

func (q *queue) predicted(target string) int64 {
	if m := q.runs[target]; m != nil {
		return m.us
	}
	return unpredicted
}

// known is what to expect of a step: of one that never ran, as long as steps take.
func (q *queue) known(costs int64) int64 {
	switch {
	case costs == unpredicted && q.all.count == 0:
		return 1
	case costs == unpredicted:
		return q.all.us
	}
	return costs
}

func (q *queue) finished(f *eventsv1.StepFinished) {
	v := steps.Version{Target: f.GetTarget(), Hash: f.GetHash()}
	if !q.ledger.Apply(f) {
		return
	}
	delete(q.leased, v)
	if f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		m := q.runs[v.Target]
		if m == nil {
			m = &mean{}
			q.runs[v.Target] = m
		}
		took := max(0, f.GetFinishedUs()-f.GetStartedUs())
		m.add(took, weighed)
		q.all.add(took, weighed)
	}
	for _, b := range slices.Clone(q.asking[v]) {
		s := b.byVersion[v]
		state := q.ledger.State(v, b.scheduled.GetSteps())
		if state == evidence.Unknown {
			b.first = 0 // it runs again
			continue
		}
		if s.open {
			s.open = false
			b.outstanding--
			b.remaining = max(0, b.remaining-q.known(s.costs))
		}
		if state == evidence.Red || b.outstanding == 0 {
			q.drop(b)
		}
	}
}

func (q *queue) drop(b *build) {
	if b == nil {
		return
	}
	delete(q.builds, b.scheduled.GetBuild())
	q.list = slices.DeleteFunc(q.list, func(o *build) bool { return o == b })
	for _, s := range b.steps {
		if rest := slices.DeleteFunc(q.asking[s.Version], func(o *build) bool { return o == b }); len(rest) > 0 {
			q.asking[s.Version] = rest
		} else {
			delete(q.asking, s.Version)
		}
	}
}

// Wants reports whether some build needs a result about a version.
func (q *queue) Wants(v steps.Version) bool {
	return slices.ContainsFunc(q.asking[v], func(b *build) bool { return b.byVersion[v].open })
}

// Next returns the steps that should start. A pool has nothing but workers, so nothing is taken or does not fit beyond what is
// leased.
func (q *queue) Next(nowUs int64, limit int, _ []steps.Version, _ func(*eventsv1.StepClaims) bool) []steps.Step {
	type ranked struct {
		*build
		score float64
	}
	var order []ranked
	for _, b := range q.list {
		if q.seek(b) {
			order = append(order, ranked{b, q.order(Build{b.scheduled.GetValue(), nowUs - b.arrived, b.remaining, q.work.us})})
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	var list []steps.Step
	listed := map[steps.Version]bool{}
	for _, b := range order {
		for i := b.first; i < len(b.steps) && len(list) < limit; i++ {
			s := b.steps[i]
			if !s.open || q.leased[s.Version] || listed[s.Version] {
				continue
			}
			listed[s.Version] = true
			list = append(list, steps.Step{
				Version: s.Version, Attempt: q.ledger.NextAttempt(s.Version), Part: s.part, Build: b.scheduled, Origin: b.origin,
			})
		}
	}
	return list
}

// seek moves a build to its first step that may start, and reports whether there is one.
func (q *queue) seek(b *build) bool {
	for ; b.first < len(b.steps); b.first++ {
		if s := b.steps[b.first]; s.open && !q.leased[s.Version] {
			return true
		}
	}
	return false
}
