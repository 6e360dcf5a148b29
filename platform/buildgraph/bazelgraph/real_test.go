package bazelgraph

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// sample is a workspace in which each thing that can decide about a target does.
var sample = files{
	"WORKSPACE":      "workspace(name = \"sample\")\nload(\"//third_party:repositories.bzl\", \"repositories\")\nrepositories()\nregister_toolchains(\"//toolchains:all\")\n",
	".bazelrc":       "build --verbose_failures\nimport %workspace%/tools/ci.rc\n",
	"tools/ci.rc":    "test --test_output=errors\n",
	".bazelignore":   "ignored\n",
	"ignored/BUILD":  "this is no BUILD file",
	"README.md":      "nothing to do with any target\n",
	"docs/guide.txt": "of no package\n",

	"third_party/BUILD":            "",
	"third_party/repositories.bzl": "def repositories():\n    native.new_local_repository(name = \"vendored\", path = \"vendored\", build_file = \"//third_party:vendored.BUILD\")\n",
	"third_party/vendored.BUILD":   "filegroup(name = \"all\", srcs = glob([\"**\"]), visibility = [\"//visibility:public\"])\n",
	"vendored/x.txt":               "1\n",

	"toolchains/BUILD":    "toolchain_type(name = \"type\")\nload(\":defs.bzl\", \"info\")\ninfo(name = \"impl\", data = \"data.txt\")\ntoolchain(name = \"tc\", toolchain_type = \":type\", toolchain = \":impl\")\n",
	"toolchains/defs.bzl": "def _impl(ctx):\n    return [platform_common.ToolchainInfo()]\ninfo = rule(_impl, attrs = {\"data\": attr.label(allow_single_file = True)})\n",
	"toolchains/data.txt": "1\n",

	"rules/BUILD":    "filegroup(name = \"tool\", srcs = [\"tool.txt\"], visibility = [\"//visibility:public\"])\n",
	"rules/tool.txt": "1\n",
	"rules/defs.bzl": "load(\":impl.bzl\", \"impl\", \"make\")\nlib = make(impl)\n\ndef many(name, n = 2):\n    for i in range(n):\n        native.genrule(name = name + str(i), outs = [name + str(i) + \".out\"], cmd = \"touch $@\")\n",
	"rules/impl.bzl": "load(\":deep.bzl\", \"deep\")\n\ndef impl(ctx):\n    return [DefaultInfo(files = depset(ctx.files.srcs))]\n\ndef make(f):\n    return rule(f, attrs = {\"srcs\": attr.label_list(allow_files = True), \"deps\": attr.label_list(), \"_tool\": attr.label(default = \"//rules:tool\")})\n",
	"rules/deep.bzl": "deep = 1\n",

	"lib/BUILD.bazel": `load("//rules:defs.bzl", "lib", "many")
package(default_visibility = ["//groups:friends"])
lib(name = "lib", srcs = glob(["*.txt"]))
lib(name = "other", srcs = ["only.c"], deps = select({":fast": [":lib"], "//conditions:default": []}))
config_setting(name = "fast", values = {"define": "speed=fast"})
many(name = "many")
genrule(name = "gen", srcs = ["dir", "link.c"], outs = ["gen.c"], cmd = "cat $(SRCS) > $@")
exports_files(["exported.c"], visibility = ["//visibility:public"])
`,
	"lib/a.txt": "1\n", "lib/only.c": "1\n", "lib/exported.c": "1\n", "lib/free.c": "1\n",
	"lib/dir/deep/x": "1\n", "lib/link.c": "link:../linked/real.c", "linked/real.c": "1\n",

	"groups/BUILD": "package_group(name = \"friends\", packages = [\"//app/...\"], includes = [\":more\"])\npackage_group(name = \"more\", packages = [\"//more\"])\n",

	"app/BUILD": `sh_test(name = "test", srcs = ["test.sh"], data = ["//lib:lib", "//lib:gen.c", "//lib:exported.c", "//nowhere:x", "@vendored//:all"])
filegroup(name = "own", srcs = ["own.txt"])
test_suite(name = "suite", tests = [":test"])
filegroup(name = "by_hand", tags = ["manual"])
`,
	"app/test.sh": "#!/bin/sh\n", "app/own.txt": "1\n",

	// A cycle, which only a build complains about.
	"cycle/BUILD": "filegroup(name = \"a\", srcs = [\":b\"])\nfilegroup(name = \"b\", srcs = [\":a\", \"c.txt\"])\n",
	"cycle/c.txt": "1\n",
}

