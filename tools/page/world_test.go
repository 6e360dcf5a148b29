package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the landfall that all tests run, provider a provider of OpenID Connect, publisher writes models to a log, and showcase serves
// the page over queues that stand still.
var binary, provider, publisher, showcase string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if _, err := exec.LookPath("chromium"); err != nil {
		fmt.Fprintln(os.Stderr, "there is no Chromium: run make page-test, which installs Debian's")
		return 1
	}
	dir, err := os.MkdirTemp("", "landfall-page-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary, provider, publisher, showcase = filepath.Join(dir, "landfall"), filepath.Join(dir, "provider"), filepath.Join(dir, "publish"), filepath.Join(dir, "showcase")
	build := exec.Command("go", "build", "-o", dir, "./tools/cmd/landfall", "./services/gateway/signin/signintest/provider", "./tools/trained/trainedtest/publish", "./services/gateway/api/apitest/showcase")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "GOWORK=")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1
	}
	return m.Run()
}

// world is a repository with a landfall up that serves it.
type world struct {
	t          *testing.T
	bare, work string
	config     string
	data       string
	// outside is a folder that steps read and write, and that is in no tree.
	outside string
	url     string
	// token is presented with each request, if there is one.
	token string
	// stop ends the landfall up.
	stop func()
}

// script is a step's: it prints, takes a while, and fails if there is a bug in its folder.
const script = `echo "checking %[1]s"; for f in %[1]s/*.txt; do printf '\033[32mread\033[0m %%s\n' "$f"; done; sleep %[2]s; ` +
	`if grep -rn bug %[1]s --include=*.txt; then printf '\033[31mFAIL\033[0m %[1]s: there is a bug\n'; exit 1; fi; echo ok`

func manifest(folder, seconds string, needs ...string) string {
	text := fmt.Sprintf("targets:\n  - name: %s\n    kind: test\n    sources: [\"*.txt\"]\n", folder)
	if len(needs) > 0 {
		text += "    deps: [" + strings.Join(needs, ", ") + "]\n"
	}
	return text + fmt.Sprintf("    steps:\n      - name: check\n        run: [sh, -c, %q]\n", fmt.Sprintf(script, folder, seconds))
}

