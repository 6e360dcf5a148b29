package cargograph

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/targets"
)

// assembler puts a survey into the engine's builder.
type assembler struct {
	*loading
	builder *targets.Builder
	edges   int

	files []targets.Node // by entry
	// wholes are the nodes of folders that count with all in and below them.
	wholes map[string]targets.Node
	// endings are those of folders with the files whose paths have an end.
	endings map[string]targets.Node
	// codes, views and features are the nodes of crates, the latter two by workspace.
	codes    map[*crate]targets.Node
	views    map[viewKey]targets.Node
	features map[viewKey]targets.Node
	pending  []func()
	seen     map[targets.Node]bool
	facts    map[int32]*sourceFacts
	inputs   []input
	// readMore reads the facts of further files; failed is its first error.
	readMore func(at []int32) error
	failed   error
}

// viewKey is a crate as it is built in a workspace.
type viewKey struct {
	crate     *crate
	workspace *workspace
}

// assemble makes the graph.
func (l *loading) assemble(ctx context.Context, id string) (*targets.Graph, error) {
	a := &assembler{
		loading: l, builder: targets.NewBuilder(Scheme, id), wholes: map[string]targets.Node{}, endings: map[string]targets.Node{}, codes: map[*crate]targets.Node{},
		views: map[viewKey]targets.Node{}, features: map[viewKey]targets.Node{}, facts: map[int32]*sourceFacts{},
	}
	a.readMore = func(at []int32) error { return a.readFacts(ctx, at) }
	if err := a.readSources(ctx); err != nil {
		return nil, err
	}
	a.addTree()
	a.addInputs()
	for _, dir := range slices.Sorted(maps.Keys(l.crates)) {
		a.addPlace(l.crates[dir])
	}
	for _, w := range l.workspaces {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a.addWorkspace(w)
		for _, c := range w.members {
			a.addTargets(c, w)
		}
	}
	for len(a.pending) > 0 && a.failed == nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		next := a.pending[len(a.pending)-1]
		a.pending = a.pending[:len(a.pending)-1]
		next()
	}
	if a.failed != nil {
		return nil, a.failed
	}
	if a.edges > maxEdges || a.work > maxWork {
		a.noteIncomplete("the packages lead to more than can be followed")
	}
	for _, reason := range a.incomplete {
		a.builder.Incomplete(reason)
	}
	return a.builder.Build()
}

func (a *assembler) edge(from, to targets.Node) {
	if a.edges++; a.edges <= maxEdges {
		a.builder.Edge(from, to)
	}
}

func (a *assembler) file(path string) targets.Node { return a.builder.Ref(targets.KindFile, path) }

func (a *assembler) listing(dir, which string) targets.Node {
	return a.builder.Ref(targets.KindListing, listing(dir, which))
}

func (a *assembler) definition(format string, args ...any) targets.Node {
	return a.builder.Ref(targets.KindDefinition, "cargo:"+fmt.Sprintf(format, args...))
}

func (a *assembler) define(content string, format string, args ...any) targets.Node {
	return a.builder.Definition("cargo:"+fmt.Sprintf(format, args...), []byte(content))
}

// addTree defines every file and listing, used or not (the engine's contract).
func (a *assembler) addTree() {
	a.files = make([]targets.Node, len(a.entries))
	for i := range a.entries {
		e := &a.entries[i]
		a.files[i] = a.builder.File(e.Path, e.Mode, e.Object)
	}
	a.listings(func(name string, names []string) { a.builder.Listing(name, names) })
	a.addManifests()
	if a.options.Closed {
		a.close()
	}
}

const allManifests = "all manifests"

// addManifests defines the manifests of all packages.
func (a *assembler) addManifests() {
	var paths []string
	var found []targets.Node
	for i := range a.entries {
		if file := a.entries[i].Path; nameOf(file) == manifestName {
			paths, found = append(paths, file), append(found, a.files[i])
		}
	}
	node := a.define(strings.Join(paths, "\n"), allManifests)
	for _, file := range found {
		a.edge(node, file)
	}
}

