package targets

import (
	"slices"
	"testing"
)

func TestDependentsAreAllThatLeadThere(t *testing.T) {
	b := NewBuilder("test", "")
	node := func(name string) Node { return b.Ref(KindTarget, name) }
	for _, edge := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "b"}, {"d", "a"}, {"a", "e"}, {"f", "e"}} {
		b.Edge(node(edge[0]), node(edge[1]))
	}
	for of, want := range map[string][]string{"c": {"a", "b", "c", "d"}, "e": {"a", "d", "e", "f"}, "d": {"d"}} {
		var got []string
		for id, depends := range b.Dependents([]Node{node(of)}) {
			if depends {
				got = append(got, b.labels[id])
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("on %s depend %q, want %q", of, got, want)
		}
	}
	if all := b.Dependents(nil); slices.Contains(all, true) {
		t.Error("something depends on nothing")
	}
}
