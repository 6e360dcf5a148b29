package gograph

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/targets"
)

// benchRepository has modules in a workspace, about 1,300 Go files; with
// LANDFALL_GOGRAPH_BENCH it is a copy of the module in that folder.
func benchRepository(b *testing.B) (*repository, gitTree) {
	r := newRepository(b)
	if module := os.Getenv("LANDFALL_GOGRAPH_BENCH"); module != "" {
		copyFolder(b, r.dir, module, codeOnly)
	} else {
		dirs := slices.Sorted(maps.Keys(modulesOf))
		r.fillWithModules(dirs...)
		r.useAll(dirs...)
	}
	tree := r.commit()
	b.ReportMetric(float64(strings.Count(r.git("ls-files", "*.go"), "\n")+1), "files")
	return r, tree
}

// BenchmarkFull is the first analysis of a repository: nothing is remembered but
// what git has in memory.
func BenchmarkFull(b *testing.B) {
	_, tree := benchRepository(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newLoader(b, Options{}).Load(b.Context(), "", tree); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFullWithFacts is the first analysis after a restart, or of a branch.
func BenchmarkFullWithFacts(b *testing.B) {
	_, tree := benchRepository(b)
	dir := b.TempDir()
	facts, err := OpenFacts(dir, 64<<20, 64<<20, quiet())
	if err != nil {
		b.Fatal(err)
	}
	loader, _ := NewLoader(Options{}, Memory{}, facts)
	if _, err := loader.Load(b.Context(), "", tree); err != nil {
		b.Fatal(err)
	}
	facts.Close()
	for b.Loop() {
		facts, err := OpenFacts(dir, 64<<20, 64<<20, quiet())
		if err != nil {
			b.Fatal(err)
		}
		loader, _ := NewLoader(Options{}, Memory{}, facts)
		if _, err := loader.Load(b.Context(), "", tree); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGoList is what BenchmarkFull is to be compared with, in the same run.
func BenchmarkGoList(b *testing.B) {
	r, _ := benchRepository(b)
	args := append([]string{"list", "-e", "-json", "-deps", "-test"}, everyPackageOf(slices.Sorted(maps.Keys(modulesOf))...)...)
	if os.Getenv("LANDFALL_GOGRAPH_BENCH") != "" {
		args = append(args[:5], "./...")
	}
	for b.Loop() {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false")
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNextCommit is the analysis of a tree that differs from the one before
// in one file, with what it affects. Every sixth commit adds a file, as about so
// many real ones change the graph.
func BenchmarkNextCommit(b *testing.B) {
	r, first := benchRepository(b)
	files := strings.Split(r.git("ls-files", "*.go"), "\n")
	loader := newLoader(b, Options{})
	base, err := loader.Load(b.Context(), "", first)
	if err != nil {
		b.Fatal(err)
	}
	var trees []gitTree
	for i := range 20 {
		file := files[i*len(files)/20]
		content, err := os.ReadFile(filepath.Join(r.dir, file))
		if err != nil {
			b.Fatal(err)
		}
		if i%6 == 5 {
			file = strings.TrimSuffix(file, ".go") + "_more.go"
		}
		r.write(map[string]string{file: string(content) + fmt.Sprintf("// %d\n", i)})
		trees = append(trees, r.commit())
	}
	var times []time.Duration
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		head, err := loader.Load(b.Context(), "", trees[i%len(trees)])
		if err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
		targets.Delta(base, head)
		base = head
		i++
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}
