package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

const (
	queueName = "main"
	// pool is the number of targets that up to 500 pending changes draw two of: a change then has three ahead on the
	// average, six at the end of the queue. For more there are more.
	pool = 280
	// urgent is the share of pending changes that affect what nobody else does and are worth ten times as much.
	urgent = 0.2
	// failing is the share of changes that break their own targets.
	failing = 0.05
	// disorder is among how many of the oldest running steps the next to finish is drawn.
	disorder = 16
)

// shape is a queue's structure.
type shape struct {
	name    string
	pending int
	// hubs are targets of which each change that is not urgent affects one.
	hubs int
	// workers and threshold are the queue's settings.
	workers   int
	threshold float64
	// queues is how many there are of it, 0 for one.
	queues int
}

// outgoing is one event to be appended.
type outgoing struct {
	topic, source, subject string
	message                proto.Message
}

// load is everybody around the pipeline: authors whose changes replace those that left, an analyzer, and
// builders that do what the decisions say. It says what comes next; who appends it sets the pace.
type load struct {
	mu    sync.Mutex
	queue string
	now   func() time.Time
	r     *rand.Rand
	m     *model
	shape shape
	head  string
	made  int

	pending  map[string]*eventsv1.Admission
	urgent   map[string]bool // also of changes that have left
	arrivals []bool          // changes to come: does it affect a hub?
	builds   map[string]*simulatedBuild
	prepare  []*simulatedBuild
	lease    []*simulatedStep
	running  []*simulatedStep
	steps    map[version]*simulatedStep
	// known is the builder's core, of which the load asks what may be forgotten, once it has so many versions; numbers
	// of attempts go on behind attempts.
	known    *steps.Queue
	forgetAt int
	attempts uint32

	refused int
}

// remembered is how many versions the builder keeps of the past at least.
const remembered = 1 << 14

type version struct{ target, hash string }

type simulatedBuild struct {
	scheduled *eventsv1.BuildScheduled
	aborted   bool
}

// simulatedStep is an attempt at a version that has not finished, or the version's settled end.
type simulatedStep struct {
	version
	red     bool
	attempt uint32
	// last is the attempt after which it is settled, however it ends.
	last    uint32
	settled bool
	wanted  []*simulatedBuild
}

// newLoad returns the load of a queue with nothing pending; now stamps what its people and machines say.
func newLoad(queue string, s shape, seed uint64, now func() time.Time) *load {
	l := &load{
		queue: queue, now: now, r: rand.New(rand.NewPCG(seed, 0)), m: newModel(), shape: s, head: "root", pending: map[string]*eventsv1.Admission{}, urgent: map[string]bool{},
		builds: map[string]*simulatedBuild{}, steps: map[version]*simulatedStep{}, known: steps.New(), forgetAt: 2 * remembered,
	}
	for i := range s.pending {
		l.arrivals = append(l.arrivals, float64(i%100) < 100*urgent)
	}
	l.r.Shuffle(len(l.arrivals), func(i, j int) { l.arrivals[i], l.arrivals[j] = l.arrivals[j], l.arrivals[i] })
	return l
}

// decision does what a record of landfall.decisions asks of builders.
func (l *load) decision(d *eventsv1.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range d.Items {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			b := &simulatedBuild{scheduled: x.BuildScheduled}
			l.builds[x.BuildScheduled.Build] = b
			l.prepare = append(l.prepare, b)
		case *eventsv1.DecisionItem_BuildAborted:
			if b := l.builds[x.BuildAborted.Build]; b != nil {
				b.aborted = true
				delete(l.builds, x.BuildAborted.Build)
			}
		}
	}
}

// fact takes a record of landfall.changes that the lander wrote.
func (l *load) fact(m proto.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Apply(m, steps.Origin{})
	switch f := m.(type) {
	case *eventsv1.ChangeLanded:
		l.head = f.Commits[len(f.Commits)-1]
		l.left(f.Change)
	case *eventsv1.ChangeRejected:
		l.left(f.Change)
	case *eventsv1.ChangeEjected:
		l.left(f.Change)
	case *eventsv1.Refused:
		l.refused++
	}
}

