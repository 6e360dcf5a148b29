package pythongraph

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// maxEdges bounds a graph.
const maxEdges = 100_000_000

// assembler puts a survey into the engine's builder.
type assembler struct {
	*survey
	loading *loading
	builder *targets.Builder
	edges   int

	files   []targets.Node // by entry
	modules map[int32]targets.Node
	// index holds, by top-level name, the folders where it stands.
	index map[string][]*folder
	// pending are module nodes whose edges are not there yet.
	pending []int32
	seen    map[seenKey]targets.Node
	tops    map[topKey]*top
	whole   map[*project]targets.Node
	areas   map[*project][]*folder
	settled map[string]bool
	linked  map[int32]targets.Node
	named   map[string]targets.Node // by a path that tests name
	entire  map[*folder]targets.Node
	// sources are the top-level modules and packages of each project, relative to the root.
	sources map[*project][]string

	environment targets.Node
	inputNodes  []targets.Node
}

// seenKey is a top-level name as a project sees it.
type seenKey struct {
	project *project
	name    string
}

// assemble makes the graph.
func (l *loading) assemble(ctx context.Context, id string, s *survey) (*targets.Graph, error) {
	a := &assembler{
		survey: s, loading: l, builder: targets.NewBuilder(Scheme, id), files: make([]targets.Node, len(s.entries)),
		modules: map[int32]targets.Node{}, index: map[string][]*folder{}, seen: map[seenKey]targets.Node{}, tops: map[topKey]*top{},
		whole: map[*project]targets.Node{}, linked: map[int32]targets.Node{}, named: map[string]targets.Node{}, entire: map[*folder]targets.Node{}, sources: map[*project][]string{},
		areas: map[*project][]*folder{}, settled: map[string]bool{},
	}
	a.addTree()
	a.addMarkers()
	a.addLocks()
	a.findCollectors()
	a.addProjects()
	a.environment = a.builder.Definition("python:environment", normal(map[string]any{
		"environment": anyOf(l.loader.options.Env), "toolchain": l.loader.options.Toolchain, "roots": anyOf(l.loader.options.Roots),
		"ignored": anyOf(l.loader.options.IgnoreFolders),
	}))
	a.addInputs()
	for i, p := range s.projects {
		if i%16 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a.addPackage(p)
	}
	a.addTests()
	a.addLockTargets()
	for n := 0; len(a.pending) > 0; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		file := a.pending[len(a.pending)-1]
		a.pending = a.pending[:len(a.pending)-1]
		a.fillModule(file)
	}
	if a.edges > maxEdges {
		a.noteIncomplete("the graph has more than %d edges", maxEdges)
	}
	for _, reason := range a.incomplete {
		a.builder.Incomplete(reason)
	}
	return a.builder.Build()
}

func anyOf(texts []string) []any {
	list := make([]any, len(texts))
	for i, s := range texts {
		list[i] = s
	}
	return list
}

// edge adds an edge, within the bound.
func (a *assembler) edge(from, to targets.Node) {
	if a.edges++; a.edges <= maxEdges {
		a.builder.Edge(from, to)
	}
}

func (a *assembler) ref(from targets.Node, kind targets.Kind, name string) {
	a.edge(from, a.builder.Ref(kind, name))
}

func (a *assembler) refListing(from targets.Node, name string) {
	a.ref(from, targets.KindListing, name)
}
func (a *assembler) refDefinition(from targets.Node, name string) {
	a.ref(from, targets.KindDefinition, name)
}

// addTree defines every file and listing, used or not (the engine's contract), and the data of each folder.
func (a *assembler) addTree() {
	for i := range a.entries {
		e := &a.entries[i]
		a.files[i] = a.builder.File(e.Path, e.Mode, e.Object)
	}
	if a.loading.loader.options.Closed {
		a.close()
	}
	a.addListings()
	a.addData()
	a.addManifests()
}

// manifests are names of files that installers read of all projects.
var manifests = []string{pyprojectFile, "setup.py", "setup.cfg", "uv.lock", "uv.toml", "poetry.lock", "poetry.toml", ".python-version"}

