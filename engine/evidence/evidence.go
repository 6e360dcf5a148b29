// Package evidence folds finished steps: which target versions are proven green (V), which red (F), and which have used up
// their retries (M19a, M20a, M24), and which targets are quarantined (M24a). The enumerator, the builder and the land guard share it, so that all of them mean the same
// by "proven". A record (EvidenceForgotten) forgets the versions that no pending change has asked for in a long time, so that
// memory follows what is pending.
package evidence

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "landfall.build/events/v1"
)

// Version is a target version. Evidence is about versions, whatever tree they were built in.
type Version struct{ Target, Hash string }

// State is the state of a target version under a retry policy.
type State int

// The states of a version.
const (
	// Unknown is a version without a result that counts, and with retries left.
	Unknown State = iota
	// Green is a version in V.
	Green
	// Red is a version in F: the policy's retries of failed steps are used up.
	Red
	// Exhausted is a version that ran out of time, or could not run, more often than the policy retries.
	Exhausted
)

func (s State) String() string {
	return [...]string{"unknown", "green", "red", "exhausted"}[s]
}

// Result is what the finished attempts at one version have shown.
type Result struct {
	// attempts are the finished ones, each once, in the order of the log.
	attempts []attempt
	withdrawal
	// trivial is set if no command verifies the version: it is green by definition.
	trivial bool
	// after is the number after which the version's attempts are numbered.
	after uint32
	// quarantined: failing does not count against the version.
	quarantined bool `snapshot:"index"`

	// PassedBy and FailedBy are the attempts that a proof names; FailedBy is the last that counts.
	PassedBy, FailedBy *eventsv1.StepFinished
	// LastFruitless is the newest attempt that counts and timed out or could not run.
	LastFruitless *eventsv1.StepFinished
	// Flake is set while attempts that count contradict each other.
	Flake bool
	last  last

	// The number of attempts that count, by outcome: see tally.
	passed                                          bool
	failedBeforePass, failed, timedOut, couldNotRun uint32
}

// last holds the last attempts that count and passed, or failed; the zero value for none.
type last struct{ passed, failed attempt }

type attempt struct {
	number   uint32
	finished *eventsv1.StepFinished
	// sequence is its place among all finished attempts of the log, from 1 on.
	sequence uint64
}

// withdrawal holds the numbers up to which a version's attempts do not count.
type withdrawal struct {
	// withdrawn bounds the attempts that do not count against the version, outdated those that do not count at all.
	withdrawn uint32
	outdated  uint32
}

func (w withdrawal) upTo() uint32 { return max(w.withdrawn, w.outdated) }

func (r *Result) has(number uint32) bool {
	return slices.ContainsFunc(r.attempts, func(a attempt) bool { return a.number == number })
}

// Unreported returns how many attempts ended with a group of targets whose invocation gave no result for the version.
func (r *Result) Unreported() (n int) {
	for _, a := range r.attempts {
		if a.finished.GetUnreported() {
			n++
		}
	}
	return n
}

// tally counts all attempts again. A version has a handful of them.
func (r *Result) tally() {
	r.PassedBy, r.FailedBy, r.LastFruitless = nil, nil, nil
	r.passed, r.failedBeforePass, r.failed, r.timedOut, r.couldNotRun = false, 0, 0, 0, 0
	r.last = last{}
	for _, a := range r.attempts {
		if a.number <= r.outdated {
			continue
		}
		if a.finished.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			r.last.passed = a
			if !r.passed {
				r.passed, r.failedBeforePass, r.PassedBy = true, r.failed, a.finished
			}
			continue
		}
		if a.number <= r.withdrawn {
			continue
		}
		switch a.finished.Outcome {
		case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
			r.failed++
			r.FailedBy, r.last.failed = a.finished, a
		case eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT:
			r.timedOut++
			r.LastFruitless = a.finished
		case eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN:
			r.couldNotRun++
			r.LastFruitless = a.finished
		}
	}
	r.Flake = r.passed && r.failed > 0
}

// Ledger holds the results of one queue. The zero value is not usable; see NewLedger.
type Ledger struct {
	results map[Version]*Result
	// forgotten is the highest number of an attempt that was forgotten.
	forgotten uint32
	// sequence is the number of finished attempts that were read.
	sequence uint64
	// withdrawn is kept beside the results, as these may come later, or be forgotten and come again. withdrawals holds
	// the same versions, oldest first.
	withdrawn   map[Version]withdrawal
	withdrawals []Version
	// quarantines are those in force, by name.
	quarantines Quarantines
	// generation rises when something other than an attempt may have changed a state.
	generation uint64 `snapshot:"-"`
}

// keptWithdrawals is the number of withdrawals that are kept at least, beside those of results that are known or to come.
const keptWithdrawals = 8192

