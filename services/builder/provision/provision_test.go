package provision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
)

func TestAStepIsGivenThisAndNothingElse(t *testing.T) {
	t.Setenv("OF_THE_SERVICE", "secret")
	t.Setenv("PATH", "/of/the/service")
	queue := configuration.NewQueue("main", configuration.Defaults{Workers: 1})
	queue.Steps.Environment.Variables = map[string]string{"A": "queue", "B": "queue", "LANG": "de_DE", "LANDFALL_QUEUE": "other"}
	s := Step{
		Queue: "main", Settings: queue.Steps, Scratch: "/s", Limit: time.Minute,
		Target: targets.Target{Name: "//a:t", Commands: []targets.Command{
			{Name: "one", Argv: []string{"x"}, Dir: "a", Env: []string{"A=repository", "LANDFALL_STEP=other"}, Timeout: time.Second},
			{Name: "two", Argv: []string{"y"}, Timeout: time.Hour},
		}},
	}
	got := s.Commands()
	want := []string{
		"A=repository", "B=queue", "CI=true", "HOME=/s/home", "LANDFALL_QUEUE=main", "LANDFALL_STEP=one", "LANDFALL_TARGET=//a:t",
		"LANDFALL_TARGET_HASH=" + strings.Repeat("0", 64), "LANG=de_DE", "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR=/s/tmp",
	}
	if !slices.Equal(got[0].Environment, want) {
		t.Errorf("environment\n%s\nwant\n%s", strings.Join(got[0].Environment, "\n"), strings.Join(want, "\n"))
	}
	if got[0].Timeout != time.Second || got[1].Timeout != time.Minute || got[0].Dir != "a" || got[1].Name != "two" || got[1].Argv[0] != "y" {
		t.Errorf("commands %+v", got)
	}
}
