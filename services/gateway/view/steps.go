package view

import (
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
)

type version struct{ target, hash string }

// attempt is one finished run of a step.
type attempt struct {
	number uint32
	// forgotten attempts count no more.
	forgotten bool

	outcome  eventsv1.StepOutcome
	build    string
	command  string
	reason   string
	worker   string
	log      string
	tail     []byte
	bytes    int64
	started  time.Time
	finished time.Time
}

// stepStore keeps finished attempts by target version, the newest ones, and who runs what.
type stepStore struct {
	limits   Limits
	attempts map[version][]*attempt
	leases   map[version]*eventsv1.StepLeased
	order    []stepKey
	tails    []stepKey
	bytes    int
	// generation rises with everything that could change what is known of a version.
	generation uint64
}

type stepKey struct {
	version version
	number  uint32
}

func newStepStore(limits Limits) stepStore {
	return stepStore{limits: limits, attempts: map[version][]*attempt{}, leases: map[version]*eventsv1.StepLeased{}, generation: 1}
}

func (s *stepStore) lease(f *eventsv1.StepLeased) {
	v := version{f.Target, f.Hash}
	if s.find(v, f.Attempt) != nil {
		return
	}
	s.generation++
	// Leases that lapsed unanswered are dropped when the version gets its next one; those of versions
	// that nobody asked for again are bounded by the number of attempts kept.
	if len(s.leases) >= s.limits.Attempts {
		clear(s.leases)
	}
	s.leases[v] = f
}

// finish keeps an attempt; the first record of one stands.
func (s *stepStore) finish(f *eventsv1.StepFinished) bool {
	v := version{f.Target, f.Hash}
	if s.find(v, f.Attempt) != nil {
		return false
	}
	s.generation++
	if l := s.leases[v]; l != nil && l.Attempt <= f.Attempt {
		delete(s.leases, v)
	}
	a := &attempt{
		number: f.Attempt, outcome: f.Outcome, build: f.Build, command: f.FailedCommand, reason: f.Reason,
		worker: f.Worker, log: f.Log, tail: f.OutputTail, bytes: f.OutputBytes,
		started: stamp(f.StartedUs, time.Time{}), finished: stamp(f.FinishedUs, time.Time{}),
	}
	s.attempts[v] = append(s.attempts[v], a)
	key := stepKey{v, f.Attempt}
	s.order = append(s.order, key)
	if len(a.tail) > 0 {
		s.tails = append(s.tails, key)
		s.bytes += len(a.tail)
	}
	s.evict()
	return true
}

func (s *stepStore) evict() {
	for s.bytes > s.limits.TailBytes && len(s.tails) > 0 {
		if a := s.find(s.tails[0].version, s.tails[0].number); a != nil {
			s.bytes -= len(a.tail)
			a.tail = nil
		}
		s.tails = s.tails[1:]
	}
	for len(s.order) > s.limits.Attempts {
		key := s.order[0]
		s.order = s.order[1:]
		all := s.attempts[key.version]
		for i, a := range all {
			if a.number == key.number {
				s.bytes -= len(a.tail)
				a.tail = nil
				all = append(all[:i:i], all[i+1:]...)
				break
			}
		}
		if s.attempts[key.version] = all; len(all) == 0 {
			delete(s.attempts, key.version)
		}
	}
}

func (s *stepStore) find(v version, number uint32) *attempt {
	for _, a := range s.attempts[v] {
		if a.number == number {
			return a
		}
	}
	return nil
}

// forget notes that attempts count no more. They are kept for what was decided by them.
func (s *stepStore) forget(f *eventsv1.EvidenceForgotten) {
	for _, t := range f.Versions {
		for _, a := range s.attempts[version{t.Target, t.Hash}] {
			a.forgotten = true
		}
	}
	s.generation++
}

// settling is the attempt that shows a version's state best: one that passed, else the last one that
// failed, else the last one. Those that were forgotten show it until it is run again.
func (s *stepStore) settling(v version) *attempt {
	again := s.leases[v] != nil || slices.ContainsFunc(s.attempts[v], func(a *attempt) bool { return !a.forgotten })
	var best *attempt
	for _, a := range s.attempts[v] {
		switch {
		case a.forgotten && again:
		case a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
			return a
		case best == nil, a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED, best.outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
			best = a
		}
	}
	return best
}

func outcomeName(o eventsv1.StepOutcome) string {
	switch o {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
		return StepPassed
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		return StepFailed
	case eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
		return StepTimedOut
	case eventsv1.StepOutcome_STEP_OUTCOME_ABORTED:
		return StepAborted
	case eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN:
		return StepCouldNotRun
	}
	return "unknown"
}

func (a *attempt) shown(v version) Step {
	return Step{
		Target: v.target, Hash: v.hash, State: outcomeName(a.outcome), Attempt: a.number, Build: a.build,
		FailedCommand: a.command, Message: a.reason, Worker: a.worker, Log: a.log,
		DurationMS: a.finished.Sub(a.started).Milliseconds(), FinishedAt: a.finished,
	}
}
