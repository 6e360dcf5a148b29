package gograph

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

func TestChangesThatMatterToEachOtherConflict(t *testing.T) {
	goMod := func(t *testing.T, old, new string) memoryTree { return edited(t, sample, "go.mod", old, new) }
	importing := func(path string) memoryTree {
		return memoryTree{"win/new.go": "package win\n\nimport _ \"" + path + "\"\n"}
	}
	for name, c := range map[string]struct{ a, b memoryTree }{
		"an import and an edit of what it imports":      {importing("example.com/m/tools/free"), memoryTree{"tools/free/f.go": "package other\n"}},
		"an import and a new file of it":                {importing("example.com/m/b"), memoryTree{"b/new.go": "package b\n"}},
		"an import and its deletion":                    {importing("example.com/m/b"), memoryTree{"b/b.go": ""}},
		"an import and the package that it lacks":       {importing("example.com/m/new"), memoryTree{"new/new.go": "package new\n"}},
		"a pattern and a new file":                      {memoryTree{"b/b.go": sample["b/b.go"] + "\n//go:embed new/*\nvar x string\n"}, memoryTree{"b/new/x": "1\n"}},
		"a pattern and a deleted file":                  {memoryTree{"win/win.go": "package win\n\nimport _ \"embed\"\n\n//go:embed d\n"}, memoryTree{"win/d/x": "1\n"}},
		"a first Go file and assembly beside it":        {memoryTree{"fresh/x.go": "package fresh\n"}, memoryTree{"fresh/x.s": "TEXT\n"}},
		"a first test and its data":                     {memoryTree{"win/x_test.go": "package win\n"}, memoryTree{"win/testdata/x": "1\n"}},
		"a nested go.mod and an import across it":       {memoryTree{"b/go.mod": "module example.com/m/b\n"}, importing("example.com/m/b")},
		"a nested go.mod and data for a test around it": {memoryTree{"a/sub/go.mod": "module example.com/sub\n"}, memoryTree{"a/sub/x.txt": "1\n"}},
		"an import and another version":                 {importing("example.org/x/deep"), goMod(t, "x v1.2.0", "x v1.3.0")},
		"an import and the requirement that it lacks":   {importing("example.net/w/deep"), goMod(t, "require (", "require (\n\texample.net/w v1.0.0")},
		"an import and a longer requirement":            {importing("example.org/x/deep/er"), goMod(t, "require (", "require (\n\texample.org/x/deep v1.0.0")},
		"an import and a requirement that rivals it":    {importing("example.com/m/b"), goMod(t, "require (", "require (\n\texample.com/m/b v1.0.0")},
		"an import and a replacement":                   {importing("example.org/y"), goMod(t, "require (", "replace example.org/y => ./y\n\nrequire (")},
		"two requirements":                              {goMod(t, "x v1.2.0", "x v1.3.0"), goMod(t, "y v1.0.0", "y v1.1.0")},
		"a new package and a toolchain":                 {memoryTree{"fresh/x.go": "package fresh\n"}, goMod(t, "go 1.26.0", "go 1.26.0\n\ntoolchain go1.26.3")},
		"a new package and a workspace":                 {memoryTree{"fresh/x.go": "package fresh\n"}, memoryTree{"go.work": "go 1.26.0\n\nuse .\n"}},
		"a module of a workspace and a package in it":   {memoryTree{"new/go.mod": "module example.com/new\n", "go.work": "go 1.26.0\n\nuse (\n\t.\n\t./tools\n\t./new\n)\n"}, memoryTree{"new/x.go": "package x\n"}},
		"a replaced module and what it requires":        {memoryTree{"tools/cmd/more.go": "package main\n\nimport _ \"example.com/m/onlytest\"\n"}, memoryTree{"onlytest/lib.go": "package onlytest\n"}},
		"a link and what it leads to":                   {memoryTree{"win/link.go": "mode 120000 ../src/x.go"}, memoryTree{"src/x.go": "package win\n"}},
		"two modules of one path":                       {memoryTree{"one/go.mod": "module example.com/twice\n", "one/x.go": "package x\n"}, memoryTree{"two/go.mod": "module example.com/twice\n", "two/x.go": "package x\n"}},
		"an import of a vendored package and its edit":  {memoryTree{"vendor/modules.txt": "# example.org/x v1.2.0\n# example.org/y v1.0.0\n# example.org/z v1.0.0\n"}, memoryTree{"vendor/example.org/y/y.go": "package y\n"}},
		"a cgo flag and what it reaches":                {memoryTree{"win/c.go": "package win\n\n// #cgo LDFLAGS: -L../libs\nimport \"C\"\n"}, memoryTree{"libs/x.a": "1\n"}},
	} {
		a := targets.Delta(load(t, sample), load(t, sample.with(c.a)))
		b := targets.Delta(load(t, sample), load(t, sample.with(c.b)))
		if !a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			t.Errorf("%s are called independent:\n%+v\n%+v", name, a, b)
		}
	}
}

