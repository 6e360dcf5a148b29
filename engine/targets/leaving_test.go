package targets

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

func TestWhatLeavesOutputsBelowATargetEqualsTheWalkOfEachPath(t *testing.T) {
	r := seedtest.Random(t)
	for range 300 {
		n := 2 + r.IntN(12)
		b := NewBuilder("", "tree")
		leaves, direct := make([]bool, n), make([][]int, n)
		var nodes []Node
		for i := range n {
			var commands []Command
			if leaves[i] = r.IntN(3) == 0; leaves[i] {
				commands = []Command{{Name: "make", Argv: []string{"true"}, Outputs: []string{fmt.Sprint(i)}}}
			}
			nodes = append(nodes, b.Target(fmt.Sprintf("//t%02d", i), "", commands))
		}
		for range r.IntN(2 * n) {
			from, to := r.IntN(n), r.IntN(n)
			if from > to { // without cycles
				direct[from] = append(direct[from], to)
				b.Edge(nodes[from], nodes[to])
			}
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		var reached func(i int, into map[int]bool)
		reached = func(i int, into map[int]bool) {
			for _, to := range direct[i] {
				into[to] = true
				reached(to, into)
			}
		}
		leaving := g.Leaving()
		if leaving.Any() != slices.Contains(leaves, true) {
			t.Fatalf("any: %v of %v", leaving.Any(), leaves)
		}
		for i := range n {
			all := map[int]bool{}
			reached(i, all)
			want := 0
			for to := range all {
				if leaves[to] {
					want++
				}
			}
			had := map[int]bool{}
			for _, target := range leaving.Below(fmt.Sprintf("//t%02d", i)) {
				var at int
				if _, err := fmt.Sscanf(target.Name, "//t%d", &at); err != nil {
					t.Fatal(err)
				}
				below := map[int]bool{}
				reached(at, below)
				for to := range below {
					if leaves[to] && !had[to] {
						t.Fatalf("%d of %v: %d stands before %d, on which it depends", i, direct, at, to)
					}
				}
				if had[at] || !all[at] || !leaves[at] {
					t.Fatalf("%d of %v: %d is listed", i, direct, at)
				}
				had[at] = true
			}
			if leaving.Given(fmt.Sprintf("//t%02d", i)) != (want > 0) || leaving.Waits(fmt.Sprintf("//t%02d", i)) != (want > 0) {
				t.Fatalf("%d of %v: that it is given something is not known", i, direct)
			}
			if len(had) != want {
				t.Fatalf("%d of %v: %v, want %d", i, direct, had, want)
			}
		}
	}
}

func TestOutputsArePartOfTheHashAndTheirAbsenceIsNot(t *testing.T) {
	hash := func(c Command) Hash {
		b := NewBuilder("", "tree")
		b.Target("//a", "", []Command{c})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		target, _ := g.Target("//a")
		return target.Hash
	}
	plain := Command{Name: "make", Argv: []string{"make"}}
	with, other := plain, plain
	with.Outputs, other.Outputs = []string{"out"}, []string{"out", "two"}
	if hash(with) == hash(plain) || hash(with) == hash(other) {
		t.Error("what a step leaves is not in the hash")
	}
	plain.Outputs = []string{}
	if hash(plain) != hash(Command{Name: "make", Argv: []string{"make"}}) {
		t.Error("a step that leaves nothing has another hash than before")
	}
}

func TestDependenciesComeFirst(t *testing.T) {
	b := NewBuilder("", "tree")
	a, c := b.Target("//a", "", nil), b.Target("//c", "", nil)
	d := b.Target("//d", "", nil)
	file := b.File("f", 1, "o")
	b.Edge(a, d)
	b.Edge(d, file)
	b.Edge(d, c)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, target := range g.DependenciesFirst() {
		names = append(names, target.Name)
	}
	if !slices.Equal(names, []string{"//c", "//d", "//a"}) {
		t.Error(names)
	}
}

func TestOfTargetsInACycleNoneIsGivenWhatAnotherLeaves(t *testing.T) {
	b := NewBuilder("", "tree")
	leaves := []Command{{Name: "make", Argv: []string{"true"}, Outputs: []string{"x"}}}
	a, c := b.Target("//a", "", leaves), b.Target("//c", "", leaves)
	top, low := b.Target("//top", "", nil), b.Target("//low", "", leaves)
	b.Edge(a, c)
	b.Edge(c, a)
	b.Edge(top, c)
	b.Edge(c, low)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"//a": {"//low"}, "//c": {"//low"}, "//top": {"//a", "//c", "//low"}, "//low": nil} {
		var got []string
		for _, below := range g.Leaving().Below(name) {
			got = append(got, below.Name)
		}
		slices.Sort(got)
		if leaving := g.Leaving(); leaving.Given(name) != (want != nil) || leaving.Waits(name) != (name == "//top") {
			t.Errorf("%s is given something: %v; waits for it: %v", name, leaving.Given(name), leaving.Waits(name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("below %s: %v, want %v", name, got, want)
		}
	}
}