// NewLedger returns an empty ledger.
func NewLedger() *Ledger {
	return &Ledger{results: map[Version]*Result{}, withdrawn: map[Version]withdrawal{}}
}

func (l *Ledger) at(v Version) *Result {
	r := l.results[v]
	if r == nil {
		r = &Result{after: l.forgotten, withdrawal: l.withdrawn[v], quarantined: l.quarantines.Has(v.Target)}
		l.results[v] = r
	}
	return r
}

// Apply folds one finished step. It returns false for a repeat: the first record of an attempt counts.
func (l *Ledger) Apply(f *eventsv1.StepFinished) bool {
	r := l.at(Version{f.Target, f.Hash})
	if r.has(f.Attempt) {
		return false
	}
	f = WithoutOutput(f)
	l.sequence++
	r.attempts = append(r.attempts, attempt{f.Attempt, f, l.sequence})
	r.tally()
	return true
}

// WithoutOutput returns a finished step without the end of its output and its decisive lines, which readers find in the step's own record. Kept for
// every version, it would outweigh the rest.
func WithoutOutput(f *eventsv1.StepFinished) *eventsv1.StepFinished {
	if len(f.OutputTail) == 0 && len(f.Decisive) == 0 {
		return f
	}
	out := &eventsv1.StepFinished{}
	to := out.ProtoReflect()
	f.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Name() != "output_tail" && field.Name() != "decisive" {
			to.Set(field, v)
		}
		return true
	})
	return out
}

// MarkTrivial notes that no command verifies the version.
func (l *Ledger) MarkTrivial(v Version) { l.at(v).trivial = true }

// Result returns what is known of a version, nil if nothing is.
func (l *Ledger) Result(v Version) *Result { return l.results[v] }

// Generation returns a number that rises when something other than an attempt may have changed the state of a version.
func (l *Ledger) Generation() uint64 { return l.generation }

// State returns the version's state under the policy. Of contradicting results the first that settled it counts (M20a).
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

// State returns the result's state under the policy.
func (r *Result) State(policy *eventsv1.StepPolicy) State {
	if state := r.shown(policy); !r.quarantined || state == Unknown {
		return state
	}
	return Green
}

// Tolerated reports whether a green version is one because of a quarantine alone.
func (r *Result) Tolerated(policy *eventsv1.StepPolicy) bool {
	return r.quarantined && r.shown(policy) != Green && r.shown(policy) != Unknown
}

// shown returns what attempts have shown, whatever is quarantined.
func (r *Result) shown(policy *eventsv1.StepPolicy) State {
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

// NextAttempt returns the number that the next attempt at the version gets.
func (l *Ledger) NextAttempt(v Version) uint32 {
	r := l.results[v]
	if r == nil {
		return l.forgotten + 1
	}
	n := r.after + 1
	for r.has(n) {
		n++
	}
	return n
}

// Expect fixes the numbers of the version's next attempts, whatever is forgotten meanwhile. It is called when one starts.
func (l *Ledger) Expect(v Version) { l.at(v) }

// ForgottenRecord returns the record by which every reader forgets versions.
func ForgottenRecord(versions []Version) *eventsv1.EvidenceForgotten {
	f := &eventsv1.EvidenceForgotten{}
	for _, v := range versions {
		f.Versions = append(f.Versions, &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash})
	}
	return f
}

// Forget folds an EvidenceForgotten, and calls each, if it is not nil, for the versions that had a result.
//
// Results and the records that forget them stand in one topic, so all readers know the same of a version at the same place.
// Withdrawals stand in another one. So numbers of attempts are not used again, and a withdrawal that is read late cannot meet
// an attempt that was made since.
func (l *Ledger) Forget(f *eventsv1.EvidenceForgotten, each func(Version)) {
	l.generation++
	for _, t := range f.GetVersions() {
		v := Version{t.GetTarget(), t.GetHash()}
		r := l.results[v]
		if r == nil {
			continue
		}
		for _, a := range r.attempts { // perhaps more than the record's writer knew of
			l.forgotten = max(l.forgotten, a.number)
		}
		delete(l.results, v)
		if each != nil {
			each(v)
		}
	}
	l.forgetWithdrawals()
}

// forgetWithdrawals drops the oldest withdrawals beyond keptWithdrawals whose results are forgotten: all attempts from now on
// have higher numbers. The number alone does not tell, as a service that starts reads all withdrawals before the first
// result.
func (l *Ledger) forgetWithdrawals() {
	tooMany := len(l.withdrawals) - keptWithdrawals
	if tooMany <= 0 {
		return
	}
	l.withdrawals = slices.DeleteFunc(l.withdrawals, func(v Version) bool {
		if tooMany <= 0 || l.withdrawn[v].upTo() > l.forgotten || l.results[v] != nil {
			return false
		}
		tooMany--
		delete(l.withdrawn, v)
		return true
	})
}

