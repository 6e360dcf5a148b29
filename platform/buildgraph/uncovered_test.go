package buildgraph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
)

// under returns the settings with a policy and patterns for files that no target covers.
func under(policy configuration.UncoveredPolicy, ignore ...string) configuration.Analysis {
	settings := auto
	settings.Uncovered = configuration.Uncovered{Policy: policy, Ignore: ignore}
	return settings
}

// documented is base with files that no target covers.
func documented(f *fixture) string {
	return f.commits(base(f), files{"README.md": "1\n", "docs/guide.md": "1\n", "tools/run.sh": "1\n"})[0]
}

func TestAFileThatNoTargetCoversFollowsThePolicy(t *testing.T) {
	f := newFixture(t)
	start := documented(f)
	everything := "everything, as no target covers "
	for _, c := range []struct {
		name     string
		settings configuration.Analysis
		edit     files
		want     string
	}{
		{"nothing is said", auto, files{"README.md": "2\n"}, everything + "README.md"},
		{"the whole repository", under("whole_repository"), files{"docs/new.md": "1\n", "README.md": "-", "tools/run.sh": "2\n", "docs/guide.md": "2\n"},
			everything + "README.md, docs/guide.md, docs/new.md and 1 more"},
		{"a source among them", under("whole_repository"), files{"a.txt": "2\n", "README.md": "2\n", "tools/run.sh": "2\n"}, everything + "README.md and tools/run.sh"},
		{"a warning", under("warn"), files{"a.txt": "2\n", "README.md": "2\n"}, "//:a@1 //:b@1, warned of [README.md]"},
		{"all are ignored", under("ignore"), files{"tools/run.sh": "2\n"}, "nothing, ignored [tools/run.sh]"},
		{"documents are ignored", under("", DocumentPatterns...), files{"docs/guide.md": "2\n", "README.md": "-"}, "nothing, ignored [README.md docs/guide.md]"},
		{"others are not", under("", DocumentPatterns...), files{"docs/guide.md": "2\n", "tools/run.sh": "2\n"}, everything + "tools/run.sh, ignored [docs/guide.md]"},
		{"a pattern of sources", under("", "**"), files{"a.txt": "2\n", "README.md": "2\n"}, "//:a@1 //:b@1, ignored [README.md]"},
		{"the manifest's text", auto, files{"landfall.yaml": "# about it\n" + twoTargets}, "nothing"},
		{"sources alone", auto, files{"c.txt": "2\n"}, "//:c@1"},
		{"nothing at all", auto, files{}, "nothing"},
	} {
		r := f.analyze(c.settings, start, c.edit)
		got := versions(r)
		switch {
		case r.All:
			if got != "//:repository@1" {
				t.Errorf("%s: everything is affected and the version is %s", c.name, got)
			}
			names, _ := strings.CutPrefix(r.Reasons[0], "no target covers ")
			names, _, _ = strings.Cut(names, ", so the whole repository is verified")
			got = everything + names
		case got == "":
			got = "nothing"
		}
		if len(r.Uncovered.Files) > 0 && r.Uncovered.Policy == configuration.UncoveredWarn {
			got += fmt.Sprintf(", warned of %v", r.Uncovered.Files)
		}
		if len(r.Uncovered.Ignored) > 0 {
			got += fmt.Sprintf(", ignored %v", r.Uncovered.Ignored)
		}
		if got != c.want {
			t.Errorf("%s: affects %s, want %s", c.name, got, c.want)
		}
	}
}

// The whole repository's steps can do less than those of the targets: a syntax error in a file that no test imports, say.
func TestWhatIsCoveredIsVerifiedBesidesTheWholeRepository(t *testing.T) {
	f := newFixture(t)
	start := documented(f)
	settings := under("whole_repository")
	settings.WholeRepositorySteps = []configuration.Step{{Name: "all", Run: []string{"make"}}}
	r := f.analyze(settings, start, files{"a.txt": "2\n", "tools/run.sh": "2\n"})
	if got := versions(r); got != "//:a@1 //:b@1 //:repository@1" || !r.All {
		t.Errorf("it affects %s, everything: %v", got, r.All)
	}
	if got := versions(f.analyze(settings, start, files{"tools/run.sh": "2\n"})); got != "//:repository@1" {
		t.Errorf("the file alone affects %s", got)
	}
}

