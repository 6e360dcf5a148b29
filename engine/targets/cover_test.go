package targets

import (
	"maps"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

func TestAFileIsCoveredWhenSomeTargetReachesItOrTheAdapterReadsIt(t *testing.T) {
	r := seedtest.Random(t)
	var covered, uncovered, onlyRead int
	for range rounds / 20 {
		w := randomWorld(r)
		raw := w.raw()
		read := some(r, 2, func() string { return pickFile(r) })
		g := raw.graph(r, read...)
		var want []string
		for _, path := range slices.Sorted(maps.Keys(w.files)) {
			reached, interpreted := raw.covers(path), slices.Contains(read, path)
			if g.Covers(path) != (reached || interpreted) {
				t.Fatalf("%s is covered: %v; reached %v, read by the adapter %v\n%+v", path, g.Covers(path), reached, interpreted, w)
			}
			switch {
			case reached:
				covered++
			case interpreted:
				onlyRead++
			default:
				uncovered++
				want = append(want, path)
			}
		}
		if got := g.Uncovered(); !slices.Equal(got, want) {
			t.Fatalf("the graph lists %q as uncovered, want %q\n%+v", got, want, w)
		}
	}
	if covered == 0 || uncovered == 0 || onlyRead == 0 {
		t.Errorf("%d files are covered, %d are not, %d are read by the adapter alone: the worlds show nothing", covered, uncovered, onlyRead)
	}
}

var checked = []Command{{Name: "check", Argv: []string{"true"}}}

// fileGraph has a file of each path, and a target of each that is a source.
func fileGraph(t *testing.T, objects map[string]string, sources ...string) *Graph {
	t.Helper()
	b := NewBuilder("files/1", "tree")
	for path, object := range objects {
		b.File(path, 0o100644, object)
	}
	for _, path := range sources {
		b.Edge(b.Target("//:"+path, "library", checked), b.Ref(KindFile, path))
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAFileOfATargetWithoutStepsIsCoveredByTheTargetsThatDependOnIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		define  func(b *Builder, file Node)
		covered bool
	}{
		{"no step verifies it", func(b *Builder, file Node) { b.Edge(b.Target("lib", "library", nil), file) }, false},
		{"the repository says that it needs none", func(b *Builder, file Node) {
			lib := b.Target("lib", "library", nil)
			b.NeedsNoSteps(lib)
			b.Edge(lib, file)
		}, true},
		{"a target without steps depends on it", func(b *Builder, file Node) {
			lib := b.Target("lib", "library", nil)
			b.Edge(lib, file)
			b.Edge(b.Target("app", "library", nil), lib)
		}, false},
		{"a target with steps depends on it through another", func(b *Builder, file Node) {
			lib, app := b.Target("lib", "library", nil), b.Target("app", "library", nil)
			b.Edge(lib, file)
			b.Edge(app, lib)
			b.Edge(b.Target("test", "test", checked), app)
		}, true},
	} {
		b := NewBuilder("files/1", "tree")
		c.define(b, b.File("file", 0o100644, "1"))
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if g.Covers("file") != c.covered {
			t.Errorf("%s: it is covered: %v", c.name, g.Covers("file"))
		}
	}
}

func TestADependencyAcrossGraphsCoversTheFilesOfATargetWithoutSteps(t *testing.T) {
	lib := NewBuilder("one", "tree")
	lib.Edge(lib.Target("lib", "library", nil), lib.File("file", 0o100644, "1"))
	lib.Interprets("BUILD")
	lib.File("BUILD", 0o100644, "1")
	app := NewBuilder("two", "tree")
	app.Target("app", "test", checked)
	merge := func() *Graph {
		t.Helper()
		one, err := lib.Build()
		if err != nil {
			t.Fatal(err)
		}
		two, err := app.Build()
		if err != nil {
			t.Fatal(err)
		}
		g, err := Merge("tree", []Member{{"one", one}, {"two", two}})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if got := merge().Uncovered(); !slices.Equal(got, []string{"file"}) {
		t.Errorf("uncovered %q, want the file of the target without steps", got)
	}
	app.Declare(Edge{From: "app", To: "lib", Place: "landfall.yaml:1"})
	if got := merge().Uncovered(); len(got) > 0 {
		t.Errorf("uncovered %q though app depends on it", got)
	}
}

func TestAFileThatOneSideCoversIsNotUncovered(t *testing.T) {
	with := func(files ...string) map[string]string {
		objects := map[string]string{}
		for _, f := range files {
			objects[f[:1]] = f
		}
		return objects
	}
	for _, c := range []struct {
		name       string
		base, head *Graph
		want       []string
	}{
		{"a change of each kind", fileGraph(t, with("a1", "b1", "c1", "s1"), "s"), fileGraph(t, with("a2", "b1", "d1", "s2"), "s"), []string{"a", "c", "d"}},
		{"a source that stops being one", fileGraph(t, with("a1"), "a"), fileGraph(t, with("a2")), nil},
		{"a file that becomes a source", fileGraph(t, with("a1")), fileGraph(t, with("a2"), "a"), nil},
		{"a source that is deleted with its target", fileGraph(t, with("a1"), "a"), fileGraph(t, nil), nil},
		{"a deleted source that is still named", fileGraph(t, with("a1"), "a"), fileGraph(t, nil, "a"), nil},
		{"the whole repository before", Whole("t", nil), fileGraph(t, with("a1")), nil},
		{"the whole repository after", fileGraph(t, with("a1")), Whole("t", nil), nil},
		{"an unknown base", Unknown("t", nil, "broken"), fileGraph(t, with("a1")), nil},
		{"an unknown head", fileGraph(t, with("a1")), Unknown("t", nil, "broken"), nil},
	} {
		if got := Delta(c.base, c.head).Uncovered; !slices.Equal(got, c.want) {
			t.Errorf("%s: uncovered %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnUncoveredPathIsItselfWhateverItsBytes(t *testing.T) {
	objects := map[string]string{"docs/\xff.md": "1", `"quoted".md`: "1", "plain.md": "1"}
	want := slices.Sorted(maps.Keys(objects))
	empty, g := fileGraph(t, nil), fileGraph(t, objects)
	if got := g.Uncovered(); !slices.Equal(got, want) {
		t.Errorf("the graph lists %q, want %q", got, want)
	}
	if got := Delta(empty, g).Uncovered; !slices.Equal(got, want) {
		t.Errorf("the difference lists %q, want %q", got, want)
	}
}

func TestASuccessorCoversWhatItsGraphCovers(t *testing.T) {
	g := fileGraph(t, map[string]string{"a": "1", "b": "1"}, "a")
	next, ok := g.Successor("next", []FileContent{{"a", 0o100644, "2"}, {"b", 0o100644, "2"}})
	if got := Delta(g, next).Uncovered; !ok || !slices.Equal(got, []string{"b"}) {
		t.Errorf("uncovered %q, want b", got)
	}
}

func TestAUnionHoldsWhatSomePrefixLeavesUncovered(t *testing.T) {
	first, second := Analysis{Uncovered: []string{"b", "c"}}, Analysis{Uncovered: []string{"a", "b"}}
	if got := Union(first, second).Uncovered; !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("uncovered %q", got)
	}
	if got := Union(first, Analysis{All: true}).Uncovered; got != nil {
		t.Errorf("a change that affects everything has uncovered files: %q", got)
	}
}

func BenchmarkCover100kNodes1MEdges(b *testing.B) {
	g, err := largeBuilder(0).Build()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g.cover(make([]bool, len(g.labels)))
	}
}
