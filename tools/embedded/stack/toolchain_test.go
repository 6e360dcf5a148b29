package stack

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"landfall.build/platform/configuration"
)

func TestAQueueOfGoModulesSaysWhatItIsBuiltWith(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho go1.99.1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	queue := func(adapter configuration.Adapter, path, toolchain string) configuration.Queue {
		return configuration.Queue{
			Analysis: configuration.Analysis{Adapter: adapter, Toolchain: toolchain},
			Steps:    configuration.Steps{Environment: configuration.Environment{Path: path}},
		}
	}
	before := &configuration.Configuration{Queues: map[string]configuration.Queue{
		"asked": queue(configuration.AdapterGo, dir+":/bin", ""), "written": queue(configuration.AdapterGo, dir, "image 7"),
		"without": queue(configuration.AdapterGo, "/nowhere", ""), "other": queue(configuration.AdapterManifest, dir, ""),
	}}
	after := withToolchains(t.Context(), before, slog.New(slog.DiscardHandler))
	for name, want := range map[string]string{"asked": "go1.99.1", "written": "image 7", "without": "", "other": ""} {
		if got := after.Queues[name].Analysis.Toolchain; got != want {
			t.Errorf("queue %s is built with %q, want %q", name, got, want)
		}
	}
	if before.Queues["asked"].Analysis.Toolchain != "" {
		t.Error("the caller's configuration was written to")
	}
}

func TestToolsAreWatchedForAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	replace := func(tool, script string) {
		t.Helper()
		// It is replaced as a package manager does, in one step.
		next := filepath.Join(dir, "next")
		if err := os.WriteFile(next, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	replace("go", "echo go1.98")
	replace("rustc", "exit 1") // another tool of the queue never answers
	asked := &configuration.Configuration{Queues: map[string]configuration.Queue{"q": {
		Analysis: configuration.Analysis{Adapters: []configuration.AdapterUse{{Adapter: configuration.AdapterCargo}, {Adapter: configuration.AdapterGo}}},
		Steps:    configuration.Steps{Environment: configuration.Environment{Path: dir + ":/bin"}},
	}}}
	started := withToolchains(t.Context(), asked, slog.New(slog.DiscardHandler))
	found := make(chan ToolsChangedError, 1)
	go func() {
		if changed, is := watchTools(t.Context(), asked, started, time.Millisecond); is {
			found <- changed
		}
	}()
	replace("go", "exit 1") // it is being replaced
	select {
	case changed := <-found:
		t.Fatalf("a tool that does not answer counts as another one: %v", changed)
	case <-time.After(200 * time.Millisecond):
	}
	replace("go", "echo go1.99")
	select {
	case changed := <-found:
		if want := (ToolsChangedError{"q", "go go1.98", "go go1.99"}); changed != want {
			t.Errorf("%v, want %v", changed, want)
		}
	case <-time.After(2 * time.Minute):
		t.Error("another version is not noticed")
	}
}
