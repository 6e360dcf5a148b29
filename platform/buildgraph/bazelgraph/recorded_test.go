package bazelgraph

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

var update = flag.Bool("update", false, "record what the Bazel of this machine answers to the sample")

// recordedPath is what Bazel 4.2.3 of Debian 12 answered to the sample, by go test -run Recorded -update. What it
// says of places on the machine enters no hash.
const recordedPath = "testdata/bazel-4.2.3.pb"

// TestTheRecordedAnswerIsWhatBazelGives keeps the recording true where there is a Bazel.
func TestTheRecordedAnswerIsWhatBazelGives(t *testing.T) {
	w := realBazel(t)
	w.load(t, sample)
	if err := w.loader.place.Checkout.Checkout(t.Context(), w.tree(t, sample)); err != nil {
		t.Fatal(err)
	}
	var output []byte
	args := append(append([]string{"query"}, queryFlags...), "--", everything)
	err := w.loader.server.run(t.Context(), args, func(r io.Reader) (err error) { output, err = io.ReadAll(r); return err })
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(recordedPath, output, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(recordedPath)
	if err != nil {
		t.Fatal(err)
	}
	was, err := decodeBytes(recorded)
	if err != nil {
		t.Fatal(err)
	}
	is, err := decode(bytes.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	digests := func(a *answer) (list []string) {
		for _, r := range a.rules {
			list = append(list, r.label.String()+string(r.digest[:]))
		}
		slices.Sort(list)
		return list
	}
	if !slices.Equal(digests(was), digests(is)) || len(was.sources) != len(is.sources) || len(was.groups) != len(is.groups) {
		t.Errorf("the recording has %d rules, %d sources, %d groups, Bazel says %d, %d, %d, or others", len(was.rules), len(was.sources), len(was.groups),
			len(is.rules), len(is.sources), len(is.groups))
	}
}

// recordedWorld answers with the recording.
func recordedWorld(t *testing.T) *world {
	t.Helper()
	recorded, err := os.ReadFile(recordedPath)
	if err != nil {
		t.Fatal(err)
	}
	return fakeWorld(t, "cat $OUT", recorded, Options{})
}

// TestARecordedAnswerGivesTheGraph where there is no Bazel to ask.
func TestARecordedAnswerGivesTheGraph(t *testing.T) {
	w := recordedWorld(t)
	base := w.load(t, sample)
	var got []string
	for target := range base.Targets() {
		got = append(got, target.Kind+" "+target.Name)
	}
	want := []string{
		"filegroup //app:by_hand", "filegroup //app:own", "filegroup //cycle:a", "filegroup //cycle:b", "config_setting //lib:fast", "genrule //lib:gen",
		"lib //lib:lib", "genrule //lib:many0", "genrule //lib:many1", "lib //lib:other", "filegroup //rules:tool", "info //toolchains:impl",
		"package //app [package]", "package //cycle [package]", "package //groups [package]", "package //lib [package]", "package //rules [package]",
		"package //third_party [package]", "package //toolchains [package]", "sh_test //app:test", "test_suite //app:suite", "toolchain //toolchains:tc",
		"toolchain_type //toolchains:type",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("targets are\n%q, want\n%q", got, want)
	}
	for _, c := range sampleEdits {
		// What Bazel answers to these is what it answered to the sample, but for what they hold.
		if len(c.edit) != 1 || c.touched == all {
			continue
		}
		for path, text := range c.edit {
			old, there := sample[path]
			if there && text != "-" && !isDecisive(path) && strings.HasPrefix(old, "#!") == strings.HasPrefix(text, "#!") && !strings.HasPrefix(old, "link:") {
				if got := touched(base, w.load(t, sample.with(c.edit))); got != c.touched {
					t.Errorf("%s touches\n%s, want\n%s", c.name, got, c.touched)
				}
			}
		}
	}
}

// Files of the workspace and of packages are covered; those that no rule names are not, nor an ignored folder's.
func TestAFileIsUncoveredWhereNoRuleOrPackageIsMadeFromIt(t *testing.T) {
	want := []string{"README.md", "docs/guide.txt", "ignored/BUILD", "lib/free.c"}
	if got := recordedWorld(t).load(t, sample).Uncovered(); !slices.Equal(got, want) {
		t.Errorf("uncovered: %q, want %q", got, want)
	}
}

// newerAnswer is written by hand after build.proto of Bazel 9 and printed examples of its output, since no such
// Bazel could be run here: canonical labels with @@, relative frames, no loads of BUILD files, fields 15 and
// 16 of a rule that older ones have not.
func newerAnswer() made {
	var m made
	m.target(targetSource, sourceOf("@@//lib:BUILD.bazel"))
	r := ruleOf("@@//lib:core", "probe_library", []string{"@@//lib:a.txt", "@@//tools:tool", "@@bazel_tools//tools:x", "@@rules_x+//:y", "@@+ext+made//:z"})
	r.text(ruleInstantiation, "lib/BUILD.bazel:7:14: <toplevel>")
	r.text(ruleDefinition, "tools/defs.bzl:28:21: <toplevel>", "tools/make.bzl:3:14: make")
	r.text(15, "@@//tools:defs.bzl%probe_library")
	r.message(16, []byte{10, 1, 'x'})
	m.target(targetRule, r)
	// Of a rule set outside the repository, by its place in an output base.
	r = ruleOf("@@//lib:test", "x_test", []string{"@@//lib:core"})
	r.text(ruleDefinition, "/home/u/.cache/bazel/base/external/rules_x+/x.bzl:1:1: <toplevel>")
	m.target(targetRule, r)
	// Built in, once a native rule: its frames are of no file that there is.
	r = ruleOf("@@//lib:cc", "cc_library", nil)
	r.text(ruleDefinition, "/virtual_builtins_bzl/common/cc/cc_library.bzl:1:1: <toplevel>")
	m.target(targetRule, r)
	// No frames and no native rule: whatever the BUILD file loads may define it.
	m.target(targetRule, ruleOf("@@//lib:odd", "odd_rule", nil))
	m.target(targetSource, sourceOf("@@//tools:BUILD"))
	m.target(targetRule, ruleOf("@@//tools:tool", "filegroup", nil))
	return m
}

func TestAnAnswerOfANewerBazel(t *testing.T) {
	all := files{
		"MODULE.bazel": "module(name = \"probe\")\next = use_extension(\"//tools:ext.bzl\", \"ext\")\next.from_file(lock = \"//:versions.json\")\n", "versions.json": "{}",
		"tools/ext.bzl": "load(\":ext_deep.bzl\", \"x\")\n", "tools/ext_deep.bzl": "x = 1\n", "MODULE.bazel.lock": "{}",
		"lib/BUILD.bazel": "load(\"@probe//tools:defs.bzl\", \"probe_library\")\nload(\"//tools:macros.bzl\", \"odd_rule\")\n", "lib/a.txt": "1",
		"tools/BUILD": "", "tools/defs.bzl": "load(\"make.bzl\", \"unused\")\nload(\":make.bzl\", \"make\")\n", "tools/make.bzl": "load(\":deep.scl\", \"x\")\n", "tools/deep.scl": "x = 1\n",
		"tools/macros.bzl": "odd_rule = 1\n",
	}
	w := fakeWorld(t, "cat $OUT", newerAnswer(), Options{})
	base := w.load(t, all)
	every := "//lib [package] //lib:cc //lib:core //lib:odd //lib:test //tools [package] //tools:tool"
	for path, want := range map[string]string{
		"lib/a.txt": "//lib:core //lib:test", "tools/deep.scl": "//lib [package] //lib:core //lib:odd //lib:test", "tools/macros.bzl": "//lib [package] //lib:odd",
		"MODULE.bazel": every, "MODULE.bazel.lock": every, "versions.json": every, "tools/ext_deep.bzl": every,
	} {
		if got := touched(base, w.load(t, all.with(files{path: all[path] + "\n# why\n"}))); got != want {
			t.Errorf("%s touches\n%s, want\n%s", path, got, want)
		}
	}
	if core, ok := base.Target("//lib:core"); !ok || !slices.Equal(core.Deps, []string{"//tools:tool"}) {
		t.Errorf("%+v", core)
	}
	for _, repository := range []string{"@@rules_x+", "@@+ext+made", "@@bazel_tools"} {
		if !slices.Contains(base.Dependencies("//lib:core"), "ext:"+repository) {
			t.Errorf("%s is no dependency: %q", repository, base.Dependencies("//lib:core"))
		}
	}
}

// TestDecodingAndAssemblingDoNotDependOnWhereTheyAreDone: the recording has paths of another folder in it.
func TestDecodingAndAssemblingDoNotDependOnWhereTheyAreDone(t *testing.T) {
	one, two := recordedWorld(t), recordedWorld(t)
	a, b := one.load(t, sample), two.load(t, sample)
	if filepath.Dir(one.dir) == filepath.Dir(two.dir) {
		t.Fatal("both are in one place")
	}
	if d := targets.Delta(a, b); len(d.Touched()) > 0 || len(d.Leaves) > 0 {
		t.Errorf("%+v", d)
	}
}