// A target of which its author says that nothing has to run is another matter: see the pattern of sources above.
func TestAFileOfATargetThatNoStepVerifiesIsUncovered(t *testing.T) {
	f := newFixture(t)
	settings := under("", DocumentPatterns...)
	settings.Adapter = configuration.AdapterNode
	start := f.commits("", files{
		"package.json":      `{"name": "root", "private": true, "workspaces": ["p/*"], "scripts": {"test": "npm test --workspaces"}}`,
		"package-lock.json": `{"lockfileVersion": 3, "packages": {}}`,
		"README.md":         "1\n", "ops/prod.env": "a=1\n",
		"p/core/package.json": `{"name": "core", "scripts": {"test": "node --test"}, "dependencies": {"lib": "*"}}`,
		"p/lib/package.json":  `{"name": "lib"}`, "p/lib/index.js": "1\n",
		"p/data/package.json": `{"name": "data"}`, "p/data/index.js": "1\n",
	})[0]
	for path, want := range map[string]string{
		"ops/prod.env":    "//:repository@1",
		"p/data/index.js": "//:repository@1",
		"p/lib/index.js":  "node://p/core@1 node://p/core [test]@1 node://p/lib@1",
		"README.md":       "node://.@1",
	} {
		r := f.analyze(settings, start, files{path: "2\n"})
		if got := versions(r); got != want || r.All != (want == "//:repository@1") {
			t.Errorf("%s affects %s, everything: %v; want %s", path, got, r.All, want)
		}
	}
}

// The first commit is on the mainline for a while, and its file is nobody's then.
func TestAFileThatALaterCommitCoversIsUncoveredInTheFirst(t *testing.T) {
	f := newFixture(t)
	start := documented(f)
	covered := strings.Replace(twoTargets, "[c.txt]", "[c.txt, tools/run.sh]", 1)
	r := f.analyze(auto, start, files{"tools/run.sh": "2\n"}, files{"landfall.yaml": covered})
	if !r.All || versions(r) != "//:repository@1 //:repository@2" {
		t.Errorf("affects %s, everything: %v", versions(r), r.All)
	}
	if r := f.analyze(auto, start, files{"landfall.yaml": covered, "tools/run.sh": "2\n"}); r.All || versions(r) != "//:c@1" {
		t.Errorf("covered in the same commit: affects %s, everything: %v", versions(r), r.All)
	}
}

func TestTheWholeRepositoryIsVerifiedForAnUncoveredFile(t *testing.T) {
	f := newFixture(t)
	start := documented(f)
	names := func(r *Result) string {
		whole, _ := r.Parts[0].Target(targets.Repository)
		var list []string
		for _, c := range whole.Commands {
			list = append(list, c.Name)
		}
		return strings.Join(list, ", ")
	}
	if got := names(f.analyze(auto, start, files{"README.md": "2\n"})); got != "//:a check, //:b check" {
		t.Errorf("it is verified by %s, want the steps of all targets", got)
	}
	if got := names(f.analyze(stepped, start, files{"README.md": "2\n"})); got != "all" {
		t.Errorf("it is verified by %s, want the queue's own steps", got)
	}
}

