package gitea_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/pipeline"
)

// binary is the command that is tested.
var binary string

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	if os.Getenv("LANDFALL_TEST_GITEA") == "" {
		os.Exit(m.Run()) // each test says that it is skipped
	}
	dir, err := os.MkdirTemp("", "landfall")
	if err == nil {
		binary = filepath.Join(dir, "landfall")
		var out []byte
		if out, err = exec.Command("go", "build", "-o", binary, "landfall.build/tools/cmd/landfall").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

const (
	queue     = "main"
	folders   = 12
	secretKey = "the secret of the webhooks"
)

// world is a repository at Gitea, a queue for it, and the hosts service in a process of its own.
type world struct {
	t *testing.T
	// gitea is the server's address, repository owner/name.
	gitea, repository string
	tokens            map[string]string
	work              string
	stack             *stack.Stack
	client            *client.Client
	proxy             *proxy
	listen            string
	config            string
	hosts             *exec.Cmd
	output            bytes.Buffer
	mu                sync.Mutex
	// patience is how long something is waited for.
	patience time.Duration
}

func (w *world) call(as, method, path string, in, out any) int {
	w.t.Helper()
	var body io.Reader
	if in != nil {
		content, _ := json.Marshal(in)
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequest(method, w.gitea+"/api/v1"+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "token "+w.tokens[as])
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	content, _ := io.ReadAll(answer.Body)
	if answer.StatusCode > 299 {
		w.t.Logf("%s %s by %s: %d %s", method, path, as, answer.StatusCode, content)
	} else if out != nil {
		if err := json.Unmarshal(content, out); err != nil {
			w.t.Fatalf("%s: %v: %s", path, err, content)
		}
	}
	return answer.StatusCode
}

// must is call, and the status of success.
func (w *world) must(as, method, path string, in, out any) {
	w.t.Helper()
	if status := w.call(as, method, path, in, out); status > 299 {
		w.t.Fatalf("%s %s: %d", method, path, status)
	}
}

// user makes an account with a token, as a collaborator with a permission unless that is "".
func (w *world) user(name, permission string) {
	w.t.Helper()
	w.call("root", "POST", "/admin/users", map[string]any{"username": name, "email": name + "@example.com", "password": "secret-of-" + name, "must_change_password": false}, nil)
	request, _ := http.NewRequest("POST", w.gitea+"/api/v1/users/"+name+"/tokens", strings.NewReader(fmt.Sprintf(`{"name":"t%d","scopes":["all"]}`, time.Now().UnixNano())))
	request.SetBasicAuth(name, "secret-of-"+name)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	var token struct{ SHA1 string }
	if err := json.NewDecoder(answer.Body).Decode(&token); err != nil || token.SHA1 == "" {
		w.t.Fatalf("token of %s: %d %v", name, answer.StatusCode, err)
	}
	w.tokens[name] = token.SHA1
	if permission != "" {
		w.must("root", "PUT", "/repos/"+w.repository+"/collaborators/"+name, map[string]string{"permission": permission}, nil)
	}
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

func (w *world) remote(as string) string {
	return strings.Replace(w.gitea, "http://", "http://"+as+":"+w.tokens[as]+"@", 1) + "/" + w.repository + ".git"
}

// options change a world.
type options struct {
	strategy, onPush, poll string
	// step is a command of every target.
	step string
	// withoutWebhook makes none at Gitea.
	withoutWebhook bool
}

// newWorld makes a repository with folders of their own targets, users and a label, and starts a queue and the service.
func newWorld(t *testing.T, o options) *world {
	t.Helper()
	w := &world{t: t, patience: 90 * time.Second, gitea: os.Getenv("LANDFALL_TEST_GITEA"), tokens: map[string]string{"root": os.Getenv("LANDFALL_TEST_GITEA_TOKEN")}, work: t.TempDir()}
	if w.gitea == "" {
		t.Skip("LANDFALL_TEST_GITEA names no Gitea: make hosts-test")
	}
	name := strings.ToLower(fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name()[4:min(len(t.Name()), 30)], "/", "-"), time.Now().UnixNano()))
	w.repository = "root1/" + name
	w.must("root", "POST", "/user/repos", map[string]any{"name": name, "default_branch": "main"}, nil)
	w.must("root", "PATCH", "/repos/"+w.repository, map[string]any{"has_pull_requests": true, "allow_manual_merge": true, "autodetect_manual_merge": false}, nil)
	w.user("bot", "admin")
	w.user("ada", "write")
	w.user("eve", "")
	step := o.step
	if step == "" {
		step = "true"
	}
	w.git("init", "-q", "-b", "main")
	w.git("remote", "add", "origin", w.remote("bot"))
	for i := range folders {
		f := fmt.Sprintf("f%d", i)
		w.write(f+"/landfall.yaml", fmt.Sprintf("targets:\n  - name: %[1]s\n    kind: test\n    sources: [\"*.txt\"]\n    steps:\n      - name: has-no-bug\n        run: [\"sh\", \"-c\", \"%[2]s; if grep -rn bug %[1]s --include=*.txt; then echo there is a bug, ask @ada; exit 1; fi\"]\n", f, step))
		w.write(f+"/a.txt", "fine\n")
	}
	w.git("add", "-A")
	w.git("commit", "-q", "-m", "first")
	w.git("push", "-q", "origin", "main")
	w.must("root", "POST", "/repos/"+w.repository+"/labels", map[string]string{"name": "landfall", "color": "#00aabb"}, nil)
	w.proxy = newProxy(t, w.gitea)
	w.listen = freeAddress(t)
	if !o.withoutWebhook {
		w.must("root", "POST", "/repos/"+w.repository+"/hooks", map[string]any{"type": "gitea", "active": true,
			"events": []string{"pull_request", "pull_request_label", "pull_request_comment", "issue_comment", "pull_request_sync", "pull_request_review", "status"},
			"config": map[string]string{"url": "http://" + w.listen + "/v1/hosts/forge", "content_type": "json", "secret": secretKey}}, nil)
	}
	data := t.TempDir()
	w.file(data, "token", w.tokens["bot"])
	w.file(data, "secret", secretKey)
	orElse := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	text := fmt.Sprintf(`version: 1
data: %q
repositories:
  sample: {url: %q, poll: 500ms}
queues:
  main: {repository: sample, workers: 4, strategy: %s}
builder: {workers: 2}
gateway: {listen: "127.0.0.1:0"}
snapshots: {after: 5, every: 500ms}
`, data, w.gitea+"/"+w.repository+".git", orElse(o.strategy, "squash"))
	c, err := configuration.Parse([]byte(text), "test.yaml", configuration.Defaults{Workers: 2, Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	sample := c.Repositories["sample"]
	sample.URL = w.remote("bot") // in a file a password is refused
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
	w.config = w.file(data, "landfall.config.yaml", text+fmt.Sprintf(`hosts:
  listen: %q
  poll: %s
  gateway: %q
  servers:
    forge: {kind: gitea, url: %q, token: {file: %q}, secret: {file: %q}, on_push: %s, queues: {main: %s}}
`, w.listen, orElse(o.poll, "2s"), w.stack.URL(), w.proxy.URL, filepath.Join(data, "token"), filepath.Join(data, "secret"), orElse(o.onPush, "withdraw"), w.repository))
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
	c := exec.Command(binary, "hosts", "--config", w.config, "--brokers", strings.Join(w.stack.Brokers(), ","), "--instance", "hosts-1")
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

// proxy is between the service and Gitea. It counts what is written, and lets a test act before and after.
type proxy struct {
	*httptest.Server
	mu sync.Mutex
	// writes are method and kind of what was written.
	writes []string
	// before and after are called at each write; after false the request ends there.
	before, after func(n int) bool
}

func newProxy(t *testing.T, to string) *proxy {
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := httputil.NewSingleHostReverseProxy(at)
	forward.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	p.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.Method == http.MethodGet {
			forward.ServeHTTP(out, in)
			return
		}
		p.mu.Lock()
		parts := strings.Split(in.URL.Path, "/")
		p.writes = append(p.writes, in.Method+" "+strings.Join(parts[min(6, len(parts)-1):], "/"))
		n, before, after := len(p.writes), p.before, p.after
		p.mu.Unlock()
		if before != nil && !before(n) {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		// What the client does must not end what is under way.
		forward.ServeHTTP(answer, in.WithContext(context.WithoutCancel(in.Context())))
		if after != nil && !after(n) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			out.Header()[name] = values
		}
		out.WriteHeader(answer.Code)
		_, _ = out.Write(answer.Body.Bytes())
	}))
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) written() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.writes...)
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

