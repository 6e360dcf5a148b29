package builder

import (
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

func TestAStepHasTheServicesThatItsManifestNames(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	manifest := func(run string) map[string]string {
		return map[string]string{"landfall.yaml": `targets:
  - name: t
    sources: ["*"]
    steps:
      - name: integration
        run: [sh, -c, 'test "$(cat $OUTSIDE/port)" = $DB_PORT && ` + run + `']
        services:
          - name: db
            run: [sh, -c, 'echo of the service; echo $DB_PORT >$OUTSIDE/port; sleep 1000']
            ready: {command: [sh, -c, 'test -s $OUTSIDE/port']}
            timeout: 20s
`}
	}
	base := s.commit("", manifest("echo works"))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//:t")...))
	if f := s.finished("//:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || string(f.OutputTail) != "works\n" {
		t.Errorf("%s: %s, output %q", f.Outcome, f.Reason, f.OutputTail)
	}
	s.decide(s.scheduled("b2", s.commit(base, manifest("exit 3")), asked("//:t")...))
	f := s.finished("//:t")
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED || !strings.Contains(string(f.OutputTail), "[output of service db]\nof the service\n") {
		t.Errorf("%s: %s, output %q", f.Outcome, f.Reason, f.OutputTail)
	}
}
