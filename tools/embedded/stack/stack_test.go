package stack_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/services/builder/execution"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/replay/replaytest"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

const folders = 4

// repository is a bare repository whose mainline has one target per folder, with a clone to work in.
type repository struct {
	t          *testing.T
	bare, work string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, filepath.Join(t.TempDir(), "repo.git"), filepath.Join(t.TempDir(), "work")}
	r.run("", "git", "init", "-q", "--bare", "-b", "main", r.bare)
	r.run("", "git", "clone", "-q", r.bare, r.work)
	r.git("checkout", "-q", "-B", "main")
	for i := range folders {
		name := fmt.Sprintf("f%d", i)
		r.write(name+"/landfall.yaml", fmt.Sprintf(`targets:
  - name: %[1]s
    kind: test
    sources: ["*.txt"]
    steps:
      - name: has-no-bug
        run: ["sh", "-c", "! grep -rq bug %[1]s --include=*.txt"]
`, name))
		r.write(name+"/a.txt", "fine\n")
	}
	r.commit("first")
	r.git("push", "-q", "origin", "main")
	return r
}

func (r *repository) run(dir string, argv ...string) string {
	r.t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	return r.run(r.work, append([]string{"git"}, args...)...)
}

func (r *repository) write(path, text string) {
	r.t.Helper()
	path = filepath.Join(r.work, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repository) commit(message string) { r.git("add", "-A"); r.git("commit", "-q", "-m", message) }

// branch makes a branch off the first commit with one file changed, and pushes it.
func (r *repository) branch(name, path, text string) {
	r.t.Helper()
	r.git("checkout", "-q", "-B", name, "main")
	r.write(path, text)
	r.commit(name)
	r.git("push", "-q", "-f", "origin", name)
	r.git("checkout", "-q", "main")
}

// mainline lists the subjects of the mainline's commits, oldest first.
func (r *repository) mainline() []string {
	r.t.Helper()
	return strings.Split(r.run(r.bare, "git", "log", "--first-parent", "--reverse", "--format=%s", "main"), "\n")
}

// outside returns the path of a file that is not there yet, in a folder that the sandbox of the test's steps leaves them.
func outside(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	shared := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(shared, filepath.Base(dir))
}

// configured is for one queue on an empty log: the embedded broker's, or that of a real Kafka where one is named.
func configured(t *testing.T, r *repository, data string) *configuration.Configuration {
	t.Helper()
	c := parsed(t, r, data)
	replaytest.AtEnd(t, c.Broker.Brokers, data)
	return c
}

// parsed is configured for a test that verifies the log itself.
func parsed(t *testing.T, r *repository, data string) *configuration.Configuration {
	t.Helper()
	c, err := configuration.Parse([]byte(fmt.Sprintf(`version: 1
data: %q
repositories:
  sample: {url: %q, poll: 200ms}
queues:
  main: {repository: sample, workers: 4, steps: {write: [%q]}}
builder: {workers: 2}
gateway: {listen: "127.0.0.1:0"}
`, data, r.bare, filepath.Dir(outside(t)))), "test.yaml", configuration.Defaults{Workers: 2, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	c.Broker.Brokers = kafkatest.Brokers(t)
	return c
}

func start(t *testing.T, c *configuration.Configuration) (*stack.Stack, *client.Client) {
	t.Helper()
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(s.URL(), "tester")
	if err != nil {
		s.Close()
		t.Fatal(err)
	}
	return s, cl
}

// hook puts a hook into the bare repository.
func (r *repository) hook(name, script string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.bare, "hooks", name), []byte(script), 0o755); err != nil {
		r.t.Fatal(err)
	}
}