func (l *load) left(c *eventsv1.ChangeRef) {
	l.arrivals = append(l.arrivals, l.urgent[c.Change])
	delete(l.pending, c.Change)
}

// next returns what happens next outside of the pipeline, in order; nil if everybody waits for it. A change
// arrives together with its analysis, preparations and leases are quick, steps take the time that is left.
func (l *load) next(finish bool) []outgoing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.Remembered() >= l.forgetAt {
		if f := l.forget(); f != nil {
			return []outgoing{builderSays(f)}
		}
	}
	if n := len(l.arrivals); n > 0 {
		isUrgent := l.arrivals[0]
		l.arrivals = l.arrivals[1:]
		return l.arrive(isUrgent)
	}
	for len(l.prepare) > 0 {
		b := l.prepare[0]
		l.prepare = l.prepare[1:]
		if !b.aborted {
			return []outgoing{l.prepared(b)}
		}
	}
	for len(l.lease) > 0 {
		s := l.lease[0]
		l.lease = l.lease[1:]
		if s.needed() {
			l.running = append(l.running, s)
			return []outgoing{builderSays(&eventsv1.StepLeased{
				Target: s.target, Hash: s.hash, Attempt: s.attempt, Lease: hexOf(s.hash, fmt.Sprint(s.attempt))[:32], Worker: "worker-1",
				StampUs: l.now().UnixMicro(), UntilUs: l.now().Add(10 * time.Second).UnixMicro(), Build: s.wanted[0].scheduled.Build,
			})}
		}
		delete(l.steps, s.version)
	}
	for finish && len(l.running) > 0 {
		i := l.r.IntN(min(len(l.running), disorder))
		s := l.running[i]
		l.running = append(l.running[:i], l.running[i+1:]...)
		if s.needed() {
			return []outgoing{l.finished(s)}
		}
		delete(l.steps, s.version)
	}
	return nil
}

// forget returns what the builder would have everybody forget, nil if that is too little to be worth a record.
func (l *load) forget() *eventsv1.EvidenceForgotten {
	list := slices.DeleteFunc(l.known.Forgettable(remembered), func(v steps.Version) bool {
		s := l.steps[version{v.Target, v.Hash}]
		return s != nil && !s.settled
	})
	l.forgetAt = 2 * max(l.known.Remembered()-len(list), remembered)
	if len(list) < remembered/4 {
		return nil
	}
	f := evidence.ForgottenRecord(list)
	l.attempts += 2 // a step is tried twice at most
	for _, v := range list {
		delete(l.steps, version{v.Target, v.Hash})
	}
	l.known.Apply(f, steps.Origin{})
	return f
}

func (s *simulatedStep) needed() bool {
	for _, b := range s.wanted {
		if !b.aborted {
			return true
		}
	}
	return false
}

func (l *load) isUrgent(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.urgent[id]
}

func (l *load) admissionOf(id string) *eventsv1.Admission {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[id]
}

