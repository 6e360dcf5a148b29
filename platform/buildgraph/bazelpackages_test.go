package buildgraph

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// bazelQueue has a Bazel that is looked for in the test's PATH.
func bazelQueue(binary string) configuration.Queue {
	return configuration.Queue{
		Analysis: configuration.Analysis{
			Adapter: configuration.AdapterBazel, Timeout: 8 * time.Minute, Bazel: configuration.Bazel{
				Binary: binary, Heap: 512 << 20,
				StartupFlags: []string{"--host_jvm_args=-XX:+UseSerialGC", "--host_jvm_args=-XX:TieredStopAtLevel=1"}, // Quick to start.
			},
			WholeRepositorySteps: []configuration.Step{{Name: "all", Run: []string{"bazel", "test", "//..."}}},
		},
		Steps: configuration.Steps{Environment: configuration.Environment{Path: os.Getenv("PATH")}},
	}
}

// bazelBase returns a workspace of two packages.
func bazelBase(f *fixture) string {
	return f.commits("", files{
		"WORKSPACE": "", "a/BUILD": "filegroup(name = \"a\", srcs = [\"a.txt\"], visibility = [\"//visibility:public\"])\n", "a/a.txt": "1\n",
		"b/BUILD": "sh_test(name = \"b\", srcs = [\"b.sh\"], data = [\"//a\"])\nfilegroup(name = \"c\")\n", "b/b.sh": "1\n",
	})[0]
}

func analyzeBy(f *fixture, loader *Loader, base string, edits ...files) *Result {
	f.Helper()
	var picks []landing.Pick
	below := base
	for _, id := range f.commits(base, edits...) {
		picks = append(picks, landing.Pick{Head: id, Base: below})
		below = id
	}
	result, err := Analyze(f.Context(), loader, f.repo, base, picks)
	if err != nil {
		f.Fatal(err)
	}
	return result
}

// needBazel skips a test where there is no Bazel, and need not be.
func needBazel(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bazel"); err != nil {
		const missing = "there is no Bazel on this machine: run tools/bazel/install (Debian: apt-get install bazel-bootstrap)"
		if os.Getenv("LANDFALL_TEST_BAZEL") == "required" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
}

func TestTheAdapterBazelMakesATargetOfEachRule(t *testing.T) {
	needBazel(t)
	f := newFixture(t)
	loader := NewLoader(bazelQueue("bazel"), nil)
	defer loader.Close()
	base := bazelBase(f)
	r := analyzeBy(f, loader, base, files{"a/a.txt": "2\n"}, files{"b/BUILD": "sh_test(name = \"b\", srcs = [\"b.sh\"], data = [\"//a\"])\n"})
	if got := versions(r); got != "//a:a@1 //b [package]@2 //b:b@1" || fmt.Sprint(r.Deleted) != "[//b:c]" || r.Adapter != "bazel" || r.All {
		t.Errorf("δ = %s, deleted %v, by %s, %+v", got, r.Deleted, r.Adapter, r.Reasons)
	}
	target, _ := r.Parts[0].Target("//b:b")
	if len(target.Commands) != 1 || fmt.Sprint(target.Commands[0].Argv) != "[bazel test -- //b:b]" {
		t.Errorf("//b:b is verified by %+v", target.Commands)
	}
	if pkg, _ := r.Parts[1].Target("//b [package]"); !IsTrivial(pkg) {
		t.Errorf("a package has steps: %+v", pkg.Commands)
	}
	broken := analyzeBy(f, loader, base, files{"b/BUILD": "sh_test(\n"})
	if broken.Invalid == nil || !strings.Contains(broken.Invalid.Message, "b/BUILD:2:") {
		t.Errorf("a broken BUILD file: %+v", broken)
	}
	// A second loader of the same mirror has a checkout of its own.
	second := NewLoader(bazelQueue("bazel-of-nobody"), nil)
	defer second.Close()
	analyzeBy(f, second, base, files{"a/a.txt": "3\n"})
	if places, err := filepath.Glob(filepath.Join(f.repo.Dir()+".bazel", "*", "tree")); err != nil || len(places) != 2 {
		t.Errorf("checkouts: %q, %v", places, err)
	}
}

// TestM4WithoutBazelAChangeConflictsWithEverything and the steps of the whole repository verify it.
func TestM4WithoutBazelAChangeConflictsWithEverything(t *testing.T) {
	f := newFixture(t)
	base := bazelBase(f)
	crashing := filepath.Join(t.TempDir(), "bazel")
	if err := os.WriteFile(crashing, []byte("#!/bin/sh\nexit 37\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for binary, reason := range map[string]string{"bazel-of-nobody": "install Bazel", crashing: "exit code 37"} {
		loader := NewLoader(bazelQueue(binary), nil)
		r := analyzeBy(f, loader, base, files{"a/a.txt": binary + "\n"})
		if !r.All || versions(r) != "//:repository@1" || r.Invalid != nil || !strings.Contains(strings.Join(r.Reasons, "\n"), reason) {
			t.Errorf("%s: δ = %s, %+v", binary, versions(r), r.Reasons)
		}
		if whole, _ := r.Parts[0].Target("//:repository"); len(whole.Commands) != 1 || r.Targets[0].Trivial {
			t.Errorf("%s: the whole repository is verified by %+v", binary, whole.Commands)
		}
		loader.Close()
		loader.Close()
	}
	loader := NewLoader(bazelQueue("bazel-of-nobody"), nil)
	if r := analyzeBy(f, loader, base, files{"WORKSPACE": "-"}); r.Invalid == nil || !strings.Contains(r.Invalid.Message, "the repository has none") {
		t.Errorf("no workspace: %+v", r.Invalid)
	}
	loader.Close()
	closed := NewLoader(bazelQueue("bazel"), nil)
	closed.Close()
	if r := analyzeBy(f, closed, base, files{"a/a.txt": "closed\n"}); !r.All {
		t.Errorf("a closed loader: %+v", r)
	}
	// A mirror that cannot be checked out of.
	part, invalid, err := NewLoader(bazelQueue("bazel"), nil).Part(t.Context(), objectsOnly{f.repo}, base)
	if err != nil || invalid != nil || len(part.Graph.Unknown()) == 0 {
		t.Errorf("%+v, %v, %v", part, invalid, err)
	}
}

// objectsOnly hides what a mirror has besides.
type objectsOnly struct{ Repository }

var _ worktrees = (*gitrepo.Repo)(nil)

// TestNobodyElseReachesWhatRepositoryRulesWrite: a rule can leave a program with the bit of its owner, who is the service's user.
func TestNobodyElseReachesWhatRepositoryRulesWrite(t *testing.T) {
	f := newFixture(t)
	folder := f.repo.Dir() + ".bazel"
	if err := os.Mkdir(folder, 0o755); err != nil { // as an older release did
		t.Fatal(err)
	}
	place, err := takePlace(t.Context(), f.repo, "main")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(place.Dir, folder+"/") {
		t.Errorf("it takes %s", place.Dir)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
