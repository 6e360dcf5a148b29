package gograph

import (
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// Kinds of targets.
const (
	kindLibrary = "library"
	kindTest    = "test"
	kindModule  = "module"
)

// addLibrary defines the package that others import.
func (a *assembler) addLibrary(p *pkg) {
	if !p.hasLibrary(a.snapshot) {
		return
	}
	m, o := p.folder.module, a.loading.loader.options
	var commands []targets.Command
	templates := o.Commands.Library
	untested := len(o.Commands.Untested) > 0 && len(p.tests) == 0
	switch {
	case untested && p.isProgram(a.snapshot):
		templates = slices.Concat(templates, o.Commands.Untested)
	case untested:
		templates = o.Commands.Untested
	}
	if builtOn(a.snapshot, a.loading.loader.platform, p.folder, p.sources) {
		commands = expand(templates, a.site(p), o.Env)
	}
	rest := m.rest(p.folder.path)
	node := a.target(a.targetName(m, rest), kindLibrary, commands)
	a.addRivalNames(m, rest, func(on targets.Node) { a.edge(node, on) })
	a.addSources(node, a.listNodes[m.list], p)
	if untested { // What passed while it had tests was not verified by Untested.
		a.edge(node, a.builder.Ref(targets.KindDefinition, "go package without tests"))
	}
}

// addTest defines the tests of a package: both those inside it and those of
// package x_test. Nothing depends on them.
func (a *assembler) addTest(p *pkg) {
	if len(p.tests) == 0 {
		return
	}
	m, o := p.folder.module, a.loading.loader.options
	var commands []targets.Command
	if builtOn(a.snapshot, a.loading.loader.platform, p.folder, p.tests) {
		commands = expand(o.Commands.Test, a.site(p), o.Env)
	}
	w := a.listNodes[m.list]
	rest := m.rest(p.folder.path)
	name := a.targetName(m, rest)
	node := a.target(name+" [test]", kindTest, commands)
	a.addRivalNames(m, rest, func(on targets.Node) { a.edge(node, on) })
	a.edge(node, a.builder.Ref(targets.KindTarget, name))
	a.edge(node, a.testsNode(p.folder))
	a.edge(node, a.dataNode(p.folder))
	a.addNamed(node, below(p.folder.path, "default.pgo"))
	a.addSurroundings(node, w, p)
	a.addFiles(node, w, p, p.tests)
	a.addReadByTest(node, p)
}

// addModuleTarget defines what is left of a module besides its packages: that
// its requirements can be met at all. No package need be touched by a go.mod that
// breaks every build.
func (a *assembler) addModuleTarget(m *repoModule) {
	o := a.loading.loader.options
	w := a.listNodes[m.list]
	s := site{dir: ".", importPath: m.file.path, module: m.folder.path}
	templates := o.Commands.Module
	if w.vendor != nil || w.unpublished {
		templates = o.Commands.Vendored
	}
	node := a.target(m.moduleTarget(), kindModule, expand(templates, s, o.Env))
	a.edge(node, w.environment)
	a.edge(node, w.requirements)
	a.edge(node, a.modules[m])
	// What go refuses rests on the go lines of all modules of the list together.
	for _, dirs := range w.inside {
		for _, dir := range dirs {
			a.edge(node, a.builder.Ref(targets.KindDefinition, moduleName(dir)))
		}
	}
	a.addNamed(node, below(m.folder.path, "go.mod"))
	a.addNamed(node, below(w.dir, "vendor/modules.txt"))
	a.addFolderInputs(node, m.folder)
}

func (a *assembler) site(p *pkg) site {
	m := p.folder.module
	return site{dir: strings.TrimSuffix("./"+m.rest(p.folder.path), "/"), importPath: p.importPath, module: m.folder.path}
}

// addSources makes a node depend on everything that a package is made from, in a
// build list.
func (a *assembler) addSources(node targets.Node, w *listNodes, p *pkg) {
	a.edge(node, a.sourcesNode(p.folder))
	a.noteReader(node, p)
	if p.unhashed {
		a.unhashed = append(a.unhashed, node)
	}
	if p.native {
		// The C compiler looks for what is included in whatever lies below, another module or not.
		a.addPath(node, p.folder.path)
		a.addReached(node, p)
	}
	// The go command builds a program by the profile that lies beside it, there or not (-pgo=auto).
	a.addNamed(node, below(p.folder.path, "default.pgo"))
	a.addSurroundings(node, w, p)
	a.addFiles(node, w, p, p.sources)
}

// addSurroundings makes a node depend on what holds for all packages of a module
// or a folder.
func (a *assembler) addSurroundings(node targets.Node, w *listNodes, p *pkg) {
	a.edge(node, w.environment)
	m := p.folder.module
	if m != nil {
		a.edge(node, a.modules[m])
	}
	// A go.mod on the way up would take the package into another module.
	for f := p.folder; f.parent != nil && (m == nil || f != m.folder); f = f.parent {
		a.edge(node, a.borderNode(f))
	}
	a.addFolderInputs(node, p.folder)
}

func (a *assembler) addFolderInputs(node targets.Node, f *folder) {
	for _, in := range a.loading.loader.inputs {
		if in.holdsFor(f.path) {
			a.addInputs(node, in.files)
		}
	}
}

// addFiles makes a node depend on files and on what these say.
func (a *assembler) addFiles(node targets.Node, w *listNodes, p *pkg, files []source) {
	for _, one := range files {
		a.addFile(node, one.entry)
		if one.facts == nil {
			continue
		}
		a.addImports(node, w, one.facts.imports)
		for _, text := range one.facts.embeds {
			a.addEmbedded(node, p.folder.path, text)
		}
	}
}

// addEmbedded makes a node depend on the files that a pattern of //go:embed
// selects in this tree, and on the names that decide it: a go.mod on the way to a file among them, behind which go
// refuses to embed anything.
func (a *assembler) addEmbedded(node targets.Node, dir, text string) {
	text, all := strings.CutPrefix(text, "all:")
	a.from, a.selection.all = node, all
	pattern, _ := glob.Parse(path.Clean(text)) // what is no pattern selects nothing
	a.selection.walk(dir, pattern)
	for len(pattern) > 1 && pattern[0].Kind == glob.Literal {
		dir, pattern = below(dir, pattern[0].Text), pattern[1:]
		a.addNamed(node, below(dir, "go.mod"))
	}
}
