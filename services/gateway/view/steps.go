package view

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

type version struct{ target, hash string }

// maxTakenBack bounds how many versions are kept whose attempts count no more, or not against them.
const maxTakenBack = 1024

// attempt is one finished run of a step.
type attempt struct {
	version version
	number  uint32
	// forgotten attempts count no more.
	forgotten bool

	outcome eventsv1.StepOutcome
	build   string
	command string
	reason  string
	worker  string
	log     string
	// decisive are the lines of the output that say why it did not pass.
	decisive []string
	tail     []byte
	bytes    int64
	started  time.Time
	finished time.Time
	// leasedUs is when the worker was given the run, in microseconds since 1970; 0 where no lease of it was read.
	leasedUs int64
}

// stepStore keeps the newest finished attempts by target version, and who runs what.
type stepStore struct {
	limits   Limits
	attempts map[version][]*attempt
	leases   map[version]*eventsv1.StepLeased
	// lost are the newest leases that lapsed before another worker was given the version, oldest first.
	lost []*eventsv1.StepLeased
	// lostOf is how many of them each version has.
	lostOf map[version]int `snapshot:"-"`
	// order has all attempts, oldest first, and tails those of them whose output is kept, which is bytes long altogether.
	order []*attempt
	tails []*attempt
	bytes int
	// outdated has the last attempt at a version that counts no more (M23c), withdrawn the last one that does not count against it as
	// somebody retried it (M23a).
	outdated, withdrawn takenBack
	// generation rises with everything that could change what is known of a version; it is never 0.
	generation uint64 `snapshot:"-"`
}

// maxLost bounds stepStore.lost.
const maxLost = 1000

func newStepStore(limits Limits) stepStore {
	return stepStore{limits: limits, attempts: map[version][]*attempt{}, leases: map[version]*eventsv1.StepLeased{}, lostOf: map[version]int{},
		outdated: takenBack{upTo: map[version]uint32{}}, withdrawn: takenBack{upTo: map[version]uint32{}}, generation: 1}
}

// takenBack holds the last attempt at each version that was taken back. It is kept, as what takes attempts back and the attempts stand in
// different topics, and either may be read first.
type takenBack struct {
	upTo map[version]uint32
	// order has the versions, oldest first.
	order []version
}

func (t *takenBack) add(p *eventsv1.Proof) {
	v := version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()}
	if _, had := t.upTo[v]; !had {
		t.order = append(t.order, v)
	}
	t.upTo[v] = max(t.upTo[v], p.GetAttempt())
	for len(t.order) > maxTakenBack {
		delete(t.upTo, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *takenBack) snapshot() (out []*eventsv1.Proof) {
	for _, v := range t.order {
		out = append(out, &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: v.target, Hash: v.hash}, Attempt: t.upTo[v]})
	}
	return out
}

// lease keeps who runs a step; a lease of a group is kept for each of its versions.
func (s *stepStore) lease(f *eventsv1.StepLeased) {
	s.leaseOne(f)
	for _, v := range f.Group {
		s.leaseOne(&eventsv1.StepLeased{
			Target: v.Target, Hash: v.Hash, Attempt: v.Attempt, Lease: f.Lease, Worker: f.Worker, StampUs: f.StampUs, UntilUs: f.UntilUs, Build: f.Build, Filling: f.Filling})
	}
}

func (s *stepStore) leaseOne(f *eventsv1.StepLeased) {
	v := version{f.Target, f.Hash}
	if s.find(v, f.Attempt) != nil {
		return
	}
	before := s.leases[v]
	if before != nil && before.Attempt == f.Attempt && before.Lease != f.Lease && f.StampUs <= before.UntilUs {
		return // the first one holds until it lapses
	}
	s.generation++
	if before != nil && before.Lease == f.Lease && before.Attempt == f.Attempt {
		// It is extended: the step began when it was given.
		f = proto.CloneOf(f)
		f.StampUs = before.StampUs
	}
	if before != nil && before.Lease != f.Lease && before.UntilUs <= f.StampUs {
		s.lose(before)
	}
	// Leases that lapsed unanswered are dropped when the version gets its next one; those of versions
	// that nobody asked for again are bounded by the number of attempts kept.
	if len(s.leases) >= s.limits.Attempts {
		clear(s.leases)
	}
	s.leases[v] = f
}

