package builder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/steplog"
)

// goTool stands for the go command. For several packages it does what the file "together" says, for one what "alone" says; it
// appends what it was asked for to "runs". What fills a cache it appends to "fills".
const goTool = `#!/bin/sh
[ "$1" = list ] && { echo "$@ of" * >>$OUTSIDE/fills; [ ! -e refused ] || exit 1; touch $GOCACHE/std; exit; }
echo "$@" >>$OUTSIDE/runs
case " $* " in *" -json "*) . $OUTSIDE/together;; *) . $OUTSIDE/alone;; esac
`

// newGoSite is a site whose queue has Go packages a, b, … with tests, and goTool in the place of the go command. It returns a
// commit with them and the names of their tests.
func newGoSite(t *testing.T, packages int, together, alone string) (*site, string, []string) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	queue := s.config.Queues[queueName]
	queue.Analysis.Adapter, queue.PoolWorkers = configuration.AdapterGo, 1
	bin := filepath.Join(s.dir, "bin")
	queue.Steps.Environment.Path = bin + ":" + queue.Steps.Environment.Path
	queue.Steps.Read = append(queue.Steps.Read, bin)
	s.config.Queues[queueName] = queue
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{filepath.Join(bin, "go"): goTool, s.outside("together"): together, s.outside("alone"): alone} {
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, names := map[string]string{"go.mod": "module x\n\ngo 1.24\n"}, []string(nil)
	for i := range packages {
		name := string(rune('a' + i))
		files[name+"/x_test.go"] = "package " + name + "\n"
		names = append(names, "x/"+name+" [test]")
	}
	return s, s.commit("", files), names
}

// event is a line of go test -json, as shell.
func event(action, pkg string) string {
	return fmt.Sprintf("echo '{\"Action\":\"%s\",\"Package\":\"x/%s\"}'\n", action, pkg)
}

// ends reads on until each of some targets has so many ends, and returns them by target.
func (s *site) ends(each int, names ...string) map[string][]*eventsv1.StepFinished {
	s.t.Helper()
	got := map[string][]*eventsv1.StepFinished{}
	for missing := each * len(names); missing > 0; missing-- {
		f := await(s, func(f *eventsv1.StepFinished) bool { return slices.Contains(names, f.Target) })
		got[f.Target] = append(got[f.Target], f)
	}
	return got
}

const (
	stepPassed  = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	stepFailed  = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	stepAborted = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED
)

func (s *site) runs() []string {
	s.t.Helper()
	return strings.Split(strings.TrimSpace(s.appears("runs")), "\n")
}

func TestOneInvocationVerifiesManyPackagesAndEachHasItsResultAsItComes(t *testing.T) {
	s, base, names := newGoSite(t, 3,
		event("pass", "a")+"while [ ! -e $OUTSIDE/seen ]; do sleep 0.02; done\n"+
			event("pass", "c")+`printf '%s\n' '{"Action":"output","Package":"x/b","Output":"b_test.go:3: no\n"}'`+"\n"+event("fail", "b")+"exit 1\n", "exit 9")
	in := s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	if p := s.prepared("b1"); len(p.Groups) != 1 || len(p.Groups[0].Versions) != 3 || !p.Groups[0].Ordered {
		t.Fatalf("groups %v", p.Groups)
	}
	first := s.finished(names[0])
	s.touch("seen")
	if first.Outcome != stepPassed || first.Group == "" || first.Attempt != 1 {
		t.Errorf("%v", first)
	}
	third, second := s.finished(names[2]), s.finished(names[1])
	if second.Outcome != stepFailed || second.Group != first.Group || !strings.Contains(string(second.OutputTail), "b_test.go:3: no") {
		t.Errorf("%v", second)
	}
	if len(second.Decisive) == 0 || !strings.Contains(second.Decisive[0], "b_test.go:3") {
		t.Errorf("decisive lines %q", second.Decisive)
	}
	if third.Outcome != stepPassed || second.StartedUs < third.FinishedUs {
		t.Errorf("%v", third)
	}
	if log, err := os.ReadFile(filepath.Join(LogDir(in.dir), second.Log)); err != nil || !strings.Contains(string(log), "b_test.go:3: no") || !strings.HasSuffix(second.Log, steplog.FailedEnding) {
		t.Errorf("log %s: %q, %v", second.Log, log, err)
	}
	if runs := s.runs(); !slices.Equal(runs, []string{"test -json -count=1 ./a ./b ./c"}) {
		t.Errorf("runs %q", runs)
	}
	// It is written again when it begins to wait for a cache that is being filled, and when it no longer does; and to extend it.
	leases := slices.CompactFunc(drained[*eventsv1.StepLeased](s), func(a, b *eventsv1.StepLeased) bool { return a.Filling == b.Filling })
	if len(leases) == 0 || len(leases) > 3 || leases[len(leases)-1].Filling != "" || slices.ContainsFunc(leases, func(l *eventsv1.StepLeased) bool { return len(l.Group) != 2 || l.Lease != first.Group }) {
		t.Errorf("leases %v", leases)
	}
}