// all stands for every rule and package of the sample.
const all = "everything"

// edits are single edits of the sample and the targets that each touches.
var sampleEdits = []struct {
	name    string
	edit    files
	touched string
}{
	{"a file of no target", files{"README.md": "2\n"}, ""},
	{"a source", files{"lib/a.txt": "2\n"}, "//app:suite //app:test //lib:lib //lib:other"},
	{"a source that is executable now", files{"app/own.txt": "#!1\n"}, "//app:own"},
	{"a source below a folder that is a source", files{"lib/dir/deep/x": "2\n"}, "//app:suite //app:test //lib:gen"},
	{"a new file below such a folder", files{"lib/dir/deep/y": "2\n"}, "//app:suite //app:test //lib [package] //lib:gen"},
	{"what a link leads to", files{"linked/real.c": "2\n"}, "//app:suite //app:test //lib:gen"},
	{"where a link leads", files{"lib/link.c": "link:only.c"}, "//app:suite //app:test //lib:gen"},
	{"a new file that a glob takes", files{"lib/b.txt": "1\n"}, "//app:suite //app:test //lib [package] //lib:lib //lib:other"},
	{"a file that a glob took is gone", files{"lib/a.txt": "-"}, "//app:suite //app:test //lib [package] //lib:lib //lib:other"},
	{"a new file that no glob takes", files{"lib/b.c": "1\n"}, "//lib [package]"},
	{"a file that comes to where a label leads nowhere", files{"nowhere/x": "1\n"}, "//app:suite //app:test"},
	{"a comment in a BUILD file", files{"app/BUILD": "# why\n" + sample["app/BUILD"]}, "//app [package]"},
	{"an attribute", files{"app/BUILD": strings.Replace(sample["app/BUILD"], "srcs = [\"own.txt\"]", "srcs = []", 1)}, "//app [package] //app:own"},
	{"a rule is gone", files{"app/BUILD": strings.Replace(sample["app/BUILD"], "filegroup(name = \"own\", srcs = [\"own.txt\"])\n", "", 1)}, "//app [package] //app:own"},
	{"conditions of a select change places", files{"lib/BUILD.bazel": strings.Replace(strings.Replace(sample["lib/BUILD.bazel"], "[\":lib\"]", "[]", 1), "default\": []", "default\": [\":lib\"]", 1)}, "//lib [package] //lib:other"},
	{"what a condition means", files{"lib/BUILD.bazel": strings.Replace(sample["lib/BUILD.bazel"], "speed=fast", "speed=slow", 1)}, "//lib [package] //lib:fast //lib:other"},
	{"what a macro makes", files{"rules/defs.bzl": strings.Replace(sample["rules/defs.bzl"], "touch $@", "echo >$@", 1)},
		"//app:suite //app:test //lib [package] //lib:lib //lib:many0 //lib:many1 //lib:other"},
	{"how a rule is implemented, two loads away", files{"rules/deep.bzl": "deep = 2\n"}, "//app:suite //app:test //lib [package] //lib:lib //lib:other"},
	{"a tool that no BUILD file names", files{"rules/tool.txt": "2\n"}, "//app:suite //app:test //lib:lib //lib:other //rules:tool"},
	{"who may see a package's rules", files{"lib/BUILD.bazel": strings.Replace(sample["lib/BUILD.bazel"], "\"//groups:friends\"", "\"//visibility:private\"", 1)},
		"//app:suite //app:test //lib [package] //lib:fast //lib:gen //lib:lib //lib:many0 //lib:many1 //lib:other"},
	{"what a package's rules are built with", files{"lib/BUILD.bazel": strings.Replace(sample["lib/BUILD.bazel"], "package(", "package(features = [\"x\"], ", 1)},
		"//app:suite //app:test //lib [package] //lib:fast //lib:gen //lib:lib //lib:many0 //lib:many1 //lib:other"},
	{"who is in a group, one inclusion away", files{"groups/BUILD": strings.Replace(sample["groups/BUILD"], "\"//more\"", "\"//less\"", 1)},
		"//app:suite //app:test //groups [package] //lib:fast //lib:gen //lib:lib //lib:many0 //lib:many1 //lib:other"},
	{"who may see a file", files{"lib/BUILD.bazel": strings.Replace(sample["lib/BUILD.bazel"], "[\"exported.c\"], visibility = [\"//visibility:public\"]", "[\"exported.c\"], visibility = [\"//visibility:private\"]", 1)},
		"//app:suite //app:test //lib [package]"},
	{"a part of a cycle", files{"cycle/c.txt": "2\n"}, "//cycle:a //cycle:b"},
	{"a new package", files{"new/BUILD": "filegroup(name = \"x\")\n"}, "//new [package] //new:x"},
	{"a new package takes files from another one", files{"lib/dir/BUILD": ""}, "//app:suite //app:test //lib [package] //lib/dir [package] //lib:gen"},
	{"an ignored folder", files{"ignored/BUILD": "still none"}, ""},
	{"the workspace", files{"WORKSPACE": sample["WORKSPACE"] + "# why\n"}, all},
	{"flags", files{".bazelrc": "build --verbose_failures=0\nimport %workspace%/tools/ci.rc\n"}, all},
	{"imported flags", files{"tools/ci.rc": "test --test_output=all\n"}, all},
	{"what makes external repositories", files{"third_party/repositories.bzl": sample["third_party/repositories.bzl"] + "# why\n"}, all},
	{"the BUILD file of an external repository", files{"third_party/vendored.BUILD": "# why\n" + sample["third_party/vendored.BUILD"]}, all},
	{"a file of an external repository in the tree", files{"vendored/x.txt": "2\n"}, all},
	{"a new file of an external repository in the tree", files{"vendored/y.txt": "2\n"}, all},
	{"what a registered toolchain is made of", files{"toolchains/data.txt": "2\n"}, all},
	{"a lock file", files{"go.sum": "example.com/m v1.0.0 h1:x\n"}, all},
	{"a version of Bazel is asked for", files{".bazelversion": "\n"}, all},
	{"a prelude", files{"tools/build_rules/prelude_bazel": "load(\"//rules:defs.bzl\", \"many\")\n", "tools/build_rules/BUILD": ""}, all},
}

