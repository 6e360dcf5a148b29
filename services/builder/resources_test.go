package builder

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/memory"
)

// claiming is a manifest with a target for each folder, whose step declares something.
func claiming(declared map[string]string, script string) map[string]string {
	files := map[string]string{"landfall.yaml": "targets: []\n"}
	for folder, fields := range declared {
		files[folder+"/landfall.yaml"] = "targets: [{name: t, sources: [\"**\"], steps: [{name: check, run: [sh, check.sh], dir: " + folder + fields + "}]}]\n"
		files[folder+"/check.sh"] = script
	}
	return files
}

// alone fails if another step that runs it is not over.
const alone = "mkdir $OUTSIDE/lock || exit 1\nsleep 0.1\nrmdir $OUTSIDE/lock\n"

func TestStepsThatNameTheSameThingNeverRunTogether(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	base := s.commit("", claiming(map[string]string{"a": ", exclusive: [db]", "b": ", exclusive: [db, x]", "c": ", exclusive: [db]", "d": ", exclusive: [db]"}, alone))
	// Two instances with two workers each.
	s.start("one")
	s.start("two")
	names := []string{"//a:t", "//b:t", "//c:t", "//d:t"}
	s.decide(s.scheduled("b1", base, asked(names...)...))
	for range names {
		if f := await(s, func(*eventsv1.StepFinished) bool { return true }); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			t.Errorf("%s: %s %s", f.Target, f.Outcome, f.Reason)
		}
	}
}

func TestAStepThatDoesNotFitWaitsAndOthersPassIt(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.config.Builder.Resources = map[string]int{"gpus": 2}
	files := claiming(map[string]string{"a": ", resources: {gpus: 2}", "b": ", resources: {gpus: 1}", "c": ""}, "echo $LANDFALL_TARGET >>$OUTSIDE/runs; touch $OUTSIDE/$(basename $PWD).began; while [ ! -e $OUTSIDE/$(basename $PWD) ]; do sleep 0.02; done")
	base := s.commit("", files)
	s.start("one")
	s.decide(s.scheduled("b1", base, asked("//a:t", "//b:t", "//c:t")...))
	for _, began := range []string{"a.began", "c.began"} {
		s.exists(began)
	}
	s.touch("c")
	s.finished("//c:t")
	if _, err := os.Stat(s.outside("b.began")); err == nil {
		t.Error("a third GPU was found")
	}
	s.touch("a")
	s.exists("b.began")
	s.touch("b")
	if f := s.finished("//b:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Error(f)
	}
}

func TestAStepThatTakesMoreThanThereIsEndsAndSaysSo(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.InfrastructureRetries = 0
	s.config.Builder.Resources = map[string]int{"gpus": 1}
	base := s.commit("", claiming(map[string]string{"a": ", resources: {gpus: 2}", "b": ", resources: {memory_gb: 1}", "c": ""}, "true"))
	// While they are left to others, what fits runs.
	patient := s.start("one")
	s.decide(s.scheduled("b1", base, asked("//a:t", "//b:t", "//c:t")...))
	if f := await(s, func(*eventsv1.StepFinished) bool { return true }); f.Target != "//c:t" || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Errorf("first was %s: %s %q", f.Target, f.Outcome, f.Reason)
	}
	patient.stop()
	s.start("two", func(o *Options) { o.othersPatience = time.Millisecond })
	reasons := map[string]string{"//a:t": "2 of gpus, and this builder has 1", "//b:t": "1 of memory_gb, and this builder has 0"}
	for len(reasons) > 0 {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		want, is := reasons[f.Target]
		if !is || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, want) {
			t.Fatalf("%s: %s %q", f.Target, f.Outcome, f.Reason)
		}
		delete(reasons, f.Target)
	}
}

// exists waits for a file outside.
func (s *site) exists(name string) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Clean(s.outside(name))); err == nil {
			return
		}
	}
	s.t.Fatalf("%s did not appear", name)
}

