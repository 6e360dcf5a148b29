package nodegraph

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// viewpoint is from where paths are looked at.
type viewpoint struct {
	from targets.Node
	home *pack  // what the package holds counts as known already; nil for a file that no package holds
	dir  string // folders above it are not taken with all that they hold
}

// maxLinkHops is how many symbolic links one path may lead through, as on Linux.
const maxLinkHops = 40

// addPath makes a node depend on whatever a path can mean: the file of that name, with any ending, the folder and all
// that it holds, or a package.
func (a *assembler) addPath(v viewpoint, at string) {
	for hops := 0; ; hops++ {
		a.addPlace(v, at)
		next, isLink := a.throughLink(at)
		if !isLink {
			break
		}
		if hops == maxLinkHops || next == at {
			return // A loop: the links are covered, and they lead nowhere.
		}
		if at = next; at == "\x00" {
			return
		}
	}
	owner := a.nearest(at).pack
	isAbove := isWithin(at, v.dir)
	switch {
	case owner == v.home && owner != nil && v.from == a.targetNode(owner):
		return // The package covers all its files.
	case owner != nil && owner != v.home && !owner.isAround(v.home):
		if !isAbove {
			a.edge(v.from, a.targetNode(owner))
			return
		}
	}
	// Files of the root of the workspace, and those of no package, count one by one.
	a.addNamesakes(v, at)
	f := a.folders[at]
	a.edge(v.from, a.builder.Ref(targets.KindListing, namesIn(at)))
	if isAbove {
		if f != nil {
			a.addIndex(v, f)
		}
		return
	}
	a.define(v.from, filesIn(at))
	if f != nil {
		a.edge(v.from, a.tree(f))
	}
}

func (a *assembler) targetNode(p *pack) targets.Node {
	return a.builder.Ref(targets.KindTarget, targetOf(p.dir))
}

// isAround reports whether a package is the root of the workspace that another is a member of. nil is a member of none.
func (p *pack) isAround(member *pack) bool {
	return member != nil && p.project == member.project && p == p.project.root
}

// addPlace makes a node depend on which package holds a path, and on no link or submodule standing on the way.
func (a *assembler) addPlace(v viewpoint, at string) {
	for ; at != "" && !isWithin(at, v.dir); at = folderOf(at) {
		a.define(v.from, packageIn(at))
		a.file(v.from, at)
	}
}

// throughLink returns where a path leads whose first part is a symbolic link; "\x00" out of the repository.
func (a *assembler) throughLink(at string) (string, bool) {
	if len(a.links) == 0 {
		return at, false
	}
	for end := 0; end < len(at); {
		if i := strings.IndexByte(at[end+1:], '/'); i >= 0 {
			end += 1 + i
		} else {
			end = len(at)
		}
		i := a.find(at[:end])
		if i < 0 {
			continue
		}
		if text, isLink := a.links[i]; isLink {
			target, ok := join(folderOf(at[:end]), text)
			if !ok {
				return "\x00", true
			}
			return below(target, strings.TrimPrefix(at[end:], "/")), true
		}
	}
	return at, false
}

// addNamesakes adds the files that a path without its ending can mean.
func (a *assembler) addNamesakes(v viewpoint, at string) {
	if at == "" {
		return
	}
	dir, name := folderOf(at), nameOf(at)
	a.edge(v.from, a.builder.Ref(targets.KindListing, namesIn(dir)))
	f := a.folders[dir]
	if f == nil {
		return
	}
	stem := name
	if ending := path.Ext(name); languages[ending] == script {
		stem = strings.TrimSuffix(name, ending) // x.js is the name of x.ts.
	}
	for _, i := range f.files {
		// Sass finds _x.scss as x.
		if n := nameOf(a.entries[i].Path); n == name || strings.HasPrefix(strings.TrimPrefix(n, "_"), stem+".") || strings.HasPrefix(n, stem+".") {
			a.edge(v.from, a.source(i))
		}
	}
}

// addIndex adds the files that a folder stands for when it is imported.
func (a *assembler) addIndex(v viewpoint, f *folder) {
	for _, i := range f.files {
		if name := nameOf(a.entries[i].Path); name == manifestName || strings.HasPrefix(name, "index.") {
			a.edge(v.from, a.source(i))
		}
	}
}

