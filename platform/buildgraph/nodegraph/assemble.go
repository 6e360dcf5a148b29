package nodegraph

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/targets"
)

// assembler puts a survey into the engine's builder.
type assembler struct {
	*survey
	options Options
	inputs  []input
	builder *targets.Builder
	edges   int
	runs    int // arguments of commands that are scripts

	files       []targets.Node // by entry
	facts       []*facts       // by entry; nil for a file that says nothing or is not read yet
	links       map[int32]string
	environment targets.Node
	sources     map[int32]targets.Node // by entry
	unfinished  []int32                // of sources, those whose references are yet to be added
	trees       map[*folder]targets.Node
	regions     map[*pack][]*folder
}

// Names of nodes. A folder that is not the last thing in a name is quoted where a blank in it could be taken for the end.

func filesIn(dir string) string      { return "node:files " + dot(dir) }
func namesIn(dir string) string      { return "node:names " + dot(dir) }
func configIn(dir string) string     { return "node:config " + dot(dir) }
func packageIn(dir string) string    { return "node:package " + dot(dir) }
func manifestIn(dir string) string   { return "node:manifest " + dot(dir) }
func projectIn(dir string) string    { return "node:project " + dot(dir) }
func lockIn(dir string) string       { return "node:lock " + dot(dir) }
func locksIn(dir string) string      { return "node:locks in " + dot(dir) }
func namesOf(dir string) string      { return "node:all names " + dot(dir) }
func typesIn(dir string) string      { return "node:types " + dot(dir) }
func sourceOf(path string) string    { return "node:source " + path }
func named(dir, name string) string  { return "node:named " + plainDir(dir) + " " + name }
func pinned(dir, name string) string { return "node:pinned " + plainDir(dir) + " " + name }
func entryOf(dir, key string) string { return "node:" + plainDir(dir) + " " + key }

const (
	environmentName = "node:environment"
	allManifests    = "node:all manifests"
)

func plainDir(dir string) string {
	if strings.ContainsAny(dir, " \"") {
		return strconv.Quote(dir)
	}
	return dot(dir)
}

func packagesBelow(dir string) string { return "node:packages below " + dot(dir) }

func inputsName(n int) string { return "node:inputs " + strconv.Itoa(n) }

// Names of targets.

func targetOf(dir string) string {
	if strings.Contains(dir, " [") || strings.HasPrefix(dir, `"`) {
		dir = strconv.Quote(dir)
	}
	return "node://" + dot(dir)
}

func testOf(dir string) string    { return targetOf(dir) + " [test]" }
func installOf(dir string) string { return targetOf(dir) + " [install]" }

func installedBy(dir string) string { return "node:scripts of installs " + dot(dir) }

// assemble makes the graph, and returns what its files say.
func (l *loading) assemble(ctx context.Context, id string, s *survey) (*targets.Graph, []*facts, error) {
	a := &assembler{
		survey: s, options: l.loader.options, inputs: l.loader.inputs, builder: targets.NewBuilder(Scheme, id),
		files: make([]targets.Node, len(s.entries)), facts: make([]*facts, len(s.entries)), sources: map[int32]targets.Node{},
		trees: map[*folder]targets.Node{}, regions: map[*pack][]*folder{},
	}
	for _, f := range s.all {
		if f.pack != nil {
			a.regions[f.pack] = append(a.regions[f.pack], f)
		}
	}
	if err := a.readPackages(ctx, l); err != nil {
		return nil, nil, err
	}
	a.addTree()
	a.addManifests()
	a.addPackagesBelow()
	a.addEnvironment()
	for _, p := range s.projects {
		a.addProject(p)
	}
	for i, p := range s.packs {
		if i%16 == 0 && ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		a.addPackage(p)
	}
	if err := a.addSources(ctx, l); err != nil {
		return nil, nil, err
	}
	if a.matched > maxMatchWork {
		a.noteIncomplete("the patterns of workspaces and the aliases of the compiler take too long to match")
	}
	if a.runs > maxEdges {
		a.noteIncomplete("the scripts that packages need are more than can be listed")
	}
	if a.edges > maxEdges {
		a.noteIncomplete("the dependencies of the repository's packages are more than can be followed")
	}
	for _, reason := range a.incomplete {
		a.builder.Incomplete(reason)
	}
	graph, err := a.builder.Build()
	return graph, a.facts, err
}