// lose notes that a lease has lapsed before another worker was given the version.
func (s *stepStore) lose(l *eventsv1.StepLeased) {
	s.lost = append(s.lost, l)
	s.countLost(l, 1)
	if len(s.lost) > maxLost {
		s.countLost(s.lost[0], -1)
		s.lost = s.lost[1:]
	}
}

func (s *stepStore) countLost(l *eventsv1.StepLeased, n int) {
	v := version{l.Target, l.Hash}
	if s.lostOf[v] += n; s.lostOf[v] == 0 {
		delete(s.lostOf, v)
	}
}

// fillingText says that a cache is filled before a step's commands run.
func fillingText(cache string) string { return "cache " + cache + " is filled from the mainline first" }

// fillingFor returns the cache that is filled before some step of a build runs, "" if there is none.
func (q *Queue) fillingFor(id string) string {
	for v, l := range q.steps.leases {
		if l.Filling != "" && slices.ContainsFunc(q.builds.wanting[v], func(b *build) bool { return b.id == id }) {
			return l.Filling
		}
	}
	return ""
}

// inForce returns the leases that had not lapsed when the last one was given, or the last step finished. Of a worker that was killed
// nobody says that its steps ended.
func (s *stepStore) inForce() (list []*eventsv1.StepLeased) {
	now := int64(0)
	if n := len(s.order); n > 0 {
		now = s.order[n-1].finished.UnixMicro()
	}
	for _, l := range s.leases {
		now = max(now, l.StampUs)
	}
	for _, l := range s.leases {
		if l.UntilUs >= now {
			list = append(list, l)
		}
	}
	return list
}

// finish keeps an attempt, and reports whether this is the first record of it: later ones change nothing. Failures of versions that are
// held stay.
func (s *stepStore) finish(f *eventsv1.StepFinished, held func(version) bool) bool {
	v := version{f.Target, f.Hash}
	if s.find(v, f.Attempt) != nil {
		return false
	}
	s.generation++
	if s.lostOf[v] > 0 {
		s.lost = slices.DeleteFunc(s.lost, func(l *eventsv1.StepLeased) bool { // it was cut off, and not lost
			cut := l.Target == f.Target && l.Hash == f.Hash && l.Attempt == f.Attempt && l.Worker == f.Worker
			if cut {
				s.countLost(l, -1)
			}
			return cut
		})
	}
	leasedUs := int64(0)
	if l := s.leases[v]; l != nil && l.Attempt <= f.Attempt {
		if l.Attempt == f.Attempt && l.Worker == f.Worker && l.StampUs <= f.StartedUs {
			leasedUs = l.StampUs
		}
		delete(s.leases, v)
	}
	s.add(&attempt{
		leasedUs: leasedUs,
		version:  v, number: f.Attempt, outcome: f.Outcome, build: f.Build, command: f.FailedCommand, reason: f.Reason,
		worker: f.Worker, log: f.Log, decisive: f.Decisive, tail: f.OutputTail, bytes: f.OutputBytes,
		started: stamp(f.StartedUs, time.Time{}), finished: stamp(f.FinishedUs, time.Time{}),
	})
	s.evict(held)
	return true
}

