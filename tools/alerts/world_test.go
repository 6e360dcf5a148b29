package alerts_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/services/builder/execution"
	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/pipeline"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

const queue = "main"

// world is a repository with two targets, a broker, and a configuration for the services that a test starts.
type world struct {
	t          *testing.T
	bare, work string
	config     *configuration.Configuration
	broker     *broker.Broker
	prometheus *prometheus
}

// manifest is of a folder, whose step is a script.
func manifest(folder, script string) string {
	return fmt.Sprintf(`targets:
  - name: %s
    kind: test
    sources: ["*.txt"]
    steps:
      - name: has-no-bug
        run: [sh, -c, %q]
`, folder, script)
}

// withoutBugs is a script that fails if there is a bug in a folder.
func withoutBugs(folder string) string { return "! grep -rq bug " + folder + " --include=*.txt" }

// newWorld makes one whose services do not run yet; extra are lines of the configuration.
func newWorld(t *testing.T, extra string) *world {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	w := &world{t: t, bare: filepath.Join(dir, "repo.git"), work: filepath.Join(dir, "work"), prometheus: newPrometheus(t)}
	w.run("", "git", "init", "-q", "--bare", "-b", "main", w.bare)
	w.run("", "git", "clone", "-q", w.bare, w.work)
	w.git("checkout", "-q", "-B", "main")
	for _, name := range []string{"f0", "f1"} {
		w.write(name+"/landfall.yaml", manifest(name, withoutBugs(name)))
		w.write(name+"/a.txt", "fine\n")
	}
	w.commit("first")
	w.git("push", "-q", "origin", "main")
	data := filepath.Join(dir, "data")
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(data, "broker"), Log: w.logger()})
	if err != nil {
		t.Fatal(err)
	}
	w.broker = b
	t.Cleanup(func() { b.Close() })
	w.config, err = configuration.Parse(fmt.Appendf(nil, `version: 1
data: %q
repositories:
  sample: {url: %q, poll: 200ms}
queues:
  main: {repository: sample, workers: 32, retries: {failed: 0}}
builder: {workers: 16}
broker: {brokers: [%q], secret_file: %q, partitions: 1}
gateway: {listen: "127.0.0.1:0"}
%s`, data, w.bare, b.Addr(), b.SecretFile(), extra), "test.yaml", configuration.Defaults{Workers: 2, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
}

func (w *world) run(dir string, argv ...string) string {
	w.t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) git(args ...string) { w.t.Helper(); w.run(w.work, append([]string{"git"}, args...)...) }

func (w *world) write(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) commit(message string) {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "-m", message)
}

// branch makes a branch off the clone's main with one file changed, and pushes it.
func (w *world) branch(name, path, text string) {
	w.t.Helper()
	w.git("checkout", "-q", "-B", name, "main")
	w.write(path, text)
	w.commit(name)
	w.git("push", "-q", "-f", "origin", name)
	w.git("checkout", "-q", "main")
}

// hook puts a hook into the repository.
func (w *world) hook(name, script string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.bare, "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// allBut returns all services that land changes but one.
func allBut(left string) (names []string) {
	for _, name := range pipeline.Services() {
		if name != left {
			names = append(names, name)
		}
	}
	return names
}

// start starts services, nil for all, and ends them with the test.
func (w *world) start(services ...string) *stack.Stack {
	w.t.Helper()
	s, err := stack.Start(context.WithoutCancel(w.t.Context()), stack.Options{Configuration: w.config, Logger: w.logger(), Version: "test", Metrics: "127.0.0.1:0", Services: services})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	return s
}

// watched starts services, nil for all, and watches them until the test ends.
func (w *world) watched(c clock, services ...string) *stack.Stack {
	w.t.Helper()
	s := w.start(services...)
	w.prometheus.watch(c, map[string]string{"one": s.MetricsURL()})
	w.ready(s)
	return s
}

// ready waits until the services of a stack can work.
func (w *world) ready(s *stack.Stack) {
	w.t.Helper()
	w.until("the services are ready", func() bool {
		_, _, err := get(s.MetricsURL() + "/readyz")
		return err == nil
	})
}

func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for until := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

func (w *world) client(s *stack.Stack) *client.Client {
	w.t.Helper()
	c, err := client.New(s.URL(), "tester")
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// land asks for a branch.
func (w *world) land(s *stack.Stack, branch string) {
	w.t.Helper()
	reply, err := clienttest.Land(w.t.Context(), w.client(s), queue, api.LandBody{Change: branch, Entries: []api.LandEntry{{Ref: branch}}})
	if err != nil || reply.Outcome != api.OutcomeAdmitted {
		w.t.Fatalf("%s: %+v, %v", branch, reply, err)
	}
}

// ends waits until a change is in a state.
func (w *world) ends(s *stack.Stack, change, state string) {
	w.t.Helper()
	c := w.client(s)
	w.until(change+" is "+state, func() bool {
		v, err := c.Change(w.t.Context(), queue, change)
		return err == nil && v.State == state
	})
}

// nonsense publishes a land request that nobody can read.
func (w *world) nonsense(s *stack.Stack) {
	w.t.Helper()
	if err := s.Log().Write(w.t.Context(), journal.Record{Topic: events.TopicLandRequests, Value: []byte("{")}); err != nil {
		w.t.Fatal(err)
	}
}