func TestChangesOfSeparatePackagesAreIndependent(t *testing.T) {
	for name, c := range map[string]struct{ a, b memoryTree }{
		"two packages":                   {memoryTree{"c/new.go": "package c\n"}, memoryTree{"tools/free/new.go": "package free\n"}},
		"a test and another":             {memoryTree{"a/a_test.go": "package a\n"}, memoryTree{"onlytest/x_test.go": "package onlytest\n"}},
		"two new packages":               {memoryTree{"new1/x.go": "package x\n\nimport _ \"fmt\"\n"}, memoryTree{"new2/x.go": "package x\n\nimport _ \"fmt\"\n"}},
		"a new importer and another one": {memoryTree{"new1/x.go": "package x\n\nimport _ \"example.com/m/b\"\n"}, memoryTree{"new2/x.go": "package x\n\nimport _ \"example.com/m/b\"\n"}},
		"documents":                      {memoryTree{"README.md": "new\n"}, memoryTree{"a/a.go": "package a\n"}},
		"an importer and a sibling":      {memoryTree{"new1/x.go": "package x\n\nimport _ \"example.com/m/b\"\n"}, memoryTree{"c/new.go": "package c\n"}},
	} {
		a := targets.Delta(load(t, sample), load(t, sample.with(c.a)))
		b := targets.Delta(load(t, sample), load(t, sample.with(c.b)))
		if why := a.Footprint().Meets(b.Footprint(), nil); why.Conflict() {
			t.Errorf("%s conflict: %+v", name, why)
		}
	}
}

// randomEdit makes a few edits, of which many touch what decides about edges.
func randomEdit(random *rand.Rand) memoryTree {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	dir := func() string {
		return pick("a", "b", "c", "win", "a/sub", "b/files", "tools/free", "tools/cmd", "fresh", "one", "two", "third/party", "a/testdata")
	}
	edit := memoryTree{}
	for range 1 + random.IntN(3) {
		switch random.IntN(15) {
		case 0, 1:
			path := pick("example.com/m/a", "example.com/m/b", "example.com/m/fresh", "example.com/m/a/sub", "example.com/m/tools/free", "example.com/twice",
				"example.org/x/deep/er", "example.net/w", "example.com/m/third/party", "example.com/m/a/testdata", "util/x")
			edit[dir()+"/"+pick("n1.go", "n2_test.go", "n3_windows.go")] = "package p\n\nimport _ \"" + path + "\"\n"
		case 2:
			edit[dir()+"/"+pick("e1.go", "e2_test.go")] = "package p\n\nimport _ \"embed\"\n\n//go:embed " + pick("*.txt", "all:sub", "files/*", "x*", "x.txt", "sub/x.txt", "a/sub/x.txt") + "\nvar x string\n"
		case 3, 4:
			edit[dir()+"/"+pick("x.txt", "y.s", "z.c", "new.go", "_old.go")] = pick("package p\n", "other\n")
		case 5:
			edit[dir()+"/go.mod"] = "module " + pick("example.com/twice", "example.com/m/b", "example.com/m/fresh", "example.com/other", "util") + "\n"
		case 6:
			edit["go.mod"] = strings.Replace(sample["go.mod"], pick("x v1.2.0", "y v1.0.0\n", "go 1.26.0"), pick("x v1.4.0", "y v1.0.0\n\texample.org/x/deep v1.0.0\n", "y v1.0.0\n\texample.com/m/b v1.0.0\n", "go 1.26.0\n\ntoolchain go1.26.2"), 1)
		case 7:
			edit["tools/go.mod"] = strings.Replace(sample["tools/go.mod"], "x v1.2.0\n", pick("x v1.5.0\n", "x v1.2.0\n\texample.com/twice v0.0.0\n)\n\nreplace (\n\texample.com/twice => ../one\n"), 1)
		case 8:
			edit[pick(slices.Sorted(maps.Keys(sample))...)] = ""
		case 11:
			edit["vendor/example.org/"+pick("x/sub/n.go", "y/y.go", "z/z.go", "z/n.s", "x/x.go")] = pick("package p\n", "package p\n\nimport _ \"example.org/y\"\n")
		case 12:
			edit[pick("a", "b")+"/go.mod"] = ""
		case 13:
			edit[pick("native/include/c.h", "b/h.h", "fresh/h.h", "win/h.h", "c/lib/deep.h", "c/n.s")] = "#include \"../../" + pick("b", "fresh", "win", "m") + "/h.h\"\n#include \"../" + pick("b", "fresh", "win") + "/h.h\"\n#include \"lib/deep.h\"\n"
		case 14:
			edit[dir()+"/"+pick("o1_test.go", "o2_test.go")] = "package p\n\nvar x = \"../" + pick("", "../") + pick("b", "b/x.txt", "win", "fresh", "fresh/x.txt", "a/testdata", "tools/cmd", "one/n1.go", "a/sub", "m/go.mod") + "\"\n"
		case 9:
			edit["go.work"] = "go 1.26.0\n\nuse ./" + pick("tools", "one", "two", "fresh", "\nuse ./tools") + "\n"
		case 10:
			edit[dir()+"/"+pick("n1.go", "x.txt", "sub")] = "mode " + pick("120000 ../b", "120000 ../win/win.go", "120000 n1.go", "160000 commit")
		}
	}
	return edit
}