// addManifests defines the files of all projects.
func (a *assembler) addManifests() {
	var paths []string
	var found []targets.Node
	for i := range a.entries {
		if file := a.entries[i].Path; slices.Contains(manifests, nameOf(file)) {
			paths, found = append(paths, file), append(found, a.files[i])
		}
	}
	node := a.defineText(allManifests, paths...)
	for _, file := range found {
		a.edge(node, file)
	}
}

// close has steps find what their targets depend on alone, and what installers read of all projects.
func (a *assembler) close() {
	a.builder.Closed()
	for i := range a.entries {
		if file := a.entries[i].Path; slices.Contains(manifests, path.Base(file)) {
			a.builder.InEveryWorkspace(file)
		}
	}
	// To import a module, Python lists the folders in which it looks. Pytest lists the folders below one with tests before it passes
	// them by.
	listed := map[*folder]bool{}
	for _, f := range a.all {
		if f.project == nil {
			continue
		}
		if tests, _ := a.testsIn(f); len(tests) > 0 {
			for _, sub := range f.subs {
				listed[sub] = true
			}
		}
		if f.coded {
			a.builder.ShowNames(f.path, listed[f])
		}
	}
	for dir, p := range a.pyprojects {
		if p.members != nil {
			for _, odd := range a.oddMembers(dir) {
				a.nameOne(a.folders[odd])
			}
		}
	}
	for _, p := range a.projects {
		for _, name := range a.besides(p) {
			a.nameOne(a.folders[below(p.dir(), name)])
		}
	}
}

// nameOne has a folder that is not empty be in every workspace.
func (a *assembler) nameOne(f *folder) {
	for ; f != nil; f = f.subs[0] {
		if len(f.files) > 0 {
			a.builder.NameInEveryWorkspace(a.entries[f.files[0]].Path)
			return
		}
		if len(f.subs) == 0 {
			return
		}
	}
}

// addListings defines what answers to the names of modules: in each folder, in each project, and in the whole tree; and the
// names in and below each folder.
func (a *assembler) addListings() {
	type place struct {
		project *project
		name    string
	}
	inProject := map[place][]string{}
	whole := map[string][]string{}
	hidden := map[*project][]string{}
	digests, code := make([]string, len(a.all)), make([]string, len(a.all))
	for _, f := range slices.Backward(a.all) {
		digests[f.index] = a.digest(f, digests, false)
		if f.coded {
			code[f.index] = a.digest(f, code, true)
			a.builder.Listing(codeBelow(f.path), []string{code[f.index]})
		}
		a.builder.Listing(allBelow(f.path), []string{digests[f.index]})
		if f.regular {
			a.builder.Listing(initName(f.path), []string{initFile})
		}
		answers := map[string][]string{}
		a.answers(f, func(name, written string) { answers[name] = append(answers[name], written) })
		for name, written := range answers {
			a.builder.Listing(answerName(f.path, name), written)
			a.index[name] = append(a.index[name], f)
			for _, w := range written {
				inProject[place{f.project, name}] = append(inProject[place{f.project, name}], below(f.path, w))
				whole[name] = append(whole[name], below(f.path, w))
			}
		}
		var binaries, own []string
		for _, i := range f.files {
			name := a.name(f, i)
			if a.isCode(f, i) {
				own = append(own, name)
			}
			if strings.HasSuffix(name, ".so") || strings.HasSuffix(name, ".pyd") {
				binaries = append(binaries, name)
			}
		}
		if binaries != nil {
			a.builder.Listing(binariesName(f.path), binaries)
		}
		if !f.coded {
			continue
		}
		// Also of folders outside projects: one that becomes a project depends on what another change adds there.
		node := a.defineText(codeName(f.path), own...)
		for _, sub := range f.subs {
			if sub.coded && a.projectAt(sub.path) == nil {
				a.refDefinition(node, codeName(sub.path))
			}
		}
	}
	for place, paths := range inProject {
		if place.project != nil {
			a.builder.Listing(indexName(place.project, place.name), paths)
		}
	}
	for name := range hiding {
		for _, f := range a.index[name] {
			hidden[f.project] = append(hidden[f.project], below(f.path, name))
		}
	}
	for p, paths := range hidden {
		if p != nil {
			a.builder.Listing(hidingName(p.label()), paths)
		}
	}
	for name, paths := range whole {
		a.builder.Listing(wholeIndexName(name), paths)
	}
	for _, folders := range a.index {
		slices.SortFunc(folders, func(x, y *folder) int { return x.index - y.index })
	}
}

