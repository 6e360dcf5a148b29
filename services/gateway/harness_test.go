package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/gitrepo/gitrepotest"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/services/gateway/view"
)

const testQueue = "main"

// repository is a bare remote with a clone in which changes are made.
type repository struct {
	t      testing.TB
	remote string
	clone  string
	// wire, if set, is how gateways reach the remote; patience is admission.patience of the queue, the default if empty.
	wire     *gitrepotest.Remote
	patience string
}

func newRepository(t testing.TB) *repository {
	t.Helper()
	r := &repository{t: t, remote: filepath.Join(t.TempDir(), "remote.git"), clone: filepath.Join(t.TempDir(), "clone")}
	r.run("", "init", "--quiet", "--bare", "--initial-branch=main", r.remote)
	r.run("", "clone", "--quiet", r.remote, r.clone)
	r.git("checkout", "--quiet", "-b", "main")
	r.commit("main", "README", "a repository\n", "Begin")
	r.git("push", "--quiet", "origin", "main", "main:release")
	return r
}

func (r *repository) run(dir string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) git(args ...string) string { r.t.Helper(); return r.run(r.clone, args...) }

// commit writes a file on top of whatever is checked out and returns the commit.
func (r *repository) commit(branch, file, content, message string) string {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.clone, file), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git("add", file)
	r.git("commit", "--quiet", "-m", message)
	return r.git("rev-parse", "HEAD")
}

// branch makes a branch of main with one commit on it and pushes it.
func (r *repository) branch(name string) string {
	r.t.Helper()
	r.git("checkout", "--quiet", "-B", name, "main")
	id := r.commit(name, strings.ReplaceAll(name, "/", "-")+".txt", name+"\n", "Add "+name)
	r.git("push", "--quiet", "--force", "origin", name)
	return id
}

func testConfiguration(t testing.TB, remote string) *configuration.Configuration {
	t.Helper()
	return configurationWith(t, remote, "8s")
}

func configurationWith(t testing.TB, remote, patience string) *configuration.Configuration {
	t.Helper()
	text := fmt.Sprintf("version: 1\nrepositories:\n  repo: {url: %q}\nqueues:\n  %s: {repository: repo, branch: main, admission: {patience: %s}}\n  other: {repository: repo, branch: release, limits: {pending: 2}}\n", remote, testQueue, patience)
	c, err := configuration.Parse([]byte(text), "test.yaml", configuration.Defaults{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// running is a gateway that has read its log.
type running struct {
	t       testing.TB
	gateway *Gateway
	server  *httptest.Server
	log     journal.Log
	stop    func()
}

func startGateway(t testing.TB, log journal.Log, repo *repository, instance string) *running {
	t.Helper()
	return startGatewayWith(t, log, repo, instance, func(*configuration.Configuration) {})
}

// startGatewayWith starts a gateway with another configuration than startGateway.
func startGatewayWith(t testing.TB, log journal.Log, repo *repository, instance string, change func(*configuration.Configuration)) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "gateway-mirror-")
	if err != nil {
		t.Fatal(err)
	}
	remote, env := repo.remote, []string(nil)
	if repo.wire != nil {
		remote, env = repo.wire.URL, repo.wire.Env
	}
	mirror, err := gitrepo.Open(context.Background(), gitrepo.Options{Remote: remote, RemoteEnv: env, Dir: filepath.Join(dir, "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	config := configurationWith(t, remote, cmp.Or(repo.patience, "8s"))
	change(config)
	g, err := New(Options{
		Log: log, Config: config, Instance: instance, LogStore: store,
		Mirrors: func(context.Context, string) (*gitrepo.Repo, error) { return mirror, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	server := httptest.NewServer(g.Handler())
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		server.CloseClientConnections()
		server.Close()
		if err := <-ended; err != nil {
			t.Errorf("the gateway ended with %v", err)
		}
		mirror.Close()
		// A fetch that Close ended may still be writing.
		for deadline := time.Now().Add(2 * time.Minute); os.RemoveAll(dir) != nil; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Error("the mirror cannot be removed")
				return
			}
		}
	}
	t.Cleanup(stop)
	r := &running{t: t, gateway: g, server: server, log: log, stop: stop}
	r.eventually("ready", func() bool { return g.Ready() == nil })
	return r
}

func newLog(partitions int32) *memory.Log { return memory.New(memory.Options{Partitions: partitions}) }

// eventually waits for what goroutines bring about; only a bug makes it wait for long.
func (r *running) eventually(what string, holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// call makes a request and decodes its JSON answer.
func (r *running) call(method, path string, body any) (int, map[string]any) {
	r.t.Helper()
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, r.server.URL+path, reader)
	if err != nil {
		r.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("X-Landfall-User", "ada")
	response, err := r.server.Client().Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, out
}

type object = map[string]any

func landBody(entries ...object) object { return object{"entries": entries} }

// claim opens a term for a service on the queue's partition.
func claim(t testing.TB, log journal.Log, topic, service string) int64 {
	t.Helper()
	offsets, err := log.Append(context.Background(), topic, events.PartitionOf(testQueue, log.Partitions()), events.Envelope{
		ID: service + "-claim", Source: service, Instance: "test", Term: -1, Time: time.Now(), Message: &eventsv1.Claim{Service: service},
	})
	if err != nil {
		t.Fatal(err)
	}
	return offsets[0]
}

func appendUnder(t testing.TB, log journal.Log, topic, service string, term int64, m proto.Message) {
	t.Helper()
	_, err := log.Append(context.Background(), topic, events.PartitionOf(testQueue, log.Partitions()), events.Envelope{
		ID: fmt.Sprintf("%s-%d", service, time.Now().UnixNano()), Source: service, Instance: "test", Queue: testQueue, Term: term, Time: time.Now(), Message: m,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *running) summary(change string) view.Summary {
	var s view.Summary
	r.gateway.Read(testQueue, func(q *view.Queue) { s, _ = q.Summary(change) })
	return s
}
