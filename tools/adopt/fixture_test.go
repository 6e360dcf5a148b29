package adopt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/adopt"
	"landfall.build/tools/client"
	"landfall.build/tools/client/clienttest"
	"landfall.build/tools/embedded/stack"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

// files are contents by path.
type files map[string]string

// repository is a bare repository with a clone, in a home folder of its own.
type repository struct {
	testing.TB
	bare, clone, home string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	folder := t.TempDir()
	r := &repository{t, filepath.Join(folder, "shop.git"), filepath.Join(folder, "shop"), filepath.Join(folder, "home")}
	if err := os.Mkdir(r.home, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	// Steps' caches are read-only in places.
	t.Cleanup(func() {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o755)
			}
			return nil
		})
	})
	r.run("", "git", "init", "-q", "--bare", "-b", "main", r.bare)
	r.run("", "git", "clone", "-q", r.bare, r.clone)
	r.run(r.clone, "git", "checkout", "-q", "-B", "main")
	return r
}

func (r *repository) run(dir string, argv ...string) string {
	r.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := c.CombinedOutput()
	if err != nil {
		r.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files, "" removes one, and commits everything.
func (r *repository) commit(message string, edit files) {
	r.Helper()
	for name, text := range edit {
		path := filepath.Join(r.clone, name)
		if text == "" {
			if err := os.Remove(path); err != nil {
				r.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			r.Fatal(err)
		}
	}
	r.run(r.clone, "git", "add", "--all", "--force", ".")
	r.run(r.clone, "git", "commit", "-q", "-m", message)
}

// push pushes the mainline.
func (r *repository) push() { r.Helper(); r.run(r.clone, "git", "push", "-q", "origin", "main") }

// branch pushes a branch of one commit on the mainline.
func (r *repository) branch(name string, edit files) {
	r.Helper()
	r.run(r.clone, "git", "checkout", "-q", "-b", name, "main")
	r.commit(name, edit)
	r.run(r.clone, "git", "push", "-q", "origin", name)
	r.run(r.clone, "git", "checkout", "-q", "main")
}

// mainline lists the subjects of the mainline's commits, oldest first.
func (r *repository) mainline() []string {
	r.Helper()
	return strings.Split(r.run(r.bare, "git", "log", "--first-parent", "--reverse", "--format=%s", "main"), "\n")
}

// init runs landfall init on the clone.
func (r *repository) init(args ...string) (string, error) {
	r.Helper()
	return r.initOf(r.clone, "", args...)
}

// initOf runs landfall init with what a person types, "" for nobody.
func (r *repository) initOf(repository, typed string, args ...string) (string, error) {
	r.Helper()
	c := adopt.Command(slog.New(slog.DiscardHandler))
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard) // what it is doing, where that takes long
	c.SilenceErrors = true
	if typed != "" {
		c.SetIn(strings.NewReader(typed))
	}
	c.SetArgs(append([]string{repository, "--data", filepath.Join(r.home, "data")}, args...))
	err := c.ExecuteContext(r.Context())
	return out.String(), err
}

// configured is the configuration that init wrote.
func (r *repository) configured() *configuration.Configuration {
	r.Helper()
	c, err := configuration.Load(filepath.Join(r.clone, "landfall.config.yaml"), configuration.Defaults{Workers: 1})
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// read returns a file of the clone.
func (r *repository) read(name string) string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.clone, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(text)
}

// up runs everything with the configuration that init wrote. vary changes what a test machine needs otherwise.
func (r *repository) up(t *testing.T, vary func(*configuration.Queue)) *client.Client {
	t.Helper()
	c := r.configured()
	c.Gateway.Listen = "127.0.0.1:0"
	for name, queue := range c.Queues {
		if vary != nil {
			vary(&queue)
		}
		c.Queues[name] = queue
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := stack.Start(context.Background(), stack.Options{Configuration: c, Logger: logger, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	api, err := client.New(s.URL(), "tester")
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// end waits until a change that is asked for has left the queue.
func (r *repository) land(c *client.Client, branches ...string) map[string]view.Change {
	r.Helper()
	for _, branch := range branches {
		reply, err := clienttest.Land(r.Context(), c, "shop", api.LandBody{Change: branch, Entries: []api.LandEntry{{Ref: branch}}})
		if err != nil || reply.Outcome != api.OutcomeAdmitted {
			r.Fatalf("land %s: %+v, %v", branch, reply, err)
		}
	}
	soon := time.After(10 * time.Minute)
	ended := map[string]view.Change{}
	for _, branch := range branches {
		for {
			v, err := c.Change(r.Context(), "shop", branch)
			if err == nil && slices.Contains([]string{"landed", "rejected", "ejected", "cancelled"}, v.State) {
				ended[branch] = v
				break
			}
			select {
			case <-soon:
				r.Fatalf("%s is %s: %s (%v)", branch, v.State, v.Why, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return ended
}

// need skips a test on a machine without some programs, unless LANDFALL_TEST_MODULES is required, as in CI.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, program+" is not on this machine")
		}
	}
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("LANDFALL_TEST_MODULES") == "required" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// decode reads the one JSON value of an output.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return value
}
