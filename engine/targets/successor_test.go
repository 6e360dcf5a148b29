package targets

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"landfall.build/events/seedtest"
)

// randomFiles is a graph of files, definitions and targets with any edges, cycles
// and ends that are not there among them; objects gives each file its content.
func randomFiles(shape *rand.Rand, tree string, objects map[string]string) *Graph {
	b := NewBuilder("random/1", tree)
	var nodes []Node
	count := 1 + shape.IntN(30)
	for i := range count {
		switch shape.IntN(3) {
		case 0:
			path := fmt.Sprintf("f%d", i)
			b.File(path, 0o100644, objects[path])
		case 1:
			nodes = append(nodes, b.Definition(fmt.Sprintf("d%d", i), []byte{byte(shape.IntN(2))}))
		default:
			nodes = append(nodes, b.Target(fmt.Sprintf("//t%d", i), "library", nil))
		}
	}
	for range shape.IntN(3 * count) {
		if len(nodes) == 0 {
			break
		}
		from := nodes[shape.IntN(len(nodes))]
		switch i := shape.IntN(count + 2); shape.IntN(3) {
		case 0:
			b.Edge(from, b.Ref(KindFile, fmt.Sprintf("f%d", i)))
		case 1:
			b.Edge(from, b.Ref(KindDefinition, fmt.Sprintf("d%d", i)))
		default:
			b.Edge(from, b.Ref(KindTarget, fmt.Sprintf("//t%d", i)))
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// TestASuccessorIsTheGraphThatBuildMakes compares every hash with that of the graph
// made from nothing, over chains of successors.
func TestASuccessorIsTheGraphThatBuildMakes(t *testing.T) {
	seed := seedtest.Of(t)
	random := rand.New(rand.NewPCG(seed, 1))
	compared := 0
	for round := range 3000 {
		objects := map[string]string{}
		shape := func() *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(round)+2)) }
		g := randomFiles(shape(), "0", objects)
		for step := range 3 {
			var files []FileContent
			for i, label := range g.labels {
				if g.kinds[i] == KindFile && g.defined[i] && random.IntN(3) == 0 {
					path := label[len("file:"):]
					objects[path] = fmt.Sprint(random.IntN(4))
					files = append(files, FileContent{path, 0o100644, objects[path]})
				}
			}
			tree := fmt.Sprint(step + 1)
			next, ok := g.Successor(tree, files)
			want := randomFiles(shape(), tree, objects)
			if !ok || next.Tree() != tree {
				t.Fatalf("round %d: ok %v, tree %s", round, ok, next.Tree())
			}
			for _, label := range want.labels {
				got, gotThere := hashOf(next, label)
				hash, there := hashOf(want, label)
				if got != hash || gotThere != there {
					t.Fatalf("round %d, step %d: %s is %v, want %v", round, step, label, got, hash)
				}
				compared++
			}
			if d := Delta(want, next); len(d.Affected)+len(d.Leaves)+len(d.Deleted)+len(d.Added) > 0 {
				t.Fatalf("round %d: %+v", round, d)
			}
			g = next
		}
	}
	t.Logf("%d nodes compared", compared)
}

func TestASuccessorIsRefusedWhereTheGraphCannotTell(t *testing.T) {
	b := NewBuilder("x/1", "1")
	b.Edge(b.Target("//t", "library", nil), b.File("f", 0o100644, "1"))
	b.Edge(b.Ref(KindTarget, "//t"), b.Ref(KindFile, "missing"))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"missing", "other", "//t"} {
		if _, ok := g.Successor("2", []FileContent{{path, 0o100644, "2"}}); ok {
			t.Errorf("%s is taken for a file of the graph", path)
		}
	}
	before, _ := g.Target("//t")
	next, ok := g.Successor("2", []FileContent{{"f", 0o100755, "1"}})
	if after, _ := next.Target("//t"); !ok || after.Hash == before.Hash {
		t.Error("another mode gives the same hash")
	}
	if again, _ := g.Target("//t"); again.Hash != before.Hash {
		t.Error("the graph itself was changed")
	}
	b.Incomplete("for a reason")
	if g, err = b.Build(); err != nil {
		t.Fatal(err)
	}
	if _, ok := g.Successor("2", nil); ok {
		t.Error("a graph that is not whole has a successor")
	}
}

// BenchmarkSuccessor is the next graph of 100,000 nodes and a million edges when
// one file changes, which nearly all targets reach.
func BenchmarkSuccessor(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	builder := NewBuilder("bench/1", "1")
	const files, targets = 50_000, 50_000
	for i := range files {
		builder.File(fmt.Sprintf("f%d", i), 0o100644, "1")
	}
	for i := range targets {
		from := builder.Target(fmt.Sprintf("//t%d", i), "library", nil)
		for range 10 {
			builder.Edge(from, builder.Ref(KindFile, fmt.Sprintf("f%d", random.IntN(files))))
			if i > 0 {
				builder.Edge(from, builder.Ref(KindTarget, fmt.Sprintf("//t%d", max(0, i-1-random.IntN(100)))))
			}
		}
	}
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var ok bool
		g, ok = g.Successor("2", []FileContent{{"f7", 0o100644, fmt.Sprint(b.N)}})
		if !ok {
			b.Fatal("refused")
		}
	}
}
