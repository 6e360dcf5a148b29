package lander

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/evidence"
	"landfall.build/engine/guard"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// nextRecord returns the record that the core writes next, nil for none.
func (d *harness) nextRecord() *runner.Append {
	for _, e := range d.core.Decide() {
		if a, is := e.(runner.Append); is {
			return &a
		}
	}
	return nil
}

// settleRecords has every record that is due written.
func (d *harness) settleRecords() (written []string) {
	for range 10 {
		a := d.nextRecord()
		if a == nil {
			return written
		}
		switch f := a.Message.(type) {
		case *eventsv1.TargetQuarantined:
			written = append(written, "+"+f.Target)
		case *eventsv1.QuarantineEnded:
			written = append(written, "-"+f.Target)
		default:
			return written
		}
		d.written(a.Message)
	}
	d.Fatal("quarantines are written without end")
	return nil
}

func (d *harness) wantRecords(when, want string) {
	d.Helper()
	if got := strings.Join(d.settleRecords(), " "); got != want {
		d.Errorf("%s: written %q, want %q", when, got, want)
	}
}

func TestAConfiguredQuarantineIsAFactUntilItsTimeIsOver(t *testing.T) {
	d := newHarness(t)
	until := d.now.Add(time.Hour)
	d.core.flaky = map[string]FlakyPolicy{"main": {Named: []Quarantine{{Target: "//e2e:*", Why: "a known race", Until: until}, {Target: "//old", Until: d.now}}}}
	d.wantRecords("at the start", "+//e2e:*")
	d.wantRecords("once it is there", "")
	d.core.flaky["main"].Named[0].Until = until.Add(time.Hour)
	d.wantRecords("with another end", "+//e2e:*")
	d.now = until
	d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now})
	d.wantRecords("before its new end", "")
	d.now = until.Add(time.Hour)
	d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now})
	d.wantRecords("at its end", "-//e2e:*")
}

func TestAQuarantineThatTheConfigurationDropsEndsAndAnOperatorsStays(t *testing.T) {
	d := newHarness(t)
	d.core.flaky = map[string]FlakyPolicy{"main": {Named: []Quarantine{{Target: "//a", Until: d.now.Add(time.Hour)}}}}
	d.settleRecords()
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.TargetQuarantined{
		Target: "//b", UntilUs: d.now.Add(time.Minute).UnixMicro(), Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_OPERATOR,
	})
	d.core.flaky = nil
	d.wantRecords("with an empty configuration", "-//a")
	d.now = d.now.Add(time.Minute)
	d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now})
	d.wantRecords("when the operator's time is over", "-//b")
}

func TestATargetAboveTheRateIsQuarantinedForAWhileAndOnce(t *testing.T) {
	d := newHarness(t)
	d.core.flaky = map[string]FlakyPolicy{"main": {Above: 0.2, Versions: 4, For: time.Hour}}
	step := func(hash string, attempt uint32, outcome eventsv1.StepOutcome) {
		d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//t", Hash: hash, Attempt: attempt, Outcome: outcome})
	}
	for _, hash := range []string{"1", "2"} {
		step(hash, 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED)
		step(hash, 2, eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	}
	d.wantRecords("after two versions", "")
	step("3", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	step("4", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	d.wantRecords("after four, two of them flakes", "+//t")
	d.now = d.now.Add(time.Hour)
	d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now})
	d.wantRecords("an hour later", "-//t")
	step("5", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED)
	d.wantRecords("later still", "")
}

// TestAQuarantineThatAPersonEndsIsNotBegunAnewAtOnce for what the target did while it was quarantined.
func TestAQuarantineThatAPersonEndsIsNotBegunAnewAtOnce(t *testing.T) {
	d := newHarness(t)
	d.core.flaky = map[string]FlakyPolicy{"main": {Above: 0.2, Versions: 2, For: time.Hour}}
	flake := func(hashes ...string) {
		for _, hash := range hashes {
			d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//t", Hash: hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
			d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//t", Hash: hash, Attempt: 2, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
		}
	}
	flake("1", "2")
	d.wantRecords("after two flakes", "+//t")
	flake("3", "4", "5")
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.QuarantineEnded{Target: "//t", Who: "ada"})
	d.wantRecords("once it is ended", "")
	flake("6", "7")
	d.wantRecords("after two more flakes", "+//t")
}

// TestAConfiguredQuarantineBeyondTheBoundIsNotWritten: what is not folded would be written again and again.
func TestAConfiguredQuarantineBeyondTheBoundIsNotWritten(t *testing.T) {
	d := newHarness(t)
	for i := range evidence.MaxQuarantines {
		d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.TargetQuarantined{
			Target: fmt.Sprint("//t", i), UntilUs: d.now.Add(time.Hour).UnixMicro(), Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_OPERATOR,
		})
	}
	d.core.flaky = map[string]FlakyPolicy{"main": {Named: []Quarantine{{Target: "//more", Until: d.now.Add(time.Hour)}}}}
	d.wantRecords("without room", "")
}

// TestM24aARedQuarantinedTargetLandsAndIsNamed: the guard's proof says which attempt was tolerated, and the intention names the target.
func TestM24aARedQuarantinedTargetLandsAndIsNamed(t *testing.T) {
	version := &eventsv1.TargetVersion{Target: "//flaky", Hash: "h", Part: 1}
	made := &Landing{
		Commits: []string{"t1"}, Tree: "tree", Quarantined: []string{"//flaky"},
		Candidate: guard.Candidate{Versions: []*eventsv1.TargetVersion{version}, Base: map[string]*eventsv1.TargetVersion{}},
	}
	d := newHarness(t)
	d.decide()
	q := d.core.queue("main")
	d.record(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: "//flaky", Hash: "h", Attempt: 1, Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED})
	if _, refused := q.answerTo(q.decisions[0], "m0", made, nil).(*eventsv1.Refused); !refused {
		t.Fatal("a red target lands without a quarantine")
	}
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.TargetQuarantined{Target: "//flaky", UntilUs: 1 << 60})
	intended, is := q.answerTo(q.decisions[0], "m0", made, nil).(*eventsv1.LandIntended)
	if !is || len(intended.Quarantined) != 1 || len(intended.Proof) != 1 || !intended.Proof[0].Quarantined || intended.Proof[0].Attempt != 1 {
		t.Fatalf("with the quarantine: %v", intended)
	}
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.QuarantineEnded{Target: "//flaky"})
	if _, refused := q.answerTo(q.decisions[0], "m0", made, nil).(*eventsv1.Refused); !refused {
		t.Fatal("a red target lands after its quarantine")
	}
}

// TestALandingInTheMakingIsMadeAgainAfterAQuarantine: its commits would not name the target.
func TestALandingInTheMakingIsMadeAgainAfterAQuarantine(t *testing.T) {
	d := newHarness(t)
	d.decide()
	d.core.Apply(runner.Input{Outcome: Outcome{Queue: "main", Head: "m0"}, Now: d.now})
	q := d.core.queue("main")
	if q.attempt.state != making {
		t.Fatalf("the attempt is %v", q.attempt.state)
	}
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.TargetQuarantined{Target: "//flaky", UntilUs: 1 << 60})
	if q.attempt.state != idle {
		t.Errorf("the attempt is %v", q.attempt.state)
	}
}