func (l *load) arrive(isUrgent bool) []outgoing {
	l.made++
	id := fmt.Sprintf("feature/%05d-do-something-useful", l.made)
	targets := []string{l.target(), l.target()}
	switch {
	case isUrgent:
		targets = []string{fmt.Sprintf("//services/urgent/package%05d:tests", l.made), fmt.Sprintf("//services/urgent/package%05d:end_to_end", l.made)}
	case l.shape.hubs > 0:
		targets = append(targets, fmt.Sprintf("//libraries/hub%02d:all_tests", l.r.IntN(l.shape.hubs)))
	}
	if targets[0] == targets[1] {
		targets = targets[1:]
	}
	c := l.m.add(id, targets, l.r.Float64() < failing)
	l.urgent[id] = isUrgent
	ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
	a := &eventsv1.Admission{
		Queue: l.queue, Change: id, Revision: 1, RequestId: hexOf("request", id)[:32],
		Entries:        []*eventsv1.Entry{{Ref: "refs/heads/" + id, Commit: c.head}},
		LandingCommits: []*eventsv1.LandingCommit{{Head: c.head, Base: "root"}},
		Author:         "Ada Lovelace <ada@example.org>", Team: "engines", Title: "Do something useful in two packages",
		Description: "It was not done before, and somebody asked for it. The tests show that it is done now.",
		Uri:         "https://review.example.org/c/" + id, Mainline: l.head, ReceivedUs: l.now().UnixMicro(), Benefit: 1,
	}
	if isUrgent {
		a.Benefit = 10
	}
	l.pending[id] = a
	analysis := &eventsv1.ChangeAnalyzed{
		Change: ref, Base: l.head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected:     &eventsv1.Affected{Adapter: "manifest"},
		FilesChanged: uint32(len(targets)), LinesAdded: 42, LinesDeleted: 17,
		StartedUs: l.now().UnixMicro(), FinishedUs: l.now().UnixMicro(),
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	for i, t := range targets {
		hash, _ := l.m.version(l.head, t, []*modelChange{c})
		analysis.Affected.Targets = append(analysis.Affected.Targets, &eventsv1.TargetVersion{Target: t, Hash: hash, Part: 1})
		analysis.Affected.Leaves = append(analysis.Affected.Leaves, fmt.Sprintf("%s/%s-%d.go", t, id, i))
	}
	admitted := &eventsv1.ChangeAdmitted{Admission: a}
	l.known.Apply(admitted, steps.Origin{})
	return []outgoing{
		{events.TopicChanges, events.ServiceGateway, id, admitted},
		{events.TopicChanges, events.ServiceAnalyzer, id, analysis},
	}
}

func (l *load) target() string {
	n := l.r.IntN(max(pool, pool*l.shape.pending/500))
	return fmt.Sprintf("//services/area%02d/package%03d:tests", n%20, n)
}

// prepared makes the tree of a build, and the steps that nobody has begun.
func (l *load) prepared(b *simulatedBuild) outgoing {
	s := b.scheduled
	p := &eventsv1.BuildPrepared{
		Build: s.Build, Change: s.Change.Change, Base: s.Base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
		Tree: hexOf("tree", s.Build)[:40], Worker: "worker-1", StartedUs: l.now().UnixMicro(), FinishedUs: l.now().UnixMicro(),
	}
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	var held []*modelChange
	for _, a := range s.Assumed {
		p.Assumed = append(p.Assumed, a.Change)
		held = append(held, l.m.changes[a.LandingCommits[0].Head])
	}
	held = append(held, l.m.changes[s.Change.LandingCommits[0].Head])
	for _, t := range s.Targets {
		hash, red := l.m.version(s.Base, t.Target, held)
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t.Target, Hash: hash, Part: t.Part})
		v := version{t.Target, hash}
		step := l.steps[v]
		if step == nil {
			step = &simulatedStep{version: v, red: red, attempt: l.attempts + 1, last: l.attempts + 2}
			l.steps[v] = step
			l.lease = append(l.lease, step)
		}
		step.wanted = append(step.wanted, b)
	}
	return l.builderSays(p)
}

// finished ends an attempt; a red one is tried once more, as the queue's settings have it.
func (l *load) finished(s *simulatedStep) outgoing {
	f := &eventsv1.StepFinished{
		Target: s.target, Hash: s.hash, Attempt: s.attempt, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, Worker: "worker-1",
		Commands:    []*eventsv1.CommandFinished{{Name: "test", DurationUs: 20_000_000, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED}},
		OutputBytes: 4000, OutputTail: make([]byte, 1000), Log: s.hash + ".log", Build: s.wanted[0].scheduled.Build,
		StartedUs: l.now().Add(-20 * time.Second).UnixMicro(), FinishedUs: l.now().UnixMicro(),
	}
	s.settled = true
	if s.red {
		f.Outcome, f.FailedCommand, f.Reason = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "test", "test ended with exit code 1"
		f.Commands[0].Outcome, f.Commands[0].ExitCode = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, 1
		if s.attempt < s.last {
			s.attempt, s.settled = s.last, false
			l.lease = append(l.lease, s)
		}
	}
	return l.builderSays(f)
}

// builderSays returns a record of the builder's, as it has read it back.
func (l *load) builderSays(m proto.Message) outgoing {
	l.known.Apply(m, steps.Origin{})
	l.known.ForgetEarly()
	return builderSays(m)
}

func builderSays(m proto.Message) outgoing {
	return outgoing{events.TopicBuilds, events.ServiceBuilder, "", m}
}
