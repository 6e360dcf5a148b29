package bazelgraph

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/gitrepo"
)

// Scheme is part of every target's hash; it changes when the adapter makes another graph of the same tree.
const Scheme = "bazel/1"

// maxEdges bounds a graph. Beyond it the targets are unknown.
const maxEdges = 20_000_000

// assembler puts what git and Bazel say of a tree into the engine's builder.
type assembler struct {
	*reader
	options  *Options
	answer   *answer
	mentions *mentions
	builder  *targets.Builder
	// root is the folder that Bazel ran in: frames name files below it.
	root string

	indexes
	nodes
	edges    int
	problems []string
}

// indexes are those of Bazel's answer.
type indexes struct {
	rules    map[label]*rule
	members  map[string][]label // by package, its rules
	outputs  map[label]label    // of what a rule generates, the rule
	sources  map[label]*source
	packages map[string]bool
}

// nodes are those of the graph that others refer to.
type nodes struct {
	files       []targets.Node
	environment targets.Node
	inputs      []targets.Node // by options.Inputs
	references  map[label]targets.Node
	below       map[string]targets.Node
	starlark    map[string]targets.Node
	externals   map[string]targets.Node
}

// Names of definitions. A package's presence says no more than that it is one: what is in it is elsewhere.

func presenceOf(pkg string) string { return "package //" + pkg }
func defaultsOf(pkg string) string { return "defaults of //" + pkg }
func loadsOf(pkg string) string    { return "loads of //" + pkg }
func packageOf(pkg string) string  { return "//" + pkg + " [package]" }

const environmentName = "bazel workspace"

