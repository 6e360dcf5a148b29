package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/tools/embedded/stack"
)

// landfall runs a command, and returns what it prints.
func landfall(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := root()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	return strings.TrimSpace(out.String()), err
}

// TestTheFirstTokenIsMadeBesideTheLogAndMakesTheOthers with the commands of people, on a running gateway and its broker.
func TestTheFirstTokenIsMadeBesideTheLogAndMakesTheOthers(t *testing.T) {
	dir := t.TempDir()
	bare := filepath.Join(dir, "shop.git")
	git(t, "", "init", "--quiet", "--bare", bare)
	config, err := configurationFor(t.Context(), []string{bare}, "main", "")
	if err != nil {
		t.Fatal(err)
	}
	config.Data, config.Gateway.Listen, config.Access.Mode = filepath.Join(dir, "data"), "127.0.0.1:0", configuration.AccessRequired
	s, err := stack.Start(t.Context(), stack.Options{Configuration: config, Logger: slog.New(slog.DiscardHandler), Services: []string{events.ServiceGateway}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Setenv("LANDFALL_SERVER", s.URL())
	t.Setenv("LANDFALL_TOKEN", "")
	t.Setenv("LANDFALL_TOKEN_FILE", "")
	refused := func(want string, args ...string) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			out, err := landfall(t, args...)
			if err != nil && strings.Contains(err.Error(), want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%v: %v, want %q\n%s", args, err, want, out)
			}
		}
	}
	refused("It is not known who asks", "whoami")
	file := filepath.Join(dir, "first")
	out, err := landfall(t, "token", "create", "first", "--role", "admin", "--queues", "*", "--ttl", "1h", "--direct", "--data", config.Data, "--output", file)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file is %v, %v", info, err)
	}
	t.Setenv("LANDFALL_TOKEN_FILE", file)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if out, err = landfall(t, "whoami"); err == nil || time.Now().After(deadline) {
			break
		}
	}
	if err != nil || !strings.Contains(out, "(first), until ") || !strings.Contains(out, "admin") {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = landfall(t, "token", "create", "ci", "--verbs", "read,land", "--queues", "shop")
	lines := strings.Split(out, "\n")
	secret := lines[len(lines)-1]
	if err != nil || !strings.HasPrefix(secret, "landfall_") {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err = landfall(t, "token", "list"); err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(out, "read, land") || strings.Contains(out, secret) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = landfall(t, "token", "create", "own", "--role", "contributor", "--queues", "shop")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("LANDFALL_TOKEN", out[strings.LastIndex(out, "\n")+1:])
	if out, err = landfall(t, "whoami", "--queue", "shop"); err != nil || !strings.Contains(out, "may land             your own changes alone\n") || !strings.Contains(out, "may pause            no: ") {
		t.Errorf("%v: %s", err, out)
	}
	t.Setenv("LANDFALL_TOKEN", secret)
	if out, err = landfall(t, "whoami"); err != nil || !strings.Contains(out, "for read, land alone") || !strings.Contains(out, "lander") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = landfall(t, "whoami", "--queue", "shop"); err != nil || !strings.Contains(out, "may land             yes") || !strings.Contains(out, "may pause            no: The token") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = landfall(t, "queue"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	refused("is not for pausing or resuming the queue", "pause")
	refused("managing tokens", "token", "create", "more", "--role", "viewer", "--queues", "shop")
	t.Setenv("LANDFALL_TOKEN", "")
	id := strings.Split(secret, "_")[1]
	refused("give the id of the token", "token", "revoke", secret)
	if out, err = landfall(t, "token", "revoke", id, "--why", "lost"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	t.Setenv("LANDFALL_TOKEN", secret)
	refused("The token was revoked", "whoami")
}

// TestUpDoesNotStartOpenWhereOtherMachinesReachIt unless it is told to.
func TestUpDoesNotStartOpenWhereOtherMachinesReachIt(t *testing.T) {
	work, bare := t.TempDir(), filepath.Join(t.TempDir(), "shop.git")
	git(t, work, "init", "--quiet", "--initial-branch=main")
	git(t, work, "commit", "--quiet", "--allow-empty", "-m", "Begin")
	git(t, "", "clone", "--quiet", "--bare", work, bare)
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "landfall.example.com:80"} {
		out, err := landfall(t, "up", bare, "--branch", "main", "--listen", listen, "--data", t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "access.mode: required") {
			t.Errorf("%s: %v\n%s", listen, err, out)
		}
	}
}
