package gograph

import (
	"slices"
	"testing"

	"landfall.build/engine/targets"
)

// outside has a test in t that names what lies outside of its folder.
var outside = memoryTree{
	"go.mod":                   "module m\n\ngo 1.26\n",
	"t/t.go":                   "package t\n",
	"t/t_test.go":              outsideTest,
	"cfg/cfg.go":               "package cfg\n",
	"cfg/cfg_test.go":          "package cfg\n",
	"cfg/testdata/shared.json": "1\n", "cfg/testdata/unread.json": "1\n",
	"golden/a/b.txt": "1\n", "cases/case-1.txt": "1\n", "many/1.json": "1\n", "script/run.sh": "1\n", "const/c.txt": "1\n",
	"cmd/tool/main.go": "package main\n\nimport _ \"m/lib\"\n", "lib/lib.go": "package lib\n", "gen/gen.go": "package main\n\nimport _ \"m/genlib\"\n", "genlib/g.go": "package genlib\n",
	"cfg/testdata/prog/main.go": "package main\n\nimport _ \"m/hiddenlib\"\n", "hiddenlib/h.go": "package hiddenlib\n",
	"link": "mode 120000 away", "away/f": "1\n",
	"other/other.go": "package other\n", "NOTES": "1\n",
}

const outsideTest = `package t

func TestAll(t *testing.T) {
	os.ReadFile("../cfg/testdata/shared.json")
	os.ReadFile(filepath.Join("..", "golden", name))
	os.ReadFile("../cases/case-" + name + ".txt")
	filepath.Glob(` + "`../many/*.json`" + `)
	exec.Command("sh", "-c", "exec ../script/run.sh")
	exec.Command("go", "run", "../cmd/tool")
	exec.Command("go", "run", "../gen/gen.go")
	exec.Command("go", "run", "../cfg/testdata/prog")
	os.ReadFile("../" + "const/" + "c.txt")
	os.ReadFile("../link/f")
	os.ReadFile("../absent.json")
	os.ReadFile("../absent/deep/x.json")
	os.ReadFile("../../elsewhere")
}
`

func TestWhatATestNamesOutsideOfItsFolderIsAnInput(t *testing.T) {
	const test = "m/t [test]"
	for name, c := range map[string]struct {
		edit memoryTree
		want bool
	}{
		"a file":                              {memoryTree{"cfg/testdata/shared.json": "2\n"}, true},
		"a file beside it":                    {memoryTree{"cfg/testdata/unread.json": "2\n"}, false},
		"a deleted file":                      {memoryTree{"cfg/testdata/shared.json": ""}, true},
		"a file below a joined folder":        {memoryTree{"golden/a/b.txt": "2\n"}, true},
		"a new file below a joined folder":    {memoryTree{"golden/new.txt": "2\n"}, true},
		"a name that is put together":         {memoryTree{"cases/case-1.txt": "2\n"}, true},
		"a text of two":                       {memoryTree{"const/c.txt": "2\n"}, true},
		"a pattern":                           {memoryTree{"many/1.json": "2\n"}, true},
		"a new file of a pattern":             {memoryTree{"many/2.json": "2\n"}, true},
		"a word of a command":                 {memoryTree{"script/run.sh": "2\n"}, true},
		"a program":                           {memoryTree{"cmd/tool/main.go": "package main\n"}, true},
		"what a program imports":              {memoryTree{"lib/lib.go": "package lib\n\n"}, true},
		"what a file of a program imports":    {memoryTree{"genlib/g.go": "package genlib\n\n"}, true},
		"what a program in testdata imports":  {memoryTree{"hiddenlib/h.go": "package hiddenlib\n\n"}, true},
		"what a link leads to":                {memoryTree{"away/f": "2\n"}, true},
		"a link that leads elsewhere":         {memoryTree{"link": "mode 120000 many"}, true},
		"a file that was not there":           {memoryTree{"absent.json": "1\n"}, true},
		"a file in a folder that was not":     {memoryTree{"absent/deep/x.json": "1\n"}, true},
		"a link on the way to one":            {memoryTree{"absent": "mode 120000 many"}, true},
		"another package":                     {memoryTree{"other/other.go": "package other\n\n"}, false},
		"a package that holds what was named": {memoryTree{"cfg/cfg.go": "package cfg\n\n"}, false},
		"a file of the folder above":          {memoryTree{"NOTES": "2\n"}, false},
	} {
		base, edited := load(t, outside), load(t, outside.with(c.edit))
		before, after := hashOf(t, base, test), hashOf(t, edited, test)
		if (before != after) != c.want {
			t.Errorf("%s: affected %v, want %v", name, before != after, c.want)
		}
	}
	if left := loadWith(t, verified, outside).Uncovered(); !slices.Equal(left, []string{"NOTES"}) {
		t.Errorf("no target covers %q", left)
	}
}