// assemble makes the graph of a tree.
func (a *assembler) assemble(ctx context.Context, id, release string) (*targets.Graph, error) {
	o := a.options
	made := fmt.Sprintf("%s %q %q %q %q", Scheme, release, o.StartupFlags, o.QueryFlags, o.Env)
	a.builder = targets.NewBuilder(made, id)
	a.index()
	a.addTree()
	for _, step := range []func(context.Context) error{a.addEnvironment, a.addPackages, a.addRules} {
		if err := step(ctx); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	a.check()
	if a.edges > maxEdges {
		a.noteIncomplete("the graph has more than %d edges", maxEdges)
	}
	for _, problem := range a.problems {
		a.builder.Incomplete(problem)
	}
	return a.builder.Build()
}

// noteIncomplete notes why the graph is not known to be whole; it keeps a few reasons.
func (a *assembler) noteIncomplete(format string, args ...any) {
	if len(a.problems) < 5 {
		a.problems = append(a.problems, fmt.Sprintf(format, args...))
	}
}

func (a *assembler) edge(from, to targets.Node) {
	if a.edges++; a.edges <= maxEdges {
		a.builder.Edge(from, to)
	}
}

func (a *assembler) refer(from targets.Node, kind targets.Kind, name string) {
	a.edge(from, a.builder.Ref(kind, name))
}

// index indexes Bazel's answer.
func (a *assembler) index() {
	a.rules, a.members, a.outputs = map[label]*rule{}, map[string][]label{}, map[label]label{}
	a.sources, a.packages = map[label]*source{}, map[string]bool{}
	a.references, a.below = map[label]targets.Node{}, map[string]targets.Node{}
	a.starlark, a.externals = map[string]targets.Node{}, map[string]targets.Node{}
	for i := range a.answer.rules {
		r := &a.answer.rules[i]
		if a.rules[r.label] != nil {
			a.noteIncomplete("Bazel lists %s twice", r.label)
			continue
		}
		a.rules[r.label] = r
		a.members[r.label.pkg] = append(a.members[r.label.pkg], r.label)
		for _, text := range r.outputs {
			if out, ok := parseLabel(text); ok && out.repository == "" {
				a.outputs[out] = r.label
			}
		}
	}
	for i := range a.answer.sources {
		s := &a.answer.sources[i]
		a.sources[s.label] = s
		if isBuildFile(s.label.name) {
			a.packages[s.label.pkg] = true
		}
		if s.broken {
			a.noteIncomplete("Bazel reports the package //%s as broken, and goes on", s.label.pkg)
		}
	}
	if a.rules[label{name: "repository"}] != nil {
		a.noteIncomplete("the rule %s has the name that stands for the whole repository; give it another one", targets.Repository)
	}
}

// check finds what a whole answer has and a truncated one has not: each rule's package, and each folder that
// is a package unless something tells Bazel otherwise.
func (a *assembler) check() {
	for l := range a.rules {
		if !a.packages[l.pkg] {
			a.noteIncomplete("Bazel lists %s and not the BUILD file of its package", l)
			break
		}
	}
	ignored := a.ignored()
	for _, dir := range slices.Sorted(maps.Keys(a.folders)) {
		if a.folders[dir].build && !a.packages[dir] && !ignored(dir) {
			a.noteIncomplete("the folder //%s has a BUILD file and Bazel lists no package there", dir)
		}
	}
}

// addTree defines every file and listing, used or not (the engine's contract).
func (a *assembler) addTree() {
	a.files = make([]targets.Node, len(a.entries))
	for i, e := range a.entries {
		a.files[i] = a.builder.File(e.Path, e.Mode, e.Object)
	}
	for _, dir := range slices.Sorted(maps.Keys(a.folders)) {
		f := a.folders[dir]
		var names []string
		for _, i := range f.files {
			_, name := split(a.entries[i].Path)
			names = append(names, name)
		}
		for _, sub := range f.folders {
			if a.packages[sub.path] {
				_, name := split(sub.path)
				names = append(names, name+"/ is a package")
			}
		}
		node := a.builder.Listing(listingOf(dir), names)
		for _, sub := range f.folders {
			if !a.packages[sub.path] {
				a.refer(node, targets.KindListing, listingOf(sub.path))
			}
		}
	}
}

// listingOf names the listing of the names in a folder, and below it as far as there is no other package.
func listingOf(dir string) string { return dir + "/" }

// addPath makes a node depend on a path: a file, everything below a folder, or neither being there.
func (a *assembler) addPath(from targets.Node, file string) {
	links, end, ok := a.walk(file)
	for _, link := range links {
		a.edge(from, a.files[a.find(link)])
	}
	if !ok {
		return
	}
	if i := a.find(end); i >= 0 {
		a.edge(from, a.files[i])
		return
	}
	a.refer(from, targets.KindFile, end)
	a.refer(from, targets.KindListing, listingOf(end))
	if f := a.folders[end]; f != nil {
		a.edge(from, a.tree(f))
	}
}

// tree defines everything below a folder, whatever the packages.
func (a *assembler) tree(f *folder) targets.Node {
	if node, ok := a.below[f.path]; ok {
		return node
	}
	node := a.builder.Definition("everything in //"+f.path, nil)
	a.below[f.path] = node
	a.refer(node, targets.KindListing, listingOf(f.path))
	for _, i := range f.files {
		a.edge(node, a.files[i])
		if e := a.entries[i]; e.Kind == gitrepo.Symlink {
			a.addPath(node, e.Path)
		}
	}
	for _, sub := range f.folders {
		a.edge(node, a.tree(sub))
	}
	return node
}

// reference defines what stands behind a label that is no rule and nothing generated: a file, a folder, or
// nothing; and whatever would make it another thing.
func (a *assembler) reference(l label) targets.Node {
	if node, ok := a.references[l]; ok {
		return node
	}
	var content []byte
	s := a.sources[l]
	if s != nil {
		content = s.digest[:]
	}
	node := a.builder.Definition("label "+l.String(), content)
	a.references[l] = node
	a.refer(node, targets.KindTarget, l.String())
	a.refer(node, targets.KindDefinition, outputName(l))
	a.addPath(node, l.path())
	// Its package, and those that would take the file away from it.
	for dir, _ := split(l.path()); ; dir, _ = split(dir) {
		a.refer(node, targets.KindDefinition, presenceOf(dir))
		if dir == l.pkg || dir == "" {
			break
		}
	}
	if s != nil {
		a.addGroups(node, s.visibility)
	}
	return node
}

func outputName(l label) string { return "output " + l.String() }

// addLabel makes a node depend on a label.
func (a *assembler) addLabel(from targets.Node, l label) {
	if l.repository != "" {
		a.edge(from, a.external(l.repository))
		return
	}
	if a.rules[l] != nil {
		a.refer(from, targets.KindTarget, l.String())
		return
	}
	if maker, ok := a.outputs[l]; ok {
		a.refer(from, targets.KindDefinition, outputName(l))
		a.refer(from, targets.KindTarget, maker.String())
		return
	}
	switch {
	case l.pkg == "external": // What a WORKSPACE binds.
		a.edge(from, a.external("//external"))
	case isPseudo(l):
	default:
		a.edge(from, a.reference(l))
	}
}

// isPseudo reports whether a label names nothing in the tree, though a folder may have its package's name.
func isPseudo(l label) bool {
	switch l.pkg {
	case "conditions":
		return l.name == "default"
	case "visibility":
		return l.name == "public" || l.name == "private" || l.name == "legacy_public"
	}
	return false
}

// external defines an external repository. What pins it is the workspace's files.
func (a *assembler) external(repository string) targets.Node {
	node, ok := a.externals[repository]
	if !ok {
		node = a.builder.External(repository, nil)
		a.externals[repository] = node
		a.edge(node, a.environment)
	}
	return node
}

// addGroups makes a node depend on the groups that a visibility names.
func (a *assembler) addGroups(from targets.Node, visibility []string) {
	for _, text := range visibility {
		l, ok := parseLabel(text)
		if ok && l.repository == "" && !isPseudo(l) && l.name != "__pkg__" && l.name != "__subpackages__" {
			a.refer(from, targets.KindDefinition, "group "+l.String())
		}
	}
}

// home returns the package that a folder belongs to.
func (a *assembler) home(dir string) string {
	for dir != "" && !a.packages[dir] {
		dir, _ = split(dir)
	}
	return dir
}

// ignored returns which folders with a BUILD file are no packages of this workspace for a reason.
func (a *assembler) ignored() func(dir string) bool {
	var prefixes []string
	_, raw, err := a.text(context.Background(), ".bazelignore")
	if err != nil {
		a.noteIncomplete("%v", err)
	}
	for line := range strings.Lines(raw) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			prefixes = append(prefixes, path.Clean(line))
		}
	}
	for _, flag := range a.options.QueryFlags {
		if strings.HasPrefix(flag, "--deleted_packages") {
			return func(string) bool { return true }
		}
	}
	// Where these two are used, which folders they take out is Bazel's alone to say.
	for _, e := range a.entries {
		_, name := split(e.Path)
		if e.Path != "REPO.bazel" && !strings.HasSuffix(name, ".bazelrc") {
			continue
		}
		if _, raw, err := a.text(context.Background(), e.Path); err != nil || strings.Contains(raw, "ignore_directories") || strings.Contains(raw, "--deleted_packages") {
			return func(string) bool { return true }
		}
	}
	return func(dir string) bool {
		if dir == "external" || strings.HasPrefix(dir, "external/") {
			return true // Bazel keeps this name for itself.
		}
		for _, prefix := range prefixes {
			if dir == prefix || strings.HasPrefix(dir, prefix+"/") {
				return true
			}
		}
		// Another workspace inside this one.
		for at := dir; at != ""; at, _ = split(at) {
			for _, name := range boundaries {
				if a.find(path.Join(at, name)) >= 0 {
					return true
				}
			}
		}
		return false
	}
}
