package gograph

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

// randomContent changes what one file holds, and mostly not what it says.
func randomContent(random *rand.Rand, tree memoryTree) memoryTree {
	paths := slices.Sorted(maps.Keys(tree))
	path := paths[random.IntN(len(paths))]
	switch random.IntN(6) {
	case 0:
		return memoryTree{path: tree[path] + "\nimport _ \"example.com/m/win\"\n"}
	case 1:
		return memoryTree{path: "package p\n"}
	case 2:
		return memoryTree{path: tree[path] + "//go:embed x.txt\n"}
	}
	return memoryTree{path: tree[path] + "\n// more\n"}
}

// TestADerivedGraphIsTheOneThatIsMadeFromNothing follows random histories with one
// loader, and makes each graph by a new one as well.
func TestADerivedGraphIsTheOneThatIsMadeFromNothing(t *testing.T) {
	random := seedtest.Random(t)
	made, derived := 0, 0
	for _, base := range []memoryTree{
		sample, small,
		sample.with(memoryTree{"go.work": "go 1.26.0\n\nuse (\n\t.\n\t./tools\n)\n", "b/linked.go": "mode 120000 ../shared/real.go", "shared/real.go": "package b\n"}),
		sample.with(memoryTree{"vendor/modules.txt": "# example.org/x v1.2.0\n# example.org/y v1.0.0\n# example.org/z v1.0.0\n", "vendor/example.org/x/sub/x.go": "package sub\n"}),
	} {
		loader := newLoader(t, Options{})
		tree := base
		for i := range pairs(t) / 3 {
			if i%8 == 0 {
				tree = base // Else a link comes soon after which nothing is derived.
			}
			next := tree
			switch random.IntN(8) {
			case 0:
				next = tree.with(randomEdit(random))
			case 1:
				next = tree.with(randomModuleEdit(random))
			default:
				next = tree.with(randomContent(random, tree))
			}
			if !sound(next) {
				continue
			}
			got, err := loader.Load(t.Context(), "", next)
			want, wantErr := newLoader(t, Options{}).Load(t.Context(), "", next)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%q: %v, from nothing %v", next, err, wantErr)
			}
			if err != nil {
				continue
			}
			made++
			if !slices.Equal(got.Unknown(), want.Unknown()) || len(want.Unknown()) == 0 && !same(got, want) {
				t.Fatalf("the graphs differ after\n%q\nand\n%q", tree, next)
			}
			tree = next
		}
		derived += loader.recent.derived
	}
	if derived < made/5 {
		t.Errorf("only %d of %d graphs were derived", derived, made)
	}
	t.Logf("%d of %d graphs were derived", derived, made)
}

func TestAGraphIsDerivedOnlyWhereFilesSayWhatTheySaid(t *testing.T) {
	for name, c := range map[string]struct {
		edit memoryTree
		want int
	}{
		"a comment":             {memoryTree{"a/a.go": sample["a/a.go"] + "// more\n"}, 1},
		"a document":            {memoryTree{"README.md": "more\n"}, 1},
		"an embedded file":      {memoryTree{"b/VERSION": "2\n"}, 1},
		"a header":              {memoryTree{"native/include/c.h": "2\n"}, 1},
		"an import":             {memoryTree{"win/win.go": "package win\n\nimport _ \"os\"\n"}, 0},
		"a constraint":          {memoryTree{"win/win.go": "//go:build windows\n\npackage win\n"}, 0},
		"a pattern":             {memoryTree{"b/b.go": sample["b/b.go"] + "//go:embed more\n"}, 0},
		"an include elsewhere":  {memoryTree{"c/asm_amd64.s": "#include \"../x.h\"\n"}, 0},
		"a new file":            {memoryTree{"a/new.txt": "1\n"}, 0},
		"a mode":                {memoryTree{"a/notes.txt": "mode 100755 notes\n"}, 0},
		"a comment in a go.mod": {memoryTree{"go.mod": sample["go.mod"] + "// more\n"}, 0},
		"a sum":                 {memoryTree{"go.sum": "\n"}, 0},
	} {
		loader := newLoader(t, Options{})
		for _, tree := range []memoryTree{sample, sample.with(c.edit)} {
			if _, err := loader.Load(t.Context(), "", tree); err != nil {
				t.Fatal(err)
			}
		}
		if loader.recent.derived != c.want {
			t.Errorf("after %s %d graphs are derived, want %d", name, loader.recent.derived, c.want)
		}
	}
}

// TestAnOldTreeThatIsGoneIsNoReasonToFail: what a remembered tree held may have left
// the mirror and the memory.
func TestAnOldTreeThatIsGoneIsNoReasonToFail(t *testing.T) {
	loader := newLoader(t, Options{})
	if _, err := loader.Load(t.Context(), "", sample); err != nil {
		t.Fatal(err)
	}
	loader.facts = NewFacts(0)
	next := sample.with(memoryTree{"a/a.go": sample["a/a.go"] + "// more\n"})
	graph, err := loader.Load(t.Context(), "", next)
	if err != nil || !same(graph, load(t, next)) || loader.recent.derived != 0 {
		t.Errorf("%v, %d derived", err, loader.recent.derived)
	}
	fault := errors.New("object is missing")
	if _, err := loader.Load(t.Context(), "", faultyTree{next.with(memoryTree{"b/b.go": "package b // 3\n"}), nil, fault}); !errors.Is(err, fault) {
		t.Errorf("a graph is made of a file that cannot be read: %v", err)
	}
}
