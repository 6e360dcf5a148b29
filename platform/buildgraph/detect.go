package buildgraph

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

// Sighting is a build system that a tree holds.
type Sighting struct {
	Adapter configuration.Adapter
	// Files are those that it was recognised by, those nearer to the root first.
	Files []string
	// Foreign are patterns of folders with more of its files, sorted, which hold something else: fixtures, or copies of what
	// others made.
	Foreign []string
	// EdgesAlone reports whether it is manifests, and that in the root has edges and nothing else.
	EdgesAlone bool
}

// marks are the names of files that a build system is recognised by.
var marks = []struct {
	adapter configuration.Adapter
	names   []string
}{
	{configuration.AdapterManifest, []string{manifest.FileName}},
	{configuration.AdapterGo, []string{"go.mod", "go.work"}},
	{configuration.AdapterNode, []string{"package.json"}},
	{configuration.AdapterCargo, []string{"Cargo.toml"}},
	{configuration.AdapterPython, []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"}},
	{configuration.AdapterBazel, []string{"MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel"}},
}

// DetectIn returns the build systems that a tree holds.
func DetectIn(ctx context.Context, repo Repository, tree string) ([]Sighting, error) {
	entries, err := repo.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	paths, root := make([]string, len(entries)), ""
	for i, e := range entries {
		paths[i] = e.Path
		if e.Path == manifest.FileName && e.Kind == gitrepo.File {
			text, err := repo.Blob(ctx, e.Object, maxRootManifest)
			if err != nil && !errors.Is(err, gitrepo.ErrTooLarge) {
				return nil, err
			}
			root = string(text)
		}
	}
	return Detect(paths, root), nil
}

// maxRootManifest bounds what is read of the root's manifest: a longer one is no manifest.
const maxRootManifest = 1 << 20

// Detect returns the build systems that a tree with these paths holds; root is the content of the root's manifest, if there
// is one. Of Bazel the root alone counts: a workspace below it is one of its own.
func Detect(paths []string, root string) []Sighting {
	var found []Sighting
	for _, mark := range marks {
		s := Sighting{Adapter: mark.adapter}
		for _, p := range paths {
			if !slices.Contains(mark.names, path.Base(p)) || mark.adapter == configuration.AdapterBazel && path.Base(p) != p {
				continue
			}
			if folder := foreignFolder(p); folder != "" && mark.adapter == configuration.AdapterCargo && isSource(folder, paths) {
				continue // Cargo reads its manifests, and they are no packages of the repository.
			} else if folder != "" {
				s.Foreign = append(s.Foreign, special.Replace(folder))
			} else {
				s.Files = append(s.Files, p)
			}
		}
		if len(s.Files) == 0 {
			continue
		}
		slices.SortFunc(s.Files, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
		})
		s.EdgesAlone = mark.adapter == configuration.AdapterManifest && s.Files[0] == manifest.FileName && manifest.EdgesAlone([]byte(root))
		slices.Sort(s.Foreign)
		s.Foreign = slices.Compact(s.Foreign)
		found = append(found, s)
	}
	return found
}

// isSource reports whether a folder is one from which Cargo may take external packages: there is a configuration beside it.
func isSource(folder string, paths []string) bool {
	if path.Base(folder) != "vendor" {
		return false
	}
	config := path.Join(path.Dir(folder), ".cargo/config")
	return slices.Contains(paths, config) || slices.Contains(paths, config+".toml")
}

// foreignFolder returns the topmost folder on the way to a file that holds something else; "" for none.
func foreignFolder(file string) string {
	end := 0
	for folder := range strings.SplitSeq(path.Dir(file), "/") {
		end += len(folder)
		switch folder {
		case "testdata", "vendor", "node_modules", "third_party", "fixtures", "__fixtures__":
			return file[:end]
		}
		if strings.HasPrefix(folder, "_") {
			return file[:end]
		}
		end++
	}
	return ""
}

// special makes a pattern of a folder's name.
var special = strings.NewReplacer("*", "?", "[", "?", "\\", "?")

// maxExcept bounds how many folders Fitting keeps an adapter from.
const maxExcept = 100

// Fitting returns the adapters for what a tree holds; none if there is nothing to tell targets by. A manifest in the root
// speaks for the whole tree, unless it has edges alone. So does a Bazel workspace, unless another build system begins in the root too: that one's
// targets are found without running anything of the tree's. Else every build system has its part.
func Fitting(found []Sighting) []configuration.AdapterUse {
	var uses []configuration.AdapterUse
	bazel, inRoot := false, false
	for _, s := range found {
		switch {
		case s.Adapter == configuration.AdapterManifest && s.Files[0] == manifest.FileName && !s.EdgesAlone:
			return []configuration.AdapterUse{{Adapter: s.Adapter}}
		case s.Adapter == configuration.AdapterBazel:
			bazel = true
			continue
		}
		inRoot = inRoot || !strings.Contains(s.Files[0], "/") && !s.EdgesAlone
		use := configuration.AdapterUse{Adapter: s.Adapter}
		if s.Adapter != configuration.AdapterGo { // it knows for itself what is a fixture
			use.Except = slices.Clip(s.Foreign[:min(len(s.Foreign), maxExcept)])
		}
		uses = append(uses, use)
	}
	if bazel && !inRoot {
		return []configuration.AdapterUse{{Adapter: configuration.AdapterBazel}}
	}
	return uses
}

// SetAdapters has a queue use these adapters; none: the whole repository is one target.
func SetAdapters(analysis *configuration.Analysis, uses []configuration.AdapterUse) {
	analysis.Adapters = nil
	switch {
	case len(uses) == 0:
		analysis.Adapter = configuration.AdapterWholeRepository
	case len(uses) == 1 && !restricts(uses[0]):
		analysis.Adapter = uses[0].Adapter
	default:
		analysis.Adapter, analysis.Adapters = configuration.AdapterAuto, uses
	}
}
