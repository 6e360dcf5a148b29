package gograph

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// sample is a repository of two modules, each built by itself: tools uses the
// root's packages by a replace directive.
var sample = memoryTree{
	"go.mod": `module example.com/m

go 1.26.0

require (
	example.org/x v1.2.0
	example.org/y v1.0.0
	example.org/z v1.0.0 // indirect
)
`,
	"go.sum":               "example.org/x v1.2.0 h1:x\nexample.org/x v1.2.0/go.mod h1:xm\nexample.org/y v1.0.0 h1:y\n",
	"README.md":            "readme\n",
	"a/a.go":               "package a\n\nimport (\n\t\"fmt\"\n\t\"example.com/m/b\"\n\t\"example.org/x/sub\"\n)\n",
	"a/a_windows.go":       "package a\n\nimport _ \"example.com/m/win\"\n",
	"a/a_test.go":          "package a_test\n\nimport _ \"example.com/m/c\"\n",
	"a/testdata/in.txt":    "1\n",
	"a/testdata/deep/x.go": "package deep\n",
	"a/notes.txt":          "notes\n",
	"b/b.go":               "package b\n\nimport _ \"embed\"\n\n//go:embed files/*.sql\nvar sql string\n\n//go:embed \"VERSION\"\nvar version string\n",
	"b/VERSION":            "1\n",
	"b/files/one.sql":      "1\n",
	"b/files/readme.md":    "1\n",
	"c/c.go":               "package c\n\n// #cgo CFLAGS: -I${SRCDIR}/../native/include\n// #include \"c.h\"\nimport \"C\"\n",
	"c/lib/deep.h":         "1\n",
	"c/asm_amd64.s":        "TEXT\n",
	"native/include/c.h":   "1\n",
	"win/win.go":           "package win\n",
	"onlytest/x_test.go":   "package onlytest\n\nimport _ \"example.org/y\"\n",
	"gen/gen.go":           "//go:build ignore\n\npackage main\n\nimport _ \"example.com/m/win\"\n",
	"tools/go.mod": `module example.com/m/tools

go 1.26.0

require (
	example.com/m v0.0.0
	example.org/x v1.2.0
)

replace example.com/m => ../
`,
	"tools/go.sum":      "example.org/x v1.2.0 h1:x\n",
	"tools/cmd/main.go": "package main\n\nimport _ \"example.com/m/a\"\n",
	"tools/free/f.go":   "package free\n",
}

const (
	everyA     = "example.com/m/a, example.com/m/a [test], example.com/m/tools/cmd"
	everyRoot  = "example.com/m [module], example.com/m/a, example.com/m/a [test], example.com/m/b, example.com/m/c, example.com/m/gen, example.com/m/onlytest [test], example.com/m/win"
	everyTools = "example.com/m/tools [module], example.com/m/tools/cmd, example.com/m/tools/free"
)

// inOrder sorts names, those of deleted targets last, as delta gives them.
func inOrder(names string) string {
	list := strings.Split(names, ", ")
	slices.SortFunc(list, func(x, y string) int {
		return cmp.Or(cmp.Compare(strings.Count(x[:min(len(x), 1)], "-"), strings.Count(y[:min(len(y), 1)], "-")), strings.Compare(x, y))
	})
	return strings.Join(list, ", ")
}

// edited replaces a text within a file of the sample.
func edited(t *testing.T, tree memoryTree, file, old, new string) memoryTree {
	t.Helper()
	if !strings.Contains(tree[file], old) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	return memoryTree{file: strings.Replace(tree[file], old, new, 1)}
}

