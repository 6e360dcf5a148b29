package builder

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/sandbox/lookups"
	"landfall.build/services/builder/execution"
)

func newClosedSite(t *testing.T) *site {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	queue := s.config.Queues[queueName]
	queue.Steps.Workspace, queue.PoolWorkers = configuration.WorkspaceClosed, 1
	s.config.Queues[queueName] = queue
	return s
}

// TestAStepFindsOnlyWhatItsTargetDependsOn: one worker runs all of them, so what one leaves would be there for the next.
func TestAStepFindsOnlyWhatItsTargetDependsOn(t *testing.T) {
	if problem := execution.LookupsAvailable(t.Context()); problem != nil {
		t.Skipf("this system cannot watch lookups: %v", problem)
	}
	s := newClosedSite(t)
	files := scripts(map[string]string{
		"alone":  "cat ../README.md",
		"folder": "ls ../docs/guides",
		"inside": "cd deep/er && cat ../../../docs/guides/a.md",
		"hidden": "cd deep/er && cat ../../../.github/ci.yml",
		"silent": "test ! -e ../README.md || grep -q read ../README.md",
		"lists":  "echo 'error: as the test expects'; for entry in ../*; do true; done",
		"reads":  "grep -q '^module' ../tools/go.mod",
	})
	files["README.md"], files["docs/guides/a.md"] = "read me", "guide"
	files["inside/deep/er/x"], files["hidden/deep/er/x"], files[".github/ci.yml"] = "x", "x", "on: push"
	files["tools/go.mod"] = "module tools\n"
	files["landfall.yaml"] = "targets: [{name: t, sources: [README.md, sees/check.sh], steps: [{name: check, run: [sh, check.sh], dir: sees}]}]\n"
	files["sees/check.sh"] = "cat ../README.md && ls && test -e ../landfall.yaml"
	for name, check := range map[string]string{"named": "test $(find ../docs -type f | wc -l) = 3 && test -e ../docs/pictures/a/b.png", "seen": "cat ../docs/pictures/a/b.png", "above": "ls ../docs ../inside"} {
		files[name+"/landfall.yaml"] = "targets: [{name: t, sources: [check.sh, ../docs/**/*.md], steps: [{name: check, run: [sh, check.sh], dir: " + name + "}]}]\n"
		files[name+"/check.sh"] = check
	}
	files["docs/pictures/a/b.png"], files["docs/c.txt"] = "picture", "text"
	base := s.commit("", files)
	queue := s.config.Queues[queueName]
	queue.Analysis.Adapter, queue.Analysis.Adapters = "", []configuration.AdapterUse{{Adapter: configuration.AdapterManifest}, {Adapter: configuration.AdapterGo}}
	s.config.Queues[queueName] = queue
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked("//alone:t")...), s.scheduled("b2", base, asked("//folder:t")...),
		s.scheduled("b3", base, asked("//:t")...), s.scheduled("b4", base, asked("//silent:t")...), s.scheduled("b5", base, asked("//inside:t")...), s.scheduled("b6", base, asked("//hidden:t")...), s.scheduled("b7", base, asked("//lists:t")...), s.scheduled("b8", base, asked("//reads:t")...),
		s.scheduled("b9", base, asked("//named:t")...), s.scheduled("b10", base, asked("//seen:t")...), s.scheduled("b11", base, asked("//above:t")...))
	ends := s.ends(1, "//named:t", "//seen:t", "//above:t", "//alone:t", "//folder:t", "//:t", "//silent:t", "//inside:t", "//hidden:t", "//lists:t", "//reads:t")
	lacks := "The repository has %, but the step does not: TARGET does not depend on it. Declare it (sources: [\"../DECLARED\"]), or open the workspace (steps.workspace)."
	part := "The step lists % and finds only a part of what the repository has there: TARGET does not depend on it. Declare it (sources: [\"../DECLARED\"]), or open the workspace (steps.workspace)."
	reads := "The step reads %, which is there for package managers: TARGET does not depend on it. Declare it (sources: [\"../DECLARED\"]), or open the workspace (steps.workspace)."
	for name, want := range map[string]string{"//alone:t": "README.md", "//folder:t": "docs/guides", "//:t": "", "//silent:t": "README.md", "//inside:t": "docs/guides/a.md",
		"//hidden:t": ".github/ci.yml", "//lists:t": "the root folder", "//reads:t": "tools/go.mod", "//named:t": "", "//seen:t": "docs/pictures/a/b.png", "//above:t": "inside"} {
		f := ends[name][0]
		if passed := f.Outcome == stepPassed; passed != (want == "") {
			t.Errorf("%s: %v", name, f)
		}
		line, declared := lacks, want
		switch name {
		case "//folder:t":
			declared = want + "/**"
		case "//above:t":
			line, declared = part, "inside/**"
		case "//lists:t":
			line, declared = part, "**"
		case "//reads:t":
			line = reads
		}
		if want != "" && !slices.Contains(f.Decisive, strings.NewReplacer("%", want, "TARGET", name, "DECLARED", declared).Replace(line)) {
			t.Errorf("%s: decisive lines %q, want one about %s", name, f.Decisive, want)
		}
		if name == "//lists:t" && len(f.Decisive) != 1 {
			t.Errorf("all commands passed, so nothing that they print is decisive: %q", f.Decisive)
		}
	}
}

