package manifest

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

const (
	libManifest = "lib/landfall.yaml"
	all         = "//:all //app //lib //lib:test"
)

// TestAVersionCoversWhatItMust lists, for each edit of the sample repository,
// the targets whose versions change.
func TestAVersionChangesExactlyWithWhatItCovers(t *testing.T) {
	replace := func(file, old, new string) memoryTree {
		if !strings.Contains(sample[file], old) {
			t.Fatalf("%s does not hold %q", file, old)
		}
		return memoryTree{file: strings.Replace(sample[file], old, new, 1)}
	}
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a source":                         {memoryTree{"lib/a.go": "package other\n"}, all},
		"a source of a test":               {memoryTree{"lib/a_test.go": "package other\n"}, "//lib:test"},
		"a mode":                           {memoryTree{"lib/a.go": "mode 100755 package lib"}, all},
		"a deleted source":                 {memoryTree{"lib/a.go": ""}, all},
		"a new source":                     {memoryTree{"lib/b.go": "package lib\n"}, all},
		"a literal source that disappears": {memoryTree{"app/main.go": ""}, "//:all //app"},
		"test data":                        {memoryTree{"lib/testdata/in": "2\n"}, "//lib:test"},
		"new test data, deep":              {memoryTree{"lib/testdata/a/b/c": "2\n"}, "//lib:test"},
		"an unrelated file":                {memoryTree{"README.md": "other\n"}, ""},
		"a new file in a listed folder":    {memoryTree{"lib/NEW.md": "x\n"}, all},
		"a new folder beside sources":      {memoryTree{"lib/sub/x.go": "package sub\n"}, ""},
		"a file changed in a listed one":   {memoryTree{"lib/notes.txt": "other\n"}, ""},
		"a global input":                   {memoryTree{"go.mod": "module other\n"}, all},
		"a new global input":               {memoryTree{"tools/new.sh": "exit 1\n"}, all},
		"the environment":                  {replace("landfall.yaml", "-mod=mod", "-mod=vendor"), all},
		"an argument of a step":            {replace(libManifest, "build, ./lib", "vet, ./lib"), all},
		"a step's time limit":              {replace(libManifest, "30s", "31s"), "//lib:test"},
		"a cache of a step":                {replace(libManifest, "dir: lib", "dir: lib\n        caches: [go-build]"), "//lib:test"},
		"what a step has to itself":        {replace(libManifest, "dir: lib", "dir: lib\n        exclusive: [db]"), "//lib:test"},
		"a resource of a step":             {replace(libManifest, "dir: lib", "dir: lib\n        resources: {gpus: 1}"), "//lib:test"},
		"a label of a step":                {replace(libManifest, "dir: lib", "dir: lib\n        runs_on: [gpu]"), "//lib:test"},
		"a secret of a step":               {replace(libManifest, "dir: lib", "dir: lib\n        secrets: [TOKEN]"), "//lib:test"},
		"a service of a step":              {replace(libManifest, "dir: lib", "dir: lib\n        services: [{name: db, run: [x]}]"), "//lib:test"},
		"an image of a step":               {replace(libManifest, "dir: lib", "dir: lib\n        image: go@sha256:"+strings.Repeat("0", 64)), "//lib:test"},
		"a group of a step":                {replace(libManifest, "dir: lib", "dir: lib\n        group: [make, check]"), "//lib:test"},
		"how its group reports":            {replace(libManifest, "dir: lib", "dir: lib\n        group: [make, check]\n        group_results: junit"), "//lib:test"},
		"what a step leaves":               {replace(libManifest, "dir: lib", "dir: lib\n        outputs: [out]"), "//lib:test"},
		"a cache of all steps":             {replace("landfall.yaml", "environment:", "caches: [go-build]\nenvironment:"), all},
		"a step's folder":                  {replace(libManifest, "dir: lib", "dir: app"), "//lib:test"},
		"a kind":                           {replace(libManifest, "kind: test", "kind: check"), "//lib:test"},
		"an exclusion":                     {replace(libManifest, `["*_test.go"]`, `["*_test.go", x]`), all},
		"a comment and an order": {memoryTree{libManifest: "# comment\n" + strings.Replace(sample[libManifest],
			`["*_test.go", "testdata/**"]`, "\n    - testdata/** # data\n    - '*_test.go'\n    - '*_test.go'", 1)}, ""},
		"a new target in the same file": {replace(libManifest, "targets:", "targets:\n  - name: new"), "//lib:new"},
		"a manifest in a listed folder": {memoryTree{"lib/sub/landfall.yaml": "targets: [{name: sub}]"}, "//lib/sub"},
		"a manifest in testdata":        {memoryTree{"lib/testdata/landfall.yaml": "targets: [{name: sub}]"}, "//lib:test"},
		"a deleted target":              {memoryTree{"landfall.yaml": "environment: {GOFLAGS: -mod=mod, CGO_ENABLED: 0}\ninputs: [go.mod, 'tools/**']\n"}, "-//:all"},
	} {
		if got := strings.Join(changed(t, sample, sample.with(c.edit)), " "); got != c.want {
			t.Errorf("%s: %q changed, want %q", name, got, c.want)
		}
	}
}

