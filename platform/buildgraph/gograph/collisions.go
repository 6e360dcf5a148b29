package gograph

import (
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// kindCollision is the kind of a target without commands that a package has besides where another one of its build list has its
// import path but for case: go builds each alone and refuses both together.
const kindCollision = "collision"

// addCollisions makes the packages of each module depend on which of them have one import path but for case.
func (a *assembler) addCollisions(packages []*pkg) {
	type key struct {
		module *repoModule
		path   string
	}
	alike := map[key][]*pkg{}
	for _, p := range packages {
		if platform := a.loading.loader.platform; builtOn(a.snapshot, platform, p.folder, p.sources) || builtOn(a.snapshot, platform, p.folder, p.tests) {
			path := key{p.folder.module, strings.ToLower(p.importPath)} // Import paths are ASCII.
			alike[path] = append(alike[path], p)
		}
	}
	for path, list := range alike {
		var names []string
		for _, p := range list {
			names = append(names, a.targetName(path.module, path.module.rest(p.folder.path)))
		}
		node := a.builder.Definition("go packages "+path.path+" of "+moduleName(path.module.folder.path), normalText("packages", names...))
		for i, p := range list {
			suffix := ""
			if !p.hasLibrary(a.snapshot) {
				suffix = " [test]"
			}
			a.edge(a.builder.Ref(targets.KindTarget, names[i]+suffix), node)
			if len(list) > 1 {
				a.edge(a.target(names[i]+" ["+kindCollision+"]", kindCollision, nil), node)
			}
		}
	}
}

// Collisions returns a sentence in go's words for each pair of packages of a tree that go refuses to build together. Pairs that the
// base has too are left out.
func Collisions(base, tree *targets.Graph) (problems []string) {
	paths := map[string][]string{} // by how they fold
	var added []string
	for t := range tree.Targets() {
		if t.Kind != kindCollision {
			continue
		}
		path, _, _ := strings.Cut(t.Name, " ")
		folded := strings.ToLower(path)
		paths[folded] = append(paths[folded], path)
		if _, had := base.Target(t.Name); !had && !slices.Contains(added, folded) {
			added = append(added, folded)
		}
	}
	for _, folded := range added {
		two := slices.Compact(paths[folded])
		problems = append(problems, fmt.Sprintf("case-insensitive import collision: %q and %q", two[len(two)-1], two[0]))
	}
	return problems
}