func (s *stepStore) add(a *attempt) {
	a.forgotten = a.forgotten || a.number <= s.outdated.upTo[a.version]
	// By number: a snapshot has them in the order in which they are dropped.
	at, _ := slices.BinarySearchFunc(s.attempts[a.version], a.number, func(b *attempt, number uint32) int { return cmp.Compare(b.number, number) })
	s.attempts[a.version] = slices.Insert(s.attempts[a.version], at, a)
	s.order = append(s.order, a)
	if len(a.tail) > 0 {
		s.tails = append(s.tails, a)
		s.bytes += len(a.tail)
	}
}

// evict drops the oldest outputs and attempts that are more than the limits allow. A failure of a version that is held takes the place
// behind the newest but one, so that it is asked about again once all others are older.
func (s *stepStore) evict(held func(version) bool) {
	for s.bytes > s.limits.TailBytes && len(s.tails) > 0 {
		s.dropTail()
	}
	for spared := 0; len(s.order) > s.limits.Attempts; {
		oldest := s.order[0]
		s.order[0], s.order = nil, s.order[1:] // the array outlives it
		if len(s.tails) > 0 && s.tails[0] == oldest {
			s.dropTail()
		}
		if oldest.outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED && spared < len(s.order) && held(oldest.version) {
			spared++
			newest := len(s.order) - 1
			s.order = append(s.order, s.order[newest])
			s.order[newest] = oldest
			continue
		}
		rest := slices.DeleteFunc(s.attempts[oldest.version], func(a *attempt) bool { return a == oldest })
		if s.attempts[oldest.version] = rest; len(rest) == 0 {
			delete(s.attempts, oldest.version)
		}
	}
}

// dropTail drops the oldest output that is kept.
func (s *stepStore) dropTail() {
	a := s.tails[0]
	s.bytes -= len(a.tail)
	a.tail, s.tails[0], s.tails = nil, nil, s.tails[1:]
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

// outdate notes that attempts up to some count no more (M23c).
func (s *stepStore) outdate(upTo []*eventsv1.Proof) {
	for _, p := range upTo {
		v := version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()}
		for _, a := range s.attempts[v] {
			a.forgotten = a.forgotten || a.number <= p.Attempt
		}
		s.outdated.add(p)
	}
	s.generation++
}

// withdraw notes that attempts up to some were retried.
func (s *stepStore) withdraw(upTo []*eventsv1.Proof) {
	for _, p := range upTo {
		s.withdrawn.add(p)
	}
}

// passedBefore returns the time of the last attempt at a version that passed and counts no more.
func (s *stepStore) passedBefore(v version) (at time.Time, did bool) {
	for _, a := range s.attempts[v] {
		if a.forgotten && a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED && (!did || a.finished.After(at)) {
			at, did = a.finished, true
		}
	}
	return at, did
}

// passing returns the first attempt at a version that passed, whether it still counts or not; nil if none is kept.
func (s *stepStore) passing(v version) *attempt {
	for _, a := range s.attempts[v] {
		if a.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			return a
		}
	}
	return nil
}

// settling returns the attempt that shows a version's state best: one that passed, else the last one that
// failed, else the last one. Those that were forgotten show it until the step runs again.
func (s *stepStore) settling(v version) *attempt { return s.settlingIn(v, time.Time{}) }

// settlingIn is settling of what had begun at a time, unless that is zero.
func (s *stepStore) settlingIn(v version, died time.Time) *attempt {
	again := s.leaseIn(v, died) != nil || slices.ContainsFunc(s.attempts[v], func(a *attempt) bool { return !a.forgotten && inLife(a.began(), died) })
	var best *attempt
	for _, a := range s.attempts[v] {
		switch {
		case a.forgotten && again, !inLife(a.began(), died):
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

func (a *attempt) shown() Step {
	return Step{
		Target: a.version.target, Hash: a.version.hash, State: outcomeName(a.outcome), Attempt: a.number, Build: a.build,
		FailedCommand: a.command, Message: a.reason, Lines: a.decisive, Worker: a.worker, Log: a.log,
		DurationMS: a.finished.Sub(a.started).Milliseconds(), FinishedAt: a.finished,
	}
}