// sound reports whether a tree can exist: no file is a folder as well.
func sound(tree memoryTree) bool {
	for path := range tree {
		for dir := folderOf(path); dir != ""; dir = folderOf(dir) {
			if _, ok := tree[dir]; ok {
				return false
			}
		}
	}
	return true
}

// TestM3IndependentChangesMakeTogetherWhatTheyMakeAlone holds the adapter to the
// engine's contract: of two changes that M1 calls independent, each target
// version of the union is one that one of them makes alone (equation 6).
func TestM3IndependentChangesMakeTogetherWhatTheyMakeAlone(t *testing.T) {
	seed := seedtest.Of(t)
	for name, tree := range map[string]memoryTree{
		"modules by themselves": sample,
		"a workspace":           sample.with(memoryTree{"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./tools\n\t./one\n)\n", "root_test.go": "package m\n"}),
		"a vendor folder": sample.with(memoryTree{
			"vendor/modules.txt":            "# example.org/x v1.2.0\n# example.org/y v1.0.0\n# example.org/z v1.0.0\n",
			"vendor/example.org/x/sub/x.go": "package sub\n\nimport _ \"example.org/z\"\n",
			"vendor/example.org/z/z.go":     "package z\n", "a/sub/x_test.go": "package sub\n",
		}),
		"modules below each other": sample.with(memoryTree{
			"b/go.mod": "module example.com/m/b\n",
			"a/go.mod": "module example.com/other\n\nrequire example.com/m/b v0.0.0\n\nreplace example.com/m/b => ../b\n",
		}),
	} {
		t.Run(name, func(t *testing.T) { independentChangesAddUp(t, tree, randomEdit, rand.New(rand.NewPCG(seed, 1))) })
		t.Run(name+", edits of modules", func(t *testing.T) {
			independentChangesAddUp(t, tree, randomModuleEdit, rand.New(rand.NewPCG(seed, 2)))
		})
	}
	t.Run("small modules", func(t *testing.T) {
		independentChangesAddUp(t, small, randomModuleEdit, rand.New(rand.NewPCG(seed, 3)))
	})
}

// small is a repository in which nearly every edit of a module matters to others.
var small = memoryTree{
	"go.mod":      "module m\n\ngo 1.25\n",
	"x.go":        "package m\n\nimport _ \"m/a\"\n",
	"a/x.go":      "package a\n",
	"a/x_test.go": "package a\n",
	"b/go.mod":    "module m/b\n\ngo 1.25\n",
	"b/x.go":      "package b\n\nimport _ \"o/c\"\n",
	"one/x.go":    "package one\n\nimport _ \"m/b\"\n",
}