// TestTargetsAreWhatBazelSays compares with what Bazel prints in another way.
func TestTargetsAreWhatBazelSays(t *testing.T) {
	w := realBazel(t)
	graph := w.load(t, sample)
	var want []string
	for line := range strings.Lines(ask(t, w, "--output=label_kind", "kind(rule, //...)")) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), " rule ")
		want = append(want, name+" "+kind)
	}
	var got []string
	tests := map[string]string{}
	for target := range graph.Targets() {
		if target.Kind != "package" {
			got = append(got, target.Name+" "+target.Kind)
		}
		for _, c := range target.Commands {
			tests[target.Name] = strings.Join(c.Argv, " ")
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) < 12 {
		t.Errorf("targets are\n%q, Bazel has\n%q", got, want)
	}
	if tests["//app:test"] != "bazel test -- //app:test" || tests["//lib:gen"] != "bazel build -- //lib:gen" || tests["//app:suite"] != "" || tests["//app:by_hand"] != "" {
		t.Errorf("steps: %q", tests)
	}
	edges := 0
	for line := range strings.Lines(ask(t, w, "--output=graph", "--nograph:factored", "--graph:node_limit=-1", everything)) {
		from, to, isEdge := strings.Cut(strings.TrimSpace(line), " -> ")
		from, to = strings.Trim(from, `"`), strings.Trim(to, `"`)
		if !isEdge || strings.HasPrefix(to, "@") {
			continue
		}
		edges++
		l, ok := parseLabel(to)
		if !ok {
			t.Fatalf("label %q", to)
		}
		if _, isRule := graph.Target(from); !isRule {
			from = "def:output " + from
		}
		if !reaches(graph, from, l, 3) {
			t.Errorf("Bazel has the edge %s → %s, the graph has not: %q", from, to, graph.Dependencies(from))
		}
	}
	if edges < 10 {
		t.Errorf("only %d edges compared", edges)
	}
}

