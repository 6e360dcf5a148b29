package provision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
)

func TestAStepIsGivenThisAndNothingElse(t *testing.T) {
	t.Setenv("OF_THE_SERVICE", "secret")
	t.Setenv("PATH", "/of/the/service")
	queue := configuration.NewQueue("main", configuration.Defaults{Workers: 1})
	queue.Steps.Environment.Variables = map[string]string{"A": "queue", "B": "queue", "LANG": "de_DE", "LANDFALL_QUEUE": "other"}
	s := Step{
		Queue: queue, Scratch: "/s", Limit: time.Minute,
		Target: targets.Target{Name: "//a:t", Commands: []targets.Command{
			{Name: "one", Argv: []string{"x"}, Dir: "a", Env: []string{"A=repository", "LANDFALL_STEP=other"}, Timeout: time.Second},
			{Name: "two", Argv: []string{"y"}, Timeout: time.Hour},
		}},
	}
	var request execution.Request
	s.Fill(&request)
	got := request.Commands
	want := []string{
		"A=repository", "B=queue", "CI=true", "HOME=/s/home", "LANDFALL_QUEUE=main", "LANDFALL_STEP=one", "LANDFALL_TARGET=//a:t",
		"LANDFALL_TARGET_HASH=" + strings.Repeat("0", 64), "LANG=de_DE", "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "TMPDIR=/s/tmp",
	}
	if !slices.Equal(got[0].Environment, want) {
		t.Errorf("environment\n%s\nwant\n%s", strings.Join(got[0].Environment, "\n"), strings.Join(want, "\n"))
	}
	if want := []string{"A"}; !slices.Equal(got[0].OfTree, want) || len(got[1].OfTree) > 0 {
		t.Errorf("of the tree are %q and %q, want %q and none", got[0].OfTree, got[1].OfTree, want)
	}
	if got[0].Timeout != time.Second || got[1].Timeout != time.Minute || got[0].Dir != "a" || got[1].Name != "two" || got[1].Argv[0] != "y" {
		t.Errorf("commands %+v", got)
	}
}

func TestACacheIsInItsVariableUnlessThatIsSet(t *testing.T) {
	queue := configuration.NewQueue("main", configuration.Defaults{Workers: 1})
	queue.Analysis.Adapter = configuration.AdapterGo
	queue.Steps.Caches = map[string]configuration.Cache{"mine": {Variable: "MINE"}}
	queue.Steps.Environment.Variables = map[string]string{"GOCACHE": "/own"}
	target := targets.Target{Name: "//a:t", Commands: []targets.Command{
		{Name: "one", Needs: targets.Needs{Caches: []string{"mine", "npm"}}}, {Name: "two", Env: []string{"MINE=x"}},
	}}
	names := CacheNames(queue, target)
	if want := []string{"go-build", "go-mod", "mine", "npm"}; !slices.Equal(names, want) {
		t.Fatalf("caches %q, want %q", names, want)
	}
	s := Step{Queue: queue, Target: target, Caches: map[string]string{}}
	for _, name := range names {
		s.Caches[name] = "/c/" + name
	}
	var r execution.Request
	s.Fill(&r)
	for i, want := range [][]string{
		{"GOCACHE=/own", "GOMODCACHE=/c/go-mod", "MINE=/c/mine", "npm_config_cache=/c/npm"}, {"GOCACHE=/own", "GOMODCACHE=/c/go-mod", "MINE=x"},
	} {
		for _, entry := range r.Commands[i].Environment {
			name, _, _ := strings.Cut(entry, "=")
			if slices.Contains([]string{"GOCACHE", "GOMODCACHE", "MINE", "npm_config_cache"}, name) && !slices.Contains(want, entry) {
				t.Errorf("command %d has %s", i, entry)
			}
		}
		for _, entry := range want {
			if !slices.Contains(r.Commands[i].Environment, entry) {
				t.Errorf("command %d lacks %s", i, entry)
			}
		}
	}
	if want := []string{"/c/go-build", "/c/go-mod", "/c/mine", "/c/npm"}; !slices.Equal(r.Paths, want) {
		t.Errorf("paths %q, want %q", r.Paths, want)
	}
}