// open makes a pull request by ada, and returns its number.
func (w *world) open(branch string) int {
	w.t.Helper()
	var p struct{ Number int }
	// A branch that was pushed is there a moment later.
	w.await("a pull request can be made of "+branch, func() bool {
		return w.call("ada", "POST", "/repos/"+w.repository+"/pulls", map[string]string{"head": branch, "base": "main", "title": branch}, &p) < 300
	})
	return p.Number
}

func (w *world) label(as string, number int) {
	w.t.Helper()
	w.must(as, "POST", fmt.Sprintf("/repos/%s/issues/%d/labels", w.repository, number), map[string]any{"labels": []string{"landfall"}}, nil)
}

func (w *world) say(as string, number int, text string) {
	w.t.Helper()
	w.must(as, "POST", fmt.Sprintf("/repos/%s/issues/%d/comments", w.repository, number), map[string]string{"body": text}, nil)
}

type pull struct {
	State  string
	Merged bool
	Commit string `json:"merge_commit_sha"`
	Labels []struct{ Name string }
}

func (w *world) pull(number int) (p pull) {
	w.t.Helper()
	w.must("root", "GET", fmt.Sprintf("/repos/%s/pulls/%d", w.repository, number), nil, &p)
	return p
}

type status struct{ Status, Description, Context string }

