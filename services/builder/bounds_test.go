package builder

import (
	"runtime"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
)

// Each eats, or forks, up to a bound of its own, should nothing bound it.
func TestAStepThatTakesTooMuchFailsAndNoOther(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing bounds steps here")
	}
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	limit, processes := configuration.Size(128<<20), 300
	s.config.Builder.MemoryLimit, s.config.Builder.ProcessLimit = &limit, &processes
	base := s.commit("", map[string]string{"landfall.yaml": `targets:
  - {name: eat, sources: ["**"], steps: [{name: test, run: [sh, -c, "head -c 600000000 /dev/zero | tail; sleep 1000"]}]}
  - {name: fork, sources: ["**"], steps: [{name: test, run: [sh, -c, "i=0; while test $i -lt 1000; do sleep 1000 & i=$((i+1)); done; wait"]}]}
  - {name: other, sources: ["**"], steps: [{name: test, run: [sh, -c, "sleep 3"]}]}
`})
	s.start("a")
	for build, target := range map[string]string{"b1": "//:eat", "b2": "//:fork", "b3": "//:other"} {
		s.decide(s.scheduled(build, base, asked(target)...))
	}
	finished := map[string]*eventsv1.StepFinished{}
	for len(finished) < 3 {
		f := await(s, func(*eventsv1.StepFinished) bool { return true })
		finished[f.Target] = f
	}
	for target, want := range map[string]string{
		"//:eat":   `used more than 128 MiB of memory (builder.memory_limit).`,
		"//:fork":  `had more than 300 processes and threads at once (builder.process_limit).`,
		"//:other": "",
	} {
		outcome := eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		if want == "" {
			outcome = eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		}
		if f := finished[target]; f.GetOutcome() != outcome || !strings.HasSuffix(f.GetReason(), want) {
			t.Errorf("%s: %s %q, want %q", target, f.GetOutcome(), f.GetReason(), want)
		}
	}
}