// isData reports whether a file is no module.
func isData(name string) bool { return !strings.HasSuffix(name, ".py") }

// documents matches names of files beside a project's that say nothing to a test: documents, and settings of other tools.
var documents = regexp.MustCompile(`(?i)^((README|CHANGE(S|LOG)?|HISTORY|NEWS|CONTRIBUT(ING|ORS)|AUTHORS|CODE_OF_CONDUCT|SECURITY|LICEN[SC]ES?|COPYING|NOTICE)` +
	`([-_.][A-Z0-9_-]+)?(\.(md|markdown|rst|txt|adoc|asciidoc))?|CODEOWNERS|CITATION\.cff|\.git[a-z]+|\.editorconfig|\.pre-commit[a-z-]*\.ya?ml|\.readthedocs\.ya?ml)$`)

// data matches endings of what programs read.
var data = regexp.MustCompile(`(?i)\.(csv|tsv|json|ya?ml|toml|xml|ini|cfg|html?|sql|py)$`)

// licenses matches the documents that every project is packed with, where it does not say which.
var licenses = regexp.MustCompile(`^(LICEN[CS]E|COPYING|NOTICE|AUTHORS)`)

// isDocument reports whether a file in a project's folder is a document, unless the project or a test names it.
func isDocument(name string) bool {
	return documents.MatchString(name) && (!data.MatchString(name) || name[0] == '.')
}

// interpreted reports whether a file's meaning is a definition of its own, so that its text is no input.
func (a *assembler) interpretedFile(file string) bool {
	if a.requirements[file] != nil || a.locks[file] != nil {
		return true
	}
	return nameOf(file) == pyprojectFile && a.pyprojects[folderOf(file)] != nil
}

// addData defines, for each folder, the files in it that are no modules, and those in and below it.
func (a *assembler) addData() {
	for file := range a.loading.read {
		if a.interpretedFile(file) {
			a.builder.Interprets(file)
		}
	}
	has := make([]bool, len(a.all))
	for _, f := range slices.Backward(a.all) {
		top := f.project != nil && f.project.folder == f
		var direct, words, all []targets.Node
		for _, i := range f.files {
			name := a.name(f, i)
			if !isData(name) && !a.isLink(i) || a.interpretedFile(a.entries[i].Path) {
				continue
			}
			node := a.files[i]
			if a.isLink(i) {
				node = a.linkNode(i)
			}
			all = append(all, node)
			if !top || !isDocument(name) || licenses.MatchString(name) {
				direct = append(direct, node)
			} else {
				words = append(words, node)
			}
		}
		a.defineAll(filesName(f.path), direct)
		a.defineAll(documentsName(f.path), words)
		subs := slices.DeleteFunc(slices.Clone(f.subs), func(sub *folder) bool { return !has[sub.index] })
		if len(all)+len(subs) == 0 {
			continue
		}
		has[f.index] = true
		node := a.builder.Definition(dataName(f.path), nil)
		for _, to := range all {
			a.edge(node, to)
		}
		for _, sub := range subs {
			a.refDefinition(node, dataName(sub.path))
		}
		if f.holdsProjects {
			a.addOwnData(f, subs)
		}
	}
}

