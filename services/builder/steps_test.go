package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/builder/execution"
)

func TestAStepPassesOrFailsAndSaysWhy(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	base := s.commit("", scripts(map[string]string{
		"good": "echo fine; echo home=$HOME tmp=$TMPDIR; touch $TMPDIR/x $HOME/x; test -z \"$SECRET\"",
		"bad":  "echo broken; exit 3",
	}))
	t.Setenv("SECRET", "must not be inherited")
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//good:t", "//gone:t")...))
	p := s.prepared("b1")
	if p.Outcome != eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED || len(p.Versions) != 2 {
		t.Fatalf("prepared %v", p)
	}
	if v := p.Versions[0]; v.Hash == "" || v.Trivial || v.Absent {
		t.Errorf("//good:t is %v", v)
	}
	if v := p.Versions[1]; !v.Absent || v.Hash != "" {
		t.Errorf("//gone:t is %v, want absent", v)
	}
	if p.Tree != s.git("rev-parse", base+"^{tree}") {
		t.Errorf("tree %s", p.Tree)
	}
	f := s.finished("//good:t")
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || f.Attempt != 1 || f.Hash != p.Versions[0].Hash || len(f.Commands) != 1 {
		t.Errorf("//good:t: %v", f)
	}
	log, err := os.ReadFile(filepath.Join(LogDir(in.dir), filepath.FromSlash(f.Log)))
	if err != nil || !strings.HasPrefix(string(log), "fine\n") || string(log) != string(f.OutputTail) {
		t.Errorf("log %q, %v; tail %q", log, err, f.OutputTail)
	}
	// All steps of all targets verify the whole repository, the bad one among them.
	s.decide(s.scheduled("b2", base, asked("//:repository")...))
	whole := s.finished("//:repository")
	if whole.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED || whole.FailedCommand != "//bad:t check" || !strings.Contains(whole.Reason, "exit code 3") {
		t.Errorf("the repository: %v", whole)
	}
	scratch, err := filepath.Glob(filepath.Join(in.dir, "scratch", "a", "*", "*"))
	if err != nil || len(scratch) > 0 {
		t.Errorf("scratch is left: %v", scratch)
	}
}

func TestAFailedStepIsRunAgainAsOftenAsThePolicySays(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 2
	base := s.commit("", scripts(map[string]string{"flaky": "echo x >>$OUTSIDE/flaky; test $(wc -l <$OUTSIDE/flaky) -ge 3"}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//flaky:t")...))
	for attempt, want := range []eventsv1.StepOutcome{
		eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
	} {
		if f := s.finished("//flaky:t"); f.Attempt != uint32(attempt)+1 || f.Outcome != want {
			t.Fatalf("attempt %d: %v, want %v", attempt+1, f, want)
		}
	}
}

func TestARedStepEndsTheRestOfItsBuild(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	base := s.commit("", scripts(map[string]string{"slow": until("never"), "bad": "while [ ! -e $OUTSIDE/never.runs ]; do sleep 0.02; done; false"}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//slow:t", "//bad:t")...))
	if f := s.finished("//bad:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
		t.Fatal(f)
	}
	if f := s.finished("//slow:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_ABORTED || f.Reason == "" {
		t.Fatal(f)
	}
}

func TestAStepThatRunsTooLongTimesOut(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.TimeoutUs, s.policy.TimedOutRetries = (200 * time.Millisecond).Microseconds(), 1
	base := s.commit("", map[string]string{"landfall.yaml": "targets: [{name: t, sources: [\"*\"], steps: [{name: long, run: [sleep, \"1000\"], timeout: 1h}]}]\n"})
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//:t")...))
	for attempt := uint32(1); attempt <= 2; attempt++ {
		if f := s.finished("//:t"); f.Attempt != attempt || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT || f.FailedCommand != "long" {
			t.Fatalf("attempt %d: %v", attempt, f)
		}
	}
	// The retries are used up: what comes next is of another build.
	s.decide(s.scheduled("b2", s.commit(base, scripts(map[string]string{"other": "true"})), asked("//other:t")...))
	s.finished("//other:t")
	if all := drained[*eventsv1.StepFinished](s); len(all) != 3 {
		t.Errorf("%d steps finished, want 3: %v", len(all), all)
	}
}

func TestALogIsBoundedAndKeepsItsEnd(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.LogLimitBytes = 1000
	base := s.commit("", scripts(map[string]string{"loud": "i=0; while [ $i -lt 9000 ]; do echo line $i; i=$((i+1)); done; echo the end"}))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//loud:t")...))
	f := s.finished("//loud:t")
	log, err := os.ReadFile(filepath.Join(LogDir(in.dir), filepath.FromSlash(f.Log)))
	if err != nil {
		t.Fatal(err)
	}
	if f.OutputBytes < 80_000 || len(log) > 1000+execution.TailLimit+200 || !strings.HasPrefix(string(log), "line 0\n") || !strings.HasSuffix(string(log), "the end\n") {
		t.Errorf("%d bytes printed, log has %d", f.OutputBytes, len(log))
	}
	if len(f.OutputTail) > execution.TailLimit || !strings.HasSuffix(string(f.OutputTail), "the end\n") {
		t.Errorf("tail of %d bytes", len(f.OutputTail))
	}
}

func TestAWorkerWithoutADiskSpeaksAgainstNobody(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"good": "true"}))
	dir := filepath.Join(s.dir, "builder-a")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "worktrees"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//good:t")...))
	if f := s.finished("//good:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, "could not check the tree out") {
		t.Fatal(f)
	}
	if err := os.Remove(filepath.Join(dir, "worktrees")); err != nil {
		t.Fatal(err)
	}
	// The retry rests a moment first, so that the worker is mended by then.
	if f := s.finished("//good:t"); f.Attempt != 2 || f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Fatal(f)
	}
}