func TestAVersionChangesExactlyWithWhatItCovers(t *testing.T) {
	goMod := func(old, new string) memoryTree { return edited(t, sample, "go.mod", old, new) }
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a source":                             {memoryTree{"a/a.go": sample["a/a.go"] + "\n"}, everyA},
		"a source's mode":                      {memoryTree{"a/a.go": "mode 100755 " + sample["a/a.go"]}, everyA},
		"a source of another platform":         {memoryTree{"win/win.go": "package win\n\n"}, everyA + ", example.com/m/gen, example.com/m/win"},
		"a new source":                         {memoryTree{"win/x_plan9.go": "package win\n"}, everyA + ", example.com/m/gen, example.com/m/win"},
		"a deleted source":                     {memoryTree{"a/a_windows.go": ""}, everyA},
		"a deleted package":                    {memoryTree{"b/b.go": ""}, everyA + ", -example.com/m/b"},
		"a test":                               {memoryTree{"a/a_test.go": "package a\n"}, "example.com/m/a [test]"},
		"a new test":                           {memoryTree{"b/b_test.go": "package b\n"}, "example.com/m/b [test]"},
		"test data":                            {memoryTree{"a/testdata/in.txt": "2\n"}, "example.com/m/a [test]"},
		"Go files among test data":             {memoryTree{"a/testdata/deep/x.go": "package other\n"}, "example.com/m/a [test]"},
		"new test data, deep":                  {memoryTree{"a/testdata/new/deep/y": "2\n"}, "example.com/m/a [test]"},
		"another file below a test":            {memoryTree{"a/notes.txt": "other\n"}, "example.com/m/a [test]"},
		"a file that nothing has":              {memoryTree{"README.md": "other\n"}, ""},
		"a new file that nothing has":          {memoryTree{"docs/new.md": "new\n"}, ""},
		"a module for test data of the root":   {memoryTree{"root_test.go": "package m\n"}, "example.com/m [test]"},
		"an embedded file":                     {memoryTree{"b/files/one.sql": "2\n"}, everyA + ", example.com/m/b"},
		"a file named by a pattern":            {memoryTree{"b/VERSION": "2\n"}, everyA + ", example.com/m/b"},
		"a new embedded file":                  {memoryTree{"b/files/two.sql": "2\n"}, everyA + ", example.com/m/b"},
		"a deleted embedded file":              {memoryTree{"b/files/one.sql": ""}, everyA + ", example.com/m/b"},
		"a file beside embedded ones":          {memoryTree{"b/files/readme.md": "2\n"}, ""},
		"assembly":                             {memoryTree{"c/asm_amd64.s": "2\n"}, "example.com/m/a [test], example.com/m/c"},
		"a header below a cgo package":         {memoryTree{"c/lib/deep.h": "2\n"}, "example.com/m/a [test], example.com/m/c"},
		"a header that a cgo flag reaches":     {memoryTree{"native/include/c.h": "2\n"}, "example.com/m/a [test], example.com/m/c"},
		"a new header that a cgo flag reaches": {memoryTree{"native/include/d.h": "2\n"}, "example.com/m/a [test], example.com/m/c"},
		"a name that go passes by":             {memoryTree{"b/_old.go": "package b\n", "b/.x.go": "package b\n"}, ""},
		"a name that go refuses":               {memoryTree{"b b/x.go": "package b\n", "b\xff/x.go": "package b\n", "b\n\"/x.go": "package b\n"}, ""},
		"the go line":                          {goMod("go 1.26.0", "go 1.25.0"), everyRoot + ", example.com/m/tools [module], example.com/m/tools/cmd"},
		"a go line that a dependant lacks":     {goMod("go 1.26.0", "go 1.26.1"), everyRoot + ", " + everyTools},
		"a toolchain line":                     {goMod("go 1.26.0", "go 1.26.0\n\ntoolchain go1.26.3"), everyRoot + ", example.com/m/tools [module], example.com/m/tools/cmd"},
		"a debug setting":                      {goMod("go 1.26.0", "go 1.26.0\n\ngodebug asynctimerchan=1"), everyRoot + ", example.com/m/tools [module], example.com/m/tools/cmd"},
		"a comment in go.mod":                  {goMod("go 1.26.0", "// comment\ngo 1.26.0"), "example.com/m [module]"},
		// Which external modules reach which is not known here, so one stands for all.
		"a version": {goMod("x v1.2.0", "x v1.1.0"), "example.com/m [module], " + everyA[:len(everyA)-len(", example.com/m/tools/cmd")] +
			", example.com/m/onlytest [test], example.com/m/tools [module], example.com/m/tools/cmd"},
		"a sum":                              {memoryTree{"tools/go.sum": "example.org/x v1.2.0 h1:other\n"}, "example.com/m/tools [module], example.com/m/tools/cmd"},
		"a module of the repository":         {edited(t, sample, "tools/go.mod", "go 1.26.0", "go 1.25.0"), everyTools},
		"a version that one module lists":    {edited(t, sample, "tools/go.mod", "x v1.2.0", "x v1.3.0"), "example.com/m/tools [module], example.com/m/tools/cmd"},
		"a nested module takes a package":    {memoryTree{"b/go.mod": "module example.com/m/b\n\ngo 1.26.0\n"}, everyA + ", example.com/m/b, example.com/m/b [module]"},
		"a nested module of another name":    {memoryTree{"b/go.mod": "module example.com/other\n"}, everyA + ", example.com/other, example.com/other [module], -example.com/m/b"},
		"a workspace":                        {memoryTree{"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./tools\n)\n"}, everyRoot + ", " + everyTools},
		"a workspace of one":                 {memoryTree{"go.work": "go 1.26.0\n\nuse ./tools\n"}, everyRoot + ", " + everyTools},
		"a vendor folder":                    {memoryTree{"vendor/modules.txt": "# example.org/x v1.2.0\n"}, everyRoot + ", example.com/m/tools/cmd"},
		"what a module requires and lacks":   {goMod("z v1.0.0 // indirect", "z v1.0.0 // indirect\n\texample.com/m/b/deep v1.0.0"), "example.com/m [module], example.com/m/a, example.com/m/a [test], example.com/m/gen, example.com/m/onlytest [test], example.com/m/tools [module], example.com/m/tools/cmd"},
		"a requirement that rivals the repo": {goMod("z v1.0.0 // indirect", "z v1.0.0\n\texample.com/m/b v1.0.0"), "example.com/m [module], example.com/m/a, example.com/m/a [test], example.com/m/gen, example.com/m/onlytest [test], example.com/m/tools [module], example.com/m/tools/cmd"},
	} {
		if got := delta(t, sample, sample.with(c.edit)); got != inOrder(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, inOrder(c.want))
		}
	}
}