// addOwnData defines what of a folder with projects in or below it is data: not that of folders with projects.
func (a *assembler) addOwnData(f *folder, subs []*folder) {
	node := a.builder.Definition(ownDataName(f.path), nil)
	a.refDefinition(node, filesName(f.path))
	for _, sub := range subs {
		if !sub.holdsProjects {
			a.refDefinition(node, dataName(sub.path))
		}
	}
}

// defineAll defines what stands for some nodes, if there are any.
func (a *assembler) defineAll(name string, nodes []targets.Node) {
	if len(nodes) == 0 {
		return
	}
	node := a.builder.Definition(name, nil)
	for _, to := range nodes {
		a.edge(node, to)
	}
}

// addFolder makes a node depend on everything in and below a folder, or on it not being there.
func (a *assembler) addFolder(from targets.Node, dir string) {
	if dir != "" {
		a.ref(from, targets.KindFile, dir)
	}
	a.refListing(from, allBelow(dir))
	a.refDefinition(from, dataName(dir))
	top := a.folders[dir]
	if top == nil {
		return
	}
	a.edge(from, a.everything(top))
}

// everything returns the node of all that is in and below a folder.
func (a *assembler) everything(f *folder) targets.Node {
	if node, ok := a.entire[f]; ok {
		return node
	}
	node := a.builder.Definition(everythingName(f.path), nil)
	a.entire[f] = node
	for _, i := range f.files {
		a.edge(node, a.moduleOrFile(i))
	}
	for _, sub := range f.subs {
		a.edge(node, a.everything(sub))
	}
	return node
}

// moduleOrFile returns the node of an entry: of a module what it imports, of a link what it leads to.
func (a *assembler) moduleOrFile(i int32) targets.Node {
	switch {
	case a.isLink(i):
		return a.linkNode(i)
	case a.facts[i] != nil:
		return a.module(i)
	}
	return a.files[i]
}

// maxLinkHops is how many symbolic links one path may lead through, as on Linux.
const maxLinkHops = 40

// linkNode returns the node of a symbolic link: the link, what decides where it leads, and all that stands there.
func (a *assembler) linkNode(link int32) targets.Node {
	if node, ok := a.linked[link]; ok {
		return node
	}
	node := a.builder.Definition(linkName(a.entries[link].Path), nil)
	a.linked[link] = node
	a.edge(node, a.files[link])
	rest, at := a.entries[link].Path, ""
	for hops := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		next := below(at, name)
		i := a.find(next)
		text, isLink := a.links[i]
		if i < 0 || !isLink {
			if i < 0 {
				a.ref(node, targets.KindFile, next)
			}
			at = next
			continue
		}
		a.edge(node, a.files[i])
		target, inside := join(at, strings.TrimRight(text, "/"))
		if hops++; hops > maxLinkHops || !inside || text == "" {
			return node
		}
		at, rest = "", below(target, rest)
	}
	if i := a.find(at); i >= 0 {
		a.edge(node, a.moduleOrFile(i))
		return node
	}
	if at == "" || within(a.entries[link].Path, at) {
		// A link to a folder around it: its own names are those of the folder.
		a.refListing(node, allBelow(at))
		a.refDefinition(node, dataName(at))
		return node
	}
	a.addFolder(node, at)
	return node
}

// digest hashes the names in a folder, all or those of code, and the digests of the folders in it. No name holds a NUL or a
// slash, so these separate.
func (s *survey) digest(f *folder, digests []string, code bool) string {
	var all strings.Builder
	for _, i := range f.files {
		if !code || s.isCode(f, i) {
			all.WriteString(s.name(f, i))
			all.WriteByte(0)
		}
	}
	for _, sub := range f.subs {
		if !code || sub.coded {
			all.WriteString(nameOf(sub.path))
			all.WriteByte('/')
			all.WriteString(digests[sub.index])
			all.WriteByte(0)
		}
	}
	sum := sha256.Sum256([]byte(all.String()))
	return string(sum[:])
}

// defineText defines a node by texts that no value can break.
func (a *assembler) defineText(name string, values ...string) targets.Node {
	return a.builder.Definition(name, fmt.Appendf(nil, "%q", values))
}
