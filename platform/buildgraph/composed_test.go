package buildgraph

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
)

// composed has Go in the whole tree but web, and manifests. What none of them covers is ignored.
var composed = configuration.Analysis{
	Adapter: configuration.AdapterAuto, Uncovered: configuration.Uncovered{Policy: configuration.UncoveredIgnore},
	Adapters: []configuration.AdapterUse{
		{Adapter: configuration.AdapterGo, Except: []string{"web"}},
		{Adapter: configuration.AdapterManifest, Except: []string{"**/fixtures"}},
	},
}

func composedBase(f *fixture) string {
	return f.commits(goBase(f), files{
		"web/landfall.yaml":            "targets:\n- name: client\n  sources: ['*.ts']\n  deps: [m/a]\n",
		"web/client.ts":                "x\n",
		"web/go.mod":                   "nonsense that the adapter of Go does not see\n",
		"sql/landfall.yaml":            "targets:\n- name: schema\n  sources: ['*.sql']\nedges:\n- from: m/c\n  to: [':schema']\n",
		"sql/one.sql":                  "select 1\n",
		"sql/fixtures/x/landfall.yaml": "nonsense that the adapter of manifests does not see\n",
		"docs/a.txt":                   "a\n",
	})[0]
}

func TestSeveralAdaptersMakeOneGraph(t *testing.T) {
	f := newFixture(t)
	base := composedBase(f)
	for _, c := range []struct {
		what, want string
		edit       files
	}{
		{"a Go package that a manifest's target depends on", "//web:client@1 m/a@1 m/b@1 m/b [test]@1", files{"a/a.go": "package a // 2\n"}},
		{"a file of a manifest's target that a Go package depends on", "//sql:schema@1 m/c@1", files{"sql/one.sql": "select 2\n"}},
		{"an edge less", "m/c@1", files{"sql/landfall.yaml": "targets:\n- name: schema\n  sources: ['*.sql']\n"}},
		{"a file that no adapter sees", "", files{"web/go.mod": "other nonsense\n"}},
	} {
		r := f.analyze(composed, base, c.edit)
		if got := versions(r); got != c.want || r.All || r.Invalid != nil || r.Adapter != "go+manifest" {
			t.Errorf("%s: δ = %q, want %q (adapter %s, all %v, %+v)", c.what, got, c.want, r.Adapter, r.All, r.Invalid)
		}
		for path := range c.edit {
			if !slices.Contains(r.Leaves, targets.Label(targets.KindFile, path)) {
				t.Errorf("%s: the changed file is no leaf: %v", c.what, r.Leaves)
			}
		}
	}
}

func TestAnEdgeToATargetThatIsNotThereIsNamed(t *testing.T) {
	f := newFixture(t)
	base := composedBase(f)
	for what, c := range map[string]struct {
		want string
		edit files
	}{
		"a dependency":      {"web/landfall.yaml:4: the repository has no target m/none", files{"web/landfall.yaml": "targets:\n- name: client\n  sources: ['*.ts']\n  deps: [m/none]\n"}},
		"an edge":           {"docs/landfall.yaml:3: the repository has no target //docs:none", files{"docs/landfall.yaml": "edges:\n- from: m/a\n  to: [':none']\n"}},
		"its target's end":  {"sql/landfall.yaml:6: the repository has no target m/c", files{"c/c.go": "-"}},
		"an edge to itself": {"docs/landfall.yaml:2: an edge needs from", files{"docs/landfall.yaml": "edges:\n- from: m/a\n"}},
	} {
		r := f.analyze(composed, base, c.edit)
		if r.Invalid == nil || !strings.Contains(r.Invalid.Message, c.want) {
			t.Errorf("%s: %+v, want %q", what, r.Invalid, c.want)
		}
	}
}

func TestWithoutAnyOfTheAdaptersATreeIsOneTarget(t *testing.T) {
	f := newFixture(t)
	base := f.commits("", files{"README.md": "1\n"})[0]
	r := f.analyze(composed, base, files{"README.md": "2\n"})
	if got := versions(r); got != targets.Repository+"@1" || r.Adapter != "whole-repository" {
		t.Errorf("δ = %s by %s", got, r.Adapter)
	}
	first := f.analyze(composed, base, files{"go.mod": "module m\n\ngo 1.26\n", "a/a.go": "package a\n"})
	if got := versions(first); got != "m [module]@1 m/a@1" {
		t.Errorf("the first module: δ = %s", got)
	}
}