func hashOf(t *testing.T, g *targets.Graph, name string) targets.Hash {
	t.Helper()
	target, ok := g.Target(name)
	if !ok {
		t.Fatalf("no target %s", name)
	}
	return target.Hash
}

// Of two changes, the one that makes a test name a path and the one that changes what it leads to conflict.
func TestATestThatComesToNameAPathConflictsWithItsEdit(t *testing.T) {
	base := outside.with(memoryTree{"t/t_test.go": "package t\n"})
	first := targets.Delta(load(t, base), load(t, base.with(memoryTree{"t/t_test.go": outsideTest})))
	for name, edit := range map[string]memoryTree{
		"a file":       {"cfg/testdata/shared.json": "2\n"},
		"a new file":   {"absent/deep/x.json": "1\n"},
		"a folder":     {"golden/new": "1\n"},
		"a program":    {"lib/lib.go": "package lib\n\n"},
		"a new module": {"cmd/go.mod": "module m/other\n"},
		"a link":       {"absent": "mode 120000 away"},
	} {
		second := targets.Delta(load(t, base), load(t, base.with(edit)))
		if !first.Footprint().Meets(second.Footprint(), nil).Conflict() {
			t.Errorf("%s: the changes are called independent", name)
		}
	}
}

// A test that begins at its own place, and goes on in a way that the reader does not understand, depends on the whole repository.
func TestWhatIsCutFromAPlaceIsTheWholeRepository(t *testing.T) {
	const own = "wd, _ := os.Getwd(); _, file, _, _ := runtime.Caller(0); pc, _, _, _ := runtime.Caller(1); _ = re; "
	for code, want := range map[string]bool{
		`exec.Command("go", "env", "GOMOD")`: true, `run(t, "go", "env", "GOWORK")`: true, `sh("git rev-parse --show-toplevel")`: true, `run("git", "ls-files")`: true,
		`exec.Command("go", "list", "all")`: true, `exec.Command("go", "vet", "...")`: true,
		own + `read(strings.Split(wd, "/t")[0])`: true, own + `read(strings.SplitN(file, "/t/", 2)[0])`: true, own + `root, _, _ := strings.Cut(wd, "/t")`: true,
		own + `read(strings.TrimSuffix(wd, "/t"))`: true, own + `read(wd[:strings.LastIndex(wd, "/")])`: true, own + `read(re.FindString(wd))`: true,
		own + `dir, _ := filepath.Split(wd)`: true, own + `s := filepath.ToSlash(wd); read(s[:len(s)-2])`: true,
		own + `read(filepath.Join(wd, "x.txt"))`: false, own + `log(file[strings.LastIndex(file, "/")+1:])`: false, own + `strings.HasSuffix(wd, "t")`: false,
		own + `strings.Split(runtime.FuncForPC(pc).Name(), ".")`: false, own + `strings.ReplaceAll(out, wd, "")`: false, `env("GOWORK=off")`: false,
	} {
		tree := outside.with(memoryTree{"t/t_test.go": "package t\n\nfunc TestAll(t *testing.T) {\n\t" + code + "\n}\n"})
		before, after := hashOf(t, load(t, tree), "m/t [test]"), hashOf(t, load(t, tree.with(memoryTree{"other/other.go": "package other\n\n"})), "m/t [test]")
		if (before != after) != want {
			t.Errorf("%s: another package affects it: %v, want %v", code, before != after, want)
		}
	}
}

// What the code of a program cuts from a place counts where it may read files there, or returns it.
func TestWhatALoggerCutsFromAPlaceIsNoInput(t *testing.T) {
	for code, want := range map[string]bool{
		"func init() { _, file, _, _ := runtime.Caller(0); prefix = strings.TrimSuffix(file, \"lib/lib.go\") }":                                    false,
		"func Root() string { _, file, _, _ := runtime.Caller(0); return strings.TrimSuffix(file, \"lib/lib.go\") }":                               true,
		"import \"os\"\n\nfunc init() { _, file, _, _ := runtime.Caller(0); data, _ = os.ReadFile(strings.TrimSuffix(file, \"lib/lib.go\") + x) }": true,
	} {
		tree := outside.with(memoryTree{"t/t_test.go": "package t\n\nimport _ \"m/lib\"\n", "lib/lib.go": "package lib\n\n" + code + "\n"})
		before, after := hashOf(t, load(t, tree), "m/t [test]"), hashOf(t, load(t, tree.with(memoryTree{"other/other.go": "package other\n\n"})), "m/t [test]")
		if (before != after) != want {
			t.Errorf("%s: another package affects it: %v, want %v", code, before != after, want)
		}
	}
}
