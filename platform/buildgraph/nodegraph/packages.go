package nodegraph

import (
	"maps"
	"slices"
	"strings"
)

// placedAlias is an alias with the folder that its paths are relative to.
type placedAlias struct {
	alias
	dir string
}

// requirement returns what a package says of a name, with an empty range if it says nothing.
func (p *pack) requirement(name string) requirement {
	i, ok := slices.BinarySearchFunc(p.file.requires, name, func(r requirement, name string) int { return strings.Compare(r.name, name) })
	if !ok {
		return requirement{name: name}
	}
	return p.file.requires[i]
}

// addPackage defines a package and its tests.
func (a *assembler) addPackage(p *pack) {
	o := a.options.Commands
	a.builder.Definition(packageIn(p.dir), normalText("project", p.project.dir))
	a.addManifest(p)
	node := a.builder.Target(targetOf(p.dir), "package", a.commands(o.Package, defaultRuns(p.project, "build"), p.project, p, p.buildRuns()))
	v := viewpoint{node, p, p.dir}
	for _, name := range []string{filesIn(p.dir), packageIn(p.dir), projectIn(p.project.dir)} {
		a.define(node, name)
	}
	a.addConfigs(node, folderOf(p.dir))
	for n, in := range a.inputs {
		if len(in.folders) > 0 && in.holdsFor(p.dir) {
			a.define(node, inputsName(n))
		}
	}
	a.addDependencies(v, p)
	if len(p.buildRuns()) > 0 {
		a.define(node, packagesBelow(p.dir)) // Tools go through folders wherever a package begins.
	}
	if !p.hasTest() {
		return
	}
	test := a.builder.Target(testOf(p.dir), "test", a.commands(o.Test, defaultRuns(p.project, "test"), p.project, p, p.testRuns()))
	a.edge(test, node)
	a.define(test, packagesBelow(p.dir))
}

func (p *pack) isRoot() bool { return p == p.project.root }