// close has steps find what their targets depend on alone, and what cargo looks for in all packages: manifests and configuration, the
// names of the files from which crates are built, and of what is in folders that it takes for members. Folders of external packages
// are there as they are.
func (a *assembler) close() {
	a.builder.Closed()
	for i := range a.entries {
		file := a.entries[i].Path
		switch path.Base(file) {
		case manifestName, "Cargo.lock", "rust-toolchain", "rust-toolchain.toml":
			a.builder.InEveryWorkspace(file)
		case "config", "config.toml":
			if path.Base(path.Dir(file)) == ".cargo" {
				a.builder.InEveryWorkspace(file)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(a.crates)) {
		pkg := a.crates[dir].manifest.pkg
		if pkg == nil {
			continue
		}
		for _, file := range slices.Concat(pkg.code, pkg.tests, []string{pkg.build, "build.rs", "src/lib.rs", "src/main.rs"}) {
			if file, inside := join(dir, file); inside && file != dir {
				a.builder.NameInEveryWorkspace(file)
			}
		}
		for _, file := range a.namedTargets(dir) {
			a.builder.NameInEveryWorkspace(file)
		}
	}
	for _, w := range a.workspaces {
		for _, dir := range w.hollow {
			a.eachBelow(dir, a.builder.NameInEveryWorkspace)
		}
		for _, dir := range slices.Concat(w.directories, w.registries) {
			a.eachBelow(dir, a.builder.InEveryWorkspace)
		}
	}
}

// eachBelow calls f with the path of each file in and below a folder.
func (a *assembler) eachBelow(dir string, f func(path string)) {
	for i := range a.entries {
		if file := a.entries[i].Path; within(dir, file) {
			f(file)
		}
	}
}

// namedTargets returns the files from which cargo builds the programs, tests, examples and benchmarks of a package that its manifest
// names without a path.
func (a *assembler) namedTargets(dir string) (files []string) {
	for _, folder := range []string{"src/bin", "tests", "examples", "benches"} {
		f := a.folders[below(dir, folder)]
		if f == nil {
			continue
		}
		for _, i := range f.files {
			if file := a.entries[i].Path; path.Ext(file) == ".rs" {
				files = append(files, file)
			}
		}
		for _, sub := range f.subs {
			files = append(files, below(sub.path, "main.rs"))
		}
	}
	return files
}

// addPlace defines what a Cargo.toml means to the packages below it, and what they can inherit from it.
func (a *assembler) addPlace(c *crate) {
	a.builder.Interprets(a.entries[c.folder.manifest].Path)
	content := "package"
	if w := c.manifest.workspace; w != nil {
		content = fmt.Sprintf("workspace, package %v", c.manifest.pkg != nil)
		if len(w.exclude) > 0 {
			content += fmt.Sprintf(", without %q but for %q", w.exclude, literals(w.members))
		}
		for _, key := range slices.Sorted(maps.Keys(w.values)) {
			a.define(string(w.values[key]), "%s of %s", key, below(c.path, manifestName))
		}
	} else if c.manifest.pkg.root != "" {
		content = "package of " + strconv.Quote(c.manifest.pkg.root)
	}
	place := a.define(content, "place %s", below(c.path, manifestName))
	if len(c.walked) > 0 && !slices.Contains(a.workspaces, c.root) {
		a.addWalked(place, c) // No target stands for this workspace, and its globs are followed all the same.
	}
	if c.target {
		a.define("", "border %s", below(c.path, manifestName))
	}
}

// literals are the entries of members that keep an excluded folder in.
func literals(members []string) []string {
	var kept []string
	for _, text := range members {
		if !strings.ContainsAny(text, "*?[") {
			kept = append(kept, text)
		}
	}
	slices.Sort(kept)
	return kept
}

// addWorkspace defines what all targets of a workspace rest on, its external packages, and the target of the workspace itself.
func (a *assembler) addWorkspace(w *workspace) {
	settings := a.define(fmt.Sprintf("%s\nseparate features %v\nlocked %v\n%s", w.manifest.settings, w.separatesFeatures(), w.lock != nil,
		strings.Join(w.wrong, "\n")), "workspace %s", below(w.path, manifestName))
	a.edge(settings, a.definition("environment"))
	for _, dir := range w.hollow {
		a.edge(settings, a.listing(dir, everything))
	}
	for dir := range around(w.path) {
		for _, name := range slices.Concat(configNames, toolFiles) {
			a.addPath(settings, below(dir, name))
		}
	}
	for _, config := range w.configs {
		a.builder.Interprets(config.path)
		a.addNamed(settings, config)
	}
	a.addDirectories(settings, w)

	whole := a.builder.Target(label(w.path)+" [workspace]", "workspace", a.options.expand(a.options.Commands.Workspace, w, nil))
	a.edge(whole, settings)
	a.edge(whole, a.listing(w.path, ofManifests))
	for _, c := range w.foreign {
		a.edge(whole, a.definition("place %s", below(c.path, manifestName)))
		a.edge(whole, a.files[c.folder.manifest]) // What it leads to is looked for members.
	}
	a.addWalked(whole, w.crate)
	a.addPath(whole, below(w.path, manifestName))
	a.addPath(whole, below(w.path, "Cargo.lock"))
	if w.lock != nil {
		a.builder.Interprets(below(w.path, "Cargo.lock"))
		a.addExternals(w)
	} else {
		a.addUnlocked(w)
	}
	for _, c := range w.built {
		a.edge(whole, a.manifestNode(c))
		for _, d := range w.needs(c) {
			a.addAbsent(whole, d)
		}
	}
	for _, c := range a.crates {
		if c.root == w {
			// Also what is no member of it: which of these say what cannot be meant is a matter of the workspace.
			a.edge(whole, a.files[c.folder.manifest])
		}
	}
	for i := range a.entries {
		if file := a.entries[i].Path; nameOf(file) == manifestName && within(w.path, file) && !a.plain(folderOf(file)) {
			a.edge(whole, a.files[i]) // It can be one of these once something leads to it.
		}
	}
	for _, p := range w.patches {
		a.addAbsent(whole, p)
	}
	if w.manifest.workspace != nil {
		for _, text := range w.manifest.workspace.members {
			if dir, ok := join(w.path, text); ok && !strings.ContainsAny(text, "*?[") {
				a.addPath(whole, below(dir, manifestName))
			}
		}
	}
}

// addWalked makes a node depend on the folders and links that the globs of a crate's [workspace] look at.
func (a *assembler) addWalked(from targets.Node, c *crate) {
	for _, dir := range c.walked {
		a.edge(from, a.listing(dir, ofFolders))
		for at := dir; at != ""; at = folderOf(at) {
			a.edge(from, a.file(at)) // No link may come to stand on the way.
		}
	}
}

// toolFiles decide which toolchain is used and how its other tools work; they are looked for upwards.
var toolFiles = []string{"rust-toolchain", "rust-toolchain.toml", "clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml"}

// addNamed makes a node depend on the files that a configuration file names: runners, linkers, scripts.
func (a *assembler) addNamed(from targets.Node, config placedConfig) {
	for _, text := range config.relatives {
		if path, ok := join(config.base, text); ok {
			a.addPath(from, path)
		}
	}
	for _, text := range config.texts {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ' ' || r == '=' || r == ',' }) {
			word = strings.TrimPrefix(word, "-T")
			if path, ok := join(config.base, word); ok && path != config.base && strings.ContainsAny(word, "./") && !isDots(word) {
				if slices.Contains(config.directories, word) {
					continue // Each external package covers its own part of it.
				}
				a.addPath(from, path)
			}
		}
	}
}

