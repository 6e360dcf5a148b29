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
	"landfall.build/tools/client"
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

// pythons is a repository of two Python packages whose steps are run by an interpreter whose version the test sets.
type pythons struct {
	*repository
	config  *configuration.Configuration
	version string
	t       *testing.T
}

func newPythons(t *testing.T, a string) *pythons {
	t.Helper()
	r := newRepository(t)
	for i := range folders {
		r.git("rm", "-q", fmt.Sprintf("f%d/landfall.yaml", i))
	}
	r.write("a/pyproject.toml", "[project]\nname = \"a\"\nversion = \"1\"\n")
	r.write("a/src/a/__init__.py", a)
	r.write("b/pyproject.toml", "[project]\nname = \"b\"\nversion = \"1\"\n")
	r.write("b/src/b/__init__.py", "ONE = 1\n")
	r.commit("python")
	r.git("push", "-q", "origin", "main")
	tools := t.TempDir()
	python := interpreter(t, tools)
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Analysis.Adapter = configuration.AdapterPython
	q.Steps.Environment.Path = tools + ":" + python + ":" + q.Steps.Environment.Path
	config.Queues[queue] = q
	return &pythons{r, config, filepath.Join(tools, "version"), t}
}

// use gives the interpreter a version.
func (p *pythons) use(version string) {
	p.t.Helper()
	if err := os.WriteFile(p.version, []byte(version), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pythons) begin() (*stack.Stack, *client.Client) {
	p.t.Helper()
	s, err := stack.Start(context.Background(), stack.Options{Configuration: p.config, Logger: warnings(p.t), Version: "test", ToolsEvery: 50 * time.Millisecond})
	if err != nil {
		p.t.Fatal(err)
	}
	return s, clientOf(p.t, s)
}

// TestANewToolProvesTheMainlineAgain: the mainline is red by what a tool refuses, and a change waits for it, and for one that it
// assumes to land. With the next version of the tool all land, and nobody asked for a retry.
func TestANewToolProvesTheMainlineAgain(t *testing.T) {
	if os.Getenv(kafkatest.Variable) != "" {
		t.Skip("where the log is another one's, only the configuration names tools")
	}
	r := newPythons(t, "OLD = 1\n")
	r.branch("waits", "a/src/a/more.py", "TWO = 2\n")
	r.use("3.99.0")
	s, c := r.begin()
	land(t, c, "waits", "waits")
	until(t, c, "waits", func(v view.Change) bool {
		return strings.Contains(v.Why, "has been red on the mainline since before the queue")
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.use("3.100.0")
	s, c = r.begin()
	defer s.Close()
	if v := settled(t, c, "waits"); v.State != view.StateLanded {
		t.Errorf("a change that the new tool takes is %s: %s", v.State, v.Why)
	}
	deadline := time.Now().Add(patience)
	for {
		q, err := c.Queues(t.Context())
		if err == nil && len(q[0].MainlineRed) == 0 && q[0].Unproven == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the mainline is not green with the new tool: %+v (%v)", q, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestChangesThatWereBuiltWithAnotherConfigurationLand: a change waits with what was built of it, and the targets get other versions.
// Nobody has to retry it.
func TestChangesThatWereBuiltWithAnotherConfigurationLand(t *testing.T) {
	if os.Getenv(kafkatest.Variable) != "" {
		t.Skip("where the log is another one's, only the configuration names tools")
	}
	r := newPythons(t, "ONE = 1\n")
	r.branch("first", "a/src/a/more.py", "TWO = 2\n")
	r.branch("second", "a/src/a/most.py", "THREE = 3\n")
	r.use("3.9.0")
	s, c := r.begin()
	if _, err := c.Steer(t.Context(), queue, "", "pause", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	land(t, c, "first", "first")
	land(t, c, "second", "second")
	for _, id := range []string{"first", "second"} {
		until(t, c, id, func(v view.Change) bool { return v.State == view.StatePassed })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	q := r.config.Queues[queue]
	q.Analysis.Inputs = []configuration.Input{{Folders: []string{"a/**"}, Files: []string{"b/**"}}}
	r.config.Queues[queue] = q
	s, c = r.begin()
	defer s.Close()
	if _, err := c.Steer(t.Context(), queue, "", "resume", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"first", "second"} {
		v := settled(t, c, id)
		if v.State != view.StateLanded {
			t.Errorf("%s is %s: %s", id, v.State, v.Why)
		}
		if !slices.ContainsFunc(v.Timeline, func(e view.Event) bool { return strings.HasPrefix(e.Text, "The configuration or a tool has changed") }) {
			t.Errorf("%s was not built again: %+v", id, v.Timeline)
		}
	}
}

// TestWhatAnOlderToolProvedProvesNothingOfANewOne: the tool is replaced while a proven change waits to land.
func TestWhatAnOlderToolProvedProvesNothingOfANewOne(t *testing.T) {
	if os.Getenv(kafkatest.Variable) != "" {
		t.Skip("where the log is another one's, only the configuration names tools")
	}
	r := newPythons(t, "ONE = 1\n")
	r.branch("old", "a/src/a/__init__.py", "OLD = 1\n")
	r.branch("new", "b/src/b/__init__.py", "TWO = 2\n")
	r.use("3.9.0")
	s, c := r.begin()
	defer func() { s.Close() }()
	if _, err := c.Steer(t.Context(), queue, "", "pause", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	land(t, c, "old", "old")
	until(t, c, "old", func(v view.Change) bool { return v.State == view.StatePassed })
	r.use("3.99.0")
	select {
	case err := <-s.Failed():
		if changed, is := errors.AsType[stack.ToolsChangedError](err); !is || changed.Was != "python Python 3.9.0" || changed.Is != "python Python 3.99.0" {
			t.Errorf("the stack fails by %v", err)
		}
	case <-time.After(patience):
		t.Error("the tools are others, and the services go on")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, c = r.begin()
	if _, err := c.Steer(t.Context(), queue, "", "resume", api.SteerBody{}); err != nil {
		t.Fatal(err)
	}
	// What was proven is not: its step runs again, and the new tool refuses it.
	until(t, c, "old", func(v view.Change) bool {
		return slices.ContainsFunc(v.Timeline, func(e view.Event) bool { return strings.HasPrefix(e.Text, "The configuration or a tool has changed") }) &&
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