// addDependencies adds what a package reaches beyond its own files.
func (a *assembler) addDependencies(v viewpoint, p *pack) {
	for _, r := range p.file.requires {
		a.addRequirement(v.from, p, r)
	}
	for _, word := range p.scriptWords() {
		a.addRequirement(v.from, p, p.requirement(word))
		for _, member := range p.project.byProgram[word] {
			a.edge(v.from, a.targetNode(member))
		}
	}
	if a.readsManifests(p) {
		a.define(v.from, allManifests)
	}
	names, specs := a.references(p)
	aliases := a.aliases(p)
	for _, spec := range slices.Sorted(maps.Keys(names)) {
		for _, name := range a.packagesOf(v, p, spec) {
			if name != p.file.name {
				a.addRequirement(v.from, p, p.requirement(name))
			}
		}
		a.addAliased(specs, spec, aliases)
	}
	for _, text := range p.file.paths {
		for _, spec := range pathsIn(text) {
			if at, ok := join(p.dir, withoutWildcards(spec)); ok {
				specs[at] = true
			}
		}
	}
	if root := p.project.root; root != nil && root != p && p.runsInRoot() {
		a.edge(v.from, a.targetNode(root))
	}
	for _, at := range slices.Sorted(maps.Keys(specs)) {
		a.addPath(v, at)
	}
	walked := map[string]bool{}
	for _, f := range a.regions[p] {
		for _, i := range f.files {
			if a.facts[i] != nil {
				maps.Copy(walked, walkedFolders(a.facts[i], f.path, p.dir))
			}
		}
	}
	for _, script := range p.file.scripts {
		for _, spec := range givenFromAbove(script) {
			if at, ok := join(p.dir, spec); ok {
				walked[at] = true
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(walked)) {
		a.everythingIn(v, at)
	}
	if l := p.project.lock; l != nil && l.format != pnpmLock && l.format != unknownLock {
		// The compiler takes all packages of types that it finds above a file, whoever asked for them.
		a.define(v.from, typesIn(p.project.dir))
	}
}

// scriptWords returns the words of a package's scripts that can be programs: most have the name of their package.
func (p *pack) scriptWords() []string {
	words := map[string]bool{}
	for _, script := range p.file.scripts {
		for _, word := range strings.FieldsFunc(script, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()<>=", r) }) {
			if name := packageOf(word); name == word && !strings.HasPrefix(word, "-") && !strings.HasPrefix(word, ".") {
				words[name] = true
			}
		}
	}
	return sortedKeys(words)
}

// runsInRoot reports whether a script of a member goes to the root of the workspace, where it can read what it likes.
func (p *pack) runsInRoot() bool {
	for _, script := range p.file.scripts {
		if strings.Contains(script, "PROJECT_CWD") || strings.Contains(script, "--workspace-root") || strings.Contains(script, "pnpm -w ") {
			return true
		}
		for _, spec := range pathsIn(script) {
			if at, ok := join(p.dir, spec); ok && at != p.dir && isWithin(at, p.dir) {
				return true
			}
		}
	}
	return false
}

// references returns the specifiers of packages that the files of a package name, and the paths that lead out of it.
func (a *assembler) references(p *pack) (names, paths map[string]bool) {
	names, paths = map[string]bool{}, map[string]bool{}
	regions := a.regions[p]
	hasPackages := a.hasPackagesBelow(p)
	for _, f := range regions {
		add := func(spec string) {
			if !hasPackages && !strings.Contains(spec, "..") {
				return // It stays in the package.
			}
			at, ok := join(f.path, withoutWildcards(spec))
			if ok && (!isWithin(p.dir, at) || hasPackages && a.nearest(at).pack != p) {
				paths[at] = true
			}
		}
		for _, i := range f.files {
			if text, isLink := a.links[i]; isLink {
				add(text)
			}
			facts := a.facts[i]
			if facts == nil || a.entries[i].Path == below(p.dir, manifestName) {
				continue
			}
			for _, list := range [][]string{facts.imports, facts.paths} {
				for _, spec := range list {
					add(spec)
				}
			}
			for _, spec := range facts.names {
				names[spec] = true
			}
			if facts.config == nil {
				continue
			}
			for _, spec := range facts.config.extends {
				if isRelative(spec) {
					add(spec)
				} else {
					names[spec] = true
				}
			}
			for _, spec := range facts.config.inputs {
				add(spec)
			}
		}
	}
	return names, paths
}

// readsManifests reports whether a file of a package may read the manifests of packages that it names nowhere.
func (a *assembler) readsManifests(p *pack) bool {
	return slices.ContainsFunc(a.regions[p], func(f *folder) bool {
		return slices.ContainsFunc(f.files, func(i int32) bool { return a.facts[i] != nil && a.facts[i].manifests })
	})
}

func (a *assembler) hasPackagesBelow(p *pack) bool {
	for _, f := range a.regions[p] {
		for _, sub := range f.subs {
			if sub.pack != p {
				return true
			}
		}
	}
	return false
}

// aliasedWork is how many comparisons a path that an alias stands for counts as. At most ten million such paths are made.
const aliasedWork = maxMatchWork / 10_000_000

// addAliased adds the paths that a specifier stands for. At the survey's bound, which makes the graph incomplete, it adds none.
func (a *assembler) addAliased(specs map[string]bool, spec string, aliases []placedAlias) {
	if a.matched += len(aliases); a.matched > maxMatchWork {
		return
	}
	for _, alias := range aliases {
		paths := alias.matches(spec)
		if a.matched += aliasedWork * len(paths); a.matched > maxMatchWork {
			return
		}
		for _, path := range paths {
			if at, ok := join(alias.dir, withoutWildcards(path)); ok {
				specs[at] = true
			}
		}
	}
}

// aliases returns the aliases of the compiler that count for a package: those of its own configuration, of that above
// it, and of whatever these build on.
func (a *assembler) aliases(p *pack) []placedAlias {
	var found []placedAlias
	seen := map[int32]bool{}
	var pending []int32
	visit := func(f *folder) {
		for _, i := range f.files {
			if a.facts[i] != nil && a.facts[i].config != nil && !seen[i] {
				seen[i] = true
				pending = append(pending, i)
			}
		}
	}
	for _, f := range a.regions[p] {
		visit(f)
	}
	for f := p.folder.parent; f != nil; f = f.parent {
		visit(f)
	}
	for len(pending) > 0 {
		i := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, one := range a.facts[i].config.aliases {
			found = append(found, placedAlias{one, folderOf(a.entries[i].Path)})
		}
		for _, k := range a.extended(i) {
			if a.facts[k] != nil && a.facts[k].config != nil && !seen[k] {
				seen[k] = true
				pending = append(pending, k)
			}
		}
	}
	return found
}

// extended returns the files of the tree that a configuration of the compiler builds on.
func (a *assembler) extended(i int32) []int32 {
	var found []int32
	for _, spec := range a.facts[i].config.extends {
		at, ok := join(folderOf(a.entries[i].Path), spec)
		if !ok || !isRelative(spec) {
			continue
		}
		for _, name := range []string{at, at + ".json", below(at, "tsconfig.json")} {
			if k := a.find(name); k >= 0 {
				found = append(found, k)
			}
		}
	}
	return found
}

// pathsIn returns the relative paths in a text of a manifest: a script, a range such as file:../x, a setting.
func pathsIn(text string) []string {
	var paths []string
	for _, protocol := range folderProtocols {
		if rest, ok := strings.CutPrefix(text, protocol); ok && !strings.ContainsAny(rest, "*^~@") {
			paths = append(paths, rest)
		}
	}
	s := newScanner([]byte(text))
	s.leaving()
	for _, word := range strings.Fields(text) {
		if strings.HasSuffix(word, "..") && isRelative(word+"/") {
			s.paths[word] = true
		}
	}
	return slices.Concat(paths, sortedKeys(s.paths), wordsFromAbove(text))
}