// addAbsent makes a node depend on no Cargo.toml being where a dependency's path leads.
func (a *assembler) addAbsent(from targets.Node, d reference) {
	if to := a.crates[d.dir]; d.inFolder && (to == nil || to.manifest.pkg == nil) {
		a.addPath(from, below(d.dir, manifestName))
	}
}

// addTargets defines the targets of a package.
func (a *assembler) addTargets(c *crate, w *workspace) {
	code := a.builder.Target(label(c.path), "package", a.options.expand(a.options.Commands.Package, w, c))
	a.edge(code, a.codeNode(c))
	a.edge(code, a.definition("workspace %s", below(w.path, manifestName)))
	a.addDependencies(code, c, w, forCode)
	if !w.separatesFeatures() {
		// The code is built with the features that its tests ask for, and those that what these need asks for.
		a.addFeatures(code, c, w, forTests)
	}
	test := a.builder.Target(label(c.path)+" [test]", "test", a.options.expand(a.options.Commands.Test, w, c))
	a.edge(test, code)
	a.addDependencies(test, c, w, forTests)
	a.addTestFiles(test, c)
}

// manifestNode returns the node of what a package's own Cargo.toml means, with what decides about its workspace.
func (a *assembler) manifestNode(c *crate) targets.Node {
	node := a.definition("manifest %s", below(c.path, manifestName))
	if !a.first(node) {
		return node
	}
	a.define("", "manifest %s", below(c.path, manifestName))
	a.edge(node, a.files[c.folder.manifest])
	for dir := range around(c.path) {
		a.edge(node, a.definition("place %s", below(dir, manifestName)))
		if dir == c.root.path && c.root.manifest.workspace != nil {
			break
		}
		if around := a.crates[dir]; around != nil && around.manifest.pkg != nil && around.manifest.pkg.root != "" {
			if root, ok := join(dir, around.manifest.pkg.root); ok {
				a.edge(node, a.definition("place %s", below(root, manifestName)))
			}
		}
	}
	a.edge(node, a.definition("place %s", below(c.root.path, manifestName)))
	for _, key := range c.manifest.pkg.inherited {
		a.edge(node, a.definition("%s of %s", key, below(c.root.path, manifestName)))
	}
	return node
}

