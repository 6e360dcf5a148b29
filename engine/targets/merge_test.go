package targets

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// part returns the world with the targets alone that an adapter of that name finds: the even ones, or the odd ones.
func (w world) part(adapter string) world {
	w = w.clone()
	maps.DeleteFunc(w.defs, func(name string, _ definition) bool {
		return (name[1]%2 == 0) != (adapter == "even")
	})
	return w
}

// named puts an adapter's name into the labels of what is its own.
func (r rawGraph) named(adapter string) rawGraph {
	rename := func(label string) string {
		for _, prefix := range []string{"def:", "dir:", "ext:"} {
			if name, ok := strings.CutPrefix(label, prefix); ok {
				return prefix + adapter + " " + name
			}
		}
		return label
	}
	renamed := rawGraph{}
	for label, n := range r {
		if label = rename(label); n.kind != KindFile && n.kind != KindTarget {
			n.name = adapter + " " + n.name
		}
		n.deps = slices.Clone(n.deps)
		for i, dep := range n.deps {
			n.deps[i] = rename(dep)
		}
		renamed[label] = n
	}
	return renamed
}

// TestAMergedGraphIsTheOneThatASingleBuilderMakes holds Merge against one Builder that is given the nodes of both adapters,
// and the declared edges as ordinary ones.
func TestAMergedGraphIsTheOneThatASingleBuilderMakes(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	declared := 0
	for range 2000 {
		w := randomWorld(random)
		names := slices.Sorted(maps.Keys(w.defs))
		parts := map[string]rawGraph{"even": w.part("even").raw(), "odd": w.part("odd").raw()}
		together := rawGraph{}
		for adapter, part := range parts {
			maps.Copy(together, part.named(adapter))
		}
		var edges []Edge
		for range random.IntN(3) {
			e := Edge{From: pick(random, names), To: pick(random, names)}
			edges = append(edges, e)
			n := together[e.From]
			n.deps = append(slices.Clone(n.deps), e.To)
			together[e.From] = n
			declared++
		}
		even, odd := parts["even"].graph(random), parts["odd"].graph(random)
		even.declared = edges
		merged, err := Merge("tree", []Member{{"odd", odd}, {"even", even}})
		if err != nil {
			t.Fatal(err)
		}
		want := together.graph(random)
		if !slices.Equal(merged.labels, want.labels) || !slices.Equal(merged.deps, want.deps) || !slices.Equal(merged.hashes, want.hashes) ||
			!slices.Equal(merged.kinds, want.kinds) || !slices.Equal(merged.Uncovered(), want.Uncovered()) || !slices.Equal(merged.defined, want.defined) {
			t.Fatalf("merged:\n%q\nmade at once:\n%q", merged.labels, want.labels)
		}
		for target := range want.Targets() {
			if got, ok := merged.Target(target.Name); !ok || got.Kind != target.Kind || got.Hash != target.Hash || !slices.Equal(got.Deps, target.Deps) {
				t.Fatalf("target %s is %+v, made at once %+v", target.Name, got, target)
			}
		}
	}
	if declared == 0 {
		t.Fatal("no edge was declared")
	}
}

func TestATargetOfTwoAdaptersIsRefused(t *testing.T) {
	one := func() *Graph {
		b := NewBuilder("x", "tree")
		b.Target("//a", "library", nil)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	_, err := Merge("tree", []Member{{"one", one()}, {"two", one()}})
	if refused, is := errors.AsType[*MergeError](err); !is || !strings.Contains(refused.Error(), "//a is the name of a target of one and of one of two") {
		t.Fatalf("the error is %v", err)
	}
}

func TestADeclaredEdgeNeedsBothItsTargets(t *testing.T) {
	b := NewBuilder("x", "tree")
	b.Target("//a", "library", nil)
	b.Declare(Edge{"//a", "//b", "landfall.yaml:3"})
	b.Declare(Edge{"//c", "//a", "landfall.yaml:4"})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Merge("tree", []Member{{"x", g}})
	if err == nil || !strings.Contains(err.Error(), "landfall.yaml:3: the repository has no target //b") ||
		!strings.Contains(err.Error(), "landfall.yaml:4: the repository has no target //c") {
		t.Fatalf("the error is %v", err)
	}
}

func TestFilesThatMembersEncodeDifferentlyAreOneNode(t *testing.T) {
	make := func(scheme, object, target string) *Graph {
		b := NewBuilder(scheme, "tree")
		file := b.File("a", 0o100644, object)
		b.Edge(b.Target(target, "library", nil), file)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	merged := func(first, second string) *Graph {
		g, err := Merge("tree", []Member{{"one", make("1", first, "//a")}, {"two", make("2", second, "//b")}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	before, after := merged("x", "blob x"), merged("y", "blob y")
	if delta := Delta(before, after); len(delta.Affected) != 2 || len(delta.Leaves) != 1 {
		t.Fatalf("another content of the file gives %+v", delta)
	}
	if delta := Delta(before, merged("x", "blob x")); len(delta.Affected) != 0 {
		t.Fatalf("the same gives %+v", delta)
	}
}