// reaches reports whether a node leads to a label's rule, file or folder in a few steps.
func reaches(g *targets.Graph, from string, to label, steps int) bool {
	for _, dep := range g.Dependencies(from) {
		if dep == to.String() || dep == "def:output "+to.String() || dep == "file:"+to.path() || dep == "dir:"+to.path()+"/" || steps > 1 && strings.HasPrefix(dep, "def:") && reaches(g, dep, to, steps-1) {
			return true
		}
	}
	return false
}

// ask runs a query as a person would, on what is checked out.
func ask(t *testing.T, w *world, args ...string) string {
	t.Helper()
	s := w.loader.server
	cmd := exec.Command(s.binary, append(append(s.startup(), "query", "--noshow_progress"), args...)...)
	cmd.Dir, cmd.Env = s.dir, append([]string{"HOME=" + s.home()}, s.options.Env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bazel %q: %v", args, err)
	}
	return string(out)
}

// TestEachEditTouchesWhatItCanAffect goes through the table, with what others get wrong in it: deletions, lock
// files, macros, globs, folders and links as sources, cycles.
func TestEachEditTouchesWhatItCanAffect(t *testing.T) {
	w := realBazel(t)
	base := w.load(t, sample)
	var names []string
	for target := range base.Targets() {
		names = append(names, target.Name)
	}
	for _, c := range sampleEdits {
		t.Run(c.name, func(t *testing.T) {
			got := touched(base, w.load(t, sample.with(c.edit)))
			if c.touched == all {
				for _, name := range names {
					if !strings.Contains(" "+got+" ", " "+name+" ") {
						t.Errorf("%s is not touched", name)
					}
				}
				return
			}
			if got != c.touched {
				t.Errorf("touches\n%s, want\n%s", got, c.touched)
			}
		})
	}
}