// newWorld starts one in which each step takes some seconds.
func newWorld(t *testing.T, seconds string, workers int) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, bare: filepath.Join(dir, "shop.git"), work: filepath.Join(dir, "work")}
	w.command("", "git", "init", "-q", "--bare", "-b", "main", w.bare)
	w.command("", "git", "clone", "-q", w.bare, w.work)
	w.git("checkout", "-q", "-B", "main")
	for _, name := range []string{"cart", "catalog", "prices", "search", "tax"} {
		w.write(name+"/landfall.yaml", manifest(name, seconds))
		w.write(name+"/a.txt", "fine\n")
	}
	w.write("checkout/landfall.yaml", manifest("checkout", seconds, "//cart:cart", "//prices:prices", "//tax:tax"))
	w.write("checkout/a.txt", "fine\n")
	w.commit("Bo <bo@example.com>", "first")
	w.git("push", "-q", "origin", "main")
	w.config = filepath.Join(dir, "landfall.config.yaml")
	w.data = filepath.Join(dir, "data")
	w.outside = filepath.Join(dir, "outside")
	if err := os.Mkdir(w.outside, 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("version: 1\ndata: %q\ngateway: { listen: \"127.0.0.1:0\" }\nrepositories:\n  shop: { url: %q }\nqueues:\n  shop:\n    repository: shop\n    workers: %d\n    retries: { failed: 0 }\n    steps: { write: [%q] }\n"+
		"  tools:\n    repository: shop\n    branch: tools\n", w.data, w.bare, workers, w.outside)
	w.git("push", "-q", "origin", "main:tools")
	if err := os.WriteFile(w.config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	w.start()
	return w
}

// change replaces text in the configuration; it counts after the next start.
func (w *world) change(from, to string) {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	if err == nil && !strings.Contains(string(text), from) {
		err = fmt.Errorf("%q is not in it", from)
	}
	if err == nil {
		err = os.WriteFile(w.config, []byte(strings.ReplaceAll(string(text), from, to)), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// provide starts a provider at which a user is signed in, who comes back to the gateway as by an issuer of a name. It returns its URL.
func (w *world) provide(user, issuer string) string {
	w.t.Helper()
	return started(w.t, provider, user, w.url+"/v1/signin/"+issuer+"/callback")
}

// started starts a program that prints its URL on standard error and ends with its input. It returns the URL.
func started(t testing.TB, program string, args ...string) string {
	t.Helper()
	url, _ := startedProcess(t, program, args...)
	return url
}

// startedProcess is started; it returns the id of the process too.
func startedProcess(t testing.TB, program string, args ...string) (url string, id int) {
	t.Helper()
	p := exec.Command(program, args...)
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		p.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("%s did not say where it is", program)
	}
	return lines.Text(), p.Process.Pid
}

// protect has the landfall up show nothing but to whom it knows: the users of two providers, an operator by company and a contributor by
// partner. It returns the providers' URLs.
func (w *world) protect() (company, partner string) {
	w.t.Helper()
	company, partner = w.provide("id1", "company"), w.provide("id2", "partner")
	w.stop()
	text, err := os.ReadFile(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	const secret = "secret" // signintest.Secret
	file := filepath.Join(filepath.Dir(w.config), "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		w.t.Fatal(err)
	}
	text = fmt.Appendf(text, "access:\n  mode: required\n  issuers:\n    company: { url: %q, client_id: landfall, client_secret: { file: %q } }\n    partner: { url: %q, client_id: landfall, client_secret: { file: %q } }\n"+
		"  rules:\n    - { role: operator, issuer: company, any: [{ all: { sub: id1 } }] }\n    - { role: contributor, queues: [shop], issuer: partner, any: [{ all: { sub: id2 } }] }\n", company, file, partner, file)
	if err := os.WriteFile(w.config, text, 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.start()
	token := w.command("", binary, "token", "create", "test", "--role", "admin", "--queues", "*", "--direct", "--data", w.data)
	lines := strings.Split(strings.TrimSpace(token), "\n")
	w.token = lines[len(lines)-1]
	return company, partner
}

var upLine = regexp.MustCompile(`web page: (http://\S+)/`)

// start starts a landfall up, again at the address that it had.
func (w *world) start() {
	w.t.Helper()
	args := []string{"up", "--config", w.config}
	if w.url != "" {
		args = append(args, "--listen", strings.TrimPrefix(w.url, "http://"))
	}
	up := exec.Command(binary, args...)
	out, err := up.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.stop = sync.OnceFunc(func() {
		up.Process.Signal(syscall.SIGTERM)
		up.Wait()
	})
	w.t.Cleanup(w.stop)
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if m := upLine.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
			w.t.Log("landfall:", lines.Text())
		}
	}()
	select {
	case w.url = <-found:
	case <-time.After(2 * time.Minute):
		w.t.Fatal("landfall up did not say where the web page is")
	}
}

func (w *world) command(dir, name string, args ...string) string {
	w.t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (w *world) git(args ...string) string { w.t.Helper(); return w.command(w.work, "git", args...) }

func (w *world) write(name, content string) {
	w.t.Helper()
	full := filepath.Join(w.work, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) commit(author, message string) {
	w.t.Helper()
	w.git("add", "-A")
	w.git("commit", "-q", "--author", author, "-m", message)
}

// asked is a land request.
type asked struct {
	Change  string              `json:"change,omitempty"`
	Title   string              `json:"title"`
	Author  string              `json:"author"`
	Entries []map[string]string `json:"entries"`
}

// land pushes a branch that changes files, and asks for it to be landed. Its change's id is the branch's name, or id.
// It returns that id.
func (w *world) land(branch, id, author, title string, files map[string]string) string {
	w.t.Helper()
	w.git("checkout", "-q", "-B", branch, "origin/main")
	for name, content := range files {
		w.write(name, content)
	}
	w.commit("t <t@example.com>", "change")
	w.git("push", "-q", "-f", "origin", branch)
	w.git("checkout", "-q", "main")
	return w.ask(asked{Change: id, Title: title, Author: author, Entries: []map[string]string{{"ref": branch}}})
}

func (w *world) ask(r asked) string {
	w.t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	var reply struct{ Change string }
	if err := json.Unmarshal(w.post("/v1/queues/shop/changes", string(text)), &reply); err != nil {
		w.t.Fatal(err)
	}
	return reply.Change
}

// post sends a body to a route, again while the gateway has just started, and returns the answer.
func (w *world) post(path, body string) []byte {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		status, answer := w.postOnce(path, body)
		switch {
		case status < 300:
			return answer
		case status != http.StatusServiceUnavailable || time.Now().After(deadline):
			w.t.Fatalf("%s with %.80q is answered by %d: %.300s", path, body, status, answer)
		}
	}
}

func (w *world) postOnce(path, body string) (status int, answer []byte) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "POST", w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, answer
}