// randomModuleEdit edits what decides which module an import path leads to: go.mod
// and go.work files, links, and importers that are new.
func randomModuleEdit(random *rand.Rand) memoryTree {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	dirs := []string{"", "a/", "b/", "a/c/", "b/c/", "one/", "two/", "a/testdata/", "_h/", "vendor/o/"}
	paths := []string{"m", "m/a", "m/b", "m/a/c", "m/b/c", "o", "o/c", "p", "example.com/m/a", "example.com/m/b"}
	goMod := func() string {
		text := "module " + pick(paths...) + "\n\ngo 1." + pick("13", "24", "25", "26") + "\n"
		for range random.IntN(3) {
			path := pick(paths...)
			if random.IntN(4) > 0 {
				text += "\nrequire " + path + " v1." + pick("0", "1") + ".0\n"
			}
			if random.IntN(3) > 0 {
				text += "\nreplace " + path + " => " + pick("./", "../", "./a", "../b", "./one", "../two", "./a/c", "./testdata", "q v1.2.0") + "\n"
			}
		}
		return text
	}
	edit := memoryTree{}
	for range 1 + random.IntN(3) {
		dir := pick(dirs...)
		switch random.IntN(10) {
		case 0, 1, 2:
			edit[dir+"go.mod"] = goMod()
		case 3:
			edit[dir+"go.mod"] = ""
		case 4, 5, 6:
			edit[dir+pick("x.go", "y.go", "x_test.go")] = "package p\n\nimport _ \"" + pick(append(paths, "net/http", "o/c/d", "m/one", "m/two")...) + "\"\n"
		case 7:
			edit[pick("", "", "a/", "b/")+"go.work"] = pick("go 1.25\n", "go 1.26\n") + "\nuse " + pick("./", "./a", "./b", "./one", "./two") + "\n" +
				pick("", "\nuse ./b\n", "\nuse ./a/c\n", "\nreplace o => ./one\n", "\nreplace p => ./two\n")
		case 8:
			edit[pick("vendor/modules.txt", "a/vendor/modules.txt", "vendor/README", "go.sum", "b/go.sum")] = pick("# o v1.0.0\n## explicit\n", "# p v1.1.0\n", "## workspace\n# o v1.0.0\n", "o v1.0.0 h1:x\n")
		case 9:
			edit[pick("two", "a/c", "one/l", "b/c", "one/go.mod", "b/l.go")] = "mode " + pick("120000 ../b", "120000 b", "120000 ../one", "120000 a", "160000 commit", "120000 go.mod", "120000 x.go")
		}
	}
	return edit
}

// pairs returns how many pairs of random edits each kind of repository gets: enough to
// notice that something broke. LANDFALL_GOGRAPH_PAIRS asks for a search.
func pairs(t *testing.T) int {
	text := os.Getenv("LANDFALL_GOGRAPH_PAIRS")
	if text == "" {
		return 250
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("LANDFALL_GOGRAPH_PAIRS: %v", err)
	}
	return n
}

func independentChangesAddUp(t *testing.T, sample memoryTree, edit func(*rand.Rand) memoryTree, random *rand.Rand) {
	loader := newLoader(t, Options{})
	base := load(t, sample)
	graphOf := func(tree memoryTree) *targets.Graph {
		graph, err := loader.Load(t.Context(), "", tree)
		if _, invalid := errors.AsType[*Invalid](err); err != nil && !invalid && !errors.Is(err, ErrNoModule) {
			t.Fatalf("%q: %v", tree, err)
		}
		return graph
	}
	independent := 0
	for range pairs(t) {
		first, second := edit(random), edit(random)
		both := sample.with(first).with(second)
		if !disjoint(first, second) || !sound(sample.with(first)) || !sound(sample.with(second)) || !sound(both) {
			continue
		}
		graphs := []*targets.Graph{graphOf(sample.with(first)), graphOf(sample.with(second)), graphOf(both)}
		if slices.Contains(graphs, nil) {
			continue
		}
		a, b, union := targets.Delta(base, graphs[0]), targets.Delta(base, graphs[1]), targets.Delta(base, graphs[2])
		if a.Footprint().Meets(b.Footprint(), nil).Conflict() {
			continue
		}
		independent++
		if want, got := versions(a, b), versions(union); want != got {
			t.Fatalf("called independent:\n%q\n%q\nonly alone or only together they make\n%s", first, second, difference(want, got))
		}
	}
	if independent < 20 {
		t.Errorf("only %d pairs were independent", independent)
	}
	t.Logf("%d independent pairs", independent)
}

func disjoint(x, y memoryTree) bool {
	for path := range x {
		if _, ok := y[path]; ok {
			return false
		}
	}
	return true
}

// versions lists what analyses make and delete.
func versions(analyses ...targets.Analysis) string {
	set := map[string]bool{}
	for _, a := range analyses {
		for _, v := range a.Affected {
			set[fmt.Sprintf("%s %s", v.Name, v.Hash)] = true
		}
		for _, name := range a.Deleted {
			set["-"+name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(set)), "\n")
}

// difference returns the lines that only one of two texts has.
func difference(x, y string) string {
	var only []string
	for _, line := range strings.Split(x+"\n"+y, "\n") {
		if strings.Contains(x, line) != strings.Contains(y, line) {
			only = append(only, line)
		}
	}
	return strings.Join(only, "\n")
}