// TestM2PairsThatOnlyTogetherMakeAnotherTarget are independent for whoever looks at single changes alone.
func TestM2PairsThatOnlyTogetherMakeAnotherTarget(t *testing.T) {
	w := realBazel(t)
	base := w.load(t, sample)
	lib, app := sample["lib/BUILD.bazel"], sample["app/BUILD"]
	cases := []struct {
		name string
		a, b files
	}{
		{"a macro is edited, and called by a new package",
			files{"rules/defs.bzl": strings.Replace(sample["rules/defs.bzl"], "n = 2", "n = 3", 1)},
			files{"caller/BUILD": "load(\"//rules:defs.bzl\", \"many\")\nmany(name = \"mine\")\n"}},
		{"a file that a macro's file loads is edited, and the macro called",
			files{"rules/deep.bzl": "deep = 2\n"},
			files{"caller/BUILD": "load(\"//rules:defs.bzl\", \"lib\")\nlib(name = \"mine\")\n"}},
		{"a glob is widened, and a file comes that it takes",
			files{"lib/BUILD.bazel": strings.Replace(lib, "[\"*.txt\"]", "[\"*.txt\", \"*.md\"]", 1)},
			files{"lib/new.md": "1\n"}},
		{"a new package globs, and a file comes into its folder",
			files{"docs/BUILD": "filegroup(name = \"docs\", srcs = glob([\"*.txt\"]))\n"},
			files{"docs/more.txt": "1\n"}},
		{"a file is used, and generated instead",
			files{"app/BUILD": strings.Replace(app, "\"own.txt\"", "\"own.txt\", \"//lib:free.c\"", 1)},
			files{"lib/BUILD.bazel": lib + "genrule(name = \"make\", outs = [\"free.c\"], cmd = \"touch $@\")\n"}},
		{"a file is used, and comes to be in another package",
			files{"app/BUILD": strings.Replace(app, "\"own.txt\"", "\"own.txt\", \"//lib:dir/deep/x\"", 1)},
			files{"lib/dir/BUILD": "", "lib/BUILD.bazel": strings.Replace(lib, "\"dir\", ", "", 1)}},
		{"a folder is used, and a file comes into it",
			files{"app/BUILD": strings.Replace(app, "\"own.txt\"", "\"own.txt\", \"//lib:dir\"", 1)},
			files{"lib/dir/deep/new": "1\n"}},
		{"two edits of one BUILD file that meet in a variable",
			files{"cycle/BUILD": "X = [\"c.txt\"]\n" + strings.Replace(sample["cycle/BUILD"], "\"c.txt\"]", "] + X", 1)},
			files{"cycle/BUILD": sample["cycle/BUILD"] + "filegroup(name = \"d\")\n"}},
		{"a toolchain is registered, and edited",
			files{".bazelrc": "build --extra_toolchains=//app:own\nimport %workspace%/tools/ci.rc\n"},
			files{"app/own.txt": "2\n"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := targets.Delta(base, w.load(t, sample.with(c.a))), targets.Delta(base, w.load(t, sample.with(c.b)))
			if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
				t.Errorf("called independent:\n%+v\n%+v", a, b)
			}
		})
	}
}

// TestM3IndependentEditsMakeTogetherWhatTheyMakeAlone holds equation 6 on random pairs of the table's edits. A
// search is made of it by LANDFALL_BAZELGRAPH_PAIRS.
func TestM3IndependentEditsMakeTogetherWhatTheyMakeAlone(t *testing.T) {
	w := realBazel(t)
	pairs := 6
	if text := os.Getenv("LANDFALL_BAZELGRAPH_PAIRS"); text != "" {
		pairs, _ = strconv.Atoi(text)
	}
	random := seedtest.Random(t)
	base := w.load(t, sample)
	independent := 0
	for tries := 0; independent < pairs && tries < 20*pairs; tries++ {
		x, y := sampleEdits[random.IntN(len(sampleEdits))], sampleEdits[random.IntN(len(sampleEdits))]
		if meet(x.edit, y.edit) || x.touched == all && y.touched == all {
			continue
		}
		a, b := targets.Delta(base, w.load(t, sample.with(x.edit))), targets.Delta(base, w.load(t, sample.with(y.edit)))
		if a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			continue
		}
		independent++
		both := targets.Delta(base, w.load(t, sample.with(x.edit, y.edit)))
		if got, want := versionsOf(both), versionsOf(targets.Union(a, b)); !slices.Equal(got, want) {
			t.Errorf("%q and %q are called independent and make together\n%q, alone\n%q", x.name, y.name, got, want)
		}
	}
	if independent < pairs {
		t.Errorf("only %d independent pairs", independent)
	}
}

// meet reports whether two edits are of one file.
func meet(a, b files) bool {
	for path := range a {
		if _, both := b[path]; both {
			return true
		}
	}
	return false
}

func versionsOf(a targets.Analysis) []string {
	var list []string
	for _, v := range a.Affected {
		list = append(list, fmt.Sprintf("%s %s", v.Name, v.Hash))
	}
	return append(append(list, "deleted"), a.Deleted...)
}

