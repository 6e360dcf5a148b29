package buildgraph

import (
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
)

// ownersIn returns who owns the targets of a commit, by what another one says.
func ownersIn(f *fixture, queue configuration.Queue, commit, mainline string) (of func(target string) string, graph *targets.Graph) {
	f.Helper()
	loader := NewLoader(queue, nil)
	f.Cleanup(loader.Close)
	tree, err := f.repo.TreeOf(f.Context(), commit)
	if err != nil {
		f.Fatal(err)
	}
	if graph, err = loader.Graph(f.Context(), f.repo, tree); err != nil || len(graph.Unknown()) > 0 {
		f.Fatal(err, graph.Unknown())
	}
	if tree, err = f.repo.TreeOf(f.Context(), mainline); err != nil {
		f.Fatal(err)
	}
	owners, err := loader.Owners(f.Context(), f.repo, tree)
	if err != nil {
		f.Fatal(err)
	}
	return func(target string) string {
		if _, is := graph.Target(target); !is {
			return "no such target"
		}
		return strings.Join(owners.Of(graph, target), " ")
	}, graph
}

func TestTheTargetsOfEveryAdapterHaveTheOwnersOfTheirFiles(t *testing.T) {
	f := newFixture(t)
	queue := configuration.Queue{Analysis: configuration.Analysis{Adapter: configuration.AdapterAuto, Adapters: []configuration.AdapterUse{
		{Adapter: configuration.AdapterGo}, {Adapter: configuration.AdapterManifest}, {Adapter: configuration.AdapterNode},
		{Adapter: configuration.AdapterCargo}, {Adapter: configuration.AdapterPython},
	}}}
	commit := f.commits(goBase(f), files{
		".github/CODEOWNERS": "* @all\n*_test.go @testers\n/a/ @a\n/web/ @web\n/tools/cli/ @cli @web\n/py/ @py\n/sql/*.sql @db\n/sql/README.md @docs\n/c/\n",
		"docs/CODEOWNERS":    "* @ignored\n",
		"web/package.json":   `{"name": "web", "version": "1.0.0", "scripts": {"test": "node --test"}}` + "\n",
		"web/index.js":       "exports.a = 1\n",
		"tools/Cargo.toml":   "[workspace]\nmembers = [\"cli\"]\nresolver = \"2\"\n",
		"tools/Cargo.lock":   "version = 4\n\n[[package]]\nname = \"cli\"\nversion = \"0.1.0\"\n",

		"tools/cli/Cargo.toml":   "[package]\nname = \"cli\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
		"tools/cli/src/lib.rs":   "pub fn a() {}\n",
		"py/pyproject.toml":      "[project]\nname = \"pkg\"\nversion = \"1\"\n",
		"py/pkg/__init__.py":     "",
		"py/pkg/test_a.py":       "def test_a(): pass\n",
		"sql/landfall.yaml":      "targets:\n- name: schema\n  sources: ['*']\n- name: empty\n- name: named\n  owners: ['@named', ada@example.com]\n",
		"sql/one.sql":            "select 1\n",
		"sql/two.sql":            "select 2\n",
		"sql/README.md":          "x\n",
		"ops/landfall.yaml":      "owners: ['@ops']\ntargets:\n- name: check\n  sources: ['../a/*.go']\n- name: nobody\n  owners: []\n",
		"ops/go/go.mod":          "module ops\n\ngo 1.26\n",
		"ops/go/x/x.go":          "package x\n",
		"ops/deep/landfall.yaml": "targets:\n- name: below\n",
	})[0]
	of, graph := ownersIn(f, queue, commit, commit)
	for target, want := range map[string]string{
		"m [module]": "@all", "m/a": "@a", "m/b [test]": "@testers", "m/c": "",
		"node://web": "@web", "node://web [test]": "@web",
		"cargo://tools [workspace]": "@all", "cargo://tools/cli": "@cli @web", "cargo://tools/cli [test]": "@cli @web",
		"python://py": "@py", "python://py/pkg [test]": "@py",
		"//sql:schema": "@db", "//sql:empty": "@db", "//sql:named": "@named ada@example.com",
		"//ops:check": "@ops", "//ops:nobody": "", "//ops/deep:below": "@ops", "ops/x": "@ops", "ops [module]": "@ops",
	} {
		if got := of(target); got != want {
			t.Errorf("%s is owned by %q, want %q", target, got, want)
		}
	}
	if t.Failed() {
		for target := range graph.Targets() {
			t.Log(target.Name, graph.Files(target.Name, true, 100))
		}
	}
}

// TestAChangeDoesNotChooseItsOwners: they are the mainline's, for targets that the change adds too.
func TestAChangeDoesNotChooseItsOwners(t *testing.T) {
	f := newFixture(t)
	commits := f.commits("", files{
		"CODEOWNERS": "/x/ @x\n", "x/landfall.yaml": "targets:\n- name: a\n  sources: [a]\n- name: b\n  owners: ['@b']\n  sources: [b]\n", "x/a": "1\n", "x/b": "1\n",
	}, files{
		"CODEOWNERS":      "* @mallory\n",
		"x/landfall.yaml": "owners: ['@mallory']\ntargets:\n- name: a\n  sources: [a]\n- name: b\n  owners: ['@mallory']\n  sources: [b]\n- name: c\n  sources: [c]\n", "x/c": "1\n",
	})
	of, _ := ownersIn(f, configuration.Queue{Analysis: configuration.Analysis{Adapter: configuration.AdapterAuto}}, commits[1], commits[0])
	for target, want := range map[string]string{"//x:a": "@x", "//x:b": "@b", "//x:c": "@x"} {
		if got := of(target); got != want {
			t.Errorf("%s is owned by %q, want %q", target, got, want)
		}
	}
}

// TestOwnersAreInNoVersion: naming others builds nothing.
func TestOwnersAreInNoVersion(t *testing.T) {
	f := newFixture(t)
	base := f.commits("", files{"landfall.yaml": "targets:\n- name: a\n  sources: [a]\n", "a": "1\n", "CODEOWNERS": "* @x\n"})[0]
	r := f.analyze(configuration.Analysis{Adapter: configuration.AdapterAuto, Uncovered: configuration.Uncovered{Ignore: DocumentPatterns}}, base,
		files{"landfall.yaml": "owners: ['@y']\ntargets:\n- name: a\n  owners: ['@z']\n  sources: [a]\n", "CODEOWNERS": "* @w\n"})
	if got := versions(r); got != "" || r.All || r.Invalid != nil {
		t.Errorf("δ = %q, all %v, %+v", got, r.All, r.Invalid)
	}
}

func TestTheTargetsOfABazelHaveOwners(t *testing.T) {
	needBazel(t)
	f := newFixture(t)
	commit := f.commits("", files{
		"CODEOWNERS": "* @all\n/c/ @c\n/c/BUILD @build\n", "WORKSPACE": "",
		"c/BUILD": "sh_test(name = \"t\", srcs = [\"t.sh\"], data = [\"d.txt\"])\n", "c/t.sh": "exit 0\n", "c/d.txt": "1\n",
		"BUILD": "exports_files([\"root.txt\"])\n", "root.txt": "x\n",
	})[0]
	of, graph := ownersIn(f, bazelQueue("bazel"), commit, commit)
	for target, want := range map[string]string{"//c:t": "@c", "//c [package]": "@build"} {
		if got := of(target); got != want {
			t.Errorf("%s is owned by %q, want %q; its files are %q", target, got, want, graph.Files(target, true, 100))
		}
	}
}
