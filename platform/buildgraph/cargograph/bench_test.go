package cargograph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/targets"
)

// largeWorkspace has 1,000 packages of 20 Rust files each, every one with dependencies inside and outside.
func largeWorkspace() diskTree {
	files := map[string]string{"Cargo.toml": "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n\n[workspace.dependencies]\nserde = \"1\"\n"}
	lock := "version = 4\n"
	for i := range 300 {
		lock += fmt.Sprintf("\n[[package]]\nname = \"ext%d\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\nchecksum = \"%d\"\ndependencies = [\"ext%d\"]\n", i, i, min(i+1, 299))
	}
	for i := range 1000 {
		dir := fmt.Sprintf("crates/c%03d/", i)
		manifest := fmt.Sprintf("[package]\nname = \"c%03d\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\next%d = \"1\"\n", i, i%300)
		lock += fmt.Sprintf("\n[[package]]\nname = \"c%03d\"\nversion = \"0.1.0\"\ndependencies = [\"ext%d\"", i, i%300)
		for k := 1; k <= 5 && i-k*k > 0; k++ {
			manifest += fmt.Sprintf("c%03d = { path = \"../c%03d\" }\n", i-k*k, i-k*k)
			lock += fmt.Sprintf(", \"c%03d\"", i-k*k)
		}
		lock += "]\n"
		files[dir+"Cargo.toml"] = manifest
		for k := range 20 {
			files[dir+fmt.Sprintf("src/m%02d.rs", k)] = fmt.Sprintf("// %d\n", i) + strings.Repeat("pub fn f(x: &str) -> String { format!(\"a/{x}/../b\") }\n#[test]\nfn t() { assert_eq!(f(\"x\"), \"y\"); }\n", 40)
		}
	}
	files["Cargo.lock"] = lock
	tree := diskTree{blobs: map[string][]byte{}}
	for path, content := range files {
		e := newEntry(path, content)
		tree.entries = append(tree.entries, e)
		tree.blobs[e.Object] = []byte(content)
	}
	return tree
}

// BenchmarkFull is the first analysis of a repository: nothing is remembered.
func BenchmarkFull(b *testing.B) {
	tree := largeWorkspace()
	b.ReportAllocs()
	for b.Loop() {
		nodes, edges := load(b, tree).Size()
		b.ReportMetric(float64(nodes), "nodes")
		b.ReportMetric(float64(edges), "edges")
	}
}

// BenchmarkNextTree is the analysis of a tree that differs from the one before in one file, with what it affects.
func BenchmarkNextTree(b *testing.B) {
	tree := largeWorkspace()
	loader := newLoader(b, Options{})
	base := mustLoad(b, loader, tree)
	var times []time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next := tree.changed(fmt.Sprintf("crates/c%03d/src/m%02d.rs", i*7%1000, i%20))
		start := time.Now()
		head := mustLoad(b, loader, next)
		targets.Delta(base, head)
		times = append(times, time.Since(start))
		base = head
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}
