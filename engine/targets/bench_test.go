package targets

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// largeBuilder is a graph of 100,000 nodes and 1,000,000 edges: 20,000 targets
// with a definition, sources and dependencies on later ones.
func largeBuilder(edit int) *Builder {
	const targets, files, edges = 20_000, 60_000, 1_000_000
	r := rand.New(rand.NewPCG(1, 1))
	b := NewBuilder("bench", "tree")
	environment := b.Definition("environment", nil)
	sources := make([]Node, files)
	for i := range sources {
		object := "object"
		if i == edit {
			object = "edited"
		}
		sources[i] = b.File(fmt.Sprintf("services/part%03d/module%05d/source.go", i%100, i), 0o100644, object)
	}
	nodes := make([]Node, targets)
	for i := range nodes {
		name := fmt.Sprintf("//services/part%03d/target%05d", i%100, i)
		nodes[i] = b.Target(name, "library", nil)
		b.Edge(nodes[i], b.Definition(name, nil))
		b.Edge(nodes[i], environment)
	}
	for i := range edges - 2*targets {
		from := i % (targets - 1)
		if i%2 == 0 {
			b.Edge(nodes[from], sources[r.IntN(files)])
		} else {
			b.Edge(nodes[from], nodes[from+1+r.IntN(min(targets-from-1, 500))])
		}
	}
	return b
}

func BenchmarkHash100kNodes1MEdges(b *testing.B) {
	builder := largeBuilder(-1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := builder.Build(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDelta100kNodes1MEdges(b *testing.B) {
	base, err := largeBuilder(-1).Build()
	if err != nil {
		b.Fatal(err)
	}
	head, err := largeBuilder(59_999).Build()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Delta(base, head)
	}
}

// sizes are the 2.5th, 7.5th, … percentile of the affected sets, those that are not
// empty, of 5,436 commits of six Go monorepos.
var sizes = [...]int{1, 1, 2, 4, 8, 11, 17, 21, 26, 34, 51, 81, 104, 124, 145, 190, 275, 342, 408, 494}

// randomAnalyses are changes over a million targets, with affected sets of the
// sizes of real ones, each in a neighbourhood of its own, so that most pairs are
// independent and nothing ends the test early.
func randomAnalyses(count int) []Analysis {
	const universe = 1_000_000
	r := rand.New(rand.NewPCG(1, 1))
	analyses := make([]Analysis, count)
	for i := range analyses {
		size := sizes[r.IntN(len(sizes))]
		touched := make(map[int]bool)
		base := r.IntN(universe - 50_000)
		for len(touched) < size {
			touched[base+r.IntN(50_000)] = true
		}
		var a Analysis
		for id := range touched {
			a.Affected = append(a.Affected, TargetVersion{Name: fmt.Sprintf("//target%07d", id)})
		}
		a.Leaves = []string{fmt.Sprintf("file:%d", base)}
		if r.IntN(5) == 0 {
			a.Added = []string{fmt.Sprintf("//target%07d", base)}
		}
		analyses[i] = Union(a)
	}
	return analyses
}

func prepared(count int) []*Set {
	names := NewNames(nil)
	for id := range 1_000_000 {
		names.id(fmt.Sprintf("//target%07d", id))
	}
	var sets []*Set
	for _, a := range randomAnalyses(count) {
		sets = append(sets, names.Prepare(a.Footprint()))
	}
	return sets
}

func BenchmarkPairOfAMillionTargets(b *testing.B) {
	sets := prepared(1000)
	i := 0
	for b.Loop() {
		sets[i%1000].Conflicts(sets[(i*7+i/1000+1)%1000])
		i++
	}
}

func BenchmarkOneChangeAgainst1000(b *testing.B) {
	sets := prepared(1000)
	i := 0
	for b.Loop() {
		for _, other := range sets {
			sets[i%1000].Conflicts(other)
		}
		i++
	}
}

// BenchmarkAddOneTo1000 is what one more pending change costs: its set, and a test against each.
func BenchmarkAddOneTo1000(b *testing.B) {
	const pending = 1000
	analyses := randomAnalyses(2 * pending)
	names := NewNames(nil)
	var sets []*Set
	for _, a := range analyses[:pending] {
		sets = append(sets, names.Prepare(a.Footprint()))
	}
	i := 0
	for b.Loop() {
		next := names.Prepare(analyses[pending+i%pending].Footprint())
		for _, other := range sets {
			next.Conflicts(other)
		}
		i++
	}
}

func BenchmarkAllPairsOf1000(b *testing.B) {
	sets := prepared(1000)
	for b.Loop() {
		for i, set := range sets {
			for _, other := range sets[:i] {
				set.Conflicts(other)
			}
		}
	}
}

func BenchmarkConflictWithReason(b *testing.B) {
	analyses := randomAnalyses(1000)
	i := 0
	for b.Loop() {
		m1(analyses[i%1000], analyses[(i*7+1)%1000])
		i++
	}
}
