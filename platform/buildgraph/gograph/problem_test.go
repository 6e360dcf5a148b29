package gograph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

func TestBrokenModuleFilesAreNamedWithTheirLines(t *testing.T) {
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a go.mod":                {memoryTree{"go.mod": "module example.com/m\n\nrequire x y z\n"}, "go.mod:3: "},
		"a nested go.mod":         {memoryTree{"tools/go.mod": "modul x\n"}, "tools/go.mod:1: "},
		"no module line":          {memoryTree{"go.mod": "go 1.26\n"}, "go.mod:1: there is no module line"},
		"a module of no name":     {memoryTree{"go.mod": "module \"file: x\"\n"}, "go.mod:1: malformed import path"},
		"a block without an end":  {memoryTree{"go.mod": "module m\n\nrequire (\n\tx v1.0.0\n"}, "go.mod:4: syntax error (unterminated block started at 3:1)"},
		"a go.work":               {memoryTree{"go.work": "use (\n"}, "go.work:"},
		"a go.mod that is a loop": {memoryTree{"go.mod": "mode 120000 go.mod"}, ""},
		"a huge go.mod":           {memoryTree{"go.mod": "module m\n" + strings.Repeat("// x\n", 1<<20)}, "go.mod:1: too large"},
		"a conflict marker":       {memoryTree{"go.mod": "<<<<<<< ours\nmodule m\n"}, "go.mod:1: "},
	} {
		_, err := newLoader(t, Options{}).Load(t.Context(), "", sample.with(c.edit))
		var invalid *Invalid
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want == "":
		case !errors.As(err, &invalid) || !strings.HasPrefix(invalid.Problems[0], c.want):
			t.Errorf("%s: %v, want *Invalid with %q", name, err, c.want)
		}
	}
	ignoring := Options{IgnoreFolders: []string{"tools"}}
	graph := loadWith(t, ignoring, sample.with(memoryTree{"tools/go.mod": "modul x\n"}))
	if _, ok := graph.Target("example.com/m/tools/cmd"); ok || len(graph.Unknown()) > 0 {
		t.Error("an ignored folder has targets, or spoils the graph")
	}
	for _, fixture := range []string{"a/testdata/bad/go.mod", "vendor/x/go.mod"} {
		load(t, sample.with(memoryTree{fixture: "modul x\n"}))
	}
}

func TestATreeWithoutAModuleIsLeftToOthers(t *testing.T) {
	for _, tree := range []memoryTree{{}, {"a.go": "package a\n"}, {"testdata/go.mod": "module m\n"}} {
		_, err := newLoader(t, Options{}).Load(t.Context(), "", tree)
		if _, fixture := tree["testdata/go.mod"]; !errors.Is(err, ErrNoModule) && !fixture {
			t.Errorf("%v: %v", tree, err)
		}
	}
}

func TestAFileThatDoesNotParseIsASourceAllTheSame(t *testing.T) {
	broken := "package b\n\nimport (\n\t_ \"example.com/m/win\"\n\t\"unclosed\n"
	for _, content := range []string{broken, "\x00\xff", "<<<<<<< ours\n", "import \"x\"", "package b; import \"C\"; import \"\\u0000\"", strings.Repeat("(", 100_000)} {
		if got := delta(t, sample, sample.with(memoryTree{"b/b.go": content})); got != inOrder(everyA+", example.com/m/b") {
			t.Errorf("%.20q: affects %s", content, got)
		}
	}
	graph := load(t, sample.with(memoryTree{"b/b.go": broken}))
	if !dependsOn(graph, "example.com/m/b", "example.com/m/win") || len(graph.Unknown()) > 0 {
		t.Error("what stands before the mistake is lost, or the mistake spoils the graph")
	}
}

func TestAHugeFileMakesTheGraphIncomplete(t *testing.T) {
	huge := sample.with(memoryTree{"b/huge.go": "package b\n" + strings.Repeat("/", maxGoBytes)})
	graph := load(t, huge)
	if reasons := graph.Unknown(); len(reasons) != 1 || !strings.Contains(reasons[0], "b/huge.go") {
		t.Errorf("reasons %q", reasons)
	}
	if got := delta(t, sample, huge); got != "all" {
		t.Errorf("affects %s, want all", got)
	}
	var many strings.Builder
	many.WriteString("package b\n")
	for i := range maxImports + 1 {
		fmt.Fprintf(&many, "import _ \"x/%d\"\n", i)
	}
	if got := delta(t, sample, sample.with(memoryTree{"b/many.go": many.String()})); got != "all" {
		t.Errorf("too many imports affect %s, want all", got)
	}
	if got := delta(t, sample, sample.with(memoryTree{"docs/huge.bin": strings.Repeat("/", maxGoBytes+1)})); got != "" {
		t.Errorf("a huge file that is not Go affects %s", got)
	}
}

