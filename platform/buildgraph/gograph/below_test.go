package gograph

import (
	"fmt"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// beneath has a test in a, packages below it and elsewhere, and another module.
var beneath = memoryTree{
	"go.mod":             "module example.com/m\n\ngo 1.26\n\nrequire example.com/n v1.0.0\n\nreplace example.com/n => ./n\n",
	"a/a.go":             "package a\n",
	"a/cmd/tool/main.go": "package main\n\nimport _ \"example.com/m/lib\"\n", "a/cmd/other/main.go": "package main\n",
	"a/deep/er/d.go":          "package er\n",
	"a/testdata/prog/main.go": "package main\n\nimport _ \"example.com/m/hidden\"\n", "hidden/h.go": "package hidden\n",
	"lib/lib.go": "package lib\n", "cmd/far/main.go": "package main\n\nimport _ \"example.com/m/farlib\"\n", "farlib/f.go": "package farlib\n",
	"n/go.mod": "module example.com/n\n\ngo 1.26\n", "n/run/main.go": "package main\n",
	"link": "mode 120000 cmd",
}

func TestATestDependsOnPackagesThatItsTextsName(t *testing.T) {
	const tool, lib, other, deep, far, farlib, hidden, run = "a/cmd/tool/main.go", "lib/lib.go", "a/cmd/other/main.go", "a/deep/er/d.go", "cmd/far/main.go", "farlib/f.go", "hidden/h.go", "n/run/main.go"
	all := []string{tool, lib, other, deep}
	inTest := func(body string) memoryTree {
		return memoryTree{"a/a_test.go": goText("a", "fmt os path/filepath runtime strings testing", "func TestIt(t *testing.T) {\n"+body+"\n}")}
	}
	for name, c := range map[string]struct {
		edit          memoryTree
		reads, leaves []string
	}{
		"a program below":                  {inTest(`exec.Command("go", "build", "-o", bin, "./cmd/tool")`), []string{tool, lib}, []string{other, deep, far}},
		"a program below without dots":     {inTest(`cmd.Dir = "cmd/tool"`), []string{tool, lib}, []string{other, deep}},
		"a program in a shell":             {inTest(`exec.Command("sh", "-c", "go run ./cmd/tool -x")`), []string{tool, lib}, []string{other}},
		"a file below":                     {inTest(`exec.Command("go", "run", "cmd/tool/main.go")`), []string{tool, lib}, []string{other}},
		"a joined folder":                  {inTest(`filepath.Join("cmd", "tool")`), []string{tool, lib}, []string{other}},
		"a name joined to a folder":        {inTest(`filepath.Join("cmd", name)`), []string{tool, lib, other}, []string{deep}},
		"a name behind a folder":           {inTest(`exec.Command("go", "build", "./cmd/" + name)`), []string{tool, lib, other}, []string{deep}},
		"a format":                         {inTest(`fmt.Sprintf("./cmd/%s", name)`), []string{tool, lib, other}, []string{deep}},
		"a name of its folder":             {inTest(`exec.Command("go", "build", "./" + name)`), all, []string{far}},
		"a program in testdata":            {inTest(`exec.Command("go", "run", "./testdata/prog")`), []string{hidden}, []string{tool}},
		"data with packages among them":    {inTest(`os.ReadFile("testdata/" + name)`), nil, []string{hidden, tool}},
		"all packages below":               {inTest(`exec.Command("go", "vet", "./...")`), all, []string{far}},
		"all packages of a folder":         {inTest(`exec.Command("go", "vet", "./cmd/...")`), []string{tool, lib, other}, []string{deep}},
		"an import path":                   {inTest(`exec.Command("go", "run", "example.com/m/cmd/far")`), []string{far, farlib}, []string{tool, deep}},
		"an import path with a version":    {inTest(`exec.Command("go", "run", "example.com/m/cmd/far@v1")`), nil, []string{far}},
		"import paths with a wildcard":     {inTest(`exec.Command("go", "vet", "example.com/m/cmd/...")`), []string{far, farlib}, []string{tool}},
		"an import path and a name":        {inTest(`exec.Command("go", "run", "example.com/m/cmd/" + name)`), []string{far, farlib}, []string{tool}},
		"an import path of another module": {inTest(`exec.Command("go", "run", "example.com/n/run")`), []string{run}, []string{tool}},
		"an import path of nothing":        {inTest(`exec.Command("go", "run", "example.com/m/none")`), nil, []string{far, tool}},
		"another package of its imports":   {memoryTree{"a/a_test.go": "package a\n\nimport (\n\t_ \"example.com/m/lib\"\n)\n"}, []string{lib}, []string{farlib, tool}},
		"the folder":                       {inTest(`filepath.WalkDir(".", check)`), []string{tool, other, deep}, []string{far}},
		"the folder in a variable":         {inTest("root := \".\"\nfilepath.WalkDir(root, check)"), []string{tool, deep}, []string{far}},
		"the folder by Getwd":              {inTest("wd, _ := os.Getwd()\nfilepath.WalkDir(wd, check)"), []string{tool, deep}, []string{far}},
		"the folder of its file":           {inTest("_, file, _, _ := runtime.Caller(0)\nfilepath.WalkDir(filepath.Dir(file), check)"), []string{tool, deep}, []string{far}},
		"a file system":                    {inTest(`fs.WalkDir(os.DirFS("."), ".", check)`), []string{tool, deep}, []string{far}},
		"the names of the folder":          {inTest(`os.ReadDir("./")`), []string{tool, deep}, []string{far}},
		"a folder with one name":           {inTest(`filepath.WalkDir("deep", check)`), []string{deep}, []string{tool}},
		"another working folder":           {inTest(`t.Chdir("deep")`), []string{deep}, []string{tool}},
		"a pattern of files":               {inTest(`filepath.Glob("*/*/*.go")`), []string{tool, deep}, []string{far}},
		"a pattern of a folder":            {inTest(`filepath.Glob("deep/*/*.go")`), []string{deep}, []string{tool}},
		"parsed packages":                  {inTest(`parser.ParseDir(fset, "deep/er", nil, 0)`), []string{deep}, []string{tool}},
		"loaded packages":                  {inTest(`packages.Load(cfg, "./...")`), all, []string{far}},
		"a dot that is no folder":          {inTest(`strings.Split(name, "."); os.ReadDir(t.TempDir())`), nil, []string{tool, deep}},
		"a dot without a walk":             {inTest(`fmt.Println(".", "/", "a/b", "https://example.com/m/cmd/far")`), nil, []string{tool, deep, far}},
		"a function of a package":          {inTest(`goleak.IgnoreTopFunction("example.com/m/cmd/far.(*Tool).run")`), nil, []string{far, tool}},
		"a file without testing": {memoryTree{"a/a_test.go": "package a\n\nconst tool = \"./cmd/tool\"\n"},
			[]string{tool, lib}, []string{other}},
		"a helper for tests": {inTest(`util.Build(t)`).with(memoryTree{
			"a/a_test.go": "package a\n\nimport \"example.com/m/buildtest\"\n", "buildtest/b.go": "package buildtest\n\nfunc Build() { run(\"./cmd/tool\", \"example.com/m/cmd/far\") }\n"}),
			[]string{tool, lib, far, farlib}, []string{other}},
		"a program that is used": {memoryTree{"a/a_test.go": "package a\n\nimport \"example.com/m/build\"\n",
			"build/b.go": "package build\n\nfunc Build() { run(\"./cmd/tool\", \"example.com/m/cmd/far\") }\n"},
			nil, []string{tool, far}},
	} {
		tree := beneath.with(c.edit)
		base := load(t, tree)
		for _, list := range []struct {
			files []string
			want  bool
		}{{c.reads, true}, {c.leaves, false}} {
			for _, file := range list.files {
				after := load(t, tree.with(memoryTree{file: tree[file] + "\n"}))
				if got := hashOf(t, base, "example.com/m/a [test]") != hashOf(t, after, "example.com/m/a [test]"); got != list.want {
					t.Errorf("%s: %s is an input: %v, want %v", name, file, got, list.want)
				}
			}
		}
		if edited := tree.with(memoryTree{tool: "package main\n", far: "package main\n"}); hashOf(t, base, "example.com/m/a") != hashOf(t, load(t, edited), "example.com/m/a") {
			t.Errorf("%s: the library has another hash", name)
		}
	}
}

// A new file counts for a test that walks its folder, and a package that was not there for one that names it.
func TestWhatComesToStandBelowCounts(t *testing.T) {
	for name, c := range map[string]struct{ body, file string }{
		"a package below":          {`run("./cmd/new")`, "a/cmd/new/main.go"},
		"a package by import path": {`run("example.com/m/cmd/new")`, "cmd/new/main.go"},
		"a package behind a link":  {`run("cmd/new")`, "cmd/new/main.go"},
		"a walk":                   {`filepath.WalkDir(".", check)`, "a/new/n.go"},
	} {
		tree := beneath.with(memoryTree{"a/a_test.go": goText("a", "path/filepath testing", "func TestIt(t *testing.T) { "+c.body+" }")})
		if strings.Contains(name, "link") {
			tree = tree.with(memoryTree{"a/cmd": "mode 120000 ../cmd", "a/cmd/tool/main.go": "", "a/cmd/other/main.go": ""})
		}
		after := tree.with(memoryTree{c.file: "package main\n"})
		if hashOf(t, load(t, tree), "example.com/m/a [test]") == hashOf(t, load(t, after), "example.com/m/a [test]") {
			t.Errorf("%s: the test has the same hash", name)
		}
	}
}

// Of two changes, the one by which a test comes to name packages and the one that changes these conflict.
func TestATestThatComesToNameAPackageConflictsWithItsEdit(t *testing.T) {
	base := load(t, beneath)
	first := targets.Delta(base, load(t, beneath.with(memoryTree{"a/a_test.go": goText("a", "path/filepath testing",
		`func TestIt(t *testing.T) { run("./cmd/tool", "example.com/m/cmd/far", "example.com/n/..."); filepath.WalkDir("deep", check) }`)})))
	for _, file := range []string{"a/cmd/tool/main.go", "lib/lib.go", "a/deep/er/d.go", "a/deep/new.go", "cmd/far/main.go", "farlib/f.go", "n/run/main.go"} {
		second := targets.Delta(base, load(t, beneath.with(memoryTree{file: beneath[file] + "package new\n"})))
		if !first.Footprint().Meets(second.Footprint(), nil).Conflict() {
			t.Errorf("an edit of %s is called independent", file)
		}
	}
}

// A test file with more texts than are kept reads everything, so that no change escapes it, and the graph is whole.
func TestATestWithEndlessTextsReadsEverything(t *testing.T) {
	var texts strings.Builder
	for i := range maxImports + 1 {
		fmt.Fprintf(&texts, "\t\"x/%d\",\n", i)
	}
	tree := beneath.with(memoryTree{"a/a_test.go": "package a\n\nvar texts = []string{\n" + texts.String() + "}\n"})
	base := load(t, tree)
	if reasons := base.Unknown(); len(reasons) > 0 {
		t.Errorf("the graph is incomplete: %v", reasons)
	}
	if hashOf(t, base, "example.com/m/a [test]") == hashOf(t, load(t, tree.with(memoryTree{"farlib/f.go": "package farlib\n\n"})), "example.com/m/a [test]") {
		t.Error("the test does not depend on a package elsewhere")
	}
}
