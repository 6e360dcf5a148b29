package evidence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// naiveState goes through the attempts in the order of the log until one settles the version.
func naiveState(trivial bool, steps []*eventsv1.StepFinished, withdrawn, outdated uint32, p *eventsv1.StepPolicy) evidence.State {
	if trivial {
		return evidence.Green
	}
	count := map[eventsv1.StepOutcome]uint32{}
	seen := map[uint32]bool{}
	for _, s := range steps {
		if seen[s.Attempt] {
			continue
		}
		seen[s.Attempt] = true
		if s.Attempt <= outdated {
			continue
		}
		passed := s.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		if !passed && s.Attempt <= withdrawn {
			continue
		}
		count[s.Outcome]++
		switch {
		case count[eventsv1.StepOutcome_STEP_OUTCOME_FAILED] > p.FailedRetries:
			return evidence.Red
		case passed:
			return evidence.Green
		}
	}
	if count[eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT] > p.TimedOutRetries || count[eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN] > p.InfrastructureRetries {
		return evidence.Exhausted
	}
	return evidence.Unknown
}

// TestM24aAQuarantinedVersionIsGreenOnceItIsSettled, by whichever order of results and quarantines; a version that is not settled
// is run. What was tolerated counts again once the quarantine is over.
func TestM24aAQuarantinedVersionIsGreenOnceItIsSettled(t *testing.T) {
	r := seedtest.Random(t)
	tolerated, back := 0, 0
	policy := &eventsv1.StepPolicy{FailedRetries: 1, TimedOutRetries: 1, InfrastructureRetries: 1}
	for range 5000 {
		l, plain := evidence.NewLedger(), evidence.NewLedger()
		versions := []evidence.Version{{Target: "//a", Hash: "1"}, {Target: "//a", Hash: "2"}, {Target: "//ab", Hash: "1"}, {Target: "//b", Hash: "1"}}
		in := map[string]bool{}
		for range r.IntN(20) {
			v := versions[r.IntN(len(versions))]
			before := map[evidence.Version]evidence.State{}
			for _, v := range versions {
				before[v] = l.State(v, policy)
			}
			switch r.IntN(5) {
			case 0:
				name := []string{"//a", "//a*", "//b"}[r.IntN(3)]
				in[name] = r.IntN(2) == 0
				m := proto.Message(&eventsv1.QuarantineEnded{Target: name})
				if in[name] {
					m = &eventsv1.TargetQuarantined{Target: name, UntilUs: 1}
				}
				flipped := l.Quarantine(m)
				for _, v := range versions {
					if l.State(v, policy) != before[v] && !slices.Contains(flipped, v) {
						t.Fatalf("%v became %v and is not named by %v", v, l.State(v, policy), flipped)
					}
				}
			default:
				f := &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: l.NextAttempt(v), Outcome: eventsv1.StepOutcome(1 + r.IntN(5))}
				l.Apply(f)
				plain.Apply(f)
			}
		}
		for _, v := range versions {
			quarantined := in["//"+strings.TrimPrefix(v.Target, "//")] && v.Target != "//ab" || in["//a*"] && strings.HasPrefix(v.Target, "//a")
			want := plain.State(v, policy)
			if quarantined && want != evidence.Unknown {
				if want != evidence.Green {
					tolerated++
				}
				if l.Result(v).Tolerated(policy) != (want != evidence.Green) {
					t.Fatalf("%v is %v without the quarantine, and tolerated: %v", v, want, l.Result(v).Tolerated(policy))
				}
				want = evidence.Green
			} else if want == evidence.Red {
				back++
			}
			if got := l.State(v, policy); got != want {
				t.Fatalf("%v is %v, want %v; quarantined %v", v, got, want, in)
			}
		}
	}
	if tolerated == 0 || back == 0 {
		t.Errorf("%d versions were tolerated, %d red: the runs show nothing", tolerated, back)
	}
}