func TestATargetWithoutAResultIsOpenAgainAndAfterTwoRunsAlone(t *testing.T) {
	for name, together := range map[string]string{
		"dies":                     event("pass", "a") + "kill -9 $$\n",
		"says nothing of two":      event("pass", "a"),
		"names others":             event("pass", "a") + event("pass", "B") + event("pass", "z"),
		"speaks of tests":          event("pass", "a") + `echo '{"Action":"pass","Package":"x/b","Test":"TestB"}'` + "\n",
		"prints broken lines":      event("pass", "a") + `echo '{"Action":"pass","Package":"x/b"'; echo 'ok x/b 0.1s'` + "\n",
		"fails though all passed":  event("pass", "a") + event("output", "b") + "exit 1\n",
		"is no such tool":          event("pass", "a") + "exec /nowhere/at/all\n",
		"closes its output":        event("pass", "a") + "exec >&-\nexit 0\n",
		"leaves a process that":    event("pass", "a") + "(sleep 60) &\nexit 0\n",
		"prints megabytes in line": event("pass", "a") + "head -c 3000000 /dev/zero | tr '\\0' x; echo\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base, names := newGoSite(t, 3, together, "case $* in *./b) exit 3;; *) exit 0;; esac\n")
			s.start("a", func(o *Options) { o.Workers = 1 })
			s.decide(s.scheduled("b1", base, asked(names...)...))
			// Of b and c nothing is said twice, and then each runs alone: b fails.
			b := []*eventsv1.StepFinished{s.finished(names[1]), s.finished(names[1]), s.finished(names[1])}
			for i, f := range b[:2] {
				if f.Outcome != stepAborted || !f.Unreported || f.Group == "" || f.Attempt != uint32(i+1) || !strings.Contains(f.Reason, "no result") {
					t.Errorf("attempt %d: %v", i+1, f)
				}
			}
			if f := b[2]; f.Outcome != stepFailed || f.Unreported || f.Group != "" || !strings.Contains(f.Reason, "exit code 3") {
				t.Errorf("alone: %v", f)
			}
			for _, f := range drained[*eventsv1.StepFinished](s) {
				if f.Target != names[0] && f.Outcome == stepPassed && f.Group != "" {
					t.Errorf("passed, and nobody said so: %v", f)
				}
			}
		})
	}
}

func TestAGroupThatHangsEndsAtTheLimitAndTheRestRunsAlone(t *testing.T) {
	s, base, names := newGoSite(t, 2, event("pass", "a")+"sleep 600\n", "exit 0\n")
	s.policy.TimeoutUs = (2 * time.Second).Microseconds()
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	if f := s.finished(names[0]); f.Outcome != stepPassed {
		t.Errorf("%v", f)
	}
	if f := s.finished(names[1]); f.Outcome != stepAborted || !f.Unreported || !strings.Contains(f.Reason, "limit") {
		t.Errorf("%v", f)
	}
	// With a proven, b is the only one left: it runs alone.
	if f := s.finished(names[1]); f.Outcome != stepPassed || f.Group != "" {
		t.Errorf("%v", f)
	}
}

func TestAStoppedInstanceGivesTheRestOfAGroupBackUnharmed(t *testing.T) {
	s, base, names := newGoSite(t, 3, event("pass", "a")+"while [ ! -e $OUTSIDE/go ]; do sleep 0.02; done\n"+event("pass", "b")+event("pass", "c"), "exit 9\n")
	in := s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	if f := s.finished(names[0]); f.Outcome != stepPassed {
		t.Fatalf("%v", f)
	}
	in.stop()
	for _, name := range names[1:] {
		if f := s.finished(name); f.Outcome != stepAborted || f.Unreported || !strings.Contains(f.Reason, "shut down") {
			t.Errorf("%v", f)
		}
	}
	s.touch("go")
	s.start("b", func(o *Options) { o.Workers = 1 })
	for _, name := range names[1:] {
		if f := s.finished(name); f.Outcome != stepPassed || f.Attempt != 2 || f.Group == "" {
			t.Errorf("%v", f)
		}
	}
	if runs := s.runs(); !slices.Equal(runs, []string{"test -json -count=1 ./a ./b ./c", "test -json -count=1 ./b ./c"}) {
		t.Errorf("runs %q", runs)
	}
}

func TestTheLeaseOfAGroupIsExtendedForWhatHasNoResult(t *testing.T) {
	s, base, names := newGoSite(t, 3, event("pass", "a")+"while [ ! -e $OUTSIDE/go ]; do sleep 0.02; done\n"+event("pass", "b")+event("pass", "c"), "exit 9\n")
	s.config.Builder.Lease = 1500 * time.Millisecond
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.start("b", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	s.finished(names[0])
	firstUntil := map[string]int64{}
	l := await(s, func(l *eventsv1.StepLeased) bool {
		if firstUntil[l.Lease] == 0 {
			firstUntil[l.Lease] = l.UntilUs
		}
		return l.StampUs > firstUntil[l.Lease]
	})
	if len(l.Group) != 1 {
		t.Errorf("extended %v", l)
	}
	s.touch("go")
	for name, list := range s.ends(1, names[1:]...) {
		if list[0].Outcome != stepPassed || list[0].Attempt != 1 {
			t.Errorf("%s: %v", name, list)
		}
	}
	if runs := s.runs(); len(runs) != 1 {
		t.Errorf("runs %q", runs)
	}
}

func TestAGroupGivesItsCachesBack(t *testing.T) {
	s, base, names := newGoSite(t, 2, "echo left >$GOCACHE/left\n"+event("pass", "a")+event("pass", "b"), "exit 9\n")
	in := s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	s.ends(1, names...)
	cache := filepath.Join(in.dir, "caches", "a", queueName, "go-build@mainline")
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		running, _ := filepath.Glob(filepath.Join(cache, "runs", "*"))
		left, _ := filepath.Glob(filepath.Join(cache, "layers", "*", "left"))
		shared, _ := filepath.Glob(filepath.Join(in.dir, "caches", "a", queueName, "go-build", "1", "left")) // without a sandbox
		if len(running) == 0 && len(left)+len(shared) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("running %q, left %q, shared %q", running, left, shared)
		}
	}
}