func TestAListedFolderThatAppearsIsADifference(t *testing.T) {
	for _, pattern := range []string{"gen/*.go", "gen/**", "**/x.go", "*/x.go", "gen/sub/*.go", "gen/x.go"} {
		base := memoryTree{"landfall.yaml": "targets: [{name: a, sources: ['" + pattern + "']}]"}
		file := "gen/x.go"
		if strings.Contains(pattern, "sub") {
			file = "gen/sub/x.go"
		}
		if got := changed(t, base, base.with(memoryTree{file: "x"})); !slices.Equal(got, []string{"//:a"}) {
			t.Errorf("%s: %v changed", pattern, got)
		}
	}
}

func TestPatternsSelectWhatTheySay(t *testing.T) {
	files := []string{"a.go", "b.txt", "sub/c.go", "sub/deep/d.go", "sub/deep/e.txt", ".hidden", "x y.go", "[z].go"}
	for pattern, want := range map[string]string{
		"*.go":          "a.go|x y.go|[z].go",
		"**":            "a.go|b.txt|sub/c.go|sub/deep/d.go|sub/deep/e.txt|.hidden|x y.go|[z].go",
		"**/*.go":       "a.go|sub/c.go|sub/deep/d.go|x y.go|[z].go",
		"sub/**":        "sub/c.go|sub/deep/d.go|sub/deep/e.txt",
		"sub/*":         "sub/c.go",
		"*/c.go":        "sub/c.go",
		"**/deep/*":     "sub/deep/d.go|sub/deep/e.txt",
		"**/deep/**/**": "sub/deep/d.go|sub/deep/e.txt",
		"?.go":          "a.go",
		"[ab].*":        "a.go|b.txt",
		"[^a].go":       "",
		"[[]z].go":      "[z].go",
		"*":             "a.go|b.txt|.hidden|x y.go|[z].go",
		"sub/../b.txt":  "b.txt",
		"./a.go":        "a.go",
		"**/e.*":        "sub/deep/e.txt",
		"*/*/*":         "sub/deep/d.go|sub/deep/e.txt",
		"deep/d.go":     "",
	} {
		for _, folder := range []string{"", "root", "odd[a]*"} {
			p, err := parsePattern(folder, pattern)
			if err != nil {
				t.Errorf("%s: %v", pattern, err)
				continue
			}
			tree := memoryTree{}
			var got []string
			for _, file := range files {
				tree[join(folder, file)] = "x"
				if p.MatchesFile(join(folder, file)) {
					got = append(got, file)
				}
			}
			if strings.Join(got, "|") != want {
				t.Errorf("%s in %q selects %q, want %q", pattern, folder, got, want)
			}
			if walked := walkedFiles(t, tree, p); !slices.Equal(walked, slices.Sorted(slices.Values(prefixed(folder, got)))) {
				t.Errorf("%s in %q: walking finds %q, matching %q", pattern, folder, walked, got)
			}
		}
	}
}

func prefixed(folder string, files []string) []string {
	var joined []string
	for _, file := range files {
		joined = append(joined, join(folder, file))
	}
	return joined
}

// walkedFiles returns the files of the tree that walking a pattern finds.
func walkedFiles(t *testing.T, tree memoryTree, p *pattern) []string {
	t.Helper()
	entries, err := tree.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	w := walker{snapshot: newSnapshot(entries), listing: func(string) {}, file: func(path string) {
		if _, ok := tree[path]; ok {
			found = append(found, path)
		}
	}}
	if err := w.walk(p); err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestNamesOfAllKindsAreFiles(t *testing.T) {
	tree := memoryTree{
		"landfall.yaml": "targets: [{name: a, sources: ['**']}]", "b\xff\n\"": "x", "link": "mode 120000", "module": "mode 160000", "d\xff/e": "x",
	}
	graph := mustLoad(t, tree)
	for _, name := range []string{"b\xff\n\"", "link", "module", "d\xff/e"} {
		if label := targets.Label(targets.KindFile, name); !slices.Contains(graph.Dependencies("//:a"), label) {
			t.Errorf("no dependency on %s", label)
		}
	}
}

func TestLabelsAreShortForTheTargetNamedLikeItsFolder(t *testing.T) {
	for text, want := range map[string]string{
		":other": "//a/b:other", ":b": "//a/b", "//a/b": "//a/b", "//a/b:b": "//a/b", "//x": "//x", "//x:y": "//x:y", "//:root": "//:root",
	} {
		if got, err := parseLabel("a/b", text); err != nil || got != want {
			t.Errorf("%s is %q (%v), want %q", text, got, err, want)
		}
	}
}