// edge adds an edge, but for those beyond the bound, for which the graph is incomplete.
func (a *assembler) edge(from, to targets.Node) {
	if a.edges++; a.edges <= maxEdges {
		a.builder.Edge(from, to)
	}
}

func (a *assembler) define(from targets.Node, name string) {
	a.edge(from, a.builder.Ref(targets.KindDefinition, name))
}

func (a *assembler) file(from targets.Node, path string) {
	a.edge(from, a.builder.Ref(targets.KindFile, path))
}

// addTree defines every file, what each folder holds, and the configuration in it.
func (a *assembler) addTree() {
	for i, e := range a.entries {
		a.files[i] = a.builder.File(e.Path, e.Mode, e.Object)
	}
	if a.options.Closed {
		a.builder.Closed()
		for _, e := range a.entries {
			// An install looks at the manifests of all members.
			if name := nameOf(e.Path); name == manifestName || name == pnpmWorkspace || isLockName(name) {
				a.builder.InEveryWorkspace(e.Path)
			}
		}
	}
	for _, f := range a.all {
		names := make([]string, len(f.files))
		for k, i := range f.files {
			names[k] = nameOf(a.entries[i].Path)
		}
		if len(names) > 0 { // That a folder exists for what is below it is no fact of its own: two changes can end it together.
			a.builder.Listing(namesIn(f.path), names)
		}
		node := a.builder.Definition(filesIn(f.path), nil)
		for _, i := range f.files {
			if !a.isParsedLock(f, i) {
				a.edge(node, a.files[i])
			}
		}
		for _, sub := range f.subs {
			if sub.pack != nil && sub.pack.folder == sub {
				a.define(node, packageIn(sub.path))
			} else {
				a.define(node, filesIn(sub.path))
			}
		}
		if locks := slices.DeleteFunc(names, func(name string) bool { return !isLockName(name) }); len(locks) > 0 {
			a.builder.Definition(locksIn(f.path), normalText("names", locks...))
		}
		a.addConfig(f)
	}
}

// addManifests defines the manifests of all packages.
func (a *assembler) addManifests() {
	var paths []string
	var found []int32
	for i, e := range a.entries {
		if nameOf(e.Path) == manifestName {
			paths, found = append(paths, e.Path), append(found, int32(i))
		}
	}
	node := a.builder.Definition(allManifests, normalText("manifests", paths...))
	for _, i := range found {
		a.edge(node, a.files[i])
	}
}

// isParsedLock reports whether a file is the lock file of the project in its folder, and understood: what it pins then
// reaches the root as it does the members.
func (a *assembler) isParsedLock(f *folder, i int32) bool {
	if f.pack == nil || f.pack.folder != f || !f.pack.isRoot() {
		return false
	}
	p := f.pack.project
	return p.lock != nil && p.lock.format != unknownLock && a.entries[i].Path == p.lockFile
}

// addConfig defines the configuration in a folder, which counts for every package below it.
func (a *assembler) addConfig(f *folder) {
	if f.modules {
		return
	}
	var found []int32
	for _, i := range f.files {
		if isConfig(nameOf(a.entries[i].Path)) {
			found = append(found, i)
		}
	}
	modules := a.folders[below(f.path, "node_modules")]
	if len(found) == 0 && modules == nil {
		return
	}
	node := a.builder.Definition(configIn(f.path), nil)
	for _, i := range found {
		if nameOf(a.entries[i].Path) == manifestName {
			a.edge(node, a.files[i])
		} else {
			a.edge(node, a.source(i))
		}
	}
	if modules != nil {
		a.define(node, filesIn(modules.path))
	}
}