func TestTheWholeRepositoryIsNeverQuarantined(t *testing.T) {
	l := evidence.NewLedger()
	for _, name := range []string{"", targets.Repository} {
		l.Quarantine(&eventsv1.TargetQuarantined{Target: name})
	}
	l.Quarantine(&eventsv1.TargetQuarantined{Target: "*"})
	if len(l.Quarantines()) != 1 || l.Quarantined(targets.Repository) || !l.Quarantined("//a") {
		t.Errorf("quarantined are %v", l.Quarantines())
	}
}

// TestM19aM20aM24AgreeWithANaiveTwin: a version is green, red or exhausted by the first attempts that settle it
// under the policy; an aborted attempt says nothing; of an attempt that is reported twice the first record
// stands; what was withdrawn speaks against nobody, what is outdated says nothing (M23c); one version's results are nothing to another's.
func TestM19aM20aM24AgreeWithANaiveTwin(t *testing.T) {
	r := seedtest.Random(t)
	const outdatedToo, failedToo = evidence.Exhausted + 1, evidence.Exhausted + 2
	count := map[evidence.State]int{}
	for range 20_000 {
		versions := []evidence.Version{{Target: "a", Hash: "1"}, {Target: "a", Hash: "2"}, {Target: "b", Hash: "1"}}
		l := evidence.NewLedger()
		steps := map[evidence.Version][]*eventsv1.StepFinished{}
		withdrawn, outdated := map[evidence.Version]uint32{}, map[evidence.Version]uint32{}
		var log []*eventsv1.StepFinished // those that are no repeats
		trivial := map[evidence.Version]bool{}
		for range r.IntN(14) {
			v := versions[r.IntN(len(versions))]
			switch n := r.IntN(20); {
			case n == 0:
				l.MarkTrivial(v)
				trivial[v] = true
			case n < 3:
				upTo := uint32(r.IntN(4))
				l.Withdraw(v, upTo)
				withdrawn[v] = max(withdrawn[v], upTo)
			case n < 5:
				upTo := uint32(r.IntN(4))
				l.Outdate(v, upTo)
				outdated[v] = max(outdated[v], upTo)
			default:
				// Attempts are mostly in order; some are missing, some are told twice.
				f := &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: uint32(1 + r.IntN(6)), Outcome: eventsv1.StepOutcome(1 + r.IntN(5))}
				if r.IntN(2) == 0 {
					f.Attempt = l.NextAttempt(v)
				}
				seen := false
				for _, s := range steps[v] {
					seen = seen || s.Attempt == f.Attempt
				}
				if l.Apply(f) == seen {
					t.Fatalf("attempt %d of %v after %v: a repeat is %v", f.Attempt, v, steps[v], seen)
				}
				steps[v] = append(steps[v], f)
				if !seen {
					log = append(log, f)
				}
			}
		}
		policy := &eventsv1.StepPolicy{FailedRetries: uint32(r.IntN(3)), TimedOutRetries: uint32(r.IntN(3)), InfrastructureRetries: uint32(r.IntN(3))}
		for _, v := range versions {
			what := fmt.Sprintf("%v of %v, withdrawn up to %d, trivial %v, under %v", v, steps[v], withdrawn[v], trivial[v], policy)
			what = fmt.Sprintf("%s, outdated up to %d", what, outdated[v])
			got, want := l.State(v, policy), naiveState(trivial[v], steps[v], withdrawn[v], outdated[v], policy)
			if got != want {
				t.Fatalf("%s, want %s: %s", got, want, what)
			}
			count[got]++
			checkNames(t, l.Result(v), got, steps[v], max(withdrawn[v], outdated[v]), outdated[v], what)
			next := l.NextAttempt(v)
			for _, s := range steps[v] {
				if s.Attempt == next {
					t.Fatalf("attempt %d is over already: %s", next, what)
				}
			}
			for n := uint32(1); n < next; n++ {
				over := false
				for _, s := range steps[v] {
					over = over || s.Attempt == n
				}
				if !over {
					t.Fatalf("attempt %d comes before %d: %s", n, next, what)
				}
			}
		}
		green, red := versions[r.IntN(3)], versions[r.IntN(3)]
		var pass *eventsv1.StepFinished // the last one of green if no failure of red that counts comes before it
		failed := false
		for _, f := range log {
			switch v := (evidence.Version{Target: f.Target, Hash: f.Hash}); {
			case f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED && v == green && f.Attempt > outdated[v]:
				pass, failed = f, false
			case f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && v == red && f.Attempt > max(withdrawn[v], outdated[v]):
				failed = true
			}
		}
		with := naiveFailedWith(log, green, red, max(withdrawn[red], outdated[red]))
		if got := l.FailedWith(green, red); got != with {
			t.Fatalf("%v failed with %v: %v, want %v, in %v", green, red, got, with, log)
		}
		if with {
			count[failedToo]++
		}
		if trivial[green] || !failed {
			pass = nil
		}
		if got := l.Outdated(green, red); got != pass {
			t.Fatalf("%v is outdated by %v at %v, want %v, in %v", green, red, got, pass, log)
		}
		if pass != nil {
			count[outdatedToo]++
		}
	}
	if count[outdatedToo] < 200 || count[failedToo] < 200 {
		t.Errorf("only %d times outdated, and %d times failed with another", count[outdatedToo], count[failedToo])
	}
	for s := evidence.Unknown; s <= evidence.Exhausted; s++ {
		if count[s] < 500 {
			t.Errorf("only %d times %s", count[s], s)
		}
	}
}

