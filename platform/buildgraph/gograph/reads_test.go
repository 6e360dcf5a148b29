package gograph

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// around has a test in a/t, and what it may read around it.
var around = memoryTree{
	"go.mod": "module m\n\ngo 1.26\n", "far.txt": "1\n",
	"a/near.txt": "1\n", "a/sub/below.txt": "1\n", "a/sub/sub.go": "package sub\n", "a/t/t.go": "package t\n",
	"a/util/data/d.txt": "1\n", "a/util/data.go": "package util\n",
	"n/go.mod": "module m/n\n\ngo 1.26\n", "n/in.txt": "1\n", "n/t/t.go": "package t\n",
}

// goText returns a Go file with imports and declarations.
func goText(pkg, imports, declarations string) string {
	text := "package " + pkg + "\n\nimport (\n"
	for _, path := range []string{"fmt", "io/fs", "m/a/util", "m/a/util2", "os", "path/filepath", "runtime", "strings", "testing"} {
		if slices.Contains(strings.Fields(imports), path) {
			text += "\t\"" + path + "\"\n"
		}
	}
	return text + ")\n\n" + declarations + "\n"
}

func TestATestThatReadsWhereItsTextsDoNotSayDependsOnAllThatItCanReach(t *testing.T) {
	const near, below, code, far, data = "a/near.txt", "a/sub/below.txt", "a/sub/sub.go", "far.txt", "a/util/data/d.txt"
	const inner, innerCode = "a/t/in/in.txt", "a/t/in/in.go"
	test := func(body string) memoryTree {
		return memoryTree{"a/t/t_test.go": goText("t", "fmt os path/filepath runtime strings testing", "func TestIt(t *testing.T) {\n"+body+"\n}")}
	}
	program := func(body string) memoryTree {
		return test(body).with(memoryTree{inner: "1\n", innerCode: "package in\n"})
	}
	climb := func(from, mark string) string {
		return "func root() string {\n\tdir := " + from + "\n\tfor {\n\t\tif _, err := os.Stat(filepath.Join(dir, \"" + mark + "\")); err == nil {\n\t\t\treturn dir\n\t\t}\n\t\tdir = filepath.Dir(dir)\n\t}\n}"
	}
	helped := func(imports, helper string, call string) memoryTree {
		return memoryTree{
			"a/util/util.go": goText("util", imports, helper),
			"a/t/t_test.go":  goText("t", "m/a/util testing", "func TestIt(t *testing.T) { "+call+" }"),
		}
	}
	const caller = "\t_, file, _, _ := runtime.Caller(0)\n"
	for name, c := range map[string]struct {
		edit memoryTree
		// reads and leaves are files that the test depends on, and that it does not depend on.
		reads, leaves []string
	}{
		"a name behind ../":                {test(`os.ReadFile("../" + name)`), []string{near, below, code}, []string{far}},
		"a name joined to ..":              {test(`os.ReadFile(filepath.Join("..", name))`), []string{near, below}, []string{far}},
		"a name joined to a folder and ..": {test(`os.ReadFile(filepath.Join(dir, "..", name))`), []string{near}, []string{far}},
		"two folders up":                   {test(`os.ReadFile(filepath.Join(dir, "..", "..", name))`), []string{near, far, code}, nil},
		"a file joined to a folder and ..": {test(`os.ReadFile(filepath.Join(dir, "..", "near.txt"))`), []string{near}, []string{below, far}},
		"a file system":                    {test(`fs.WalkDir(os.DirFS(".."), ".", nil)`), []string{near, below}, []string{far}},
		"another working folder":           {test(`os.Chdir("..")`), []string{near}, []string{far}},
		"a program that goes through it":   {program(`exec.Command("gofmt", "-l", ".")`), []string{inner, innerCode}, []string{near, far}},
		"one that does so by itself":       {program(`exec.CommandContext(ctx, "golangci-lint", "run")`), []string{inner, innerCode}, []string{near, far}},
		"arguments in a list":              {program(`args := []string{"-rn", "TODO", "."}; exec.Command(tool, args...)`), []string{inner, innerCode}, []string{near, far}},
		"a program with a file of its own": {program(`exec.Command("sh", "./run.sh"); strings.Split(name, "."); fmt.Print(".")`), nil, []string{innerCode, near, far}},
		"the go.mod files of a workspace":  {program(`exec.Command("go", "list", "-m")`), []string{near, far, "n/go.mod"}, nil},
		"the working folder in a call":     {program(`lint.Check(".")`), []string{inner, innerCode}, []string{near, far}},
		"a command's folder":               {test(`exec.Cmd{Dir: ".."}`), []string{near}, []string{far}},
		"one of several folders":           {test(`for _, dir := range []string{"..", "."} { os.ReadDir(dir) }`), []string{near}, []string{far}},
		"a command that changes it":        {test(`exec.Command("sh", "-c", "cd .. && cat *")`), []string{near}, []string{far}},
		"a pattern of the folder above":    {test(`filepath.Glob("../*.txt")`), []string{near}, []string{far}},
		"a file behind the working folder": {test(`wd, _ := os.Getwd(); os.ReadFile(wd + "/../near.txt")`), []string{near}, []string{below, far}},
		"a name behind the working folder": {test(`wd, _ := os.Getwd(); os.ReadFile(wd + "/../" + name)`), []string{near, below}, []string{far}},
		"a file in a format":               {test(`os.ReadFile(fmt.Sprintf("%s/../near.txt", wd))`), []string{near}, []string{below, far}},
		"a file of a shell's folder":       {test(`exec.Command("sh", "-c", "cat $PWD/../near.txt")`), []string{near}, []string{below, far}},
		"above the working folder":         {test(`wd, _ := os.Getwd(); os.ReadFile(filepath.Join(filepath.Dir(wd), name))`), []string{near}, []string{far}},
		"above its own file":               {test(caller + `os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(file)), name))`), []string{near}, []string{far}},
		"beside its own file":              {test(caller + `os.ReadFile(filepath.Join(filepath.Dir(file), name))`), nil, []string{near, far}},
		"where the call was":               {test(`_, _, line, _ := runtime.Caller(0); filepath.Dir(name)`), nil, []string{near, far}},
		"the root": {memoryTree{"a/t/t_test.go": goText("t", "os path/filepath testing",
			"func TestIt(t *testing.T) { os.ReadFile(filepath.Join(root(), name)) }\n\n"+climb(`wd()`, "go.mod"))}, []string{near, far, code}, nil},
		"a folder that is asked for": {test(`os.MkdirAll(filepath.Dir(filepath.Join(t.TempDir(), "go.mod")), 0o755)`), nil, []string{near, far}},
		"what is compared alone":     {test(`if name == ".." || strings.HasPrefix(name, "../") || strings.Contains(name, "..") { t.Fatal() }`), nil, []string{near, far}},

		"a helper that names a folder": {helped("os path/filepath", `func Load(name string) { os.ReadFile(filepath.Join("../sub", name)) }`, "util.Load(name)"),
			[]string{below, code}, []string{near, far}},
		"a helper for tests that goes up": {helped("os path/filepath testing", `func Load(t *testing.T, name string) { os.ReadFile(filepath.Join("..", name)) }`, "util.Load(t, name)"),
			[]string{near, below}, []string{far}},
		"a program that goes up": {helped("os path/filepath", `func Load(dir string) { os.ReadFile(filepath.Join(dir, "..")) }`, "util.Load(t.TempDir())"),
			nil, []string{near, far}},
		"a program that looks for a root": {helped("os path/filepath", climb("os.Args[1]", ".git"), "util.Load()"), nil, []string{near, far}},
		"a helper for tests that looks for the root": {helped("os path/filepath testing", "func Load(t *testing.T) { root() }\n\n"+climb("os.Args[1]", "go.work"), "util.Load(t)"),
			[]string{near, far, "n/in.txt"}, nil},
		"a helper that reads beside its file": {helped("path/filepath runtime", "func Load(name string) {\n"+caller+"\tos.ReadFile(filepath.Join(filepath.Dir(file), \"data\", name)) }", "util.Load(name)"),
			[]string{data}, []string{near, far}},
		"a helper that reads beside its file what the test names": {helped("path/filepath runtime", "func Load(name string) {\n"+caller+"\tos.ReadFile(filepath.Join(filepath.Dir(file), name)) }", `util.Load("../near.txt")`),
			[]string{near, data}, []string{below, far}},
		"a helper that reads above its file": {helped("path/filepath runtime", "func Load(name string) {\n"+caller+"\tdir := filepath.Dir(file)\n\tos.ReadFile(filepath.Join(filepath.Dir(dir), name)) }", "util.Load(name)"),
			[]string{near, code}, []string{far}},
		"a helper that names what is above its file": {helped("path/filepath runtime", "func Load(name string) {\n"+caller+"\tos.ReadFile(filepath.Join(filepath.Dir(file), \"../..\", name)) }", "util.Load(name)"),
			[]string{near, far}, nil},
		"a helper with its place in a variable": {helped("path/filepath runtime", "var _, here, _, _ = runtime.Caller(0)\n\nvar root = filepath.Dir(filepath.Dir(filepath.Dir(here)))\n\nfunc Load(name string) {}", "util.Load(name)"),
			[]string{near, far}, nil},
		"a helper that looks for the root from its file": {helped("os path/filepath runtime", "func Load() { root() }\n\nfunc here() string {\n"+caller+"\treturn file\n}\n\n"+climb("here()", "go.mod"), "util.Load()"),
			[]string{near, far, "n/in.txt"}, nil},
		"a helper of a helper": {memoryTree{
			"a/util/util.go":   goText("util", "m/a/util2", "func Load(name string) { util2.Load(name) }"),
			"a/util2/util2.go": goText("util2", "os path/filepath", `func Load(name string) { os.ReadFile("../sub/" + name) }`),
			"a/t/t_test.go":    goText("t", "m/a/util testing", "func TestIt(t *testing.T) { util.Load(name) }"),
		}, []string{below}, []string{near, far}},
		"the package itself": {memoryTree{
			"a/t/more.go":   goText("t", "os", `func Load(name string) { os.ReadFile("../sub/" + name) }`),
			"a/t/t_test.go": goText("t", "testing", "func TestIt(t *testing.T) { Load(name) }"),
		}, []string{below}, []string{near, far}},
	} {
		tree := around.with(c.edit)
		base := load(t, tree)
		for _, list := range []struct {
			files []string
			want  bool
		}{{c.reads, true}, {c.leaves, false}} {
			for _, file := range list.files {
				after := load(t, tree.with(memoryTree{file: tree[file] + "\n"}))
				if got := hashOf(t, base, "m/a/t [test]") != hashOf(t, after, "m/a/t [test]"); got != list.want {
					t.Errorf("%s: %s is an input: %v, want %v", name, file, got, list.want)
				}
			}
		}
		if library := "m/a/t"; hashOf(t, base, library) != hashOf(t, load(t, tree.with(memoryTree{near: "2\n", far: "2\n", data: "2\n"})), library) {
			t.Errorf("%s: the library has another hash", name)
		}
	}
}