// isConfig reports whether tools look upwards for a file of that name.
func isConfig(name string) bool {
	switch name {
	case manifestName, pnpmWorkspace, "lerna.json", "turbo.json", "turbo.jsonc", "nx.json", "workspace.json", "bunfig.toml", "pnpmfile.js", "biome.json", "biome.jsonc",
		"mise.toml", "rush.json", "deno.json", "deno.jsonc", "babel.json", "jest.json", "vitest.workspace.ts", "vitest.workspace.js", "vitest.workspace.json", "jest.preset.js", "jest.preset.cjs":
		return true
	case "landfall.config.yaml": // the queue's
		return false
	}
	return strings.HasPrefix(name, ".") && !isLockName(name) || strings.Contains(name, "config") || strings.Contains(name, ".conf.")
}

func isLockName(name string) bool {
	for _, names := range lockNames {
		if slices.Contains(names, name) {
			return true
		}
	}
	return strings.HasPrefix(name, ".pnp.") // Written anew with each lock file of yarn.
}

// addEnvironment defines what holds for all targets.
func (a *assembler) addEnvironment() {
	a.environment = a.builder.Definition(environmentName,
		append(normalText("environment", a.options.Env...), normalText("toolchain", a.options.Toolchain)...))
	work := 0
	for n, in := range a.inputs {
		var paths []string
		var found []int32
		for i, e := range a.entries {
			for _, pattern := range in.files {
				if work++; pattern.MatchesFile(e.Path) {
					paths, found = append(paths, e.Path), append(found, int32(i))
					break
				}
			}
		}
		node := a.builder.Definition(inputsName(n), append(slices.Clone(in.text), normalText("paths", paths...)...))
		for _, i := range found {
			a.edge(node, a.files[i])
		}
		if len(in.folders) == 0 {
			a.edge(a.environment, node)
		}
	}
	if work > maxMatchWork {
		a.noteIncomplete("the patterns of inputs take too long to match")
	}
}

// addProject defines what is installed together.
func (a *assembler) addProject(p *project) {
	for _, name := range slices.Sorted(maps.Keys(p.byName)) {
		var dirs []string
		for _, member := range p.byName[name] {
			dirs = append(dirs, member.dir)
		}
		node := a.builder.Definition(named(p.dir, name), normalText("members", dirs...))
		for _, dir := range dirs {
			a.edge(node, a.builder.Ref(targets.KindTarget, targetOf(dir)))
		}
	}
	a.builder.Definition(namesOf(p.dir), normalText("names", p.names()...))
	a.addLock(p)
	node := a.builder.Definition(projectIn(p.dir), normalText("project", p.manager, p.lockFile))
	a.edge(node, a.environment)
	a.define(node, locksIn(p.dir))
	a.addConfigs(node, p.dir)
	for _, name := range []string{"patches", ".yarn/patches", ".yarn/plugins", ".yarn/releases", ".yarn/sdks"} {
		a.define(node, filesIn(below(p.dir, name)))
	}
	if p.lock != nil && p.lock.format == unknownLock {
		a.file(node, p.lockFile)
	}
	a.define(node, lockIn(p.dir))
	a.addInstallScripts(p)
	a.define(node, installedBy(p.dir))
	a.addPrograms(node, p)
	if p.root != nil {
		// What the root requires is found from every member.
		for _, r := range p.root.file.requires {
			a.addRequirement(node, p.root, r)
		}
	}
	a.addInstall(p)
}

// addConfigs makes a node depend on the configuration in a folder and in all above it.
func (a *assembler) addConfigs(from targets.Node, dir string) {
	for {
		a.define(from, configIn(dir))
		if dir == "" {
			return
		}
		dir = folderOf(dir)
	}
}