func TestTheFactNamesTheFirstUncoveredFilesAsValidText(t *testing.T) {
	f := newFixture(t)
	start := documented(f)
	edit := files{}
	for i := range 250 {
		edit[fmt.Sprintf("notes/%03d.txt", i)] = "1\n"
		edit[fmt.Sprintf("docs/%03d.md", i)] = "1\n"
	}
	edit["\xff.txt"] = "1\n"
	fact := f.analyze(under("", DocumentPatterns...), start, edit).Affected()
	u := fact.Uncovered
	if len(u.Files) != 100 || u.FilesTotal != 251 || len(u.Ignored) != 100 || u.IgnoredTotal != 250 || u.Policy != "whole_repository" {
		t.Errorf("%d of %d files under %s, %d of %d ignored", len(u.Files), u.FilesTotal, u.Policy, len(u.Ignored), u.IgnoredTotal)
	}
	if !slices.IsSorted(u.Ignored) || u.Files[0] != "notes/000.txt" {
		t.Errorf("they begin with %s and %s", u.Files[0], u.Ignored[0])
	}
	for _, settings := range []configuration.Analysis{auto, under("warn")} {
		if _, err := proto.Marshal(f.analyze(settings, start, files{"\xff.txt": "1\n"}).Affected()); err != nil {
			t.Errorf("a path that is no UTF-8: %v", err)
		}
	}
	if fact := f.analyze(auto, start, files{"a.txt": "2\n"}).Affected(); fact.Uncovered != nil {
		t.Errorf("all is covered, and the fact has %v", fact.Uncovered)
	}
}

// TestATreeWithoutAnyTargetLandsWhatTheQueueIgnores: where the queue has no steps for the whole repository, nothing else lands, nor does
// a change that removes the last definition.
func TestATreeWithoutAnyTargetLandsWhatTheQueueIgnores(t *testing.T) {
	f := newFixture(t)
	empty := f.commits("", files{".gitignore": "bin\n"})[0]
	defined := f.commits(empty, files{"landfall.yaml": "targets: [{name: t, sources: [\"*.c\"], steps: [{name: s, run: [make]}]}]\n", "main.c": "1\n"})[0]
	documents := under("", DocumentPatterns...)
	inGo, proven := documents, documents
	inGo.Adapter = configuration.AdapterGo
	proven.WholeRepositorySteps = stepped.WholeRepositorySteps
	for _, c := range []struct {
		name     string
		settings configuration.Analysis
		base     string
		edit     files
		want     string
	}{
		{"a document that is ignored", documents, empty, files{"README.md": "1\n"}, "ignored [README.md]"},
		{"of an adapter that finds nothing", inGo, empty, files{"README.md": "1\n"}, "ignored [README.md]"},
		{"a document where nothing is ignored", auto, empty, files{"README.md": "1\n"}, "all //:repository@1: no target covers README.md"},
		{"a source", documents, empty, files{"README.md": "1\n", "main.c": "1\n"}, "all //:repository@1: no target covers main.c"},
		{"a source of an adapter that finds nothing", inGo, empty, files{"main.c": "1\n"}, "all //:repository@1: no target covers main.c"},
		{"a source under the policy ignore", under("ignore"), empty, files{"main.c": "1\n"}, "all //:repository@1: no target covers main.c"},
		{"a source under the policy warn", under("warn"), empty, files{"main.c": "1\n"}, "all //:repository@1: no target covers main.c"},
		{"a document where steps verify the whole", proven, empty, files{"README.md": "1\n"}, "//:repository@1"},
		{"the last definition goes", documents, defined, files{"landfall.yaml": "-", "README.md": "1\n"}, "//:repository@1"},
		{"the first definition comes", documents, empty, files{"landfall.yaml": "targets: [{name: t, sources: [\"*.c\"], steps: [{name: s, run: [make]}]}]\n", "main.c": "1\n"}, "//:t@1"},
	} {
		r := f.analyze(c.settings, c.base, c.edit)
		got := versions(r)
		if r.All {
			got = "all " + got + ": " + strings.Join(r.Reasons, "; ")
		}
		if len(r.Uncovered.Ignored) > 0 {
			got = strings.TrimSpace(got + fmt.Sprintf(" ignored %v", r.Uncovered.Ignored))
		}
		if r.Invalid != nil || !strings.HasPrefix(got, c.want) || len(c.want) == 0 {
			t.Errorf("%s: affects %q (%+v), want %q", c.name, got, r.Invalid, c.want)
		}
		for _, v := range r.Targets {
			if target, _ := r.Parts[0].Target(v.Target); v.Trivial || v.Target == targets.Repository && len(target.Commands) > 0 != (len(c.settings.WholeRepositorySteps) > 0) {
				t.Errorf("%s: %v is verified by %v", c.name, v, target.Commands)
			}
		}
	}
}