// statuses returns all that the queue has set at a commit, the newest first.
func (w *world) statuses(commit string) (own []status) {
	w.t.Helper()
	var all []status
	w.must("root", "GET", fmt.Sprintf("/repos/%s/commits/%s/statuses?sort=recentupdate&limit=50", w.repository, commit), nil, &all)
	for _, s := range all {
		if s.Context == "Landfall (main)" {
			own = append(own, s)
		}
	}
	return own
}

func (w *world) status(commit string) status {
	w.t.Helper()
	if all := w.statuses(commit); len(all) > 0 {
		return all[0]
	}
	return status{}
}

// comments returns those of the bot.
func (w *world) comments(number int) (texts []string) {
	w.t.Helper()
	var all []struct {
		Body string
		User struct{ Login string }
	}
	w.must("root", "GET", fmt.Sprintf("/repos/%s/issues/%d/comments", w.repository, number), nil, &all)
	for _, c := range all {
		if c.User.Login == "bot" {
			texts = append(texts, c.Body)
		}
	}
	return texts
}

func (w *world) awaitStatus(commit, state, part string) {
	w.t.Helper()
	var last status
	defer func() {
		if w.t.Failed() {
			w.t.Logf("the status of %s is %+v", commit, last)
		}
	}()
	w.await(fmt.Sprintf("the status is %s: %s", state, part), func() bool {
		last = w.status(commit)
		return last.Status == state && strings.Contains(last.Description, part)
	})
}

// awaitMerged waits until a pull request is merged, by a commit of the mainline.
func (w *world) awaitMerged(number int) {
	w.t.Helper()
	var p pull
	w.await(fmt.Sprintf("%d is merged", number), func() bool { p = w.pull(number); return p.Merged })
	w.git("fetch", "-q", "origin", "main")
	if line := w.git("rev-list", "FETCH_HEAD"); !strings.Contains(line, p.Commit) {
		w.t.Errorf("%d is merged by %s, which is not on the mainline", number, p.Commit)
	}
}
