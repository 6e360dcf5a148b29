package flakes_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/flakes"
	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

const (
	passed = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	failed = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
)

func step(target, hash string, outcome eventsv1.StepOutcome) *eventsv1.StepFinished {
	return &eventsv1.StepFinished{Target: target, Hash: hash, Outcome: outcome, Attempt: 1, StartedUs: 10, FinishedUs: 30, Build: "b"}
}

func TestAVersionThatFailsAndThenPassesIsAFlake(t *testing.T) {
	s := flakes.New()
	for _, f := range []*eventsv1.StepFinished{
		step("//good", "1", passed), step("//broken", "1", failed), step("//broken", "2", passed),
		step("//flaky", "1", failed), step("//flaky", "1", failed), step("//flaky", "2", passed),
	} {
		if s.Apply(f) != nil {
			t.Errorf("%v is taken for a flake", f)
		}
	}
	if got := s.Apply(step("//flaky", "1", passed)); got == nil || got.Name != "//flaky" || got.LostUS != 40 || got.LastUS != 30 || got.LastBuild != "b" {
		t.Fatalf("a pass after two failures: %+v", got)
	}
	for i := range 3 {
		s.Apply(step("//flaky", fmt.Sprint("later", i), passed))
	}
	if list := s.Targets(); len(list) != 1 || list[0].Rate() != 0.25 {
		t.Errorf("flaky are %+v", list)
	}
	if len(s.Above(0.2, 4)) != 1 || len(s.Above(0.25, 4)) != 0 || len(s.Above(0.2, 5)) != 0 {
		t.Error("the bounds do not hold")
	}
	s.Restart("//flaky")
	if len(s.Above(0, 0)) != 0 {
		t.Error("a rate outlives its quarantine")
	}
}

func TestWhatWasTakenBackIsNoFlake(t *testing.T) {
	at := func(outcome eventsv1.StepOutcome, attempt uint32) *eventsv1.StepFinished {
		f := step("//t", "1", outcome)
		f.Attempt = attempt
		return f
	}
	upTo := []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//t", Hash: "1"}, Attempt: 2}}
	retried, refused := &eventsv1.ChangeRetried{Failed: upTo}, &eventsv1.Refused{BaseOutdated: upTo}
	rejected := &eventsv1.ChangeRejected{Reason: &eventsv1.Reason{Failed: upTo}}
	for _, c := range []struct {
		what  string
		facts []proto.Message
		lost  int64 // 0: no flake
	}{
		{"retried", []proto.Message{at(failed, 1), at(failed, 2), retried, at(passed, 3)}, 0},
		{"retried, and read before the failure", []proto.Message{retried, at(failed, 1), at(failed, 2), at(passed, 3)}, 0},
		{"failed on the mainline at that time", []proto.Message{at(failed, 2), refused, at(passed, 3)}, 0},
		{"failed again after the retry", []proto.Message{at(failed, 2), retried, at(failed, 3), at(passed, 4)}, 20},
		{"rejected and submitted again", []proto.Message{at(failed, 1), at(failed, 2), rejected, at(passed, 3)}, 40},
	} {
		s := flakes.New()
		s.Apply(step("//t", "0", failed))
		s.Apply(step("//t", "0", passed))
		before := s.Of("//t")
		for _, m := range c.facts {
			s.TakeBack(m)
			if f, is := m.(*eventsv1.StepFinished); is {
				s.Apply(f)
			}
		}
		got := s.Of("//t")
		if lost := got.LostUS - before.LostUS; lost != c.lost || (got.Flakes > before.Flakes) != (c.lost > 0) {
			t.Errorf("%s: %d flakes, %d µs lost; want %d lost", c.what, got.Flakes-before.Flakes, lost, c.lost)
		}
	}
}

func TestATargetThatWasMendedLosesItsRate(t *testing.T) {
	s := flakes.New()
	for i := range 20 {
		s.Apply(step("//t", fmt.Sprint(i), failed))
		s.Apply(step("//t", fmt.Sprint(i), passed))
	}
	before := s.Targets()[0].Rate()
	for i := range 2000 {
		s.Apply(step("//t", fmt.Sprint("mended", i), passed))
	}
	if after := s.Targets()[0].Rate(); before < 0.9 || after > 0.01 {
		t.Errorf("the rate went from %v to %v", before, after)
	}
}

// TestASnapshotHoldsAllFlakes goes through random steps, as bytes and back.
func TestASnapshotHoldsAllFlakes(t *testing.T) {
	random := seedtest.Random(t)
	fields := snapshottest.New(t)
	for range 50 {
		s := flakes.New()
		for range 200 {
			f := step(fmt.Sprint("//t", random.IntN(8)), fmt.Sprint(random.IntN(4)), eventsv1.StepOutcome(1+random.IntN(4)))
			f.Attempt = 1 + random.Uint32N(3)
			s.Apply(f)
			if random.IntN(10) == 0 {
				s.TakeBack(&eventsv1.ChangeRetried{Failed: []*eventsv1.Proof{{
					Version: &eventsv1.TargetVersion{Target: f.Target, Hash: f.Hash}, Attempt: f.Attempt,
				}}})
			}
		}
		bytes, err := proto.Marshal(s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		m := &snapshotv1.Flakes{}
		if err := proto.Unmarshal(bytes, m); err != nil {
			t.Fatal(err)
		}
		fields.Same(s, flakes.Restore(m))
	}
	fields.Done()
}
