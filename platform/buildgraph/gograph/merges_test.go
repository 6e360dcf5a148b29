package gograph

import (
	"errors"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// TestM3EditsOfOneFileThatMergeConflictOrAddUp has pairs that edit one file in places
// so far apart that git merges them: what is added at the top by one change and at
// the bottom by the other.
func TestM3EditsOfOneFileThatMergeConflictOrAddUp(t *testing.T) {
	workspace := sample.with(memoryTree{"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./tools\n)\n"})
	unused := sample.with(memoryTree{"docs/go.work": "go 1.26.0\n\nuse ./none\n"})
	fixture := sample.with(memoryTree{
		"a/testdata/mod/go.mod": "module example.com/fixture\n\ngo 1.25\n", "a/testdata/mod/x.go": "package x\n",
		"tools/go.mod": sample["tools/go.mod"] + "\nrequire example.com/fixture v0.0.0\n\nreplace example.com/fixture => ../a/testdata/mod\n",
	})
	vendored := sample.with(memoryTree{
		"vendor/modules.txt":            "# example.org/x v1.2.0\n# example.org/y v1.0.0\n# example.org/z v1.0.0\n",
		"vendor/example.org/x/sub/x.go": "package sub\n\nvar x int\n",
	})
	modules := []string{"", "toolchain go1.26.3\n", "require example.net/w v1.0.0\n", "require example.com/m/b v1.0.0\n", "replace example.org/x => ./c\n", "replace example.org/z => ../one\n"}
	goes := []string{"", "import _ \"example.com/m/win\"\n", "import _ \"example.com/m/new\"\n", "import _ \"example.org/z/deep\"\n", "import \"C\"\n", "//go:embed *.txt\n", "// #include \"../x.h\"\n"}
	tried, independent := 0, 0
	for _, c := range []struct {
		tree memoryTree
		file string
		add  []string
	}{
		{sample, "go.mod", modules}, {sample, "tools/go.mod", modules}, {workspace, "go.mod", modules}, {fixture, "a/testdata/mod/go.mod", modules},
		{workspace, "go.work", []string{"", "use ./one\n", "use ./b\n", "replace example.org/x => ./c\n", "toolchain go1.26.3\n"}},
		{unused, "docs/go.work", []string{"", "use ./one\n", "use ..\n", "replace example.org/x => ./c\n"}},
		{sample, "go.sum", []string{"", "example.org/x v1.2.0 h1:other\n", "example.org/new v1.0.0 h1:n\n"}},
		{vendored, "vendor/modules.txt", []string{"", "# example.org/new v1.0.0\n", "## explicit\n"}},
		{vendored, "vendor/example.org/x/sub/x.go", goes}, {sample, "win/win.go", goes}, {sample, "a/a_test.go", goes}, {sample, "a/testdata/deep/x.go", goes},
	} {
		loader := newLoader(t, Options{})
		graphOf := func(text string) *targets.Graph {
			graph, err := loader.Load(t.Context(), "", c.tree.with(memoryTree{c.file: text}))
			if _, invalid := errors.AsType[*Invalid](err); err != nil && !invalid {
				t.Fatal(err)
			}
			return graph
		}
		first, rest, _ := strings.Cut(c.tree[c.file], "\n")
		base := graphOf(c.tree[c.file])
		for _, top := range c.add {
			for _, bottom := range c.add {
				a, b, both := graphOf(first+"\n"+top+rest), graphOf(c.tree[c.file]+bottom), graphOf(first+"\n"+top+rest+bottom)
				if a == nil || b == nil || both == nil {
					continue
				}
				tried++
				x, y := targets.Delta(base, a), targets.Delta(base, b)
				if x.Footprint().Meets(y.Footprint(), nil).Conflict() {
					continue
				}
				independent++
				if want, got := versions(x, y), versions(targets.Delta(base, both)); want != got {
					t.Errorf("%s: %q at the top and %q at the bottom are called independent; only alone or only together they make\n%s", c.file, top, bottom, difference(want, got))
				}
			}
		}
	}
	if tried < 200 || independent < 50 {
		t.Errorf("only %d pairs tried, %d of them independent", tried, independent)
	}
	t.Logf("%d pairs, %d independent", tried, independent)
}