// naiveFailedWith cuts the log at the last failure of red that counts, one whose number is above taken. Of's results
// before that end with a failure, or those after it hold one.
func naiveFailedWith(log []*eventsv1.StepFinished, of, red evidence.Version, taken uint32) bool {
	at := -1
	for i, f := range log {
		if f.Target == red.Target && f.Hash == red.Hash && f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && f.Attempt > taken {
			at = i
		}
	}
	results := func(log []*eventsv1.StepFinished) (list []eventsv1.StepOutcome) {
		for _, f := range log {
			if f.Target == of.Target && f.Hash == of.Hash && (f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED || f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED) {
				list = append(list, f.Outcome)
			}
		}
		return list
	}
	if at < 0 {
		return false
	}
	before, after := results(log[:at]), results(log[at+1:])
	return len(before) > 0 && before[len(before)-1] == eventsv1.StepOutcome_STEP_OUTCOME_FAILED || slices.Contains(after, eventsv1.StepOutcome_STEP_OUTCOME_FAILED)
}

// checkNames: what is named in a proof is an attempt of that outcome, and for a failure one that counts.
func checkNames(t *testing.T, r *evidence.Result, s evidence.State, steps []*eventsv1.StepFinished, withdrawn, outdated uint32, what string) {
	t.Helper()
	if r == nil {
		if s != evidence.Unknown {
			t.Fatalf("%s without a result: %s", s, what)
		}
		return
	}
	if p := r.PassedBy; p != nil && (p.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || p.Attempt <= outdated) {
		t.Fatalf("passed by %v: %s", p, what)
	}
	if s == evidence.Red && r.FailedBy == nil || s == evidence.Exhausted && r.LastFruitless == nil {
		t.Fatalf("%s by nothing: %s", s, what)
	}
	if f := r.FailedBy; f != nil && (f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED || f.Attempt <= withdrawn) {
		t.Fatalf("failed by %v: %s", f, what)
	}
	if f := r.LastFruitless; f != nil && f.Attempt <= withdrawn {
		t.Fatalf("exhausted by %v: %s", f, what)
	}
}

func TestAVersionThatTheTreeLacksIsGreen(t *testing.T) {
	l := evidence.NewLedger()
	if s := l.State(evidence.Version{Target: "a"}, nil); s != evidence.Green {
		t.Errorf("it is %s", s)
	}
	l.Apply(&eventsv1.StepFinished{Target: "a", Hash: "1", Attempt: 1, OutputTail: []byte("long"), Decisive: []string{"a.go:1: x"}, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	if r := l.Result(evidence.Version{Target: "a", Hash: "1"}); len(r.FailedBy.OutputTail)+len(r.FailedBy.Decisive) != 0 {
		t.Error("the output of a step is kept")
	}
}
