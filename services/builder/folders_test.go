package builder

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
)

// TestNobodyElseReachesWhatStepsWrite: a program that a step has left with the bit of its owner makes whoever starts it the user of the
// service. An older release has made folders for all.
func TestNobodyElseReachesWhatStepsWrite(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", claiming(map[string]string{"a": ""}, "true"))
	folders := []string{"worktrees", "scratch", "caches"}
	at := func(name string) string { return filepath.Join(s.dir, "builder-one", name) }
	for _, name := range folders {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.start("one")
	s.decide(s.scheduled("b1", base, asked("//a:t")...))
	if f := s.finished("//a:t"); f.Outcome != stepPassed {
		t.Fatal(f)
	}
	for _, name := range folders {
		if info, err := os.Stat(at(name)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestContainersThatAFormerProcessHasLeftAreRemovedBeforeAnyStep: a builder that is killed leaves those of its steps, which go on in the
// worktrees that the next steps run in. A change whose step has an image could so write the result of another.
func TestContainersThatAFormerProcessHasLeftAreRemovedBeforeAnyStep(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", claiming(map[string]string{"a": ""}, "test -e "+s.outside("removed")))
	runtime := s.outside("runtime")
	scratch := filepath.Join(s.dir, "builder-one", "scratch", "one")
	// What a step of the former process had.
	if err := os.MkdirAll(filepath.Join(scratch, "q-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(scratch))
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in\nps) test \"$5\" = label=landfall=%x && echo 1f2e;;\n"+
		"rm) test \"$3\" = 1f2e && touch %q;;\nesac\n", sum[:8], s.outside("removed"))
	if err := os.WriteFile(runtime, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.start("one", func(o *Options) { o.Configuration.Builder.ContainerRuntime = runtime })
	s.decide(s.scheduled("b1", base, asked("//a:t")...))
	if f := s.finished("//a:t"); f.Outcome != stepPassed {
		t.Fatal(f)
	}
}

// TestContainersAreLookedForUntilNoneIsLeft: a machine without containers need not have a runtime that answers; one whose runtime did not
// answer may have containers still.
func TestContainersAreLookedForUntilNoneIsLeft(t *testing.T) {
	dir := t.TempDir()
	scratch, runtime, calls := filepath.Join(dir, "scratch"), filepath.Join(dir, "runtime"), filepath.Join(dir, "calls")
	config := &configuration.Configuration{Queues: map[string]configuration.Queue{"q": {}}}
	config.Builder.ContainerRuntime = runtime
	b := &Builder{Options: Options{Configuration: config, Logger: slog.New(slog.DiscardHandler)}}
	for _, want := range []struct {
		left, answers bool
		calls         int
	}{{false, true, 0}, {true, false, 1}, {false, false, 1}, {false, true, 1}, {false, true, 0}} {
		script := fmt.Sprintf("#!/bin/sh\necho $1 >>%q\nexit %d\n", calls, map[bool]int{true: 0, false: 1}[want.answers])
		if err := os.WriteFile(runtime, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		if want.left {
			if err := os.MkdirAll(filepath.Join(scratch, "q-1"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.clearScratch(t.Context(), scratch); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(calls)
		if got := strings.Count(string(text), "ps"); got != want.calls {
			t.Errorf("%+v: it is asked %d times", want, got)
		}
		if _, err := os.Stat(filepath.Join(scratch, "q-1")); !os.IsNotExist(err) {
			t.Errorf("%+v: what the step had is left: %v", want, err)
		}
		if err := os.RemoveAll(calls); err != nil {
			t.Fatal(err)
		}
	}
}
