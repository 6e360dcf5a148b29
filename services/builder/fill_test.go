package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
)

// TestAColdGoCacheIsFilledFromTheMainlineOnce: what a step of a change leaves in a cache is seen by no other step before the change has
// landed.
func TestAColdGoCacheIsFilledFromTheMainlineOnce(t *testing.T) {
	if err := execution.LayersAvailable(t.Context(), t.TempDir()); err != nil {
		t.Skip(err)
	}
	s, base, names := newGoSite(t, 3, "", `[ -e $GOCACHE/std ] && echo warm >>$OUTSIDE/caches || echo cold >>$OUTSIDE/caches`)
	queue := s.config.Queues[queueName]
	queue.Steps.Groups = configuration.GroupsOff
	s.config.Queues[queueName] = queue
	change := s.commit(base, map[string]string{"a/x_test.go": "package a // 2\n", "new/go.mod": "module y\n"})
	build := s.scheduled("b1", base, asked(names...)...)
	build.Change = &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}, LandingCommits: []*eventsv1.LandingCommit{{Head: change, Base: base}}}
	s.start("a", func(o *Options) { o.Workers = 2 })
	s.decide(build)
	s.ends(1, names...)
	for name, want := range map[string]string{"caches": "warm\nwarm\nwarm\n", "fills": "list -e -export -test -deps ./... of a b c go.mod\n"} {
		got, err := os.ReadFile(s.outside(name))
		if err != nil || string(got) != want {
			t.Errorf("%s are %q (%v), want %q", name, got, err, want)
		}
	}
}

// TestAStepThatWaitsForAColdCacheSaysSo: its lease says so from when the cache is filled until that is done, and its log that it waited.
func TestAStepThatWaitsForAColdCacheSaysSo(t *testing.T) {
	if err := execution.LayersAvailable(t.Context(), t.TempDir()); err != nil {
		t.Skip(err)
	}
	s, base, names := newGoSite(t, 2, "", "while [ ! -e $OUTSIDE/run ]; do sleep 0.02; done; echo tested")
	queue := s.config.Queues[queueName]
	queue.Steps.Groups = configuration.GroupsOff
	s.config.Queues[queueName] = queue
	tool, err := os.ReadFile(filepath.Join(s.dir, "bin", "go"))
	if err != nil {
		t.Fatal(err)
	}
	held := strings.Replace(string(tool), "touch $GOCACHE/std", "while [ ! -e $OUTSIDE/filled ]; do sleep 0.02; done; touch $GOCACHE/std", 1)
	if err := os.WriteFile(filepath.Join(s.dir, "bin", "go"), []byte(held), 0o755); err != nil {
		t.Fatal(err)
	}
	in := s.start("a", func(o *Options) { o.Workers = 2 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	waits := map[string]bool{}
	for len(waits) < 2 {
		l := await(s, func(l *eventsv1.StepLeased) bool { return l.Filling != "" })
		if waits[l.Target] = true; l.Filling != "go-build" {
			t.Errorf("%s waits for %q", l.Target, l.Filling)
		}
	}
	s.touch("filled")
	for len(waits) > 0 {
		delete(waits, await(s, func(l *eventsv1.StepLeased) bool { return l.Filling == "" && waits[l.Target] }).Target)
	}
	s.touch("run")
	for target, list := range s.ends(1, names...) {
		log, err := os.ReadFile(filepath.Join(LogDir(in.dir), filepath.FromSlash(list[0].Log)))
		if first, rest, _ := strings.Cut(string(log), "\n"); err != nil || !strings.HasPrefix(first, "[the cache go-build was filled from the mainline first, which took ") || rest != "tested\n" {
			t.Errorf("%s: its log is %q (%v)", target, log, err)
		}
	}
}

// TestAModuleThatGoRefusesDoesNotKeepOthersFromTheCache: a go.mod that asks for a newer go, or that is broken.
func TestAModuleThatGoRefusesDoesNotKeepOthersFromTheCache(t *testing.T) {
	if err := execution.LayersAvailable(t.Context(), t.TempDir()); err != nil {
		t.Skip(err)
	}
	s, base, names := newGoSite(t, 1, "", `[ -e $GOCACHE/std ] && echo warm >>$OUTSIDE/caches || echo cold >>$OUTSIDE/caches`)
	base = s.commit(base, map[string]string{"amod/go.mod": "module refused\n", "amod/refused": "", "zmod/go.mod": "module z\n"})
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked(names...)...))
	s.ends(1, names...)
	want := "list -e -export -test -deps ./... of go.mod refused\nlist -e -export -test -deps ./... of a amod go.mod zmod\nlist -e -export -test -deps ./... of go.mod\n"
	for name, want := range map[string]string{"caches": "warm\n", "fills": want} {
		got, err := os.ReadFile(s.outside(name))
		if err != nil || string(got) != want {
			t.Errorf("%s are %q (%v), want %q", name, got, err, want)
		}
	}
}

func TestOnlyModulesThatGoFindsPackagesInAreFilled(t *testing.T) {
	for file, want := range map[string]bool{
		"go.mod": true, "tools/go.mod": true, "a/b.c/go.mod": true, "go.mod/x": false, "x/testdata/go.mod": false, "vendor/m/go.mod": false,
		".cache/go.mod": false, "a/_old/go.mod": false, "a/go.mod.txt": false,
	} {
		if isGoModule(file) != want {
			t.Errorf("%s: %v, want %v", file, !want, want)
		}
	}
}

func TestACacheIsFilledAsStepsCompile(t *testing.T) {
	target := targets.Target{Commands: []targets.Command{
		{Argv: []string{"sh", "-c", "-race"}}, {Argv: []string{"/usr/bin/go", "test", "-race", "-count=1", "-tags=a,b", "./x"}}, {Argv: []string{"go", "vet", "-race", "."}},
	}}
	if got := strings.Join(goFlags(target), " "); got != "-race -tags=a,b" {
		t.Errorf("flags are %q", got)
	}
}