// tree returns the node of all that a folder holds besides packages, with what that refers to.
func (a *assembler) tree(top *folder) targets.Node {
	if node, ok := a.trees[top]; ok {
		return node
	}
	node := a.builder.Definition("node:tree "+dot(top.path), nil)
	a.trees[top] = node
	a.define(node, filesIn(top.path))
	for pending := []*folder{top}; len(pending) > 0; {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, i := range f.files {
			if a.isRead(i) {
				a.edge(node, a.source(i))
			}
		}
		for _, sub := range f.subs {
			if !sub.modules && (sub.pack == nil || sub.pack.folder != sub) {
				pending = append(pending, sub)
			}
		}
	}
	return node
}

// source returns the node of a file with all that it refers to.
func (a *assembler) source(i int32) targets.Node {
	if !a.isRead(i) {
		return a.files[i]
	}
	node, ok := a.sources[i]
	if !ok {
		node = a.builder.Definition(sourceOf(a.entries[i].Path), nil)
		a.sources[i] = node
		a.unfinished = append(a.unfinished, i)
	}
	return node
}

// isRead reports whether a file is read for references, or is a link.
func (a *assembler) isRead(i int32) bool {
	switch e := &a.entries[i]; e.Mode & modeType {
	case modeLink:
		return true
	case modeSubmodule:
		return false
	default:
		name := nameOf(e.Path)
		// What a release of yarn refers to is what an install does, which the install's own inputs have.
		isYarn := strings.HasPrefix(name, "yarn-") && nameOf(folderOf(e.Path)) == "releases" && nameOf(folderOf(folderOf(e.Path))) == ".yarn"
		return languageOf(name) != opaque && !isLockName(name) && !isYarn && !a.folders[folderOf(e.Path)].modules
	}
}

// addSources adds what sources refer to, round by round, so that files are read in few goes.
func (a *assembler) addSources(ctx context.Context, l *loading) error {
	for len(a.unfinished) > 0 {
		round := a.unfinished
		a.unfinished = nil
		if err := a.readFacts(ctx, l, round); err != nil {
			return err
		}
		slices.Sort(round)
		for _, i := range round {
			a.addSource(i)
		}
	}
	return nil
}

func (a *assembler) addSource(i int32) {
	file := a.entries[i].Path
	dir := folderOf(file)
	v := viewpoint{a.sources[i], a.nearest(dir).pack, dir}
	a.edge(v.from, a.files[i])
	if text, isLink := a.links[i]; isLink {
		if target, ok := join(dir, text); ok {
			a.addPath(v, target)
		}
		return
	}
	facts := a.facts[i]
	if facts == nil {
		return
	}
	for _, spec := range facts.imports {
		a.addSpec(v, spec, true)
	}
	for _, spec := range facts.paths {
		a.addSpec(v, spec, path.Ext(spec) != "")
	}
	if facts.manifests {
		a.define(v.from, allManifests)
	}
	if !isConfig(nameOf(file)) {
		for _, at := range slices.Sorted(maps.Keys(walkedFolders(facts, dir, dir))) {
			a.everythingIn(v, at)
		}
	}
	names := facts.names
	if facts.config != nil {
		// What a configuration builds on counts for whoever it is configuration for; what it lists counts for its own
		// package, and what its aliases stand for, for whoever uses one.
		for _, spec := range facts.config.extends {
			if isRelative(spec) {
				a.addSpec(v, spec, true)
			} else {
				names = append(slices.Clone(names), spec)
			}
		}
	}
	if v.home == nil {
		return
	}
	for _, spec := range names {
		for _, name := range a.packagesOf(v, v.home, spec) {
			a.addRequirement(v.from, v.home, v.home.requirement(name))
		}
	}
}

// packagesOf returns the names of the packages that a specifier leads into from a package: all that begin with it, where it goes on
// computed before its end. On which names there are the viewpoint then depends.
func (a *assembler) packagesOf(v viewpoint, p *pack, spec string) []string {
	begin, _, isComputed := strings.Cut(spec, "*")
	if name := packageOf(begin); !isComputed || name != "" && strings.HasPrefix(begin, name+"/") {
		if name == "" {
			return nil
		}
		return []string{name}
	}
	if begin == "" || strings.ContainsAny(begin, ":! \t") {
		return nil
	}
	a.define(v.from, namesOf(p.project.dir))
	return slices.DeleteFunc(p.project.names(), func(name string) bool { return !strings.HasPrefix(name, begin) })
}

