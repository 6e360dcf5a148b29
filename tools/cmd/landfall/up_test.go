package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func git(t *testing.T, directory string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestARepositoryThatIsNotThereIsAnErrorAtOnce(t *testing.T) {
	for _, url := range []string{filepath.Join(t.TempDir(), "nothing.git"), "./nothing/at:all", t.TempDir()} {
		if _, err := configurationFor(context.Background(), []string{url}, "", ""); err == nil {
			t.Errorf("%s is taken for a repository", url)
		}
	}
	for _, url := range []string{"https://git.example.com/a/b.git", "git@git.example.com:a/b.git", "file:///nothing.git"} {
		c, err := configurationFor(context.Background(), []string{url}, "", "")
		if err != nil {
			t.Errorf("%s: %v", url, err)
		} else if name := c.QueueNames()[0]; c.Queues[name].Branch != "main" {
			t.Errorf("%s lands on %s", url, c.Queues[name].Branch)
		}
	}
}

func TestTheMainlineIsWhatTheRepositorySaysUnlessTold(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "shop.git")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=trunk", bare)
	for given, want := range map[string]string{"": "trunk", "release": "release"} {
		c, err := configurationFor(context.Background(), []string{bare}, given, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Queues["shop"].Branch; got != want {
			t.Errorf("--branch %q: %s, want %s", given, got, want)
		}
	}
}

func TestWhoValidatesAManifestIsToldWhatChecksIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "landfall.yaml")
	if err := os.WriteFile(file, []byte("targets: [{name: all}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := root()
	cmd.SetArgs([]string{"validate", file})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "landfall targets") {
		t.Errorf("%v", err)
	}
}

func TestValidateTakesTheFileEitherWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nrepositories: {r: {url: r.git}}\nqueues: {q: {repository: r}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		ok   bool
	}{{[]string{"validate", file}, true}, {[]string{"validate", "--config", file}, true}, {[]string{"validate", "--config", file, file}, false}, {[]string{"validate", file + "x"}, false}} {
		cmd := root()
		cmd.SetArgs(c.args)
		cmd.SetOut(&bytes.Buffer{})
		if err := cmd.ExecuteContext(t.Context()); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}

func TestValidateWarnsOfCachesThatAChangeCanForge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "version: 1\nrepositories: {r: {url: r.git}}\nqueues: {a: {repository: r, analysis: {adapter: python}, steps: {write: [/srv/tools/uv], environment: {variables: {UV_CACHE_DIR: /srv/tools/uv}}, caches: {npm: {share: queue}, pip: {max_size: 1GiB}}}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", file}, {"validate", "--json", file}} {
		cmd, out := root(), &bytes.Buffer{}
		cmd.SetArgs(args)
		cmd.SetOut(out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, "queue a: the share of cache npm is queue: ") ||
			!strings.Contains(got, "queue a: UV_CACHE_DIR of steps.environment.variables is /srv/tools/uv, ") || !strings.Contains(got, "Steps have the cache uv in its place.") || strings.Contains(got, "pip") {
			t.Errorf("%q prints\n%s", args, got)
		}
	}
}

func TestValidateWarnsOfAQuarantineThatIsOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "version: 1\nrepositories: {r: {url: r.git}}\nqueues: {a: {repository: r, flaky: {quarantine: [{target: //a, until: 2024-11-30, why: a race}, {target: //b, until: 9999-11-30, why: a race}]}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd, out := root(), &bytes.Buffer{}
	cmd.SetArgs([]string{"validate", file})
	cmd.SetOut(out)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "  warning: queue a: the quarantine of //a ended with 2024-11-30, ") || strings.Contains(got, "//b") {
		t.Errorf("validate prints\n%s", got)
	}
}

func TestValidateWarnsOfAGatewayThatWouldNotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	for access, warned := range map[string]bool{"{mode: open}": true, "{open_network: on}": false, "{mode: required}": false} {
		text := "version: 1\nrepositories: {r: {url: r.git}}\nqueues: {a: {repository: r}}\ngateway: {listen: ':7878'}\naccess: " + access + "\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd, out := root(), &bytes.Buffer{}
		cmd.SetArgs([]string{"validate", file})
		cmd.SetOut(out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "  warning: the gateway does not start with this: the gateway listens on :7878, ") != warned {
			t.Errorf("with access: %s validate prints\n%s", access, got)
		}
	}
}

func TestWithoutAConfigurationInitIsNamed(t *testing.T) {
	cmd := root()
	cmd.SetArgs([]string{"up", "--config", filepath.Join(t.TempDir(), "none.yaml")})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "none.yaml; name a repository (landfall up PATH) or have landfall init write one") {
		t.Errorf("%v", err)
	}
}

func TestThePathOfStepsIsShownAndNotThatOfTheService(t *testing.T) {
	t.Setenv("PATH", "/of/the/service:"+os.Getenv("PATH"))
	file := filepath.Join(t.TempDir(), "c.yaml")
	text := "version: 1\nrepositories: {r: {url: r.git}}\nqueues: {a: {repository: r}, b: {repository: r, branch: b, steps: {environment: {path: /opt/bin}}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	validate := func(args ...string) string {
		cmd, out := root(), &bytes.Buffer{}
		cmd.SetArgs(append([]string{"validate", file}, args...))
		cmd.SetOut(out)
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const a, b = "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "/opt/bin"
	if got := validate(); !strings.Contains(got, "queue a: PATH of steps is "+a+"\n") || !strings.Contains(got, "queue b: PATH of steps is "+b+"\n") {
		t.Errorf("validate prints\n%s", got)
	}
	if got := validate("--json"); !strings.Contains(got, `"path_of_steps":{"a":"`+a+`","b":"`+b+`"}`) {
		t.Errorf("validate --json prints\n%s", got)
	}
	bare := filepath.Join(t.TempDir(), "shop.git")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	for given, want := range map[string]string{"": a, "/x:/y": "/x:/y"} {
		c, err := configurationFor(t.Context(), []string{bare}, "", given)
		if err != nil || c.Queues["shop"].Steps.Environment.Path != want {
			t.Errorf("--path %q: %v, %v", given, c, err)
		}
	}
	if _, err := configurationFor(t.Context(), []string{bare}, "", "/x:y"); err == nil {
		t.Error("a relative folder is taken")
	}
}

func TestUpOfABranchThatIsNotThereSaysSoAndWhichAre(t *testing.T) {
	bare := filepath.Join(t.TempDir(), "shop.git")
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	clone := filepath.Join(t.TempDir(), "shop")
	git(t, "", "clone", "--quiet", bare, clone)
	git(t, clone, "commit", "--quiet", "--allow-empty", "-m", "one")
	git(t, clone, "push", "--quiet", "origin", "HEAD:refs/heads/main", "HEAD:refs/heads/topic")
	for _, repository := range []string{bare, "file://" + bare} {
		cmd := root()
		cmd.SetArgs([]string{"up", repository, "--branch", "trunk", "--data", t.TempDir(), "--listen", "127.0.0.1:0"})
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "has no branch trunk, only main, topic; name one of them with --branch, or push trunk first") {
			t.Errorf("%s: %v", repository, err)
		}
	}
}
