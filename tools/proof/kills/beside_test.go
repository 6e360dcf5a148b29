package kills

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/tools/proof/kills/fleet"
	"landfall.build/tools/release/releasetest"
)

// TestTheLastReleaseRunsBesideThisOne: processes of both work in one deployment while changes land and some are killed, are replaced by
// the other release's one by one, and back again; then every promise has been kept.
func TestTheLastReleaseRunsBesideThisOne(t *testing.T) {
	if os.Getenv("LANDFALL_TEST_SLOW") == "" {
		t.Skip("LANDFALL_TEST_SLOW is not set: two releases are built, and eighteen processes run")
	}
	const clone = "../../.."
	last := releasetest.Last(t, clone)
	dir := t.TempDir()
	old, err := last.Build(t.Context(), clone, dir)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "landfall")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-X main.version=this", "-o", binary, "./tools/cmd/landfall")
	build.Dir = clone
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args := []string{"kills", "--beside", old, "--keep", filepath.Join(dir, "kept"), "--changes", "12", "--kills", "7"}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	kills := exec.CommandContext(ctx, binary, args...)
	kills.Cancel = func() error { return kills.Process.Signal(os.Interrupt) }
	out, err := kills.CombinedOutput()
	if err != nil {
		logs, _ := filepath.Glob(filepath.Join(dir, "kept", "round-*", "logs", "*.log"))
		for _, file := range logs {
			text, _ := os.ReadFile(file)
			t.Logf("%s:\n%s", file, text[max(0, len(text)-2000):])
		}
		t.Fatalf("%s beside this release: %v\n%s", last.Version, err, out)
	}
	// Nine services with two instances each, and the broker, twice.
	if want := "38 replaced by another release"; !strings.Contains(string(out), want) {
		t.Errorf("%q is missing:\n%s", want, out)
	}
}

func TestWhatIsNoOtherReleaseIsRefused(t *testing.T) {
	same := filepath.Join(t.TempDir(), "same")
	if err := os.WriteFile(same, []byte("#!/bin/sh\necho '{\"version\":\"test\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for words, beside := range map[string]string{
		"does not say its version":    filepath.Join(t.TempDir(), "nothing"),
		"which is no version":         "/bin/echo",
		"both commands call themselv": same,
	} {
		c := Command("test")
		c.SetOut(&bytes.Buffer{})
		c.SetErr(&bytes.Buffer{})
		c.SetArgs([]string{"--beside", beside})
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", beside, err)
		}
	}
}

func TestRoundsUpgradeAndDowngradeInTurns(t *testing.T) {
	r := &run{binary: "this", version: "2", beside: "other", besideVersion: "1"}
	for number, want := range map[int][2]string{1: {"1", "2"}, 2: {"2", "1"}, 3: {"1", "2"}} {
		if first, second := (&round{run: r, number: number}).releases(); first.version != want[0] || second.version != want[1] {
			t.Errorf("round %d goes from %s to %s, not from %s to %s", number, first.version, second.version, want[0], want[1])
		}
	}
	r.beside = ""
	if first, second := (&round{run: r, number: 1}).releases(); first != second || first.binary != "this" {
		t.Errorf("without another release: %+v, %+v", first, second)
	}
}

// TestEachProcessIsReplacedTwice: by the other release, and then by the first again.
func TestEachProcessIsReplacedTwice(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"old", "new"} {
		if err := os.WriteFile(filepath.Join(dir, version), []byte("#!/bin/sh\necho "+version+" $1\nexec sleep 100\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := &round{
		run: &run{binary: filepath.Join(dir, "new"), version: "new", beside: filepath.Join(dir, "old"), besideVersion: "old"}, number: 1, place: place{dir},
		logger: slog.New(slog.DiscardHandler),
	}
	f := fleet.New(dir, nil)
	defer f.Close()
	first, _ := r.releases()
	argv := func(binary string) []string { return []string{binary, "broker"} }
	b := &brokers{names: []string{"broker"}, argv: argv}
	if err := f.Launch("broker", argv(first.binary)...); err != nil {
		t.Fatal(err)
	}
	members := []string{"broker"}
	for name, argv := range r.members(first) {
		if err := f.Launch(name, argv...); err != nil {
			t.Fatal(err)
		}
		members = append(members, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.replace(ended, f, b); err != nil {
		t.Fatal(err)
	}
	met := 0
	for _, name := range members {
		service, _, _ := strings.Cut(name, "-")
		text := ""
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			content, _ := os.ReadFile(f.LogFile(name))
			if text = string(content); strings.HasSuffix(text, "old "+service+"\n") {
				break
			}
		}
		// One that is replaced at once may not have said anything yet.
		if !strings.HasSuffix("old "+service+"\nnew "+service+"\nold "+service+"\n", text) && text != "old "+service+"\nold "+service+"\n" {
			t.Errorf("%s was %q", name, text)
		}
		met += strings.Count(text, "new ")
	}
	if met < len(members)/2 {
		t.Errorf("the other release ran for %d of %d", met, len(members))
	}
	if n := r.counts.replacements.Load(); int(n) != 2*len(members) {
		t.Errorf("%d were replaced of %d", n, len(members))
	}
}

func TestAServiceThatOnlyOneReleaseHasRunIsNamed(t *testing.T) {
	of := map[string]map[string]int{}
	for _, service := range claiming {
		of[service] = map[string]int{"1": 2, "2": 3}
	}
	one, two := release{"a", "1"}, release{"b", "2"}
	if problems := unclaimed(of, one, two); len(problems) > 0 {
		t.Errorf("both have run all: %q", problems)
	}
	delete(of[events.ServiceLander], "2")
	if problems := unclaimed(of, one, two); len(problems) != 1 || !strings.Contains(problems[0], "no lander of version 2") {
		t.Errorf("%q", problems)
	}
	delete(of, events.ServiceLander)
	if problems := unclaimed(of, one, two); len(problems) != 2 {
		t.Errorf("nobody has run a lander: %q", problems)
	}
}
