package cargograph

import (
	"context"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// first reports whether a node is asked for the first time.
func (a *assembler) first(node targets.Node) bool {
	if a.seen == nil {
		a.seen = map[targets.Node]bool{}
	}
	if a.seen[node] {
		return false
	}
	a.seen[node] = true
	return true
}

// addPath makes a node depend on a file, or on everything in and below a folder, or on neither being there; and on the
// symbolic links on the way.
func (a *assembler) addPath(from targets.Node, file string) {
	way := a.follow(file)
	for _, link := range way.via {
		a.edge(from, a.files[link])
	}
	if len(way.via) > 0 {
		// Otherwise a link can take the place of a name only together with what stands there, or is looked for below.
		for _, passed := range way.passed {
			a.edge(from, a.file(passed))
		}
	}
	if !way.ok {
		return
	}
	if i := a.find(way.end); i >= 0 {
		a.edge(from, a.files[i])
		return
	}
	a.edge(from, a.file(way.end))
	if a.folders[way.end] != nil {
		a.edge(from, a.wholeNode(way.end))
		return
	}
	a.edge(from, a.listing(way.end, everything))
	// No file or link may come to stand on the way. Whether a folder stands there is not asked: two changes can make and unmake
	// that together.
	for at := folderOf(way.end); at != ""; at = folderOf(at) {
		a.edge(from, a.file(at))
	}
}

// wholeNode returns the node of a folder that counts with all that is in and below it.
func (a *assembler) wholeNode(dir string) targets.Node {
	if node, ok := a.wholes[dir]; ok {
		return node
	}
	node := a.define("", "all of %s", below(dir, "**"))
	a.wholes[dir] = node
	a.pending = append(a.pending, func() {
		f := a.folders[dir]
		a.edge(node, a.listing(dir, everything))
		for _, i := range f.files {
			a.addFile(node, i)
		}
		for _, sub := range f.subs {
			a.edge(node, a.wholeNode(sub.path))
		}
	})
	return node
}

// endingNode returns the node of the files in and below a folder whose path has an end, with all in and below folders of such a path.
func (a *assembler) endingNode(dir, end string) targets.Node {
	key := dir + "\x00" + end
	if node, ok := a.endings[key]; ok {
		return node
	}
	node := a.define("", "ending %q of %s", end, below(dir, "**"))
	a.endings[key] = node
	a.edge(node, a.listing(dir, everything))
	for i := range a.entries {
		a.work++
		if !within(dir, a.entries[i].Path) {
			continue
		}
		file := "/" + a.entries[i].Path
		// What a link leads to has a path of its own, which is not compared.
		if _, isLink := a.links[int32(i)]; isLink || strings.HasSuffix(file, end) || strings.Contains(file, end+"/") {
			a.addFile(node, int32(i))
		}
	}
	return node
}

// addFile makes a node depend on a file, and on what it leads to if it is a symbolic link.
func (a *assembler) addFile(from targets.Node, i int32) {
	a.edge(from, a.files[i])
	if _, is := a.links[i]; is {
		a.addPath(from, a.entries[i].Path)
	}
}

// part is which files of a package are meant.
type part uint8

const (
	codePart part = iota
	testPart      // all others
)

// partOf returns in which part of a crate a path is; ok is false if it is in none. A package that runs a program when it is
// built has no tests apart: the program may read any file.
func (a *assembler) partOf(c *crate, file string) (_ part, ok bool) {
	if !within(c.path, file) {
		return 0, false
	}
	inside := relative(c.path, file)
	first, _, _ := strings.Cut(inside, "/")
	if c.nests && first != "src" {
		for dir := file; dir != c.path; dir = folderOf(dir) {
			if f := a.folders[dir]; f != nil && f.target {
				return 0, false
			}
		}
	}
	return c.side(first), true
}

// side returns the part that a file or folder of a package's folder belongs to.
func (c *crate) side(name string) part {
	if slices.Contains(besides, name) && !c.script {
		return testPart
	}
	return codePart
}

// eachOwn yields the files of a package, but for those of packages that are targets below it, and the folders below it that
// have a Cargo.toml: some are its own, at the others it ends.
func (a *assembler) eachOwn(c *crate, file func(i int32), nested func(f *folder)) {
	pending := []*folder{c.folder}
	for len(pending) > 0 {
		f := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if f != c.folder && f.manifest >= 0 {
			nested(f)
		}
		for _, i := range f.files {
			file(i)
		}
		for _, sub := range f.subs {
			if sub.target && !within(below(c.path, "src"), sub.path) {
				nested(sub)
			} else {
				pending = append(pending, sub)
			}
		}
	}
}

// codeNode returns the node of what a crate is by itself: its files but those of tests, and what they name.
func (a *assembler) codeNode(c *crate) targets.Node {
	if node, ok := a.codes[c]; ok {
		return node
	}
	node := a.define("", "code of %s", label(c.path))
	a.codes[c] = node
	a.edge(node, a.manifestNode(c))
	for dir := range around(folderOf(c.path)) {
		for _, name := range toolFiles[2:] {
			if c.path != "" {
				a.addPath(node, below(dir, name))
			}
		}
	}
	a.edge(node, a.listing(c.path, ofCode))
	if c.script {
		a.edge(node, a.listing(c.path, ofPackage))
	}
	r := a.newReach(node, c, codePart)
	a.eachOwn(c, func(i int32) {
		if in, ok := a.partOf(c, a.entries[i].Path); ok && in == codePart {
			a.addFile(node, i)
			r.source(i)
		}
	}, func(f *folder) { a.addBorder(node, c, f, codePart) })
	for _, text := range c.manifest.pkg.code {
		r.path(c.path, text, true)
	}
	if p := c.manifest.pkg; p.build != "" {
		r.path(c.path, p.build, true)
	}
	for i, in := range a.inputs {
		if in.names(c.path) {
			a.edge(node, a.definition("input %d", i))
		}
	}
	return node
}

// addBorder makes a part of a package depend on whether it has what stands in a folder with a Cargo.toml below it.
func (a *assembler) addBorder(from targets.Node, c *crate, f *folder, of part) {
	first, _, _ := strings.Cut(relative(c.path, f.path), "/")
	if c.side(first) == of {
		a.edge(from, a.definition("border %s", below(f.path, manifestName)))
		if !f.target {
			a.edge(from, a.listing(f.path, ofPackage))
		}
	}
}

// addTestFiles makes a test depend on the files of a package that are not its code, and on what all files name for when they run.
func (a *assembler) addTestFiles(test targets.Node, c *crate) {
	a.edge(test, a.listing(c.path, ofPackage))
	r := a.newReach(test, c, testPart)
	a.eachOwn(c, func(i int32) {
		in, ok := a.partOf(c, a.entries[i].Path)
		if ok && in == testPart {
			a.addFile(test, i)
		}
		if ok {
			r.source(i)
		}
	}, func(f *folder) { a.addBorder(test, c, f, testPart) })
	for _, text := range c.manifest.pkg.tests {
		r.path(c.path, text, true)
	}
}

// input is one of the options' with its patterns.
type input struct {
	folders, files []glob.Pattern
}

func (in input) names(dir string) bool {
	return slices.ContainsFunc(in.folders, func(p glob.Pattern) bool { return p.MatchesFolder(dir) })
}

// addInputs defines the environment and the undeclared inputs.
func (a *assembler) addInputs() {
	environment := a.define(a.options.Toolchain+"\x00"+strings.Join(a.options.Env, "\x00"), "environment")
	for k, in := range a.options.Inputs {
		// The options were checked when the loader was made.
		folders, _ := glob.ParseAll(in.Folders)
		files, _ := glob.ParseAll(in.Files)
		a.inputs = append(a.inputs, input{folders, files})
		node := a.define(strings.Join(in.Files, "\x00"), "input %d", k)
		if len(folders) == 0 {
			a.edge(environment, node)
		}
		for _, p := range files {
			fixed := ""
			for _, segment := range p {
				if segment.Kind != glob.Literal {
					break
				}
				fixed = path.Join(fixed, segment.Text)
			}
			a.edge(node, a.file(fixed))
			a.edge(node, a.listing(fixed, everything))
			for i := range a.entries {
				if within(fixed, a.entries[i].Path) && p.MatchesFile(a.entries[i].Path) {
					a.addFile(node, int32(i))
				}
			}
		}
	}
}

// readSources reads the Rust files of all packages that count.
func (a *assembler) readSources(ctx context.Context) error {
	var at []int32
	seen := map[int32]bool{}
	for _, w := range a.workspaces {
		for _, c := range w.built {
			a.eachOwn(c, func(i int32) {
				if !seen[i] && isRust(a.entries[i].Path) {
					seen[i] = true
					at = append(at, i)
				}
			}, func(*folder) {})
		}
	}
	return a.readFacts(ctx, at)
}

func (a *assembler) readFacts(ctx context.Context, at []int32) error {
	read, err := parseBlobs(ctx, a.loading, &a.loader.sources, at, maxSourceBytes, readSource)
	for k, facts := range read {
		i := at[k]
		if facts == nil && a.entries[i].Kind == "blob" {
			a.noteIncomplete("%s is larger than %d MiB", a.entries[i].Path, maxSourceBytes>>20)
		}
		if a.entries[i].Mode&modeType == modeLink {
			facts = nil // What it leads to is read where it stands.
		}
		a.facts[i] = facts
	}
	return err
}

func isRust(file string) bool { return strings.HasSuffix(file, ".rs") }
