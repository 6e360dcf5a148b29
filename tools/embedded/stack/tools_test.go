package stack_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/embedded/stack"
)

// interpreter puts a Python into a folder and returns the folder of the one that it runs. As version 3.99.0 it refuses what has
// the word OLD in it.
func interpreter(t *testing.T, folder string) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("there is no Python here")
	}
	python := strings.TrimSpace(string(out))
	script := fmt.Sprintf(`#!/bin/sh
version=$(cat %[1]s/version)
[ "$*" = --version ] && { echo "Python $version"; exit; }
[ "$version" = 3.99.0 ] && grep -rq OLD --include=*.py . && { echo "SyntaxError: OLD" >&2; exit 1; }
exec %[2]s "$@"
`, folder, python)
	for _, name := range []string{"python", "python3"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Dir(python)
}

// TestWhatAnOlderToolProvedProvesNothingOfANewOne: the tool is replaced while a proven change waits to land.
func TestWhatAnOlderToolProvedProvesNothingOfANewOne(t *testing.T) {
	if os.Getenv(kafkatest.Variable) != "" {
		t.Skip("where the log is another one's, only the configuration names tools")
	}
	r := newRepository(t)
	for i := range folders {
		r.git("rm", "-q", fmt.Sprintf("f%d/landfall.yaml", i))
	}
	r.write("a/pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n")
	r.write("a/src/a/__init__.py", "ONE = 1\n")
	r.write("b/pyproject.toml", "[project]\nname = \"b\"\nversion = \"1\"\n")
	r.write("b/src/b/__init__.py", "ONE = 1\n")
	r.commit("python")
	r.git("push", "-q", "origin", "main")
	r.branch("old", "a/src/a/__init__.py", "OLD = 1\n")
	r.branch("new", "b/src/b/__init__.py", "TWO = 2\n")
	tools := t.TempDir()
	python := interpreter(t, tools)
	use := func(version string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(tools, "version"), []byte(version), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	use("3.9.0")
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Analysis.Adapter = configuration.AdapterPython
	q.Steps.Environment.Path = tools + ":" + python + ":" + q.Steps.Environment.Path
	config.Queues[queue] = q
	begin := func() *stack.Stack {
		t.Helper()
		s, err := stack.Start(context.Background(), stack.Options{Configuration: config, Logger: warnings(t), Version: "test", ToolsEvery: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := begin()
	defer func() { s.Close() }()
	c := clientOf(t, s)
	if _, err := c.Steer(t.Context(), queue, "", "pause", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	land(t, c, "old", "old")
	until(t, c, "old", func(v view.Change) bool { return v.State == view.StatePassed })
	use("3.99.0")
	select {
	case err := <-s.Failed():
		if changed, is := errors.AsType[stack.ToolsChangedError](err); !is || changed.Was != "python Python 3.9.0" || changed.Is != "python Python 3.99.0" {
			t.Errorf("the stack fails by %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the tools are others, and the services go on")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = begin()
	c = clientOf(t, s)
	if _, err := c.Steer(t.Context(), queue, "", "resume", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	// What was proven is not: its step runs again, and the new tool refuses it.
	until(t, c, "old", func(v view.Change) bool {
		return slices.ContainsFunc(v.Timeline, func(e view.Event) bool { return strings.Contains(e.Text, "are not proven, python://a among them") }) &&
			slices.ContainsFunc(v.Timeline, func(e view.Event) bool { return strings.HasPrefix(e.Text, "Step python://a failed") })
	})
	if v := settled(t, c, "old"); v.State != view.StateRejected {
		t.Errorf("a change that the new tool refuses is %s: %s", v.State, v.Why)
	}
	land(t, c, "new", "new")
	if v := settled(t, c, "new"); v.State != view.StateLanded {
		t.Errorf("a change that the new tool takes is %s: %s", v.State, v.Why)
	}
	if got := r.mainline(); slices.Contains(got, "old") {
		t.Errorf("the mainline is %q", got)
	}
}
