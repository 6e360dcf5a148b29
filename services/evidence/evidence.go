// Package evidence is the fold of finished steps: which target versions are proven green (V), which
// red (F), and which have used up their retries (M19a, M20a, M24). The enumerator, the builder and the
// land guard share it, so that all of them mean the same by "proven".
package evidence

import (
	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// Version is a target version: what evidence is about, whatever tree it was found in.
type Version struct{ Target, Hash string }

// State of a target version under a retry policy.
type State int

// The states of a version.
const (
	// Unknown: no result, and retries are left.
	Unknown State = iota
	// Green: in V.
	Green
	// Red: in F, and the policy's retries of failed steps are used up.
	Red
	// Exhausted: it ran out of time, or could not run, more often than the policy retries.
	Exhausted
)

func (s State) String() string {
	return [...]string{"unknown", "green", "red", "exhausted"}[s]
}

// Result is what the finished attempts at one version say.
type Result struct {
	// Attempts is the number of distinct finished attempts; the next one is Attempts+1 unless an
	// attempt is missing (see NextAttempt).
	seen map[uint32]bool
	// Green by definition: no command verifies it, or the tree lacks it.
	trivial bool

	passed           bool
	failedBeforePass uint32
	failed           uint32
	timedOut         uint32
	couldNotRun      uint32

	// Passed and Failed are the attempts that a proof names.
	PassedBy, FailedBy *eventsv1.StepFinished
	// LastFruitless is the newest attempt that timed out or could not run.
	LastFruitless *eventsv1.StepFinished
	// Flake is set once attempts contradict each other.
	Flake bool
}

// Ledger holds the results of one queue. The zero value is not usable; see NewLedger.
type Ledger struct{ results map[Version]*Result }

// NewLedger is empty.
func NewLedger() *Ledger { return &Ledger{results: map[Version]*Result{}} }

func (l *Ledger) at(v Version) *Result {
	r := l.results[v]
	if r == nil {
		r = &Result{seen: map[uint32]bool{}}
		l.results[v] = r
	}
	return r
}

// Apply folds one finished step. It says false for a repeat: the first record of an attempt stands.
func (l *Ledger) Apply(f *eventsv1.StepFinished) bool {
	r := l.at(Version{f.Target, f.Hash})
	if r.seen[f.Attempt] {
		return false
	}
	r.seen[f.Attempt] = true
	if len(f.OutputTail) > 0 {
		// The output is read from the event itself; kept for every version it would outweigh the rest.
		f = proto.Clone(f).(*eventsv1.StepFinished)
		f.OutputTail = nil
	}
	switch f.Outcome {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
		if !r.passed {
			r.passed, r.failedBeforePass, r.PassedBy = true, r.failed, f
		}
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		r.failed++
		r.FailedBy = f
	case eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
		r.timedOut++
		r.LastFruitless = f
	case eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN:
		r.couldNotRun++
		r.LastFruitless = f
	}
	r.Flake = r.passed && r.failed > 0
	return true
}

// MarkTrivial notes that no command verifies the version.
func (l *Ledger) MarkTrivial(v Version) { l.at(v).trivial = true }

// Result gives what is known of a version, nil if nothing is.
func (l *Ledger) Result(v Version) *Result { return l.results[v] }

// State is the version's state under the policy. Of contradicting results the first that settled it
// stands (M20a).
func (l *Ledger) State(v Version, policy *eventsv1.StepPolicy) State {
	if v.Hash == "" {
		return Green // the tree lacks the target
	}
	r := l.results[v]
	if r == nil {
		return Unknown
	}
	return r.State(policy)
}

// State is the result's state under the policy.
func (r *Result) State(policy *eventsv1.StepPolicy) State {
	switch {
	case r.trivial:
		return Green
	case r.passed && r.failedBeforePass <= policy.GetFailedRetries():
		return Green
	case r.failed > policy.GetFailedRetries():
		return Red
	case r.timedOut > policy.GetTimedOutRetries(), r.couldNotRun > policy.GetInfrastructureRetries():
		return Exhausted
	}
	return Unknown
}

// NextAttempt is the number that the next attempt at the version gets.
func (l *Ledger) NextAttempt(v Version) uint32 {
	r := l.results[v]
	if r == nil {
		return 1
	}
	n := uint32(1)
	for r.seen[n] {
		n++
	}
	return n
}

// Withdraw forgets what speaks against a version: a change was rejected or ejected for it, so it has had
// its effect, and who submits the same again gets it run again.
func (l *Ledger) Withdraw(v Version) {
	r := l.results[v]
	if r == nil {
		return
	}
	r.failed, r.failedBeforePass, r.timedOut, r.couldNotRun = 0, 0, 0, 0
	r.FailedBy, r.LastFruitless, r.Flake = nil, nil, false
}