func TestSymbolicLinksCountWithWhatTheyLeadTo(t *testing.T) {
	linked := sample.with(memoryTree{
		"b/linked.go": "mode 120000 ../shared/real.go", "shared/real.go": "package b\n\nimport _ \"example.com/m/win\"\n",
		"a/testdata/link": "mode 120000 ../../shared", "through": "mode 120000 c", "win/through.go": "mode 120000 ../through/c.go",
	})
	graph := load(t, linked)
	for from, to := range map[string]string{"example.com/m/b": "example.com/m/win", "example.com/m/win": "file:c/c.go", "def:data of a/testdata/...": "file:shared/real.go"} {
		if !dependsOn(graph, from, to) {
			t.Errorf("%s does not depend on %s but on %v", from, to, graph.Dependencies(from))
		}
	}
	got := delta(t, linked, linked.with(memoryTree{"shared/real.go": "package b\n"}))
	if got != inOrder(everyA+", example.com/m/b, example.com/m/shared") {
		t.Errorf("an edit of what links lead to affects %s", got)
	}
	if got := delta(t, linked, linked.with(memoryTree{"shared/new": "x\n"})); got != "example.com/m/a [test]" {
		t.Errorf("a new file below a linked folder affects %s", got)
	}
	loops := linked.with(memoryTree{
		"b/self.go": "mode 120000 self.go", "b/x.go": "mode 120000 y.go", "b/y.go": "mode 120000 x.go", "b/out.go": "mode 120000 ../../outside.go",
		"b/abs.go": "mode 120000 /etc/passwd", "b/none.go": "mode 120000 nowhere", "b/up.go": "mode 120000 .", "a/testdata/up": "mode 120000 ..", "a/testdata/root": "mode 120000 ../..",
	})
	if graph := load(t, loops); len(graph.Unknown()) > 0 {
		t.Errorf("links that lead nowhere spoil the graph: %q", graph.Unknown())
	}
	if got := delta(t, loops, loops.with(memoryTree{"b/nowhere": "package b\n"})); got != inOrder(everyA+", example.com/m/b") {
		t.Errorf("what a dangling link leads to appears and affects %s", got)
	}
}

func TestSubmodulesCountForWhatIsImportedFromThem(t *testing.T) {
	base := sample.with(memoryTree{"b/b.go": "package b\n\nimport _ \"example.com/m/third/party/pkg\"\n"})
	with := base.with(memoryTree{"third/party": "mode 160000 one"})
	want := inOrder(everyA + ", example.com/m/b")
	if got := delta(t, base, with); got != want {
		t.Errorf("a new submodule affects %s", got)
	}
	if got := delta(t, with, with.with(memoryTree{"third/party": "mode 160000 two"})); got != want {
		t.Errorf("another commit of a submodule affects %s", got)
	}
}

func TestNamesOfAllKindsAreFiles(t *testing.T) {
	odd := memoryTree{}
	for _, name := range []string{"a b.go", "q\"x.go", "n\nl.go", "b\xff.go", "é.go", "-dash.go", "[z].go", "%s.go"} {
		odd["b/"+name] = "package b\n"
		odd["b/"+name+"/x/y.txt"] = "1\n"
	}
	for name := range odd {
		if strings.HasSuffix(name, ".txt") {
			delete(odd, name)
		}
	}
	graph := load(t, sample.with(odd))
	for name := range odd {
		if label := targets.Label(targets.KindFile, name); !dependsOn(graph, "example.com/m/b", label) {
			t.Errorf("no dependency on %s", label)
		}
	}
}

func TestCyclesOfPackagesAreAffectedTogether(t *testing.T) {
	cycle := sample.with(memoryTree{"win/win.go": "package win\n\nimport _ \"example.com/m/ring\"\n", "ring/ring.go": "package ring\n\nimport _ \"example.com/m/win\"\n"})
	want := inOrder(everyA + ", example.com/m/gen, example.com/m/ring, example.com/m/win")
	if got := delta(t, cycle, cycle.with(memoryTree{"ring/new.go": "package ring\n"})); got != want {
		t.Errorf("got %s", got)
	}
}

// faultyTree fails where it is told to.
type faultyTree struct {
	memoryTree
	entries, blob error
}

func (f faultyTree) Entries(ctx context.Context) ([]gittree.Entry, error) {
	if f.entries != nil {
		return nil, f.entries
	}
	return f.memoryTree.Entries(ctx)
}

func (f faultyTree) Blob(ctx context.Context, object string, max int64) ([]byte, error) {
	if f.blob != nil && object == objectOf(f.memoryTree["b/b.go"]) {
		return nil, f.blob
	}
	return f.memoryTree.Blob(ctx, object, max)
}

func TestATreeThatCannotBeReadIsAnErrorAndNoFact(t *testing.T) {
	fault := errors.New("object is missing")
	loader := newLoader(t, Options{})
	for _, tree := range []faultyTree{{sample, fault, nil}, {sample, nil, fault}} {
		if _, err := loader.Load(t.Context(), "tree", tree); !errors.Is(err, fault) {
			t.Errorf("err = %v", err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(fault)
	if _, err := loader.Load(ended, "tree", sample); err == nil {
		t.Error("a load goes on after its context ended")
	}
	graph, err := loader.Load(t.Context(), "tree", sample)
	if err != nil || len(graph.Unknown()) > 0 {
		t.Errorf("after failures: %v", err)
	}
	if again, err := loader.Load(t.Context(), "tree", faultyTree{sample, fault, nil}); again != graph || err != nil {
		t.Error("a graph is not remembered by its tree's id")
	}
}

func TestOptionsThatCannotBeMeantAreRefusedAllAtOnce(t *testing.T) {
	_, err := NewLoader(Options{
		Env: []string{"A=1", "A=2", "B", "GOFLAGS=-pgo=x.pgo -coverpkg=./... -overlay=o -modfile=m"}, Inputs: []Input{{Files: []string{"../x", "[", ""}}, {}}, Commands: Commands{Test: []Template{{Name: "x"}}},
	}, Memory{}, nil)
	for _, want := range []string{`"A=2"`, `"B"`, `"../x"`, `"["`, `""`, "without files", `command "x"`, "-pgo=x.pgo", "-coverpkg", "-overlay", "-modfile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