// Of returns a new ledger with what this one knows of some versions, and nothing else.
func (l *Ledger) Of(versions []Version) *Ledger {
	of := NewLedger()
	of.forgotten, of.sequence, of.quarantines = l.forgotten, l.sequence, l.quarantines
	for _, v := range versions {
		if w, is := l.withdrawn[v]; is {
			of.withdraw(v, w)
		}
		if r := l.results[v]; r != nil {
			copied := *r
			copied.attempts = slices.Clone(r.attempts)
			of.results[v] = &copied
		}
	}
	return of
}

// ForgetTrivial forgets that no command verifies a version, if it has no attempts. Every record that names such a version tells
// it again.
func (l *Ledger) ForgetTrivial(v Version) {
	if r := l.results[v]; r != nil && len(r.attempts) == 0 {
		delete(l.results, v)
		l.generation++
	}
}

// TakeBack folds a record of landfall.changes that takes attempts back, and returns their versions. A rejection, an ejection (M20a) and a
// ChangeRetried (M23a) withdraw attempts; a refusal outdates them (M23c).
func (l *Ledger) TakeBack(m proto.Message) (versions []Version) {
	for _, p := range withdrawn(m) {
		l.Withdraw(VersionOf(p), p.GetAttempt())
		versions = append(versions, VersionOf(p))
	}
	if f, is := m.(*eventsv1.Refused); is {
		for _, p := range f.GetBaseOutdated() {
			l.Outdate(VersionOf(p), p.GetAttempt())
			versions = append(versions, VersionOf(p))
		}
	}
	return versions
}

// TakesBack reports whether a record of landfall.changes takes back what attempts have shown.
func TakesBack(m proto.Message) bool {
	f, is := m.(*eventsv1.Refused)
	return is && len(f.GetBaseOutdated()) > 0 || len(withdrawn(m)) > 0
}

// withdrawn returns the last attempt at each version that no longer counts against it.
func withdrawn(m proto.Message) []*eventsv1.Proof {
	switch f := m.(type) {
	case *eventsv1.ChangeRejected:
		return f.GetReason().GetFailed()
	case *eventsv1.ChangeEjected:
		return f.GetReason().GetFailed()
	case *eventsv1.ChangeRetried:
		return f.GetFailed()
	}
	return nil
}

// VersionOf returns the version that a proof is about.
func VersionOf(p *eventsv1.Proof) Version {
	return Version{Target: p.GetVersion().GetTarget(), Hash: p.GetVersion().GetHash()}
}

// Withdraw takes back what the attempts up to a number show against a version. A change was rejected or ejected for them, so
// they have had their effect: when somebody submits the same again, it is run again. It names the attempts because withdrawals
// and results stand in different topics: whichever a reader folds first, the same attempts count in the end.
func (l *Ledger) Withdraw(v Version, upTo uint32) { l.withdraw(v, withdrawal{withdrawn: upTo}) }

// Outdate takes back whatever the attempts up to a number show of a version: it has to be found again.
func (l *Ledger) Outdate(v Version, upTo uint32) { l.withdraw(v, withdrawal{outdated: upTo}) }

func (l *Ledger) withdraw(v Version, w withdrawal) {
	l.generation++
	old, had := l.withdrawn[v]
	if !had {
		l.withdrawals = append(l.withdrawals, v)
	}
	l.withdrawn[v] = old.and(w)
	if r := l.results[v]; r != nil {
		r.withdrawal = r.and(w)
		r.tally()
	}
}

func (w withdrawal) and(o withdrawal) withdrawal {
	return withdrawal{withdrawn: max(w.withdrawn, o.withdrawn), outdated: max(w.outdated, o.outdated)}
}

// FailedWith reports whether a version failed around the last failure of another one that counts: after that, or in the result that came
// last before it. Attempts at the version count or not. Both may have failed for something outside of their trees then (M23c).
func (l *Ledger) FailedWith(of, red Version) bool {
	o, r := l.results[of], l.results[red]
	if o == nil || r == nil || r.last.failed.finished == nil {
		return false
	}
	before := false // the last result before failed
	for _, a := range o.attempts {
		switch failed := a.finished.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED; {
		case !failed && a.finished.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
		case a.sequence < r.last.failed.sequence:
			before = failed
		case failed && a.sequence > r.last.failed.sequence:
			return true
		}
	}
	return before
}

// Outdated returns the last attempt by which a version is green, if it comes before the last failure of another version in the log; else
// nil. What a step finds outside of its tree may have changed between the two (M23c).
func (l *Ledger) Outdated(green, red Version) *eventsv1.StepFinished {
	g, r := l.results[green], l.results[red]
	if g == nil || r == nil || g.trivial || g.last.passed.sequence > r.last.failed.sequence {
		return nil
	}
	return g.last.passed.finished
}
