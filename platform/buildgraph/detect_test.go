package buildgraph

import (
	"reflect"
	"testing"

	"landfall.build/platform/configuration"
)

func TestTheAdaptersAreThoseThatFitATree(t *testing.T) {
	type use = configuration.AdapterUse
	for name, c := range map[string]struct {
		paths []string
		want  []use
		root  string
	}{
		"nothing":                            {[]string{"README.md", "testdata/go.mod"}, nil, ""},
		"a Go module":                        {[]string{"go.mod", "a/a.go", "a/testdata/go.mod"}, []use{{Adapter: "go"}}, ""},
		"a manifest in the root":             {[]string{"go.mod", "landfall.yaml"}, []use{{Adapter: "manifest"}}, ""},
		"a manifest below a module":          {[]string{"go.mod", "sql/landfall.yaml", "x/_y/z/landfall.yaml"}, []use{{Adapter: "manifest", Except: []string{"x/_y"}}, {Adapter: "go"}}, ""},
		"Bazel alone":                        {[]string{"MODULE.bazel", "a/go.mod"}, []use{{Adapter: "bazel"}}, ""},
		"Bazel beside a module":              {[]string{"MODULE.bazel", "go.mod"}, []use{{Adapter: "go"}}, ""},
		"four build systems":                 {[]string{"go.mod", "web/package.json", "web/node_modules/x/package.json", "core/Cargo.toml", "ml/pyproject.toml"}, []use{{Adapter: "go"}, {Adapter: "node", Except: []string{"web/node_modules"}}, {Adapter: "cargo"}, {Adapter: "python"}}, ""},
		"crates in a folder":                 {[]string{"Cargo.toml", ".cargo/config.toml", "vendor/x/Cargo.toml", "a/fixtures/Cargo.toml"}, []use{{Adapter: "cargo", Except: []string{"a/fixtures"}}}, ""},
		"a vendor folder that nothing names": {[]string{"Cargo.toml", "vendor/x/Cargo.toml"}, []use{{Adapter: "cargo", Except: []string{"vendor"}}}, ""},
		"Bazel below the root":               {[]string{"a/MODULE.bazel"}, nil, ""},
		"edges alone in the root":            {[]string{"go.mod", "landfall.yaml", "web/package.json"}, []use{{Adapter: "manifest"}, {Adapter: "go"}, {Adapter: "node"}}, "edges:\n  - from: node://web\n    to: [example.com/gen]\n"},
		"edges and a target":                 {[]string{"go.mod", "landfall.yaml"}, []use{{Adapter: "manifest"}}, "targets:\n  - name: a\nedges:\n  - from: :a\n    to: [example.com/gen]\n"},
	} {
		if got := Fitting(Detect(c.paths, c.root)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
