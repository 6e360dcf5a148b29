package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/tools/pipeline"
	"landfall.build/tools/proof/kills/fleet"
)

// deployment is each service, and the broker, in a process of its own, for one queue named shop.
type deployment struct {
	t       *testing.T
	dir     string
	binary  string
	fleet   *fleet.Fleet
	broker  string
	gateway string
	// metrics are the addresses of --metrics by service.
	metrics map[string]string
}

// patience bounds every wait: the machine may be busy.
const patience = 3 * time.Minute

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := fleet.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// deploy starts a deployment, and waits until every service is ready.
func deploy(t *testing.T) *deployment {
	t.Helper()
	if testing.Short() {
		t.Skip("starts nine processes")
	}
	address := freeAddress(t)
	d := prepare(t, fmt.Sprintf("broker: {brokers: [%q], partitions: 1}\n", address))
	d.broker = address
	d.launch("broker", "broker", "--config", d.config(), "--log-level", "info")
	for _, name := range pipeline.Services() {
		d.start(name)
	}
	for _, name := range pipeline.Services() {
		d.awaitReady(name, true)
	}
	return d
}

// prepare makes the command, the repository and the configuration, which has a section of the log.
func prepare(t *testing.T, section string) *deployment {
	t.Helper()
	d := &deployment{t: t, dir: t.TempDir(), gateway: freeAddress(t), metrics: map[string]string{}}
	d.binary = built(t, "landfall", ".")
	d.seed()
	config := fmt.Sprintf(`version: 1
data: data
repositories: {shop: {url: shop.git, poll: 500ms}}
queues:
  shop:
    repository: shop
    branch: main
    steps: {environment: {path: /usr/bin:/bin}}
    analysis: {whole_repository_steps: [{name: test, run: [test, -f, README]}]}
%sgateway: {listen: %q}
`, section, d.gateway)
	if err := os.WriteFile(d.config(), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	d.fleet = fleet.New(d.dir, nil)
	t.Cleanup(func() {
		if err := d.fleet.Close("broker"); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for _, name := range append(pipeline.Services(), "broker") {
				text, _ := os.ReadFile(d.fleet.LogFile(name))
				t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
			}
		}
	})
	return d
}

func (d *deployment) config() string { return filepath.Join(d.dir, "landfall.config.yaml") }

// seed makes the repository, with a branch to land.
func (d *deployment) seed() {
	bare, tree := filepath.Join(d.dir, "shop.git"), filepath.Join(d.dir, "tree")
	git(d.t, "", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	git(d.t, "", "clone", "--quiet", bare, tree)
	for _, branch := range []string{"main", "first", "second"} {
		if branch != "main" {
			git(d.t, tree, "checkout", "--quiet", "-b", branch, "main")
		}
		file := "README"
		if branch != "main" {
			file = branch
		}
		if err := os.WriteFile(filepath.Join(tree, file), []byte(branch+"\n"), 0o644); err != nil {
			d.t.Fatal(err)
		}
		git(d.t, tree, "add", ".")
		git(d.t, tree, "commit", "--quiet", "-m", branch)
		git(d.t, tree, "push", "--quiet", "origin", branch)
	}
}

func (d *deployment) launch(name string, args ...string) {
	d.t.Helper()
	if err := d.fleet.Launch(name, append([]string{d.binary}, args...)...); err != nil {
		d.t.Fatal(err)
	}
}

// start starts a service that does not run.
func (d *deployment) start(name string) {
	d.t.Helper()
	d.metrics[name] = freeAddress(d.t)
	d.launch(name, name, "--config", d.config(), "--metrics", d.metrics[name], "--instance", "one")
}

// kill ends a process with SIGKILL.
func (d *deployment) kill(name string) {
	d.t.Helper()
	if killed, err := d.fleet.Remove(name); err != nil || !killed {
		d.t.Fatalf("%s: %v, %v", name, killed, err)
	}
}

// get returns the status and the body of a service's own listener.
func (d *deployment) get(service, path string) (int, string) {
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get("http://" + d.metrics[service] + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		return 0, err.Error()
	}
	return r.StatusCode, body.String()
}

// await waits for what holds reports; why is printed if it never does.
func (d *deployment) await(what string, holds func() (ok bool, why string)) (took time.Duration) {
	d.t.Helper()
	began, last := time.Now(), ""
	for {
		ok, why := holds()
		if ok {
			return time.Since(began)
		}
		last = why
		if time.Since(began) > patience {
			d.t.Fatalf("never: %s; at last: %s", what, last)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitReady waits until a service's /readyz is as wanted, and returns its body.
func (d *deployment) awaitReady(service string, ready bool) (body string) {
	d.t.Helper()
	took := d.await(fmt.Sprintf("%s ready: %v", service, ready), func() (bool, string) {
		var status int
		status, body = d.get(service, "/readyz")
		return status == http.StatusOK && ready || status == http.StatusServiceUnavailable && !ready, fmt.Sprint(status, " ", body)
	})
	d.t.Logf("%s ready=%v after %s: %s", service, ready, took.Round(time.Second/10), strings.TrimSpace(body))
	return body
}

// command runs a command of the client, and returns what it prints and its exit code.
func (d *deployment) command(args ...string) (out string, code int) {
	cmd := exec.CommandContext(context.WithoutCancel(d.t.Context()), d.binary, args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "LANDFALL_SERVER=http://"+d.gateway, "LANDFALL_USER=ada")
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		d.t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// says waits until a command prints each of the texts.
func (d *deployment) says(args []string, texts ...string) (out string) {
	d.t.Helper()
	took := d.await(strings.Join(args, " ")+" with "+strings.Join(texts, "; "), func() (bool, string) {
		out, _ = d.command(args...)
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return false, out
			}
		}
		return true, ""
	})
	d.t.Logf("%s, after %s:\n%s", strings.Join(args, " "), took.Round(time.Second/10), out)
	return out
}

// land lands a branch, and waits for it.
func (d *deployment) land(branch string) {
	d.t.Helper()
	if out, code := d.command("land", branch, "--wait"); code != 0 {
		explained, _ := d.command("explain", branch)
		d.t.Fatalf("%s does not land (%d): %s\n%s", branch, code, out, explained)
	}
}

// killable are the services that changes land by and that are killed while the gateway tells of it.
func killable() []string {
	var out []string
	for _, name := range pipeline.Services() {
		if name != events.ServiceGateway && name != events.ServiceOutcomes {
			out = append(out, name)
		}
	}
	return out
}
