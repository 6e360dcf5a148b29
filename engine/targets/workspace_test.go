package targets

import (
	"maps"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

func TestAClosedWorkspaceHoldsWhatTheTargetReachesAndWhatEveryoneHas(t *testing.T) {
	r := seedtest.Random(t)
	var held, kept int
	for range rounds / 20 {
		w := randomWorld(r)
		raw := w.raw()
		g := raw.graph(r)
		everywhere := some(r, 2, func() string { return pickFile(r) })
		for _, path := range everywhere {
			if node, found := slices.BinarySearch(g.labels, Label(KindFile, path)); found {
				g.covered.everywhere = append(g.covered.everywhere, int32(node))
			}
		}
		named := some(r, 2, func() string { return pickFile(r) })
		for _, path := range named {
			if node, found := slices.BinarySearch(g.labels, Label(KindFile, path)); found {
				g.covered.named = append(g.covered.named, int32(node))
			}
		}
		for i := range g.targets {
			g.targets[i].closed = true
		}
		merged, err := Merge("tree", []Member{{"one", g}})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(w.defs)) {
			want := map[string]bool{}
			for path := range w.files {
				if raw.reaches(Label(KindTarget, name), Label(KindFile, path)) || slices.Contains(everywhere, path) {
					want[path] = true
				} else if slices.Contains(named, path) {
					want[path] = false
				}
			}
			held, kept = held+len(want), kept+len(w.files)-len(want)
			for which, g := range map[string]*Graph{"the graph": g, "the merged graph": merged} {
				if space := g.Workspace(name); space == nil || !maps.Equal(space.Files, want) {
					t.Fatalf("%s: the workspace of %s is %+v, want %v\n%+v", which, name, space, want, w)
				}
			}
		}
	}
	if held == 0 || kept == 0 {
		t.Errorf("%d files are held, %d are not: the worlds show nothing", held, kept)
	}
}

func TestATargetOfAClosedWorkspaceIsAnotherVersion(t *testing.T) {
	graph := func(closed bool, steps []Command) Target {
		b := NewBuilder("files/1", "tree")
		if closed {
			b.Closed()
		}
		b.Target("//:a", "library", steps)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		target, _ := g.Target("//:a")
		if is := g.Workspace("//:a") != nil; is != target.Closed {
			t.Errorf("closed is %v of the workspace, and %v of the target", is, target.Closed)
		}
		return target
	}
	if open, closed := graph(false, checked), graph(true, checked); open.Hash == closed.Hash || open.Closed || !closed.Closed {
		t.Errorf("%+v, %+v", open, closed)
	}
	if open, closed := graph(false, nil), graph(true, nil); open.Hash != closed.Hash || closed.Closed {
		t.Errorf("without steps: %+v, %+v", open, closed)
	}
	if Whole("tree", checked).Workspace(Repository) != nil {
		t.Error("the whole repository has a closed workspace")
	}
}

func TestAClosedWorkspaceShowsNamesWhereItsAdaptersSaySo(t *testing.T) {
	graph := func(scheme, target string, shown ...string) *Graph {
		b := NewBuilder(scheme, "tree")
		b.Closed()
		b.Target(target, "library", checked)
		for _, folder := range shown {
			b.ShowNames(folder, folder == "lib")
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	one, two := graph("one/1", "//:a", "", "lib"), graph("two/1", "//:b", "py")
	merged, err := Merge("tree", []Member{{"one", one}, {"two", two}})
	if err != nil {
		t.Fatal(err)
	}
	for g, want := range map[*Graph]map[string]bool{one: {"": false, "lib": true}, merged: {"": false, "lib": true, "py": false}} {
		if got := g.Workspace("//:a").Shown; !maps.Equal(got, want) {
			t.Errorf("names are shown of %v, want %v", got, want)
		}
	}
}

// TestAClosedWorkspaceHasTheNamesThatItsTargetDependsOn: those of folders with a listing of all names below, by whatever way it is reached.
func TestAClosedWorkspaceHasTheNamesThatItsTargetDependsOn(t *testing.T) {
	b := NewBuilder("files/1", "tree")
	b.Closed()
	a, c, other := b.Target("//:a", "library", checked), b.Target("//:c", "library", checked), b.Target("//:other", "library", checked)
	for _, name := range []string{"./**", "docs/**", "docs", ".github/**", "cargo:lib/**", "file.txt", "\"odd\"/**"} {
		b.Listing(name, []string{"x"})
	}
	for _, name := range []string{"docs/**", "docs", ".github/**", "cargo:lib/**", "file.txt/**", "\"odd\"/**"} {
		b.Edge(a, b.Ref(KindListing, name))
	}
	b.Edge(c, a)
	b.Edge(c, b.Ref(KindListing, "./**"))
	b.Edge(other, b.Ref(KindListing, "docs"))
	one, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	b = NewBuilder("files/2", "tree")
	b.Closed()
	b.Edge(b.Target("//:d", "library", checked), b.Listing("**", []string{"x"}))
	two, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	merged, err := Merge("tree", []Member{{"one", one}, {"two", two}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string][]string{"//:a": {"\"odd\"", ".github", "docs"}, "//:c": {"", "\"odd\"", ".github", "docs"}, "//:other": nil, "//:d": {""}} {
		got := merged.Workspace(target).Names
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: names are those of %q, want %q", target, got, want)
		}
	}
}
