package graphview

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

// hash is what `landfall targets` says of a target.
func (f *fixture) hash(target string, args ...string) string {
	f.Helper()
	var l Listing
	f.read(&l, append([]string{"targets", "--rev", "main"}, args...)...)
	for _, t := range l.Targets {
		if t.Name == target {
			return t.Hash
		}
	}
	f.Fatalf("%q has no target %s: %+v", args, target, l.Targets)
	return ""
}

// configure writes a configuration with these queues.
func (f *fixture) configure(queues string) string {
	file := filepath.Join(f.TempDir(), "landfall.config.yaml")
	if err := os.WriteFile(file, []byte(configurationOf("shop.git", queues)), 0o600); err != nil {
		f.Fatal(err)
	}
	return file
}

func configurationOf(url, queues string) string {
	return "version: 1\nrepositories: {shop: {url: " + url + "}}\nqueues:\n" + queues
}

func TestWhatMeetsInHubsAloneIsIndependentAndShown(t *testing.T) {
	f := newFixture(t, shop)
	f.branch("money", "main", files{"money/money.go": "package money // 2\n"})
	f.branch("app", "main", files{"app/app.go": shop["app/app.go"] + "// 2\n"})
	f.branch("more", "main", files{"app/more.go": "package app\n"})
	args := []string{"conflicts", "--change", "money", "--change", "app", "--change", "more"}
	var without, with, configured Matrix
	f.read(&without, args...)
	if len(without.Conflicts) != 3 || without.Hubs != nil {
		t.Fatalf("without hubs %+v", without)
	}
	f.read(&with, append(args, "--hub", "shop/app [test]", "--hub", "*/app")...)
	if len(with.Conflicts) != 0 || len(with.Independent) != 3 || len(with.Hubs) != 3 {
		t.Fatalf("with hubs %+v", with)
	}
	if p := with.Hubs[0]; p.A != "money" || p.B != "app" || !slices.Equal(p.Targets, []string{"shop/app", "shop/app [test]"}) {
		t.Errorf("money and app meet in %+v", p)
	}
	config := f.configure("  main: {repository: shop, analysis: {adapter: go, hubs: ['*/app', 'shop/app [test]']}}\n")
	f.read(&configured, append(args, "--config", config)...)
	if fmt.Sprint(configured) != fmt.Sprint(with) {
		t.Errorf("by the configuration %+v, by flags %+v", configured, with)
	}
	out, err := f.run(append(args, "--config", config)...)
	if err != nil || !strings.Contains(out, "independent  money × app: they meet in hubs alone: shop/app, shop/app [test]\n") ||
		!strings.Contains(out, "0 pairs conflict, 3 are independent (3 of them meet in hubs)") {
		t.Errorf("%s, %v", out, err)
	}
	// One hub is not all that they meet in.
	var half Matrix
	f.read(&half, append(args, "--hub", "shop/app")...)
	if len(half.Conflicts) != 3 || len(half.Hubs) != 0 || !slices.Equal(half.Conflicts[0].Targets, []string{"shop/app [test]"}) {
		t.Errorf("with one hub of two %+v", half)
	}
}