// TestATestThatStartsGoDependsOnAllThatGoReadsThere: go generate runs what comments of any file say, go tool what a go.mod does, and go
// test and go vet need what the tests import of the packages that they are given.
func TestATestThatStartsGoDependsOnAllThatGoReadsThere(t *testing.T) {
	tree := memoryTree{
		"go.mod": "module m\n\ngo 1.26\n\ntool m/gen\n", "gen/gen.go": "package main\n\nimport _ \"m/core\"\n", "core/core.go": "package core\n",
		"svc/a/a.go": "package a\n\n//go:generate go run ../../gen\n", "svc/a/a_test.go": "package a\n\nimport _ \"m/help\"\n", "help/help.go": "package help\n",
		"far.txt": "1\n", "in/testdata/fix/fix_test.go": "package fix\n\nimport _ \"m/help\"\n", "helper/helper.go": "package helper\n",
	}
	generates := []string{"gen/gen.go", "core/core.go", "far.txt"}
	for name, c := range map[string]struct {
		folder, body  string
		reads, leaves []string
	}{
		"go generate":                   {"svc/a", `exec.Command("go", "generate", "./...")`, generates, nil},
		"with arguments in a list":      {"svc/a", `args := []string{"generate", "-x", "./..."}; exec.Command("go", args...)`, generates, nil},
		"in a shell":                    {"svc/a", `exec.Command("sh", "-c", "cd . && go generate ./...")`, generates, nil},
		"in another folder":             {"svc/a", `exec.Command("go", "-C", "../b", "generate", "./...")`, generates, nil},
		"in one that is not known":      {"svc/a", `exec.Command("go", "-C", t.TempDir(), "generate", "./...")`, generates, nil},
		"a tool with such an argument":  {"svc/a", `exec.Command("go", "tool", "gen", "link")`, generates, nil},
		"by a helper":                   {"svc/a", `run(t, "go", "generate")`, generates, nil},
		"as a text":                     {"svc/a", `run(t, "go generate ./...")`, generates, nil},
		"what a message says":           {"svc/a", `t.Fatal("go generate ./... makes it anew"); t.Logf("run go generate"); name := "generate"`, nil, generates},
		"a tool of the module":          {"e", `exec.Command("go", "tool", "gen")`, generates, nil},
		"a tool that is not known":      {"e", `exec.Command("go", "tool", name)`, generates, nil},
		"of which only more is known":   {"e", `exec.Command("go", "tool", name, "vet")`, generates, nil},
		"and in a list":                 {"e", `args := []string{"go", "tool", name, "vet"}; exec.Command(args[0], args[1:]...)`, generates, nil},
		"and by a helper":               {"e", `run(t, "go", "tool", name, "vet")`, generates, nil},
		"vet after what is not known":   {"e", `run(t, "go", flag, "vet", "../svc/...")`, []string{"svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"a tool of go's":                {"e", `exec.Command("go", "tool", "nm", file)`, nil, generates},
		"go test elsewhere":             {"e", `cmd := exec.Command("go", "test", "./..."); cmd.Dir = "../svc"`, []string{"svc/a/a.go", "svc/a/a_test.go", "help/help.go"}, []string{"far.txt", "gen/gen.go"}},
		"go test of a package":          {"e", `exec.Command("go", "test", "m/svc/a")`, []string{"svc/a/a.go", "svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"go test of a pattern":          {"e", `exec.Command("go", "test", "m/svc/...")`, []string{"svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"go vet in a shell":             {"e", `exec.Command("sh", "-c", "go vet ../svc/...")`, []string{"svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"go list -test by a helper":     {"e", `run("go", "list", "-deps", "-test", "../svc/a")`, []string{"svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"a linter":                      {"e", `exec.Command("golangci-lint", "run", "../svc/...")`, []string{"svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"go test below":                 {"svc", `exec.Command("go", "test", "./...")`, []string{"svc/a/a_test.go", "help/help.go"}, []string{"far.txt"}},
		"go test of what is data":       {"in", `exec.Command("go", "test", "./testdata/fix")`, []string{"in/testdata/fix/fix_test.go", "help/help.go"}, []string{"far.txt"}},
		"go build, which needs no test": {"e", `exec.Command("go", "build", "../svc/...")`, []string{"svc/a/a.go"}, []string{"help/help.go", "far.txt"}},
	} {
		tree := tree.with(memoryTree{c.folder + "/z_test.go": "package z\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) {\n" + c.body + "\n}\n"})
		target, base := "m/"+c.folder+" [test]", load(t, tree)
		for _, list := range []struct {
			files []string
			want  bool
		}{{c.reads, true}, {c.leaves, false}} {
			for _, file := range list.files {
				after := load(t, tree.with(memoryTree{file: tree[file] + "\n// 2\n"}))
				if got := hashOf(t, base, target) != hashOf(t, after, target); got != list.want {
					t.Errorf("%s: %s is an input: %v, want %v", name, file, got, list.want)
				}
			}
		}
	}
}

// TestATestThatRunsTheTestsOfAFolderConflictsWithANewOneThere, and with a new import of one, and so does what comes to run it by a helper.
func TestATestThatRunsTheTestsOfAFolderConflictsWithANewOneThere(t *testing.T) {
	tree := memoryTree{
		"go.mod": "module m\n\ngo 1.26\n", "svc/a/a.go": "package a\n", "svc/b/b.go": "package b\n", "svc/b/b_test.go": "package b\n", "help/help.go": "package help\n",
		"run/run.go":  "package run\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc Tests(t *testing.T, dir string) { exec.Command(\"go\", \"test\", dir) }\n",
		"e/e_test.go": "package e\n",
	}
	base := load(t, tree)
	for name, first := range map[string]string{
		"itself":      "package e\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) { exec.Command(\"go\", \"test\", \"../svc/...\") }\n",
		"by its path": "package e\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) { exec.Command(\"go\", \"test\", \"m/svc/a\", \"m/svc/b\") }\n",
		"by a helper": "package e\n\nimport (\n\t\"testing\"\n\n\t\"m/run\"\n)\n\nfunc TestIt(t *testing.T) { run.Tests(t, \"../svc/a\"); run.Tests(t, \"../svc/b\") }\n",
	} {
		one := targets.Delta(base, load(t, tree.with(memoryTree{"e/e_test.go": first})))
		for what, edit := range map[string]memoryTree{
			"a new test":   {"svc/a/a_test.go": "package a\n"},
			"a new import": {"svc/b/b_test.go": "package b\n\nimport _ \"m/help\"\n"},
		} {
			if two := targets.Delta(base, load(t, tree.with(edit))); !one.Footprint().Meets(two.Footprint(), nil).Conflict() {
				t.Errorf("%s, and %s: the changes are called independent", name, what)
			}
		}
	}
	imports := tree.with(memoryTree{"svc/b/b_test.go": "package b\n\nimport _ \"m/help\"\n"})
	helped := targets.Delta(load(t, imports), load(t, imports.with(memoryTree{"help/help.go": "package help\n\n"})))
	for _, body := range []string{`exec.Command("go", "test", "../svc/b")`, `exec.Command("go", "test", "m/svc/b")`} {
		comes := imports.with(memoryTree{"e/e_test.go": "package e\n\nimport (\n\t\"os/exec\"\n\t\"testing\"\n)\n\nfunc TestIt(t *testing.T) { " + body + " }\n"})
		if one := targets.Delta(load(t, imports), load(t, comes)); !one.Footprint().Meets(helped.Footprint(), nil).Conflict() {
			t.Errorf("%s, and what that test imports: the changes are called independent", body)
		}
	}
}

// The root that a helper looks for is that of the module whose file asks for it.
func TestTheRootOfAModuleIsNotThatOfTheRepository(t *testing.T) {
	tree := around.with(memoryTree{"n/t/t_test.go": goText("t", "os path/filepath testing",
		"func TestIt(t *testing.T) {\n\tdir, _ := os.Getwd()\n\tfor !exists(filepath.Join(dir, \"go.mod\")) {\n\t\tdir = filepath.Dir(dir)\n\t}\n}")})
	base := load(t, tree)
	for file, want := range map[string]bool{"n/in.txt": true, "far.txt": false} {
		after := load(t, tree.with(memoryTree{file: "2\n"}))
		if got := hashOf(t, base, "m/n/t [test]") != hashOf(t, after, "m/n/t [test]"); got != want {
			t.Errorf("%s is an input: %v, want %v", file, got, want)
		}
	}
}

// Of two changes, the one by which a test comes to read through a helper and the one that changes what is read conflict.
func TestATestThatComesToReadThroughAHelperConflictsWithAnEdit(t *testing.T) {
	const helper = "os path/filepath runtime testing"
	reads := goText("util", helper, "func Load(t *testing.T, name string) {\n\t_, file, _, _ := runtime.Caller(0)\n\tos.ReadFile(filepath.Join(filepath.Dir(file), name))\n\tos.ReadFile(\"../sub/\" + name)\n\tos.ReadFile(\"../absent.txt\")\n}")
	uses := goText("t", "m/a/util testing", "func TestIt(t *testing.T) { util.Load(t, name) }")
	silent := goText("util", helper, "func Load(t *testing.T, name string) {}")
	for name, c := range map[string]struct{ base, first memoryTree }{
		"the helper": {memoryTree{"a/util/util.go": silent, "a/t/t_test.go": uses}, memoryTree{"a/util/util.go": reads}},
		"the test":   {memoryTree{"a/util/util.go": reads, "a/t/t_test.go": goText("t", "testing", "")}, memoryTree{"a/t/t_test.go": uses}},
	} {
		tree := around.with(c.base)
		base := load(t, tree)
		first := targets.Delta(base, load(t, tree.with(c.first)))
		for what, edit := range map[string]memoryTree{
			"a file":              {"a/sub/below.txt": "2\n"},
			"a new file":          {"a/sub/new.txt": "2\n"},
			"code":                {"a/sub/sub.go": "package sub\n\n"},
			"a file that was not": {"a/absent.txt": "1\n"},
			"data of the helper":  {"a/util/data/d.txt": "2\n"},
		} {
			second := targets.Delta(base, load(t, tree.with(edit)))
			if !first.Footprint().Meets(second.Footprint(), nil).Conflict() {
				t.Errorf("%s comes to read, and %s changes: the changes are called independent", name, what)
			}
		}
	}
}