func TestAnAdapterThatCannotKnowMakesTheWholeUnknown(t *testing.T) {
	f := newFixture(t)
	settings := composed
	settings.WholeRepositorySteps = []configuration.Step{{Name: "all", Run: []string{"true"}}}
	base := composedBase(f)
	loader := NewLoader(configuration.Queue{Analysis: settings, Steps: configuration.Steps{Environment: configuration.Environment{
		Variables: map[string]string{"GOFLAGS": "-overlay=x"},
	}}}, nil)
	tree, err := f.repo.TreeOf(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := loader.Graph(t.Context(), f.repo, tree)
	if err != nil || len(graph.Unknown()) == 0 {
		t.Fatalf("%+v, %v", graph, err)
	}
	if whole, is := graph.Target(targets.Repository); !is || len(whole.Commands) != 1 {
		t.Errorf("it is verified by %+v", whole)
	}
}

// TestABuildSystemBesideAnotherHasItsPart: a TypeScript client that is generated from Go, and a Rust package beside them.
func TestABuildSystemBesideAnotherHasItsPart(t *testing.T) {
	f := newFixture(t)
	settings := configuration.Analysis{Adapter: configuration.AdapterAuto, Adapters: []configuration.AdapterUse{
		{Adapter: configuration.AdapterGo}, {Adapter: configuration.AdapterManifest},
		{Adapter: configuration.AdapterNode, Steps: []configuration.AdapterStep{{Kind: "test", Name: "unit", Run: []string{"node", "--test", "{dir}"}}}},
		{Adapter: configuration.AdapterCargo}, {Adapter: configuration.AdapterPython},
	}}
	base := f.commits(goBase(f), files{
		"web/package.json":    `{"name": "web", "version": "1.0.0", "scripts": {"test": "node --test"}}` + "\n",
		"web/index.js":        "exports.a = 1\n",
		"web/landfall.yaml":   "edges:\n- from: node://web\n  to: [m/a]\n",
		"core/Cargo.toml":     "[package]\nname = \"core\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"core/src/lib.rs":     "pub fn a() {}\n",
		"ml/pyproject.toml":   "[project]\nname = \"ml\"\nversion = \"0.1.0\"\n",
		"ml/ml/__init__.py":   "a = 1\n",
		"ml/tests/test_ml.py": "import ml\n\n\ndef test_a():\n    assert ml.a\n",
	})[0]
	for path, want := range map[string][]string{
		"a/a.go":            {"m/a", "m/b", "m/b [test]", "node://web", "node://web [test]"},
		"web/index.js":      {"node://web", "node://web [test]"},
		"core/src/lib.rs":   {"cargo://core", "cargo://core [test]"},
		"ml/ml/__init__.py": {"python://ml", "python://ml/tests [test]"},
	} {
		content := map[string]string{"a/a.go": "package a // 2\n", "web/index.js": "exports.a = 2\n", "core/src/lib.rs": "pub fn b() {}\n", "ml/ml/__init__.py": "a = 2\n"}[path]
		r := f.analyze(settings, base, files{path: content})
		if r.Invalid != nil || r.All {
			t.Fatalf("%s: %+v %v", path, r.Invalid, r.Reasons)
		}
		var got []string
		for _, v := range r.Targets {
			got = append(got, v.Target)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s affects %q, want %q", path, got, want)
		}
		if part := r.Parts[0]; path == "web/index.js" {
			if test, _ := part.Target("node://web [test]"); len(test.Commands) != 1 || test.Commands[0].Argv[1] != "--test" {
				t.Errorf("the tests of web are run by %+v", test.Commands)
			}
		}
	}
}

// TestStepsOfTheSettingsRunAllTestsOfAProject: also where these are one target.
func TestStepsOfTheSettingsRunAllTestsOfAProject(t *testing.T) {
	f := newFixture(t)
	settings := configuration.Analysis{Adapter: configuration.AdapterAuto, Adapters: []configuration.AdapterUse{
		{Adapter: configuration.AdapterPython, Steps: []configuration.AdapterStep{{Kind: "test", Name: "unit", Run: []string{"nox", "{folder}"}}}},
	}}
	base := f.commits("", files{"ml/pyproject.toml": "[project]\nname = \"ml\"\n", "ml/conftest.py": "def pytest_collect_file(): pass\n", "ml/specs/a.json": "1\n"})[0]
	r := f.analyze(settings, base, files{"ml/specs/a.json": "2\n"})
	if len(r.Targets) != 1 || r.Targets[0].Target != "python://ml [test]" {
		t.Fatalf("affected: %+v", r.Targets)
	}
	test, _ := r.Parts[0].Target("python://ml [test]")
	if len(test.Commands) != 1 || !slices.Equal(test.Commands[0].Argv, []string{"nox", "."}) || test.Commands[0].Dir != "ml" {
		t.Errorf("the tests are run by %+v", test.Commands)
	}
}

// TestTheFirstManifestLeavesOtherTargetsAlone: what init proposes to land beside the targets that adapters find.
func TestTheFirstManifestLeavesOtherTargetsAlone(t *testing.T) {
	for adapter, tree := range map[configuration.Adapter]files{
		configuration.AdapterGo:     {"go.mod": "module m\n\ngo 1.26\n", "a/a.go": "package a\n"},
		configuration.AdapterNode:   {"web/package.json": `{"name": "web", "version": "1.0.0", "scripts": {"test": "node --test"}}` + "\n", "web/index.js": "exports.a = 1\n"},
		configuration.AdapterCargo:  {"core/Cargo.toml": "[package]\nname = \"core\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "core/src/lib.rs": "pub fn a() {}\n"},
		configuration.AdapterPython: {"pyproject.toml": "[project]\nname = \"ml\"\nversion = \"0.1.0\"\n", "ml/__init__.py": "a = 1\n"},
	} {
		f := newFixture(t)
		base := f.commits("", tree, files{"SECURITY_CONTACTS": "ada\n", "hack/.golint_failures": "none\n", "hack/verify.sh": "true\n"})[1]
		settings := configuration.Analysis{Adapter: configuration.AdapterAuto, Adapters: []configuration.AdapterUse{{Adapter: configuration.AdapterManifest}, {Adapter: adapter}}}
		r := f.analyze(settings, base, files{"hack/landfall.yaml": "targets:\n- name: hack\n  sources: ['*.sh']\n  steps: [{name: verify, run: [./verify.sh]}]\n"})
		if got := versions(r); got != "//hack@1" || r.All || r.Invalid != nil {
			t.Errorf("beside %s the first manifest affects %q (all %v, %q, %+v)", adapter, got, r.All, r.Reasons, r.Invalid)
		}
		for _, leaf := range r.Leaves {
			if path := targets.FileOf(leaf); path != "" && path != "hack/landfall.yaml" {
				t.Errorf("beside %s the first manifest changes %s", adapter, path)
			}
		}
	}
}
