package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

func TestUpWithoutAConfigurationFindsTargetsByWhatTheMainlineHolds(t *testing.T) {
	for name, c := range map[string]struct {
		files    []string
		said     string
		adapters []configuration.Adapter
	}{
		"go":    {[]string{"go.mod"}, "targets are found by go (", []configuration.Adapter{configuration.AdapterGo}},
		"mixed": {[]string{"go.mod", "sql/landfall.yaml"}, "targets are found by manifest, go (", []configuration.Adapter{configuration.AdapterManifest, configuration.AdapterGo}},
		"none":  {[]string{"README.md"}, "nothing can be proven, and no change will land", []configuration.Adapter{configuration.AdapterAuto}},
		"empty": {nil, "cannot be read, so targets are those of landfall.yaml", []configuration.Adapter{configuration.AdapterAuto}},
	} {
		t.Run(name, func(t *testing.T) {
			repository := filepath.Join(t.TempDir(), name)
			git(t, "", "init", "--quiet", "--initial-branch=main", repository)
			for _, file := range c.files {
				path := filepath.Join(repository, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("x\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if len(c.files) > 0 {
				git(t, repository, "add", "--all")
				git(t, repository, "commit", "--quiet", "-m", "one")
			}
			config, err := configurationFor(t.Context(), []string{repository}, "main", "")
			if err != nil {
				t.Fatal(err)
			}
			config.Data = t.TempDir()
			var out bytes.Buffer
			fitAdapters(t.Context(), config, slog.New(slog.DiscardHandler), &out)
			if !strings.Contains(out.String(), c.said) {
				t.Errorf("said %q, want %q", out.String(), c.said)
			}
			if ignored := len(config.Queues[name].Analysis.Uncovered.Ignore) > 0; ignored != (name != "empty") {
				t.Errorf("documents are ignored: %v", ignored)
			}
			uses := config.Queues[name].Analysis.Uses()
			for i, want := range c.adapters {
				if len(uses) != len(c.adapters) || uses[i].Adapter != want {
					t.Fatalf("adapters %+v, want %v", uses, c.adapters)
				}
			}
		})
	}
}