func TestAStepRunsOnlyOnAMachineWithItsLabels(t *testing.T) {
	s := newSite(t, memory.Options{})
	queue := s.config.Queues[queueName]
	queue.Steps.RunsOn = []configuration.RunsOn{{Targets: []string{"//b*"}, Labels: []string{"arm"}}}
	s.config.Queues[queueName] = queue
	base := s.commit("", claiming(map[string]string{"a": ", runs_on: [gpu]", "b": "", "c": ""}, "true"))
	labelled := func(labels ...string) func(*Options) {
		return func(o *Options) {
			c := *o.Configuration
			c.Builder.Labels = labels
			o.Configuration = &c
		}
	}
	s.start("plain", labelled())
	s.decide(s.scheduled("b1", base, asked("//a:t", "//b:t", "//c:t")...))
	if f := s.finished("//c:t"); !strings.HasPrefix(f.Worker, "plain") {
		t.Error(f)
	}
	s.start("both", labelled("gpu", "arm"))
	for range 2 {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || !strings.HasPrefix(f.Worker, "both") {
			t.Error(f)
		}
	}
}

func TestAStepWhoseLabelNobodyHasEndsAndSaysSo(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.InfrastructureRetries = 0
	base := s.commit("", claiming(map[string]string{"a": ", runs_on: [gpu]"}, "true"))
	s.start("one", func(o *Options) { o.othersPatience = 300 * time.Millisecond })
	s.decide(s.scheduled("b1", base, asked("//a:t")...))
	if f := s.finished("//a:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, "the labels gpu, and no builder") {
		t.Error(f)
	}
}

// TestALabelThatNobodyHasHoldsUpNoOther: a step that nobody can run names a label that another step has by itself, which a builder
// that is busy can run.
func TestALabelThatNobodyHasHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, memory.Options{})
	s.policy.InfrastructureRetries = 0
	base := s.commit("", claiming(map[string]string{"a": ", runs_on: [gpu, lunar]", "b": ", runs_on: [gpu]"}, "true"))
	s.start("one", func(o *Options) {
		o.othersPatience = 100 * time.Millisecond
		o.Health = health.New("one", "test", somebody{health.Capacity{Pool: configuration.DefaultPool, Labels: []string{"gpu"}}}, slog.Default()).Service(events.ServiceBuilder)
	})
	s.decide(s.scheduled("b1", base, asked("//a:t", "//b:t")...))
	if f := s.finished("//a:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN {
		t.Error(f)
	}
	time.Sleep(12 * time.Second) // longer than the board is looked at
	for _, f := range drained[*eventsv1.StepFinished](s) {
		if f.Target == "//b:t" {
			t.Error(f)
		}
	}
}

// somebody is a board on which another builder of a pool lives.
type somebody struct{ can health.Capacity }

func (somebody) Ends(context.Context, []string) (map[health.TopicPartition]int64, error) {
	return nil, nil
}

func (somebody) Post(context.Context, []health.Beat) error { return nil }

func (s somebody) Read(context.Context) ([]health.Beat, error) {
	return []health.Beat{{Service: events.ServiceBuilder, Instance: "other", At: time.Now(), Can: s.can}}, nil
}

func TestAStepIsLeftToABuilderThatCanRunItHoweverLongThatIsBusy(t *testing.T) {
	for pool, left := range map[string]bool{configuration.DefaultPool: true, "another": false} {
		t.Run(pool, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, memory.Options{})
			s.policy.InfrastructureRetries = 0
			base := s.commit("", claiming(map[string]string{"a": ", runs_on: [gpu]"}, "true"))
			s.start("one", func(o *Options) {
				o.othersPatience = 100 * time.Millisecond
				o.Health = health.New("one", "test", somebody{health.Capacity{Pool: pool, Labels: []string{"gpu"}}}, slog.Default()).Service(events.ServiceBuilder)
			})
			s.decide(s.scheduled("b1", base, asked("//a:t")...))
			if !left {
				s.finished("//a:t")
				return
			}
			time.Sleep(12 * time.Second) // longer than the board is looked at
			if ended := drained[*eventsv1.StepFinished](s); len(ended) > 0 {
				t.Error(ended)
			}
		})
	}
}