// names returns the names of a project's members and of what its lock file pins, in order.
func (p *project) names() []string {
	names := slices.Collect(maps.Keys(p.byName))
	if p.lock != nil {
		names = slices.AppendSeq(names, maps.Keys(p.lock.named))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addSpec adds a relative path. Unless it is certain that a module is meant, packages are left alone: configuration of a
// workspace lists its members, and does not make each depend on all.
func (a *assembler) addSpec(v viewpoint, spec string, certain bool) {
	at, ok := join(v.dir, withoutWildcards(spec))
	if !ok {
		return
	}
	if owner := a.nearest(at).pack; !certain && owner != v.home && owner != nil && !owner.isAround(v.home) {
		a.addPlace(v, at)
		return
	}
	a.addPath(v, at)
}

// withoutWildcards returns the folder in which a pattern looks; a path without wildcards as it is.
func withoutWildcards(spec string) string {
	i := strings.IndexAny(spec, "*?[{$(")
	if i < 0 {
		return spec
	}
	return spec[:max(strings.LastIndexByte(spec[:i], '/'), 0)]
}

// readPackages reads what the files of packages say, and all links.
func (a *assembler) readPackages(ctx context.Context, l *loading) error {
	a.links = map[int32]string{}
	var found []int32
	var objects []string
	for i, e := range a.entries {
		if e.Mode&modeType == modeLink {
			found, objects = append(found, int32(i)), append(objects, e.Object)
		}
	}
	texts, err := parseBlobs(ctx, l, &l.loader.links, objects, maxLinkBytes, func(content []byte) *string {
		text := string(content)
		return &text
	})
	if err != nil {
		return err
	}
	for k, i := range found {
		a.links[i] = "/"
		if texts[k] != nil {
			a.links[i] = *texts[k]
		}
	}
	for _, i := range a.memberLinks {
		if target, ok := join(folderOf(a.entries[i].Path), a.links[i]); !ok || a.find(target) < 0 {
			a.noteIncomplete("%s is a symbolic link, and the patterns of a workspace match it", a.entries[i].Path)
		}
	}
	above := map[*folder]bool{}
	for _, p := range a.packs {
		for f := p.folder.parent; f != nil && !above[f]; f = f.parent {
			above[f] = true
		}
	}
	var files []int32
	for _, f := range a.all {
		for _, i := range f.files {
			if (f.pack != nil || above[f] && isConfig(nameOf(a.entries[i].Path))) && a.isRead(i) {
				files = append(files, i)
			}
		}
	}
	for len(files) > 0 {
		if err := a.readFacts(ctx, l, files); err != nil {
			return err
		}
		files = a.unreadConfig()
	}
	return nil
}

// unreadConfig returns the configurations of the compiler that others build on and that were not read yet.
func (a *assembler) unreadConfig() []int32 {
	var files []int32
	for i := range a.facts {
		if a.facts[i] == nil || a.facts[i].config == nil {
			continue
		}
		for _, k := range a.extended(int32(i)) {
			if a.facts[k] == nil && a.isRead(k) && a.entries[k].Mode&modeType != modeLink {
				files = append(files, k)
			}
		}
	}
	return files
}

// readFacts reads files that were not read yet.
func (a *assembler) readFacts(ctx context.Context, l *loading, files []int32) error {
	var missing []int32
	var keys []string
	byKind := map[string][]int{}
	for _, i := range files {
		e := &a.entries[i]
		if a.facts[i] != nil || e.Mode&modeType == modeLink {
			continue
		}
		kind := kindOf(nameOf(e.Path))
		byKind[kind] = append(byKind[kind], len(missing))
		missing, keys = append(missing, i), append(keys, kind+" "+e.Object)
	}
	for _, kind := range []string{"config", "script", "text"} {
		chosen := make([]string, len(byKind[kind]))
		for k, at := range byKind[kind] {
			chosen[k] = keys[at]
		}
		read, err := parseBlobs(ctx, l, &l.loader.facts, chosen, maxSourceBytes, func(content []byte) *facts { return factsOf(kind, content) })
		if err != nil {
			return err
		}
		for k, at := range byKind[kind] {
			i := missing[at]
			if a.facts[i] = read[k]; read[k] == nil {
				a.noteIncomplete("%s is larger than %d bytes", a.entries[i].Path, maxSourceBytes)
				a.facts[i] = &facts{}
			}
		}
	}
	return nil
}

// kindOf returns how a file of that name is read.
func kindOf(name string) string {
	switch {
	case strings.Contains(name, "tsconfig") || strings.HasPrefix(name, "jsconfig"):
		return "config"
	case languageOf(name) == plainText:
		return "text"
	}
	return "script"
}

// factsOf reads a file of a kind.
func factsOf(kind string, content []byte) *facts {
	if kind == "script" {
		return scan(content, script)
	}
	if config := parseCompilerFile(content, kind == "config"); config != nil {
		return &facts{config: config}
	}
	return scan(content, plainText)
}
