package gograph

import (
	"strconv"
	"strings"

	"landfall.build/engine/targets"
)

// lookup is what an import path leads to in a build list.
type lookup struct {
	nodes []targets.Node
	// last is the node that the edges were added to last: the files of a package
	// import much the same.
	last targets.Node
}

// viewKey names a package as a build list sees it that is not a target there: one of
// another build list's, of a vendor folder, or of a folder that go's wildcards
// pass by. What it is made of depends on the build list, since its own imports do.
type viewKey struct {
	list *listNodes
	dir  string
}

// pendingView is a view whose edges are still to be added: those of a package, or with tests set those of its tests.
type pendingView struct {
	node  targets.Node
	list  *listNodes
	pkg   *pkg
	tests bool
}

// viewOf names a view. The folder's name is quoted where it could be taken for
// another one with the suffix of a build list.
func viewOf(w *listNodes, dir string) string {
	if strings.Contains(dir, " in ") {
		dir = strconv.Quote(dir)
	}
	return "go package " + dir + w.suffix()
}

// view returns the node of a package in a build list, and has it defined if the package
// is there.
func (a *assembler) view(w *listNodes, dir string) targets.Node {
	key := viewKey{w, dir}
	if node, ok := a.views[key]; ok {
		return node
	}
	node := a.builder.Ref(targets.KindDefinition, viewOf(w, dir))
	if f := a.folders[dir]; f != nil && f.pkg != nil && f.pkg.hasLibrary(a.snapshot) {
		a.builder.Definition(viewOf(w, dir), nil)
		a.pending = append(a.pending, pendingView{node: node, list: w, pkg: f.pkg})
	}
	a.views[key] = node
	return node
}

// addView adds a view, and the names that would make it a package.
func (a *assembler) addView(w *listNodes, dir string, add func(targets.Node)) {
	add(a.view(w, dir))
	add(a.builder.Ref(targets.KindListing, sourcesIn(dir)))
}

// addImports makes a node depend on what is imported.
func (a *assembler) addImports(from targets.Node, w *listNodes, imports []string) {
	for _, imported := range imports {
		found := w.imports[imported]
		if found == nil {
			found = &lookup{nodes: a.resolveImport(w, imported), last: -1}
			w.imports[imported] = found
		}
		if found.last == from {
			continue
		}
		found.last = from
		for _, node := range found.nodes {
			a.edge(from, node)
		}
	}
}

// resolveImport finds everything that decides what an import path means, there or not.
func (a *assembler) resolveImport(w *listNodes, imported string) []targets.Node {
	if standard[imported] {
		return nil // Go looks there first, whatever modules there are.
	}
	var nodes []targets.Node
	add := func(node targets.Node) { nodes = append(nodes, node) }
	there := false
	for prefix := imported; prefix != ""; prefix = folderOf(prefix) {
		for _, dir := range w.inside[prefix] {
			there = a.findInModule(w, dir, imported[len(prefix):], add) || there
		}
	}
	if there {
		if longest := w.longest(imported); longest != "" {
			add(a.node(w, longest))
		}
		return nodes
	}
	if w.vendor != nil {
		a.addView(w, below(w.dir, "vendor/"+imported), add)
	}
	if longest := w.longest(imported); longest != "" {
		add(a.node(w, longest))
		return nodes
	}
	for prefix := imported; prefix != ""; prefix = folderOf(prefix) {
		add(a.node(w, prefix))
	}
	return nodes
}

// findInModule finds a package in a module of the repository: rest is what follows
// the module's path, "" or "/…". It reports whether the package is there.
func (a *assembler) findInModule(w *listNodes, moduleDir, rest string, add func(targets.Node)) bool {
	dir := below(moduleDir, strings.TrimPrefix(rest, "/"))
	f := a.folders[dir]
	add(a.builder.Ref(targets.KindDefinition, moduleName(moduleDir)))
	owner := a.moduleAt(moduleDir)
	if owner == nil {
		// A replace directive can name a folder without a go.mod, which go refuses.
		// Whose package the folder holds meanwhile does not matter.
		return false
	}
	if owner.list != nil {
		add(a.builder.Ref(targets.KindTarget, a.targetName(owner, owner.rest(dir))))
		a.addRivalNames(owner, owner.rest(dir), add)
	}
	there := f != nil && f.pkg != nil && f.module == owner && f.pkg.hasLibrary(a.snapshot)
	if there && (f.hidden || owner.list != w.buildList) {
		a.addView(w, dir, add)
	}
	if !there {
		add(a.builder.Ref(targets.KindListing, sourcesIn(dir)))
		a.addObstacles(w, moduleDir, dir, add)
	}
	return there
}

// addObstacles adds what may hide a package that is not in the tree: a submodule
// or a symbolic link on the way to it.
func (a *assembler) addObstacles(w *listNodes, moduleDir, dir string, add func(targets.Node)) {
	for at := dir; at != moduleDir && at != ""; at = folderOf(at) {
		add(a.builder.Ref(targets.KindFile, at))
	}
	if moduleDir != "" {
		add(a.builder.Ref(targets.KindFile, moduleDir))
	}
	way := a.follow(dir, a.links)
	if len(way.via) == 0 {
		return
	}
	a.eachOnPath(way, add)
	if way.ok {
		a.addView(w, way.end, add)
	}
}