// TestIncrementalEqualsFullOnBazel: what is derived from another tree's graph, what a server says that has seen other
// trees before, and what a new one says.
func TestIncrementalEqualsFullOnBazel(t *testing.T) {
	w := realBazel(t)
	w.load(t, sample)
	queried, derived := w.loader.graphs.queried, w.loader.graphs.derived
	edited := sample.with(files{"lib/a.txt": "incremental\n", "cycle/c.txt": "incremental\n", "README.md": "incremental\n"})
	graph := w.load(t, edited)
	if w.loader.graphs.queried != queried || w.loader.graphs.derived != derived+1 {
		t.Errorf("an edit of sources alone was asked about")
	}
	moved := w.load(t, edited.with(files{"lib/moved.txt": "1\n", "lib/a.txt": "-"}))
	w.loader.server.end()
	if w.loader.server.process() != 0 {
		t.Error("the server goes on after its end")
	}
	w.loader.graphs.trees = nil
	for name, pair := range map[string][2]*targets.Graph{
		"derived": {graph, w.load(t, edited)},
		"moved":   {moved, w.load(t, edited.with(files{"lib/moved.txt": "1\n", "lib/a.txt": "-"}))},
	} {
		if d := targets.Delta(pair[0], pair[1]); len(d.Touched()) > 0 || len(d.Leaves) > 0 || len(d.Added) > 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if w.loader.graphs.queried != queried+3 {
		t.Errorf("%d queries, want 3", w.loader.graphs.queried-queried)
	}
}

// TestWhatBazelRefuses is invalid where files of the tree are to blame, with their lines, and else unknown.
func TestWhatBazelRefuses(t *testing.T) {
	w := realBazel(t)
	cases := []struct {
		name    string
		edit    files
		invalid string // in the message; empty: a failure
	}{
		{"a BUILD file that does not parse", files{"bad/BUILD": "filegroup(\n"}, "bad/BUILD:"},
		{"a .bzl file that does not parse", files{"bad/BUILD": "load(\"x.bzl\", \"x\")\n", "bad/x.bzl": "def x(\n"}, "bad/x.bzl:"},
		{"a load of nothing", files{"bad/BUILD": "load(\"//nope:x.bzl\", \"x\")\n"}, "//nope:x.bzl"},
		{"two rules of one name", files{"bad/BUILD": "filegroup(name = \"x\")\nfilegroup(name = \"x\")\n"}, "bad/BUILD"},
		{"an external repository that is not there", files{"bad/BUILD": "load(\"@nope//:x.bzl\", \"x\")\n"}, ""},
		{"a repository's flags make the graph smaller", files{".bazelrc": "query --keep_going --noimplicit_deps --output=label\n", "bad/BUILD": "filegroup(\n"}, "bad/BUILD:"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.loader.Load(t.Context(), w.repo, w.tree(t, sample.with(c.edit)))
			invalid, isInvalid := errors.AsType[*Invalid](err)
			_, isFailure := errors.AsType[*Failure](err)
			if c.invalid == "" && !isFailure || c.invalid != "" && (!isInvalid || !strings.Contains(invalid.Message, c.invalid) || strings.Contains(invalid.Message, w.dir)) {
				t.Errorf("%T %v, want invalid because of %q", err, err, c.invalid)
			}
		})
	}
	// A flag that Bazel does not know is a failure of the machine's, for all Landfall can tell: then it rests.
	if _, err := w.loader.Load(t.Context(), w.repo, w.tree(t, sample.with(files{".bazelrc": "query --nonsense\n"}))); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v", err)
	}
	w.loader.failed = w.loader.failed.Add(-resting)
	smaller := w.load(t, sample.with(files{".bazelrc": "query --keep_going --noimplicit_deps --output=label\n"}))
	if !reaches(smaller, "//lib:lib", label{pkg: "rules", name: "tool"}, 1) {
		t.Error("a repository's flags took implicit dependencies away")
	}
	if graph := w.load(t, files{"WORKSPACE": "", "a.txt": "1\n"}); graph == nil {
		t.Error("a workspace without packages")
	}
	if _, err := w.loader.Load(t.Context(), w.repo, w.tree(t, files{"a.txt": "1\n"})); !errors.Is(err, ErrNoWorkspace) {
		t.Errorf("%v", err)
	}
}
