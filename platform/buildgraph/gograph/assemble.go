package gograph

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// assembler puts a survey into the engine's builder.
type assembler struct {
	*survey
	loading *loading
	builder *targets.Builder
	edges   int

	files       []targets.Node // by entry
	folderNodes []folderNodes  // by folder
	listNodes   map[*buildList]*listNodes
	modules     map[*repoModule]targets.Node
	views       map[viewKey]targets.Node
	pending     []pendingView
	outside     map[string]targets.Node // by the path that tests name
	everything  map[string]targets.Node // by the folder that tests may read all of
	testsBelow  map[string]targets.Node // by the folder whose tests tests may run
	tests       []testTarget
	readers     []*reader
	readerOf    map[*pkg]*reader
	defined     []definedTarget
	unhashed    []targets.Node // nodes of packages that go does not hash as a whole
	selection   matcher
	from        targets.Node // what the selection belongs to
}

// definedTarget is a target whose commands wait for all edges.
type definedTarget struct {
	name, kind string
	commands   []targets.Command
}

// target returns the node of a target that is there.
func (a *assembler) target(name, kind string, commands []targets.Command) targets.Node {
	a.defined = append(a.defined, definedTarget{name, kind, commands})
	return a.builder.Ref(targets.KindTarget, name)
}

// ownCache are variables with which the go command has its cache in the step's HOME, which is empty.
var ownCache = []string{"GOCACHE=", "XDG_CACHE_HOME="}

// define defines the targets. Go's build cache goes by what go hashes, so that it has wrong objects for packages that include
// anything else: their steps, and those of all that is linked with them, share none.
func (a *assembler) define() {
	var alone []bool
	if len(a.unhashed) > 0 {
		alone = a.builder.Dependents(a.unhashed)
	}
	for _, t := range a.defined {
		if node := a.builder.Ref(targets.KindTarget, t.name); alone != nil && int(node) < len(alone) && alone[node] {
			for i := range t.commands {
				t.commands[i].Env = withVariables(t.commands[i].Env, ownCache)
			}
		}
		a.builder.Target(t.name, t.kind, t.commands)
	}
}

// withVariables returns an environment with some variables set, sorted.
func withVariables(env, set []string) []string {
	all := slices.Clone(set)
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") }) {
			all = append(all, entry)
		}
	}
	slices.Sort(all)
	return all
}

// folderNodes holds the nodes of a folder; -1 for one that nothing refers to yet.
type folderNodes struct{ sources, tests, all, data, border targets.Node }

// refer returns a node of a folder, there or not.
func (a *assembler) refer(node *targets.Node, kind targets.Kind, name func(dir string) string, f *folder) targets.Node {
	if *node < 0 {
		*node = a.builder.Ref(kind, name(f.path))
	}
	return *node
}

func (a *assembler) sourcesNode(f *folder) targets.Node {
	return a.refer(&a.folderNodes[f.index].sources, targets.KindListing, sourcesIn, f)
}

func (a *assembler) testsNode(f *folder) targets.Node {
	return a.refer(&a.folderNodes[f.index].tests, targets.KindListing, testsIn, f)
}

func (a *assembler) dataNode(f *folder) targets.Node {
	return a.refer(&a.folderNodes[f.index].data, targets.KindDefinition, dataOf, f)
}

func (a *assembler) borderNode(f *folder) targets.Node {
	return a.refer(&a.folderNodes[f.index].border, targets.KindDefinition, moduleName, f)
}

// assemble makes the graph.
func (l *loading) assemble(ctx context.Context, id string, s *survey) (*targets.Graph, error) {
	a := &assembler{
		survey: s, loading: l, builder: targets.NewBuilder(Scheme, id),
		listNodes: map[*buildList]*listNodes{}, modules: map[*repoModule]targets.Node{}, views: map[viewKey]targets.Node{}, outside: map[string]targets.Node{},
		everything: map[string]targets.Node{}, testsBelow: map[string]targets.Node{}, readerOf: map[*pkg]*reader{},
	}
	a.selection = matcher{s: s, file: func(i int32) { a.addFile(a.from, i) }, examined: func(path string, isFile bool) {
		if isFile {
			a.edge(a.from, a.builder.Ref(targets.KindFile, path))
		}
		a.edge(a.from, a.builder.Ref(targets.KindListing, allBelow(path)))
	}}
	a.addTree()
	for _, m := range s.modules {
		a.addModule(m)
	}
	a.addNamesakes()
	for _, dir := range slices.Sorted(maps.Keys(s.works)) {
		a.addWorkspace(dir, s.works[dir])
	}
	for _, dir := range slices.Sorted(maps.Keys(s.vendors)) {
		a.builder.Definition(vendorName(folderOf(dir)), normalText("workspace", strconv.FormatBool(s.vendors[dir].ofWorkspace())))
	}
	for _, list := range s.lists {
		if err := a.addList(ctx, list); err != nil {
			return nil, err
		}
	}
	if err := a.addTargets(ctx); err != nil {
		return nil, err
	}
	a.define()
	for _, reason := range a.incomplete {
		a.builder.Incomplete(reason)
	}
	return a.builder.Build()
}

