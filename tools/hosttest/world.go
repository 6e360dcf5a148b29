package hosttest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/pipeline"
)

const (
	queue     = "main"
	folders   = 12
	secretKey = "the secret of the webhooks"
)

// world is a repository at a code host, a queue for it, and the hosts service in a process of its own.
type world struct {
	t *testing.T
	Host
	// remote is the address of the repository for the account that answers.
	remote string
	// binary is the command that is tested.
	binary string
	work   string
	stack  *stack.Stack
	client *client.Client
	proxy  *proxy
	relay  *relay
	listen string
	config string
	hosts  *exec.Cmd
	output bytes.Buffer
	mu     sync.Mutex
	// patience is how long something is waited for.
	patience time.Duration
}

func (w *world) run(argv ...string) string {
	w.t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = w.work
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	return w.run(append([]string{"git"}, args...)...)
}

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

// options change a world.
type options struct {
	strategy, onPush, branches, poll string
	// step is a command of every target.
	step string
	// withoutWebhook makes none at the host.
	withoutWebhook bool
}

// newWorld makes a repository with folders of their own targets, users and a label, and starts a queue and the service.
func newWorld(t *testing.T, s Server, o options) *world {
	t.Helper()
	o.strategy = cmp.Or(o.strategy, s.Strategy, "squash")
	w := &world{t: t, patience: cmp.Or(s.Patience, 90*time.Second), Host: s.New(t), binary: s.Binary, work: t.TempDir()}
	w.AddUser("bot", "admin")
	w.AddUser("ada", "write")
	w.AddUser("eve", "")
	w.remote = w.Remote("bot")
	step := o.step
	if step == "" {
		step = "true"
	}
	w.git("init", "-q", "-b", "main")
	w.git("remote", "add", "origin", w.remote)
	for i := range folders {
		f := fmt.Sprintf("f%d", i)
		w.write(f+"/landfall.yaml", fmt.Sprintf("targets:\n  - name: %[1]s\n    kind: test\n    sources: [\"*.txt\"]\n    steps:\n      - name: has-no-bug\n        run: [\"sh\", \"-c\", \"%[2]s; if grep -rn bug %[1]s --include=*.txt; then echo there is a bug, ask @ada; exit 1; fi\"]\n", f, step))
		w.write(f+"/a.txt", "fine\n")
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "first")
	w.git("push", "-q", "origin", "main")
	w.Ready("landfall")
	w.proxy = newProxy(t, w.Address())
	w.listen = freeAddress(t)
	w.relay = newRelay(t, "http://"+w.listen)
	if !o.withoutWebhook {
		w.AddWebhook(w.relay.URL+"/v1/hosts/forge", secretKey)
	}
	data := t.TempDir()
	w.file(data, "token", w.Token("bot"))
	w.file(data, "secret", secretKey)
	text := fmt.Sprintf(`version: 1
data: %q
repositories:
  sample: {url: %q, poll: 500ms}
queues:
  main: {repository: sample, workers: 4, strategy: %s}
builder: {workers: 2}
gateway: {listen: "127.0.0.1:0"}
snapshots: {after: 5, every: 500ms}
`, data, w.Remote(""), o.strategy)
	c, err := configuration.Parse([]byte(text), "test.yaml", configuration.Defaults{Workers: 2, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	sample := c.Repositories["sample"]
	sample.URL = w.remote // in a file a password is refused
	c.Repositories["sample"] = sample
	w.stack, err = stack.Start(context.Background(), stack.Options{Configuration: c, Version: "test", Services: pipeline.Services(),
		Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.stack.Close() })
	if w.client, err = client.New(w.stack.URL(), "tester"); err != nil {
		t.Fatal(err)
	}
	settings := w.Settings()
	if settings != "" {
		settings += ","
	}
	w.config = w.file(data, "landfall.config.yaml", text+fmt.Sprintf(`hosts:
  listen: %q
  poll: %s
  gateway: %q
  servers:
    forge: {kind: %s, %s url: %q, token: {file: %q}, secret: {file: %q}, on_push: %s, branches: %s, queues: {main: %s}}
`, w.listen, cmp.Or(o.poll, "2s"), w.stack.URL(), w.Kind(), settings, w.proxy.URL, filepath.Join(data, "token"), filepath.Join(data, "secret"), cmp.Or(o.onPush, "withdraw"), cmp.Or(o.branches, "move"), w.Repository()))
	w.start()
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			t.Logf("the hosts service says\n%s", w.said())
		}
	})
	return w
}

func (w *world) file(dir, name, text string) string {
	w.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Write implements io.Writer: it takes what the process says.
func (w *world) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.Write(text)
}

func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.String()
}

// start starts the hosts service.
func (w *world) start() {
	c := exec.Command(w.binary, "hosts", "--config", w.config, "--brokers", strings.Join(w.stack.Brokers(), ","), "--instance", "hosts-1")
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts = c
}

// kill ends the hosts service as kill -9 does.
func (w *world) kill() {
	w.mu.Lock()
	c := w.hosts
	w.hosts = nil
	w.mu.Unlock()
	if c != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// await waits until something holds.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	for until := time.Now().Add(w.patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// open makes a pull request by ada, and returns its number.
func (w *world) open(branch string) (number int) {
	w.t.Helper()
	// A branch that was pushed is there a moment later.
	w.await("a pull request can be made of "+branch, func() (is bool) {
		number, is = w.Open("ada", branch)
		return is
	})
	return number
}

// branch pushes a branch off main with a file.
func (w *world) branch(name, path, text string) string {
	w.t.Helper()
	w.git("checkout", "-q", "-B", name, "main")
	return w.push(name, path, text)
}

func (w *world) push(name, path, text string) string {
	w.t.Helper()
	w.write(path, text)
	w.git("add", "-A")
	w.git("commit", "-q", "-m", name)
	w.git("push", "-q", "-f", "origin", name)
	return w.git("rev-parse", "HEAD")
}

func (w *world) status(commit string) Status {
	w.t.Helper()
	if all := w.Statuses(commit); len(all) > 0 {
		return all[0]
	}
	return Status{}
}

func (w *world) awaitStatus(commit, state, part string) {
	w.t.Helper()
	var last Status
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the status of %s is %+v", commit, last)
		}
	}()
	w.await(fmt.Sprintf("the status is %s: %s", state, part), func() bool {
		last = w.status(commit)
		return last.State == state && strings.Contains(last.Text, part)
	})
}

// awaitMerged waits until a pull request is merged, by a commit of the mainline.
func (w *world) awaitMerged(number int) {
	w.t.Helper()
	var p Pull
	w.await(fmt.Sprintf("%d is merged", number), func() bool { p = w.Pull(number); return p.Merged })
	w.git("fetch", "-q", "origin", "main")
	if line := w.git("rev-list", "FETCH_HEAD"); !strings.Contains(line, p.Commit) {
		w.t.Errorf("%d is merged by %s, which is not on the mainline", number, p.Commit)
	}
}