// addLock defines what a lock file pins.
func (a *assembler) addLock(p *project) {
	l := p.lock
	if l == nil || l.format == unknownLock {
		return
	}
	a.builder.Interprets(p.lockFile)
	a.builder.Definition(lockIn(p.dir), l.settings)
	types := a.builder.Definition(typesIn(p.dir), nil)
	for _, name := range slices.Sorted(maps.Keys(l.named)) {
		node := a.builder.Definition(pinned(p.dir, name), nil)
		for _, key := range l.named[name] {
			a.edge(node, a.entry(p, key))
			if strings.HasPrefix(name, "@types/") {
				a.edge(types, a.entry(p, key))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.entries)) {
		e := l.entries[key]
		node := a.builder.External(entryOf(p.dir, key), e.content[:])
		for _, dep := range e.deps {
			a.edge(node, a.entry(p, dep))
		}
		for _, name := range e.unresolved {
			a.define(node, named(p.dir, name))
		}
		for _, folder := range e.folders {
			a.addPath(viewpoint{node, p.root, p.dir}, below(p.dir, folder))
		}
	}
}

func (a *assembler) entry(p *project, key string) targets.Node {
	return a.builder.Ref(targets.KindExternal, entryOf(p.dir, key))
}

// addRequirement makes a node depend on what a package finds under a name: members of the workspace, and what the lock
// file pins. A range that excludes the member's version keeps the edge to the member all the same.
func (a *assembler) addRequirement(from targets.Node, p *pack, r requirement) {
	project := p.project
	a.define(from, named(project.dir, r.name))
	if real := aliasedName(r.wanted); real != "" {
		a.define(from, named(project.dir, real))
	}
	if project.lock == nil || project.lock.format == unknownLock {
		return
	}
	found := project.lock.find(relativeFolder(project.dir, p.dir), r)
	for _, key := range found.keys {
		a.edge(from, a.entry(project, key))
	}
	if found.byName {
		a.define(from, pinned(project.dir, r.name))
	}
	if found.folder != "" {
		if dir, ok := join(project.dir, found.folder); ok {
			a.addPath(viewpoint{from, p, p.dir}, dir)
		}
	}
}

// aliasedName returns the name of the package that a range such as npm:name@^1.0.0 stands for; empty if it is a mere
// range.
func aliasedName(wanted string) string {
	for _, protocol := range []string{"npm:", "workspace:"} {
		rest, ok := strings.CutPrefix(wanted, protocol)
		if at := strings.LastIndexByte(rest, '@'); ok && at > 0 {
			return rest[:at]
		}
	}
	return ""
}

func relativeFolder(dir, path string) string {
	if path == dir {
		return ""
	}
	return relativeTo(dir, path)
}

// addInstall defines the target of a project's lock file: that what it pins can be installed, is what the manifests of all
// members ask for, and that the scripts of members that an install runs succeed. Steps of every target install first, and no other target depends on all manifests.
func (a *assembler) addInstall(p *project) {
	dirs := make([]string, len(p.members))
	for i, member := range p.members {
		dirs[i] = relativeTo(p.dir, member.dir)
	}
	node := a.builder.Target(installOf(p.dir), "install", a.commands(a.options.Commands.Install, defaultInstall(p), p, nil, nil))
	members := a.builder.Definition("node:members "+dot(p.dir), normalText(p.manager, append(slices.Clone(p.present), dirs...)...))
	a.edge(node, members)
	a.edge(node, a.environment)
	a.define(node, installedBy(p.dir))
	for _, member := range p.members {
		a.define(node, manifestIn(member.dir))
	}
	for _, name := range slices.Concat(lockNames[npm], lockNames[pnpm], lockNames[yarn], lockNames[bun]) {
		a.file(node, below(p.dir, name))
	}
	for _, name := range []string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnpmfile.mjs", pnpmWorkspace, "bunfig.toml", ".pnp.cjs"} {
		a.file(node, below(p.dir, name))
	}
	for _, name := range []string{"patches", ".yarn"} {
		a.define(node, filesIn(below(p.dir, name)))
	}
	if p.lock == nil {
		return
	}
	for _, patch := range p.lock.patches {
		if path, ok := join(p.dir, patch); ok {
			a.file(node, path)
		}
	}
}

// addManifest defines what an install looks at in a member's manifest.
func (a *assembler) addManifest(p *pack) {
	node := a.builder.Definition(manifestIn(p.dir), p.file.installs)
	for _, text := range p.file.paths {
		if !isFolderProtocol(text) {
			continue
		}
		_, relative, _ := strings.Cut(text, ":")
		if path, ok := join(p.dir, relative); ok {
			a.file(node, path)
			a.file(node, below(path, manifestName))
		}
	}
}
