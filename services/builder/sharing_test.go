package builder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

func aborted(build, heir string) *eventsv1.BuildAborted {
	return &eventsv1.BuildAborted{Build: build, SupersededBy: heir, Why: "test"}
}

func TestAStepThatSeveralBuildsWantRunsOnceAndEndsWithTheLast(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"shared": until("go"), "else": until("go")}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//shared:t", "//else:t")...), s.scheduled("b2", base, asked("//shared:t")...))
	s.appears("go.runs")
	s.prepared("b1")
	for p := drained[*eventsv1.BuildPrepared](s); len(p) < 2; p = drained[*eventsv1.BuildPrepared](s) {
		s.read()
	}
	s.decide(aborted("b1", ""))
	if f := await(s, func(*eventsv1.StepFinished) bool { return true }); f.Target != "//else:t" || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
		t.Fatal(f)
	}
	s.decide(aborted("b2", ""))
	if f := s.finished("//shared:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED || f.Attempt != 1 {
		t.Fatal(f)
	}
}

func TestStepsOfASupersededBuildGoOn(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"kept": until("go"), "gone": until("go")}))
	next := s.commit(base, map[string]string{"gone/x": "x\n"})
	s.start("a")
	s.decide(s.scheduled("old", base, asked("//kept:t", "//gone:t")...))
	hash := s.prepared("old").Versions[0].Hash
	for strings.Count(s.appears("go.runs"), "\n") < 2 {
		time.Sleep(time.Millisecond)
	}
	s.decide(s.scheduled("new", next, asked("//kept:t", "//gone:t")...), aborted("old", "new"))
	// Its other version is not the new build's: that step ends, and the new one is run.
	if f := await(s, func(*eventsv1.StepFinished) bool { return true }); f.Target != "//gone:t" || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
		t.Fatal(f)
	}
	s.touch("go")
	results := map[string]*eventsv1.StepFinished{}
	for range 2 {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		results[f.Target] = f
	}
	if f := results["//kept:t"]; f == nil || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 1 || f.Hash != hash || f.Build != "old" {
		t.Errorf("kept: %v", f)
	}
	if f := results["//gone:t"]; f == nil || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 1 {
		t.Errorf("gone: %v", f)
	}
}

func TestAbortingEndsEveryProcessOfAStep(t *testing.T) {
	s := newSite(t, memory.Options{})
	// A daemon in a session of its own that ignores the polite signal, and a child.
	mark := fmt.Sprintf("%d", 100_000_000+time.Now().UnixNano()%100_000_000)
	script := "setsid sh -c 'trap \"\" TERM; sleep " + mark + "' &\nsleep " + mark + " &\necho up >$OUTSIDE/up\nwait\n"
	base := s.commit("", scripts(map[string]string{"tree": script}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//tree:t")...))
	s.appears("up")
	for deadline := time.Now().Add(patience); processes(t, mark) < 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the step's processes did not start")
		}
	}
	s.decide(aborted("b1", ""))
	if f := s.finished("//tree:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
		t.Fatal(f)
	}
	if left := processes(t, mark); left > 0 {
		t.Errorf("%d processes are left", left)
	}
}

// processes counts those that were started with an argument.
func processes(t *testing.T, argument string) (count int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(line), argument) {
			count++
		}
	}
	return count
}

func TestRecordsThatFailOrComeTwiceChangeNothing(t *testing.T) {
	failures := 0
	s := newSite(t, memory.Options{Fault: func(topic string, _ int32, e events.Envelope) memory.Verdict {
		_, leased := e.Message.(*eventsv1.StepLeased)
		if topic != events.TopicBuilds || leased {
			return memory.Deliver
		}
		switch failures++; failures % 3 {
		case 0:
			return memory.Deliver
		case 1:
			return memory.FailBefore
		}
		return memory.FailAfter
	}})
	base := s.commit("", scripts(map[string]string{"a": "echo run >>$OUTSIDE/a", "b": "echo run >>$OUTSIDE/b"}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//a:t", "//b:t")...))
	for _, target := range []string{"//a:t", "//b:t"} {
		if runs := s.appears(target[2:3]); runs != "run\n" {
			t.Errorf("%s ran %q", target, runs)
		}
	}
	s.decide(s.scheduled("b2", s.commit(base, map[string]string{"a/x": "x\n"}), asked("//a:t")...))
	for strings.Count(s.appears("a"), "\n") < 2 {
		time.Sleep(time.Millisecond)
	}
	for _, f := range drained[*eventsv1.StepFinished](s) {
		if f.Attempt != 1 || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			t.Error(f)
		}
	}
}

func TestDecisionsThatDoNotCountAreNotFollowed(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"a": "true"}))
	s.start("a")
	counted := s.term
	s.term = 4711 // no claim of the selector's
	s.decide(s.scheduled("stale", base, asked("//a:t")...))
	s.term = counted
	s.decide(s.scheduled("good", base, asked("//a:t")...))
	s.finished("//a:t")
	for _, p := range drained[*eventsv1.BuildPrepared](s) {
		if p.Build != "good" {
			t.Error(p)
		}
	}
}
