package nodegraph

import (
	"fmt"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// benchTree is a workspace of 1,000 packages of 20 files, each with five members and ten external packages, of which
// there are 2,000.
func benchTree() memoryTree {
	const packages, externals = 1000, 2000
	tree := memoryTree{"package.json": `{"name": "root", "workspaces": ["packages/*"]}`, "tsconfig.base.json": `{"compilerOptions": {"paths": {"@p/*": ["./packages/*/src"]}}}`}
	var lock strings.Builder
	lock.WriteString(`{"lockfileVersion": 3, "packages": {"": {"name": "root"}`)
	for i := range externals {
		fmt.Fprintf(&lock, ",\n\"node_modules/e%d\": {\"version\": \"1.0.%d\", \"integrity\": \"sha512-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\", \"dependencies\": {\"e%d\": \"^1.0.0\", \"e%d\": \"^1.0.0\"}}", i, i, (2*i+1)%externals, (2*i+2)%externals)
	}
	lock.WriteString("}}")
	tree["package-lock.json"] = lock.String()
	for i := range packages {
		dir := fmt.Sprintf("packages/p%d", i)
		var needs []string
		for k := range 5 {
			if i > 0 {
				needs = append(needs, fmt.Sprintf(`"@p/p%d": "*"`, (i*7+k*13)%i))
			}
		}
		for k := range 10 {
			needs = append(needs, fmt.Sprintf(`"e%d": "^1.0.0"`, (i*10+k)%externals))
		}
		tree[dir+"/package.json"] = fmt.Sprintf(`{"name": "@p/p%d", "scripts": {"build": "tsc", "test": "jest"}, "dependencies": {%s}}`, i, strings.Join(needs, ", "))
		tree[dir+"/tsconfig.json"] = `{"extends": "../../tsconfig.base.json"}`
		for k := range 18 {
			tree[fmt.Sprintf("%s/src/f%d.ts", dir, k)] = fmt.Sprintf("import { x } from './f%d'\nimport e from 'e%d'\n%s", k+1, (i*10+k%10)%externals, strings.Repeat("export const value = compute(\"some text\", 'more')\n", 40+i%7))
		}
	}
	return tree
}

func report(b *testing.B, graph *targets.Graph) {
	nodes, edges := graph.Size()
	b.ReportMetric(float64(nodes), "nodes")
	b.ReportMetric(float64(edges), "edges")
}

// BenchmarkFull is the first tree of a workspace of 1,000 packages. Blobs come from memory.
func BenchmarkFull(b *testing.B) {
	tree := benchTree().indexed()
	b.ReportAllocs()
	for b.Loop() {
		graph, err := newLoader(b, Options{}).Load(b.Context(), "", tree)
		if err != nil {
			b.Fatal(err)
		}
		report(b, graph)
	}
}

// BenchmarkNextTree is a tree that differs from the one before in one file, with what that affects.
func BenchmarkNextTree(b *testing.B) {
	first := benchTree()
	loader := newLoader(b, Options{})
	base, err := loader.Load(b.Context(), "", first.indexed())
	if err != nil {
		b.Fatal(err)
	}
	var trees []indexed
	for i := range 8 {
		file := fmt.Sprintf("packages/p%d/src/f%d.ts", i*120, i)
		trees = append(trees, first.with(memoryTree{file: first[file] + "// more\n"}).indexed())
	}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		head, err := loader.Load(b.Context(), "", trees[i%len(trees)])
		if err != nil {
			b.Fatal(err)
		}
		targets.Delta(base, head)
		base = head
		i++
	}
}

// BenchmarkLocks reads lock files of 5,000 entries.
func BenchmarkLocks(b *testing.B) {
	var pnpmText, npmText strings.Builder
	pnpmText.WriteString("lockfileVersion: '9.0'\n\nsnapshots:\n")
	npmText.WriteString(`{"lockfileVersion": 3, "packages": {"": {}`)
	for i := range 5000 {
		fmt.Fprintf(&pnpmText, "\n  'pkg-%d@1.%d.0':\n    resolution: {integrity: sha512-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa==}\n    engines: {node: '>=10'}\n    dependencies:\n      pkg-%d: 1.%d.0\n", i, i, i/2, i/2)
		fmt.Fprintf(&npmText, ",\n\"node_modules/pkg-%d\": {\"version\": \"1.%d.0\", \"integrity\": \"sha512-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa==\", \"dependencies\": {\"pkg-%d\": \"^1\"}}", i, i, i/2)
	}
	npmText.WriteString("}}")
	for name, text := range map[string]string{"pnpm-lock.yaml": pnpmText.String(), "package-lock.json": npmText.String()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if l := parseLock(name, []byte(text)); len(l.entries) < 5000 {
					b.Fatalf("%d entries", len(l.entries))
				}
			}
		})
	}
}
