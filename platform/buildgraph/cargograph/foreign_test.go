package cargograph

import (
	"testing"

	"landfall.build/engine/targets"
)

// A folder named vendor counts only once something leads into it. The globs of a workspace there are followed from then on.
func TestM3ALinkInAWorkspaceThatIsNoTargetMeetsWhatLeadsThere(t *testing.T) {
	base := memoryTree{
		"Cargo.toml":              "[workspace]\nmembers = [\"app\"]\n",
		"app/Cargo.toml":          "[package]\nname = \"app\"\n",
		"app/src/lib.rs":          "",
		"vendor/v/Cargo.toml":     "[workspace]\nmembers = [\"**\"]\n",
		"vendor/v/sub/Cargo.toml": "[package]\nname = \"sub\"\n",
		"vendor/v/sub/src/lib.rs": "",
	}
	with := func(file, content string) memoryTree {
		tree := memoryTree{file: content}
		for path, text := range base {
			if path != file {
				tree[path] = text
			}
		}
		return tree
	}
	load := func(tree memoryTree) *targets.Graph {
		t.Helper()
		graph, err := newLoader(t, Options{}).Load(t.Context(), "", tree)
		if err != nil {
			t.Fatal(err)
		}
		if unknown := graph.Unknown(); len(unknown) > 0 {
			t.Fatal(unknown)
		}
		return graph
	}
	before := load(base)
	link := targets.Delta(before, load(with("vendor/v/link", "mode 120000 sub")))
	for what, tree := range map[string]memoryTree{
		"a workspace that names it":      with("Cargo.toml", "[workspace]\nmembers = [\"app\", \"vendor/v\"]\n"),
		"a package that needs one of it": with("app/Cargo.toml", "[package]\nname = \"app\"\n[dependencies]\nsub = {path = \"../vendor/v/sub\"}\n"),
	} {
		leads := targets.Delta(before, load(tree))
		if !leads.Footprint().Meets(link.Footprint(), nil).Conflict() {
			t.Errorf("%s is independent of a link that its globs would lead through", what)
		}
	}
}