// addTargets defines the packages of all modules, and then, round by round, what
// they import from elsewhere, so that files are read in few goes.
func (a *assembler) addTargets(ctx context.Context) error {
	var packages []*pkg
	for _, f := range a.all {
		if f.pkg != nil && !f.hidden && f.module != nil && f.module.list != nil {
			packages = append(packages, f.pkg)
		}
	}
	if err := a.loading.readPackages(ctx, a.survey, packages); err != nil {
		return err
	}
	for _, m := range a.survey.modules {
		if m.list != nil {
			a.addModuleTarget(m)
		}
	}
	for i, p := range packages {
		if i%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		a.addLibrary(p)
		a.addTest(p)
	}
	a.addCollisions(packages)
	if err := a.addPending(ctx); err != nil {
		return err
	}
	a.addReadByHelpers()
	if err := a.addPending(ctx); err != nil {
		return err
	}
	if a.edges > maxEdges {
		a.noteIncomplete("the graph has more than %d edges", maxEdges)
	}
	if a.selection.work > maxMatchWork {
		a.noteIncomplete("the patterns of embedded files and inputs are compared with more than %d names", maxMatchWork)
	}
	return nil
}

// addPending adds what views are made of, round by round.
func (a *assembler) addPending(ctx context.Context) error {
	for len(a.pending) > 0 {
		round := a.pending
		a.pending = nil
		var packages []*pkg
		for _, v := range round {
			packages = append(packages, v.pkg)
		}
		if err := a.loading.readPackages(ctx, a.survey, packages); err != nil {
			return err
		}
		for i, v := range round {
			if i%64 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if v.tests {
				a.addFiles(v.node, v.list, v.pkg, v.pkg.tests)
			} else {
				a.addSources(v.node, v.list, v.pkg)
			}
		}
		if len(a.views) > maxViews {
			a.noteIncomplete("packages are built in more than %d ways", maxViews)
			break
		}
	}
	return nil
}

// edge adds an edge, within the bound.
func (a *assembler) edge(from, to targets.Node) {
	if a.edges++; a.edges <= maxEdges {
		a.builder.Edge(from, to)
	}
}

// addTree defines every file and listing, used or not (the engine's contract),
// and the data of each folder.
func (a *assembler) addTree() {
	a.files = make([]targets.Node, len(a.entries))
	for i := range a.entries {
		e := &a.entries[i]
		a.files[i] = a.builder.File(e.Path, e.Mode, e.Object)
	}
	if a.loading.loader.options.Closed {
		a.close()
	}
	a.folderNodes = make([]folderNodes, len(a.all))
	for i := range a.folderNodes {
		a.folderNodes[i] = folderNodes{-1, -1, -1, -1, -1}
	}
	digests := a.loading.loader.digests(a.snapshot)
	for i, f := range a.all {
		a.addListings(f, &a.folderNodes[i], digests[i])
	}
	a.addData()
}

// close has steps find what their targets depend on alone, and what the go command reads of all modules.
func (a *assembler) close() {
	a.builder.Closed()
	for i := range a.entries {
		file := a.entries[i].Path
		switch path.Base(file) {
		case "go.mod", "go.sum", "go.work", "go.work.sum":
			a.builder.InEveryWorkspace(file)
		case "modules.txt":
			if path.Base(path.Dir(file)) == "vendor" {
				a.builder.InEveryWorkspace(file)
			}
		}
	}
	// Such a folder is used because it is there.
	for _, dir := range slices.Sorted(maps.Keys(a.vendors)) {
		for i := range a.entries {
			if file := a.entries[i].Path; strings.HasPrefix(file, dir+"/") {
				a.builder.NameInEveryWorkspace(file)
				break
			}
		}
	}
}

// Three listings per folder: what the go command reads for a package, for its
// tests, and everything in and below the folder.

func sourcesIn(dir string) string { return below(dir, "*") }
func testsIn(dir string) string   { return below(dir, "*_test.go") }
func allBelow(dir string) string  { return below(dir, "**") }