func TestTheQueueOfTheConfigurationIsLookedThrough(t *testing.T) {
	f := newFixture(t, shop)
	const target = "shop/money"
	plain := f.hash(target)
	config := f.configure(`  main: {repository: shop, steps: {environment: {variables: {GOFLAGS: -tags=x}}}, analysis: {adapter: go, toolchain: go1.99, inputs: [{folders: [money], files: [README.md]}]}}
  whole: {repository: shop, branch: next, analysis: {whole_repository_steps: [{name: a, run: [b]}]}}
`)
	if f.hash(target, "--config", config, "--queue", "main") == plain {
		t.Error("the settings of the queue make no other hashes")
	}
	if byFlags := f.hash(target, "--adapter", "go", "--env", "GOFLAGS=-tags=x", "--toolchain", "go1.99", "--input", "money=README.md"); byFlags != f.hash(target, "--config", config, "--queue", "main") {
		t.Error("the same by flags is something else")
	}
	if f.hash("//:repository", "--config", config, "--queue", "whole") == "" {
		t.Error("the adapter of the queue is not taken")
	}
	if f.hash("shop/docs", "--adapter", "go", "--input", "money=README.md") != f.hash("shop/docs") || f.hash("shop/docs", "--adapter", "go", "--input", "README.md") == f.hash("shop/docs") {
		t.Error("--input does not hold for the folders that it names, or for all")
	}
	for want, args := range map[string][]string{
		"name one with --queue: main, whole": {"--config", config},
		"unknown queue":                      {"--config", config, "--queue", "none"},
		"write one there":                    {"--config", config + "-none"},
		"neither is there a":                 {"--queue", "main"},
	} {
		if _, err := f.run(append([]string{"targets"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestTheTreeMayHoldTheConfiguration(t *testing.T) {
	f := newFixture(t, shop)
	text := configurationOf("shop.git", "  main: {repository: shop, analysis: {adapter: go, toolchain: go1.99}}\n")
	f.branch("configured", "main", files{configurationFile: text})
	f.branch("broken", "main", files{configurationFile: "nonsense\n"})
	var l Listing
	f.read(&l, "targets", "--rev", "configured")
	var other Listing
	f.read(&other, "targets", "--rev", "configured", "--adapter", "go")
	if len(l.Targets) != len(other.Targets) || l.Targets[1].Hash == other.Targets[1].Hash {
		t.Errorf("the configuration in the tree is not taken: %+v", l.Targets)
	}
	if _, err := f.run("targets", "--rev", "broken"); err == nil || !strings.Contains(err.Error(), "the tree's own configuration is not valid") {
		t.Errorf("a configuration that is not valid: %v", err)
	}
	f.read(&l, "targets", "--rev", "broken", "--adapter", "go")
}

// `landfall targets --rev` of somebody's branch ran the program that the branch's own configuration named as the go command.
func TestTheTreesConfigurationRunsNoProgram(t *testing.T) {
	f := newFixture(t, shop)
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\n: > "+ran+"\necho go1.99\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := configurationOf("shop.git", "  main: {repository: shop, analysis: {adapter: go}, steps: {environment: {path: "+bin+"}}}\n")
	f.branch("configured", "main", files{configurationFile: text})
	has := func() bool { _, err := os.Stat(ran); return err == nil }
	f.hash("shop/money", "--rev", "configured")
	if has() {
		t.Error("that of the tree")
	}
	file := filepath.Join(f.dir, configurationFile)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if f.hash("shop/money"); has() {
		t.Error("that of the clone, where it may be checked out")
	}
	if f.hash("shop/money", "--config", file); !has() {
		t.Error("not even where it is named")
	}
	queue := configuration.Queue{}
	queue.Analysis.Bazel.Binary, queue.Steps.Isolation, queue.Steps.Network = "/tmp/evil", configuration.IsolationOff, "host"
	queue.Steps.Read, queue.Steps.Write, queue.Steps.Environment.Path = []string{"/"}, []string{"/"}, "/tmp"
	distrust(&queue)
	own := configuration.NewQueue("", configuration.Defaults{Path: os.Getenv("PATH")})
	if fmt.Sprint(queue.Analysis.Bazel.Binary, queue.Steps.Isolation, queue.Steps.Network, queue.Steps.Read, queue.Steps.Write, queue.Steps.Environment.Path) !=
		fmt.Sprint(own.Analysis.Bazel.Binary, own.Steps.Isolation, own.Steps.Network, own.Steps.Read, own.Steps.Write, own.Steps.Environment.Path) {
		t.Errorf("it says what runs here: %+v", queue)
	}
}

// Bazel ran with the variables and the flags of a commit that somebody looked at: LD_PRELOAD, say, or --server_javabase.
func TestTheTreesConfigurationSaysNothingToBazel(t *testing.T) {
	f := newFixture(t, files{"WORKSPACE": "", "p/BUILD": ""})
	bin := t.TempDir()
	said := filepath.Join(bin, "said")
	if err := os.WriteFile(filepath.Join(bin, "bazel"), []byte("#!/bin/sh\necho \"$EVIL $*\" >> "+said+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := configurationOf("shop.git", "  main: {repository: shop, steps: {isolation: 'off', environment: {variables: {EVIL: evil-variable}}}, analysis: {adapter: bazel, bazel: {startup_flags: [--evil_startup], query_flags: [--evil_query]}}}\n")
	f.branch("configured", "main", files{configurationFile: text})
	told := func(args ...string) string {
		os.Remove(said)
		_, _ = f.run(append([]string{"targets", "--bazel", filepath.Join(bin, "bazel")}, args...)...)
		text, err := os.ReadFile(said)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, more := range [][]string{nil, {"--queue", "main", "--adapter", "bazel"}} {
		if got := told(append([]string{"--rev", "configured"}, more...)...); strings.Contains(got, "evil") {
			t.Errorf("%v: it is told %s", more, got)
		}
	}
	if got := told("--rev", "main", "--env", "EVIL=evil-variable"); !strings.Contains(got, "evil-variable") {
		t.Errorf("by flags it is told %s", got)
	}
	queue := configuration.Queue{}
	queue.Analysis.Bazel.StartupFlags, queue.Analysis.Bazel.QueryFlags = []string{"--server_javabase=/tmp"}, []string{"--x"}
	if distrust(&queue); len(queue.Analysis.Bazel.StartupFlags)+len(queue.Analysis.Bazel.QueryFlags) > 0 {
		t.Errorf("flags of it are left: %+v", queue.Analysis.Bazel)
	}
}

// landfall init leaves it in the clone, and its advice is landfall targets --uncovered.
func TestTheCloneMayHoldTheConfiguration(t *testing.T) {
	f := newFixture(t, shop)
	text := configurationOf("shop.git", "  main: {repository: shop, analysis: {adapter: go, toolchain: go1.99}}\n")
	plain := f.hash("shop/money")
	if err := os.WriteFile(filepath.Join(f.dir, configurationFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if configured := f.hash("shop/money"); configured == plain {
		t.Error("the configuration in the clone is not taken")
	}
	if err := os.WriteFile(filepath.Join(f.dir, configurationFile), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.run("targets", "--rev", "main"); err == nil || !strings.Contains(err.Error(), configurationFile) {
		t.Errorf("a configuration that is not valid: %v", err)
	}
}

// TestDefaultSettingsAreSaidToBeThose: what a queue ignores, for one, is not known without its configuration.
func TestDefaultSettingsAreSaidToBeThose(t *testing.T) {
	f := newFixture(t, shop)
	config := f.configure("  main: {repository: shop, analysis: {adapter: go, toolchain: go1.99}}\n")
	for _, c := range []struct {
		args []string
		said bool
	}{
		{[]string{"targets", "--rev", "main", "--uncovered"}, true},
		{[]string{"targets", "--rev", "main"}, true},
		{[]string{"affected", "--base", "main", "--head", "main"}, true},
		{[]string{"targets", "--rev", "main", "--json"}, false},
		{[]string{"targets", "--rev", "main", "--adapter", "go"}, false},
		{[]string{"targets", "--rev", "main", "--uncovered", "--config", config}, false},
	} {
		if said := f.said(c.args...); strings.Contains(said, "this goes by default settings; a queue may have others (--config)") != c.said {
			t.Errorf("%q: %q", c.args, said)
		}
	}
}

// TestBazelIsWaitedForAsLongAsTheQueueWould, unless a flag says how long.
func TestBazelIsWaitedForAsLongAsTheQueueWould(t *testing.T) {
	f := newFixture(t, files{"WORKSPACE": "", "p/BUILD": ""})
	hanging := filepath.Join(f.TempDir(), "bazel")
	if err := os.WriteFile(hanging, []byte("#!/bin/sh\nexec sleep 300\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := f.configure("  main: {repository: shop, analysis: {adapter: bazel, timeout: 1s, bazel: {binary: " + hanging + "}}}\n")
	for want, args := range map[string][]string{
		"more than 1s":    {"--config", config},
		"more than 100ms": {"--config", config, "--timeout", "100ms"},
		"more than 150ms": {"--adapter", "bazel", "--bazel", hanging, "--timeout", "150ms"},
	} {
		if _, err := f.run(append([]string{"targets", "--rev", "main"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}
