package stack

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

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