func TestTargetsOfClosedWorkspacesFormNoGroup(t *testing.T) {
	s := newClosedSite(t)
	step := `steps: [{name: check, run: [sh, alone.sh], group: [sh, group.sh]}]`
	base := s.commit("", map[string]string{
		"landfall.yaml": "targets: [{name: a, sources: [alone.sh], " + step + "}, {name: b, sources: [alone.sh], " + step + "}]\n",
		"alone.sh":      "true", "group.sh": "exit 1",
	})
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked("//:a", "//:b")...))
	for name, list := range s.ends(1, "//:a", "//:b") {
		if f := list[0]; f.Outcome != stepPassed || f.Group != "" {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestWhatAStepLookedForIsShownAsItIsDeclared(t *testing.T) {
	found := []lookups.Lookup{{Path: "docs/[id].md"}, {Path: "data", Listed: true}, {Path: "a"}, {Path: "b"}}
	for _, c := range []struct{ target, folder, want string }{
		{"//x/y:t", "x/y", `sources: ["../../docs/[[]id].md","../../data/**","../../a","../../b"]`},
		{"node://x [test]", "x", `analysis.inputs: [{folders: ["x"], files: ["docs/[[]id].md","data/**","a","b"]}]`},
		{"python://", "", `analysis.inputs: [{files: ["docs/[[]id].md","data/**","a","b"]}]`},
	} {
		of := space{all: []string{"a", "b", "data/x", "docs/[id].md"}, folder: c.folder}
		if line := of.lookedFor(found, c.target); !strings.Contains(line, "Declare it ("+c.want+"), or open") {
			t.Errorf("%s reads %s, want %s", c.target, line, c.want)
		}
	}
}

// TestManifestsOfAllMembersAreDeclaredByOnePattern: one round, however many there are, and also those that are added later.
func TestManifestsOfAllMembersAreDeclaredByOnePattern(t *testing.T) {
	var found []lookups.Lookup
	for _, name := range []string{"crates/[a]/Cargo.toml", "crates/b/Cargo.toml", "crates/c/Cargo.toml", "crates/c/src/x/Cargo.toml", "go.mod", "package.json", "xtask/Cargo.toml"} {
		found = append(found, lookups.Lookup{Path: name, Read: true})
	}
	found = append(found, lookups.Lookup{Path: "docs/a/x.md"}, lookups.Lookup{Path: "docs/b/x.md"})
	line := space{}.lookedFor(found, "//ops:build")
	if !strings.Contains(line, "(and 4 more), which are there for package managers") {
		t.Error(line)
	}
	want := `(sources: ["crates/*/Cargo.toml","crates/c/src/x/Cargo.toml","go.mod","package.json","xtask/Cargo.toml","docs/a/x.md","docs/b/x.md"])`
	if !strings.Contains(line, want) {
		t.Errorf("%s, want %s", line, want)
	}
}

// TestWhatIsLookedForBelowAFileIsTheFile: go looks for a go.mod below what it embeds.
func TestWhatIsLookedForBelowAFileIsTheFile(t *testing.T) {
	of := space{all: []string{"docs/a.md", "web/index.html", "web/link"}}
	found := of.known([]lookups.Lookup{{Path: "docs"}, {Path: "docs/none"}, {Path: "web/index.html"}, {Path: "web/index.html/go.mod"}, {Path: "web/link/x/y"}, {Path: "web/none", Listed: true}})
	want := []lookups.Lookup{{Path: "docs"}, {Path: "web/index.html"}, {Path: "web/link"}, {Path: "web/none", Listed: true}}
	if !slices.Equal(found, want) {
		t.Errorf("%+v, want %+v", found, want)
	}
}