// addDependencies makes a node depend on what a crate needs for a purpose.
func (a *assembler) addDependencies(from targets.Node, c *crate, w *workspace, purpose purpose) {
	for _, d := range c.deps {
		if d.purpose == purpose && d.inFolder {
			a.addAbsent(from, d)
			a.addCrate(from, a.crates[d.dir], w)
		}
	}
	a.addLocked(from, c, w, purpose)
}

// addCrate makes a node depend on a crate as it is built in a workspace.
func (a *assembler) addCrate(from targets.Node, c *crate, w *workspace) {
	if c == nil || c.manifest.pkg == nil {
		return
	}
	a.edge(from, a.builtNode(c, w))
}

func (a *assembler) builtNode(c *crate, w *workspace) targets.Node {
	if a.placed[c] == w {
		return a.builder.Ref(targets.KindTarget, label(c.path))
	}
	key := viewKey{c, w}
	node, ok := a.views[key]
	if !ok {
		node = a.define("", "%s in %s", label(c.path), below(w.path, manifestName))
		a.views[key] = node
		a.pending = append(a.pending, func() {
			a.edge(node, a.codeNode(c))
			a.addDependencies(node, c, w, forCode)
		})
	}
	return node
}

// addFeatures makes a node depend on what decides which features the dependencies of a crate are built with: manifests and
// external packages, no code.
func (a *assembler) addFeatures(from targets.Node, c *crate, w *workspace, purpose purpose) {
	for _, d := range c.deps {
		to := a.crates[d.dir]
		if d.purpose != purpose || !d.inFolder {
			continue
		}
		a.addAbsent(from, d)
		if to == nil || to.manifest.pkg == nil {
			continue
		}
		key := viewKey{to, w}
		node, ok := a.features[key]
		if !ok {
			node = a.define("", "features of %s in %s", label(to.path), below(w.path, manifestName))
			a.features[key] = node
			a.pending = append(a.pending, func() {
				a.edge(node, a.manifestNode(to))
				a.addFeatures(node, to, w, forCode)
			})
		}
		a.edge(from, node)
	}
	a.addLocked(from, c, w, purpose)
}