// addListings defines the listings of a folder.
func (a *assembler) addListings(f *folder, p *folderNodes, digest string) {
	var sources, tests []string
	for _, i := range f.files {
		name := a.name(f, i)
		switch classOf(name) {
		case goFile, foreignFile:
			sources = append(sources, name)
		case testFile:
			tests = append(tests, name)
		}
	}
	if len(sources) > 0 {
		p.sources = a.builder.Listing(sourcesIn(f.path), sources)
	}
	if len(tests) > 0 {
		p.tests = a.builder.Listing(testsIn(f.path), tests)
	}
	p.all = a.builder.Listing(allBelow(f.path), []string{digest})
}

// addData defines, for each folder, what its tests may read: all files in and
// below it, but for Go files that belong to packages, other modules, and vendor
// folders. Folders that go's wildcards skip hold nothing but data.
func (a *assembler) addData() {
	for _, f := range slices.Backward(a.all) {
		node := targets.Node(-1)
		define := func() {
			if node < 0 {
				node = a.builder.Definition(dataOf(f.path), nil)
				a.folderNodes[f.index].data = node
			}
		}
		asData := f.hidden || f.ignored || f.module == nil
		for _, i := range f.files {
			if class := classOf(a.name(f, i)); asData || class == otherFile || class == foreignFile {
				define()
				a.addFile(node, i)
			}
		}
		for _, sub := range f.subs {
			if child := a.folderNodes[sub.index].data; child >= 0 && !a.isBorder(f, sub) {
				define()
				a.edge(node, child)
			}
		}
	}
}

func dataOf(dir string) string { return "data of " + below(dir, "...") }

// isBorder reports whether the data of a folder are not those of the one above.
func (a *assembler) isBorder(f, sub *folder) bool {
	if f.hidden || f.ignored || nameOf(sub.path) == "testdata" {
		return false
	}
	ownModule := sub.module != nil && sub.module.folder == sub
	vendored := nameOf(sub.path) == "vendor" && f.module != nil && f.module.folder == f
	return ownModule || vendored
}

// addFile makes a node depend on a file, and on what it leads to if it is a
// symbolic link.
func (a *assembler) addFile(from targets.Node, i int32) {
	a.edge(from, a.files[i])
	if a.entries[i].Mode&modeType != modeLink {
		return
	}
	w := a.follow(a.entries[i].Path, a.links)
	a.eachOnPath(w, func(node targets.Node) { a.edge(from, node) })
	if w.ok {
		a.addPath(from, w.end)
	}
}

// addPath makes a node depend on a file, or on everything in and below a folder,
// or on neither being there.
func (a *assembler) addPath(from targets.Node, path string) {
	if i := a.find(path); i >= 0 {
		a.edge(from, a.files[i])
		return
	}
	a.edge(from, a.builder.Ref(targets.KindFile, path))
	a.edge(from, a.builder.Ref(targets.KindListing, allBelow(path)))
	top := a.folders[path]
	if top == nil {
		a.addPlace(from, path)
		return
	}
	a.addBelow(from, top)
}

// addBelow makes a node depend on all files in and below a folder, and on what they lead to.
func (a *assembler) addBelow(from targets.Node, top *folder) {
	pending := []*folder{top}
	seen := map[*folder]bool{top: true}
	for len(pending) > 0 && a.edges <= maxEdges {
		f := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], f.subs...)
		for _, i := range f.files {
			a.edge(from, a.files[i])
			if a.entries[i].Mode&modeType == modeLink {
				pending = append(pending, a.addLinked(from, i, seen)...)
			}
		}
	}
}

// addLinked makes a node depend on what a link leads to, and returns the folder that
// it is, unless it was seen.
func (a *assembler) addLinked(from targets.Node, link int32, seen map[*folder]bool) []*folder {
	w := a.follow(a.entries[link].Path, a.links)
	a.eachOnPath(w, func(node targets.Node) { a.edge(from, node) })
	if !w.ok {
		return nil
	}
	a.edge(from, a.builder.Ref(targets.KindFile, w.end))
	a.edge(from, a.builder.Ref(targets.KindListing, allBelow(w.end)))
	f := a.folders[w.end]
	if f == nil || seen[f] {
		return nil
	}
	seen[f] = true
	return []*folder{f}
}

// addInputs makes a node depend on undeclared inputs.
func (a *assembler) addInputs(from targets.Node, files []glob.Pattern) {
	a.from, a.selection.all = from, true
	for _, p := range files {
		a.selection.walk("", p)
	}
}

// normalText returns what definitions hold: lines that no value can break.
func normalText(kind string, values ...string) []byte {
	return fmt.Appendf(nil, "%s %q", kind, values)
}