func TestTargetsAreNamedByImportPathAndKind(t *testing.T) {
	graph := loadWith(t, Options{
		Env: []string{"GOFLAGS=-mod=mod"},
		Commands: Commands{
			Library: []Template{{Name: "build", Argv: []string{"go", "build", "{dir}"}}},
			Test:    []Template{{Name: "test", Argv: []string{"go", "test", "-run", "{import}", "{dir}"}, Dir: "{module}", Timeout: 7}},
			Module:  []Template{{Name: "mod", Argv: []string{"go", "mod", "verify"}}},
		},
	}, sample)
	var got []string
	for target := range graph.Targets() {
		line := target.Name + ": " + target.Kind
		for _, c := range target.Commands {
			line += " (" + c.Dir + ") " + strings.Join(c.Argv, " ")
		}
		got = append(got, line)
	}
	want := `example.com/m [module]: module () go mod verify
example.com/m/a: library () go build ./a
example.com/m/a [test]: test () go test -run example.com/m/a ./a
example.com/m/b: library () go build ./b
example.com/m/c: library () go build ./c
example.com/m/gen: library
example.com/m/onlytest [test]: test () go test -run example.com/m/onlytest ./onlytest
example.com/m/tools [module]: module (tools) go mod verify
example.com/m/tools/cmd: library (tools) go build ./cmd
example.com/m/tools/free: library (tools) go build ./free
example.com/m/win: library () go build ./win`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestAPackageWithoutTestsIsVerifiedInAnotherWay checks that its hash is another than with tests: what passed with them was not vetted by its
// own command.
func TestAPackageWithoutTestsIsVerifiedInAnotherWay(t *testing.T) {
	commands := Commands{Library: []Template{{Name: "build", Argv: []string{"go", "build"}}}, Untested: []Template{{Name: "vet", Argv: []string{"go", "test"}}}}
	tree := memoryTree{"go.mod": "module m\n", "a/a.go": "package a\n", "b/b.go": "package b\n\nimport _ \"m/a\"\n"}
	base := loadWith(t, Options{Commands: commands}, tree)
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"without tests":                 {nil, "vet"},
		"with tests":                    {memoryTree{"a/a_test.go": "package a\n"}, "build"},
		"with tests from outside":       {memoryTree{"a/a_test.go": "package a_test\n"}, "build"},
		"a program without tests":       {memoryTree{"a/a.go": "package main\n"}, "build vet"},
		"with tests of another system":  {memoryTree{"a/a_windows_test.go": "package a\n"}, "build"},
		"with tests of another package": {memoryTree{"b/b_test.go": "package b\n"}, "vet"},
	} {
		graph := loadWith(t, Options{Commands: commands}, tree.with(c.edit))
		target, _ := graph.Target("m/a")
		var got []string
		for _, command := range target.Commands {
			got = append(got, command.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: m/a is verified by %v, want %s", name, got, c.want)
		}
		if same := hashOf(t, base, "m/a") == hashOf(t, graph, "m/a"); same != (c.want == "vet") {
			t.Errorf("%s: m/a has the hash of a package without tests: %v", name, same)
		}
	}
}

func TestOnlyPackagesThatThePlatformHasAreBuilt(t *testing.T) {
	commands := Commands{Library: []Template{{Name: "build", Argv: []string{"go", "build"}}}}
	tree := memoryTree{
		"go.mod": "module m.example\n", "a/a_windows.go": "package a\n", "b/b.go": "//go:build arm64 || special\n\npackage b\n",
		"c/c.go": "package c\n\nimport \"C\"\n", "d/d.go": "// +build !linux\n\npackage d\n", "e/e_windows_arm64.go": "package e\n", "f/f_amd64.go": "package f\n",
		"g/linux.go": "package g\n", "h/h.go": "//go:build unix && go1.25\n\npackage h\n", "i/x_linux_extra.go": "package i\n",
	}
	for env, want := range map[string]string{
		"":                            "c f g h i",
		"GOOS=windows":                "a c d f g i",
		"GOOS=windows GOARCH=arm64":   "a b c d e g i",
		"CGO_ENABLED=0":               "f g h i",
		"GOFLAGS=-tags=other,special": "b c f g h i",
	} {
		graph := loadWith(t, Options{Env: strings.Fields(env), Commands: commands}, tree)
		var got []string
		for target := range graph.Targets() {
			if len(target.Commands) > 0 {
				got = append(got, strings.TrimPrefix(target.Name, "m.example/"))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v are built, want %s", env, got, want)
		}
	}
}

func TestConfigurationIsPartOfEveryVersion(t *testing.T) {
	all := everyRoot + ", " + everyTools
	base := loadWith(t, Options{}, sample)
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"a flag":         {Options{Env: []string{"GOFLAGS=-race"}}, all},
		"a toolchain":    {Options{Toolchain: "go1.26.1"}, all},
		"a global input": {Options{Inputs: []Input{{Files: []string{"README.md"}}}}, all},
		"a local input":  {Options{Inputs: []Input{{Folders: []string{"tools/**"}, Files: []string{"docs/*"}}}}, everyTools},
		"a command":      {Options{Commands: Commands{Test: []Template{{Name: "t", Argv: []string{"t"}}}}}, "example.com/m/a [test], example.com/m/onlytest [test]"},
	} {
		var names []string
		for _, v := range targets.Delta(base, loadWith(t, c.o, sample)).Affected {
			names = append(names, v.Name)
		}
		if got := strings.Join(names, ", "); got != inOrder(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, inOrder(c.want))
		}
	}
	o := Options{Inputs: []Input{{Files: []string{"scripts/**/*.sh"}}, {Folders: []string{"tools/**"}, Files: []string{"README.md", "docs"}}}}
	for path, want := range map[string]string{"README.md": everyTools, "docs/x": everyTools, "scripts/a/b.sh": all, "scripts/c.sh": all, "other/c.sh": ""} {
		if got := deltaWith(t, o, sample, sample.with(memoryTree{path: "new\n"})); got != inOrder(want) {
			t.Errorf("an edit of %s:\n got %s\nwant %s", path, got, want)
		}
	}
}
