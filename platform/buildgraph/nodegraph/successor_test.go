package nodegraph

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
)

// randomContent changes what one file holds, and mostly not what it refers to.
func randomContent(random *rand.Rand, tree memoryTree) memoryTree {
	paths := slices.Sorted(maps.Keys(tree))
	path := paths[random.IntN(len(paths))]
	if mode, _ := modeOf(tree[path]); mode != 0o100644 {
		return memoryTree{}
	}
	switch random.IntN(6) {
	case 0:
		return memoryTree{path: tree[path] + "import '../../scripts/other'\n"}
	case 1:
		return memoryTree{path: "\n"}
	case 2:
		return memoryTree{path: "require('util-x')\n" + tree[path]}
	}
	return memoryTree{path: tree[path] + "// more\n"}
}

// TestADerivedGraphIsTheOneThatIsMadeFromNothing follows random histories with one loader, and makes each graph by a new
// one as well.
func TestADerivedGraphIsTheOneThatIsMadeFromNothing(t *testing.T) {
	random := seedtest.Random(t)
	made, derived := 0, 0
	for _, base := range []memoryTree{sample, small, folderOfSample(), sample.with(memoryTree{"packages/tool/link.js": "mode 120000 ../../scripts/other.js"})} {
		loader := newLoader(t, Options{})
		tree := base
		for i := range pairs(t) / 3 {
			if i%8 == 0 {
				tree = base
			}
			next := tree.with(randomContent(random, tree))
			if random.IntN(8) == 0 {
				next = tree.with(randomEdit("packages", "app", "lib", "tool")(random))
			}
			if !next.sound() {
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
			if !slices.Equal(got.Unknown(), want.Unknown()) || len(want.Unknown()) == 0 && !same(got, want) {
				t.Fatalf("the graph of %q rests on what was loaded before", next)
			}
			made++
			tree = next
		}
		derived += loader.recent.derived
	}
	if derived < made/4 {
		t.Errorf("only %d of %d graphs were derived", derived, made)
	}
	t.Logf("%d of %d graphs were derived", derived, made)
}

func TestAnEditThatRefersToTheSameIsDerived(t *testing.T) {
	for path, want := range map[string]int{
		"packages/app/src/index.ts": 1, "README.md": 1, "scripts/lib/steps.js": 1, "tsconfig.base.json": 1, "packages/app/package.json": 0, "package-lock.json": 0,
	} {
		loader := newLoader(t, Options{})
		for _, tree := range []memoryTree{sample, sample.with(memoryTree{path: sample[path] + "\n"})} {
			if _, err := loader.Load(t.Context(), "", tree); err != nil {
				t.Fatal(err)
			}
		}
		if loader.recent.derived != want {
			t.Errorf("an edit of %s: %d graphs are derived", path, loader.recent.derived)
		}
	}
}
