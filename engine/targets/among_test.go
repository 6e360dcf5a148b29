package targets

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

func TestWhatTargetsDependOnAmongSomeEqualsTheWalkOfEachPath(t *testing.T) {
	r := seedtest.Random(t)
	for range 300 {
		n := 2 + r.IntN(12)
		b := NewBuilder("", "tree")
		var nodes []Node
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("//t%02d", i))
			nodes = append(nodes, b.Target(names[i], "", nil))
		}
		leaf := b.File("f", 1, "o")
		edges := map[[2]int]bool{}
		for range r.IntN(3 * n) {
			from, to := r.IntN(n), r.IntN(n)
			if from != to {
				edges[[2]int{from, to}] = true
				b.Edge(nodes[from], nodes[to])
			}
			b.Edge(nodes[from], leaf)
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var some []int
		for i := range n {
			if r.IntN(2) == 0 {
				some = append(some, i)
			}
		}
		r.Shuffle(len(some), func(a, b int) { some[a], some[b] = some[b], some[a] })
		asked := []string{"//none"}
		for _, i := range some {
			asked = append(asked, names[i])
		}
		want, any := make([][]int, len(asked)), false
		for x, i := range some {
			for y, j := range some {
				if i != j && pathAround(edges, n, i, j, some) {
					want[x+1], any = append(want[x+1], y+1), true
				}
			}
		}
		if !any {
			want = nil
		}
		got := g.Among(asked, 1000)
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v over %v: %v, want %v", asked, edges, got, want)
		}
		if any && g.Among(asked, 0) != nil {
			t.Fatal("more than were asked for")
		}
	}
}

// pathAround reports whether a path leads from one target to another with none of some between.
func pathAround(edges map[[2]int]bool, n, from, to int, some []int) bool {
	reached := map[int]bool{from: true}
	for range n {
		for e := range edges {
			if reached[e[0]] && (e[0] == from || !slices.Contains(some, e[0])) {
				reached[e[1]] = true
			}
		}
	}
	return reached[to]
}

func BenchmarkAmongAThousandTargets(b *testing.B) {
	builder := NewBuilder("", "tree")
	var nodes []Node
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("//t%04d", i))
		nodes = append(nodes, builder.Target(names[i], "", nil))
		for back := 1; back <= 10 && back <= i; back++ {
			builder.Edge(nodes[i], nodes[i-back])
		}
	}
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if len(g.Among(names, 1<<16)) != 1000 {
			b.Fatal("no dependencies")
		}
	}
}
