package builder

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

func TestInstancesThatRaceRunEachStepOnce(t *testing.T) {
	s := newSite(t, memory.Options{})
	byFolder := map[string]string{}
	var names []string
	for i := range 16 {
		folder := fmt.Sprintf("f%02d", i)
		byFolder[folder] = "echo run >>$OUTSIDE/" + folder
		names = append(names, "//"+folder+":t")
	}
	base := s.commit("", scripts(byFolder))
	for _, instance := range []string{"a", "b", "c"} {
		s.start(instance)
	}
	// Two builds want the same; one of them asks for half of it.
	s.decide(s.scheduled("b1", base, asked(names...)...), s.scheduled("b2", base, asked(names[8:]...)...))
	done := map[string]string{}
	for len(done) < len(names) {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 1 || done[f.Target] != "" {
			t.Fatalf("%v after %v", f, done)
		}
		done[f.Target] = f.Worker
	}
	for folder := range byFolder {
		if runs := s.appears(folder); runs != "run\n" {
			t.Errorf("%s ran %d times", folder, strings.Count(runs, "\n"))
		}
	}
	instances := map[string]bool{}
	for _, worker := range done {
		instances[worker[:1]] = true
	}
	t.Logf("%d instances took steps", len(instances))
}

func TestALostWorkersStepIsTakenOverOnceItsLeaseLapses(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"good": "true", "other": "true"}))
	// The hash is what any instance finds.
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//good:t", "//other:t")...))
	hash := s.finished("//good:t").Hash
	in.stop()

	fresh := newSite(t, memory.Options{})
	fresh.remote = s.remote
	until := time.Now().Add(time.Second).UnixMicro()
	fresh.append("landfall.builds", "builder", -1, &eventsv1.StepLeased{
		Target: "//good:t", Hash: hash, Attempt: 1, Lease: "lost", Worker: "ghost/1", StampUs: time.Now().UnixMicro(), UntilUs: until, Build: "b1",
	})
	fresh.start("b")
	fresh.decide(fresh.scheduled("b1", base, asked("//good:t", "//other:t")...))
	whichever := func(*eventsv1.StepFinished) bool { return true }
	f := await(fresh, whichever)
	if other := await(fresh, whichever); f.Target != "//good:t" { // which may be first where b takes its time to start
		f = other
	}
	if f.Target != "//good:t" || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 1 || f.StartedUs <= until {
		t.Errorf("taken over: %v; the lease held until %d", f, until)
	}
}

func TestALeaseIsExtendedWhileItsStepRuns(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.config.Builder.Lease = 1500 * time.Millisecond
	base := s.commit("", scripts(map[string]string{"long": until("go")}))
	s.start("a")
	s.start("b")
	s.decide(s.scheduled("b1", base, asked("//long:t")...))
	s.appears("go.runs")
	firstUntil := map[string]int64{}
	await(s, func(l *eventsv1.StepLeased) bool {
		if firstUntil[l.Lease] == 0 {
			firstUntil[l.Lease] = l.UntilUs
		}
		return l.StampUs > firstUntil[l.Lease] // without its extensions it would have lapsed
	})
	s.touch("go")
	if f := s.finished("//long:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 1 {
		t.Fatal(f)
	}
	if runs := s.appears("go.runs"); runs != "run\n" {
		t.Errorf("it ran %d times", strings.Count(runs, "\n"))
	}
}

func TestAStoppedInstanceSaysSoAndAnotherGoesOn(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"long": until("go")}))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//long:t")...))
	s.appears("go.runs")
	in.stop()
	if f := s.finished("//long:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED || f.Attempt != 1 || !strings.Contains(f.Reason, "shut down") {
		t.Fatal(f)
	}
	s.touch("go")
	s.start("b")
	if f := s.finished("//long:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 2 {
		t.Fatal(f)
	}
}

func TestAnInstanceThatIsKilledTakesUpItsStepsAtOnce(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"good": "true"}))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//good:t")...))
	hash := s.finished("//good:t").Hash
	in.stop()

	// What a killed process leaves: a lease of its own, far from lapsing.
	fresh := newSite(t, memory.Options{})
	fresh.remote = s.remote
	fresh.decide(fresh.scheduled("b1", base, asked("//good:t")...))
	fresh.append("landfall.builds", "builder", -1, &eventsv1.StepLeased{
		Target: "//good:t", Hash: hash, Attempt: 1, Lease: "lost", Worker: "a/7", StampUs: time.Now().UnixMicro(),
		UntilUs: time.Now().Add(time.Hour).UnixMicro(), Build: "b1",
	})
	fresh.start("a")
	if f := fresh.finished("//good:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED || f.Attempt != 1 || f.Worker != "a/7" {
		t.Fatal(f)
	}
	if f := fresh.finished("//good:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 2 {
		t.Fatal(f)
	}
}

func TestOneProcessAtATimeHasAnInstancesName(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockInstance(t.Context(), dir, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		again, err := lockInstance(t.Context(), dir, "a/b")
		if err == nil {
			again()
		}
		waiting <- err
	}()
	other, err := lockInstance(t.Context(), dir, "..")
	if err != nil {
		t.Fatal(err)
	}
	other()
	select {
	case err := <-waiting:
		t.Fatalf("a second holder: %v", err)
	default:
	}
	unlock()
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestTheEndOfAnAbortedStepIsWrittenHoweverLongItTakes: a lease without an end would count as a busy worker until it lapses.
func TestTheEndOfAnAbortedStepIsWrittenHoweverLongItTakes(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{
		"long": "trap 'echo asked >$OUTSIDE/asked; sleep 0.5; exit 1' TERM\n" + until("never"),
	}))
	s.start("a", func(o *Options) { o.endingLimit = time.Millisecond })
	build := s.scheduled("b1", base, asked("//long:t")...)
	s.decide(build)
	s.appears("never.runs")
	s.decide(&eventsv1.BuildAborted{Build: build.Build})
	s.appears("asked")
	if f := s.finished("//long:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED || !strings.Contains(f.Reason, errUnwanted.Error()) {
		t.Fatal(f)
	}
}
