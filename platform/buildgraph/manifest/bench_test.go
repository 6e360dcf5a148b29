package manifest

import (
	"context"
	"fmt"
	"testing"

	"landfall.build/platform/buildgraph/gittree"
)

// benchTree answers like git does from its memory, without copying.
type benchTree struct {
	entries  []gittree.Entry
	contents map[string][]byte
}

func (b benchTree) Entries(context.Context) ([]gittree.Entry, error) { return b.entries, nil }

func (b benchTree) Blob(_ context.Context, object string, _ int64) ([]byte, error) {
	return b.contents[object], nil
}

// largeTree has 2,000 folders of 20 files, each with a manifest of two targets.
func largeTree() memoryTree {
	tree := memoryTree{"go.mod": "module m\n", "landfall.yaml": "environment: {A: b}\ninputs: [go.mod]\n"}
	for i := range 2000 {
		folder := fmt.Sprintf("area%02d/part%04d", i%50, i)
		for j := range 20 {
			tree[fmt.Sprintf("%s/file%02d.go", folder, j)] = fmt.Sprintf("package p%d_%d\n", i, j)
		}
		deps := ""
		if i >= 50 {
			deps = fmt.Sprintf("//area%02d/part%04d", (i-50)%50, i-50)
		}
		tree[folder+"/landfall.yaml"] = fmt.Sprintf(`targets:
  - name: part%04d
    sources: ["*.go"]
    exclude: ["*_test.go"]
    deps: [%s]
    steps:
      - name: build
        run: [go, build, ./%s]
  - name: test
    kind: test
    sources: ["*_test.go", "testdata/**"]
    deps: [":part%04d"]
    steps:
      - {name: test, run: [go, test, .], dir: %s, timeout: 30s}
`, i, deps, folder, i, folder)
	}
	return tree
}

func loaded(b *testing.B, tree memoryTree) benchTree {
	entries, err := tree.Entries(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	contents := make(map[string][]byte)
	for _, content := range tree {
		contents[objectOf(content)] = []byte(content)
	}
	return benchTree{entries, contents}
}

func BenchmarkLoad2000Manifests40000Files(b *testing.B) {
	tree := loaded(b, largeTree())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(b.Context(), tree); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadNextTree(b *testing.B) {
	base := largeTree()
	loader := NewLoader(Memory{})
	trees := make([]benchTree, 20)
	for i := range trees {
		trees[i] = loaded(b, base.with(memoryTree{"area01/part0001/file01.go": fmt.Sprint(i)}))
	}
	if _, err := loader.Load(b.Context(), "", trees[0]); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if _, err := loader.Load(b.Context(), fmt.Sprint(i), trees[i%len(trees)]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseFile(b *testing.B) {
	content := []byte(largeTree()["area01/part0001/landfall.yaml"])
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		parseFile("area01/part0001/landfall.yaml", content)
	}
}
