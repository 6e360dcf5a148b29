package gograph

import (
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// replaced is a module with one below it that it is built with, but does not
// import.
var replaced = memoryTree{
	"go.mod":   "module m\n\ngo 1.26\n\nrequire q v1.0.0\n\nreplace q => ./q\n",
	"x.go":     "package m\n",
	"q/go.mod": "module q\n\ngo 1.24\n",
	"q/x.go":   "package q\n",
	"r/x.go":   "package r\n",
}

// TestM3WhatDecidesWhereAnImportLeadsIsANode has pairs of changes whose conflict
// lies in which module, if any, an import path or a build leads to.
func TestM3WhatDecidesWhereAnImportLeadsIsANode(t *testing.T) {
	missing := replaced.with(memoryTree{"go.mod": "module m\n\ngo 1.26\n\nrequire q v1.0.0\n\nreplace q => ./deep/q\n", "q/go.mod": "", "q/x.go": ""})
	dangling := replaced.with(memoryTree{"l": "mode 120000 y/z", "w/z/x.go": "package z\n"})
	for name, c := range map[string]struct {
		base, a, b memoryTree
	}{
		"the go lines of a module and of what it is built with": {replaced,
			memoryTree{"go.mod": strings.Replace(replaced["go.mod"], "1.26", "1.24", 1)}, memoryTree{"q/go.mod": "module q\n\ngo 1.25\n"}},
		"an importer of a replacement that is not there, and the module around that": {missing,
			memoryTree{"r/x.go": "package r\n\nimport _ \"q/sub\"\n"}, memoryTree{"deep/q/go.mod": "module q\n", "deep/q/sub/x.go": "package sub\n"}},
		"an importer behind a link that leads nowhere, and a link on its way": {dangling,
			memoryTree{"r/x.go": "package r\n\nimport _ \"m/l\"\n"}, memoryTree{"y": "mode 120000 w"}},
		"an importer of a package that is not there, and tests that have its import path": {
			replaced.with(memoryTree{"go.mod": strings.Replace(replaced["go.mod"], "q => ./q", "q => ./q\n\nrequire m/s v1.0.0\n\nreplace m/s => ./else", 1), "else/go.mod": "module m/s\n"}),
			memoryTree{"r/x.go": "package r\n\nimport _ \"m/s/t\"\n"}, memoryTree{"s/t/x_test.go": "package t\n"}},
		"an importer, and a deeper module with that import path": {replaced,
			memoryTree{"r/x.go": "package r\n\nimport _ \"q/deep\"\n"}, memoryTree{"q/deep/go.mod": "module q/deep\n", "q/deep/x.go": "package deep\n"}},
		"a test of a linked folder, and what a link in that leads to": {replaced.with(memoryTree{"shared/in": "mode 120000 ../away", "away/f": "1\n"}),
			memoryTree{"r/x_test.go": "package r\n", "r/testdata/l": "mode 120000 ../../shared"}, memoryTree{"away/f": "2\n"}},
		"a replacement, and a link that comes to stand for its folder": {replaced,
			memoryTree{"go.mod": strings.Replace(replaced["go.mod"], "./q", "./p", 1)}, memoryTree{"p": "mode 120000 q"}},
	} {
		base := load(t, c.base)
		a, b := targets.Delta(base, load(t, c.base.with(c.a))), targets.Delta(base, load(t, c.base.with(c.b)))
		both := targets.Delta(base, load(t, c.base.with(c.a).with(c.b)))
		if versions(a, b) == versions(both) {
			t.Errorf("%s: the pair shows nothing: what they make together is what they make alone", name)
		}
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s are called independent:\n%+v\n%+v", name, a, b)
		}
	}
}

// TestAStandardPackageIsNoModulesPackage: go looks in its own library first, so
// neither an importer nor a module of such a path matters to the other.
func TestAStandardPackageIsNoModulesPackage(t *testing.T) {
	base := load(t, replaced)
	first := memoryTree{"r/x.go": "package r\n\nimport _ \"net/http\"\n"}
	second := memoryTree{"net/go.mod": "module net\n", "net/http/x.go": "package http\n", "go.work": "use .\nuse ./net\nuse ./q\n"}
	workspace := replaced.with(memoryTree{"go.work": second["go.work"], "net/go.mod": "module net\n"})
	graph := load(t, workspace.with(memoryTree{"net/http/x.go": "package http\n"}).with(first))
	for _, label := range graph.Dependencies("m/r") {
		if strings.Contains(label, "net") {
			t.Errorf("m/r depends on %s", label)
		}
	}
	if d := targets.Delta(base, load(t, replaced.with(first))); len(d.Affected) != 1 {
		t.Errorf("the import affects %v", d.Touched())
	}
}

// TestANearerWorkspaceIsPartOfEveryVersionBelowIt: go refuses to build a module
// that the nearest go.work does not use, so a change that adds one has to be built.
func TestANearerWorkspaceIsPartOfEveryVersionBelowIt(t *testing.T) {
	base := replaced.with(memoryTree{"go.work": "go 1.26\n\nuse .\nuse ./q\n"})
	if got := delta(t, base, base.with(memoryTree{"q/go.work": "go 1.26\n\nuse ./none\n"})); !strings.Contains(got, "q [module]") || !strings.Contains(got, "q,") {
		t.Errorf("a go.work that refuses module q affects %q", got)
	}
}

func TestWhatIsNotFollowedConflictsWithEverything(t *testing.T) {
	for name, edit := range map[string]memoryTree{
		"a go.mod that is a link":            {"r/go.mod": "mode 120000 ../q/go.mod"},
		"a go.work that is a link":           {"go.work": "mode 120000 q/go.work"},
		"a modules.txt that is a link":       {"vendor/modules.txt": "mode 120000 ../list"},
		"a replacement through a link":       {"go.mod": strings.Replace(replaced["go.mod"], "./q", "./p", 1), "p": "mode 120000 q"},
		"a workspace through a link":         {"go.work": "go 1.26\n\nuse ./p\n", "p": "mode 120000 q"},
		"the Go distribution's own module":   {"q/go.mod": "module std\n"},
		"the Go distribution's own commands": {"q/go.mod": "module cmd\n"},
	} {
		if got := delta(t, replaced, replaced.with(edit)); got != "all" {
			t.Errorf("%s affects %s, want all", name, got)
		}
	}
}

func TestPackagesOfOneImportPathHaveTargetsOfTheirOwn(t *testing.T) {
	graph := load(t, replaced.with(memoryTree{"elsewhere/go.mod": "module m/r\n", "elsewhere/x.go": "package r\n", "a in go.work/x.go": "package a\n"}))
	for _, name := range []string{"m/r", "m/r (elsewhere/)", "m/r [module]", "m [module]"} {
		if _, ok := graph.Target(name); !ok {
			t.Errorf("no target %q", name)
		}
	}
	nested := load(t, replaced.with(memoryTree{"r/go.mod": "module m/r\n"}))
	if _, ok := nested.Target("m/r"); !ok {
		t.Error("a module that stands where its path says has its folder in the names of its targets")
	}
}