// The steps of all changes waited for a worker that a change had kept from checking it out.
func TestATreeThatCannotBeCheckedOutSpeaksAgainstItsChange(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", scripts(map[string]string{"good": "true"}))
	s.commit(base, scripts(map[string]string{"bad": "true"}))
	link := s.command(s.clone, "hash-object", "-w", "--stdin") // of nothing: a link that no system takes
	s.git("update-index", "--add", "--cacheinfo", "120000,"+link+",bad/link")
	bad := s.git("commit-tree", "-p", base, "-m", "bad", s.git("write-tree"))
	s.git("push", "--quiet", "origin", bad+":refs/heads/bad")
	s.start("a")
	b := s.scheduled("b1", base, asked("//bad:t")...)
	b.Change = change("C", pick(base, bad))
	s.decide(b)
	if f := s.finished("//bad:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, "cannot be checked out, while the mainline's can") {
		t.Fatal(f)
	}
	s.decide(s.scheduled("b2", base, asked("//good:t")...))
	if f := s.finished("//good:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Fatal(f)
	}
}

func TestARepositorysEnvironmentWinsOverTheQueues(t *testing.T) {
	s := newSite(t, memory.Options{})
	queue := s.config.Queues[queueName]
	queue.Steps.Environment.Variables["COLOUR"] = "red"
	base := s.commit("", map[string]string{
		"landfall.yaml": "environment: {COLOUR: blue}\ntargets: [{name: t, sources: [\"*\"], steps: [{name: one, run: [sh, -c, \"echo $COLOUR $CI\"]}, {name: two, run: [sh, -c, \"echo $OUTSIDE\"]}]}]\n",
	})
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//:t")...))
	f := s.finished("//:t")
	if want := "blue true\n" + s.outside("") + "\n"; string(f.OutputTail) != want || len(f.Commands) != 2 {
		t.Errorf("output %q, want %q; %v", f.OutputTail, want, f.Commands)
	}
}

func TestAPanicInAWorkerSpeaksAgainstNobody(t *testing.T) {
	s := &session{Builder: New(Options{Configuration: configuration.New(configuration.Defaults{Workers: 1}), Instance: "a"}), shared: newShared()}
	w := newWorker(s, 1)
	q := s.shared.queue(queueName)
	v := &eventsv1.TargetVersion{Target: "//a:t", Hash: "h"}
	b := &eventsv1.BuildScheduled{Build: "b"}
	q.Apply(&eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: b}}}}, steps.Origin{})
	q.Apply(&eventsv1.BuildPrepared{Build: "b", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{v}}, steps.Origin{})
	for range 3 {
		before := s.fitness.until
		f := w.runStep(t.Context(), &job{queue: queueName, step: q.Next(0, 1, nil, nil)[0]}, nil)
		if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, "The worker failed") || f.FinishedUs < f.StartedUs {
			t.Error(f)
		}
		if !s.fitness.until.After(before) {
			t.Error("the workers do not rest")
		}
	}
	if s.fitness.failures != 3 {
		t.Errorf("%d failures", s.fitness.failures)
	}
}

func TestACacheOutlivesTheStepThatFillsIt(t *testing.T) {
	s := newSite(t, memory.Options{})
	queue := s.config.Queues[queueName]
	queue.Steps.Caches = map[string]configuration.Cache{"mine": {Variable: "MINE", MaxSize: configuration.MiB, Share: configuration.ShareQueue, Trim: "all"}}
	s.config.Queues[queueName] = queue
	manifest := func(caches string) map[string]string {
		return map[string]string{"landfall.yaml": "targets: [{name: t, sources: [\"*\"], steps: [{name: run, caches: [" + caches + "], run: [sh, check.sh]}]}]\n",
			"check.sh": "cat $MINE/kept; echo $MINE; touch $HOME/x; echo filled >$MINE/kept"}
	}
	base := s.commit("", manifest("mine"))
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//:t")...))
	if f := s.finished("//:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || strings.Contains(string(f.OutputTail), "filled") {
		t.Fatal(f)
	}
	in.stop()
	s.start("a")
	again := s.commit(base, map[string]string{"other": "x"})
	s.decide(s.scheduled("b2", again, asked("//:t")...))
	if f := s.finished("//:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED ||
		string(f.OutputTail) != "filled\n"+filepath.Join(in.dir, "caches", "a", queueName, "mine", "1")+"\n" {
		t.Fatal(f)
	}
	s.decide(s.scheduled("b3", s.commit(again, manifest("nine")), asked("//:t")...))
	if f := s.finished("//:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || f.Reason != `The step asks for the cache "nine", which the queue's steps.caches does not have; without settings there are bun, cargo, go-build, go-mod, gradle, maven, npm, pip, pnpm, poetry, uv, yarn.` {
		t.Fatal(f)
	}
}
