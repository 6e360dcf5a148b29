package targets

import (
	"path"
	"slices"
	"strings"
)

// Closed has the targets that are defined from now on verified in closed workspaces (Workspace). Their hashes say so: what has
// passed where all files of the tree could be read may fail where they cannot.
func (b *Builder) Closed() { b.marks.closed = true }

// InEveryWorkspace marks a file that the tool needs to find, whatever target it verifies, such as the manifest of a package that
// another one is installed with. The adapter sees to it that targets depend on what the file means to them.
func (b *Builder) InEveryWorkspace(path string) {
	b.marks.everywhere = append(b.marks.everywhere, b.Ref(KindFile, path))
}

// NameInEveryWorkspace marks a file that the tool needs to find, whatever target it verifies, and does not read: workspaces of targets
// that do not depend on it hold an empty file in its place.
func (b *Builder) NameInEveryWorkspace(path string) {
	b.marks.named = append(b.marks.named, b.Ref(KindFile, path))
}

// ShowNames has closed workspaces show the names of all entries of a folder, "" for the root, if they hold any of its files. It is for
// folders that the tool lists although targets depend on some entries only. With alone they also show them where they show the names of
// the folder above and hold no file of this one.
func (b *Builder) ShowNames(folder string, alone bool) {
	b.marks.shown = append(b.marks.shown, shownFolder{folder: folder, alone: alone})
}

// Workspace is what the steps of a target find in a closed workspace.
type Workspace struct {
	// Files are the paths of the files that the target depends on, directly and through others, and of those that are in every
	// workspace. The value is false where the file is empty there.
	Files map[string]bool
	// Tools are those of Files on which the target does not depend: they are there for tools, such as package managers. The value is
	// set if the folder that one is in has, in or below it, a file on which the target depends.
	Tools map[string]bool
	// Shown has the folders of Builder.ShowNames, "" for the root. The value is its argument alone.
	Shown map[string]bool
	// Names are folders, "" for the root, with listings of all names in and below them (NamesBelow) on which the target depends.
	Names []string
}

// NamesBelow ends the name of a listing that has the names of all files in and below a folder, whose path precedes it, "." or nothing for
// the root. No adapter may end those of other listings like it.
const NamesBelow = "/**"

// Workspace returns the closed workspace of a target; nil of one that is verified where all files are, and of one that is not there.
func (g *Graph) Workspace(name string) *Workspace {
	start, found := slices.BinarySearch(g.labels, Label(KindTarget, name))
	if !found || g.info[start] < 0 || !g.targets[g.info[start]].closed {
		return nil
	}
	w, seen := &Workspace{Files: map[string]bool{}, Tools: map[string]bool{}, Shown: map[string]bool{}}, make([]bool, len(g.labels))
	folders := map[string]bool{}
	g.eachReached([]int32{int32(start)}, seen, func(file string) {
		w.Files[file] = true
		for folder := path.Dir(file); !folders[folder]; folder = path.Dir(folder) {
			folders[folder] = true
		}
	})
	for node, is := range seen {
		if folder, below := g.namedBelow(node); is && below {
			w.Names = append(w.Names, folder)
		}
	}
	g.eachReached(g.covered.everywhere, seen, func(file string) {
		w.Files[file], w.Tools[file] = true, folders[path.Dir(file)]
	})
	for _, file := range g.covered.named {
		if path := pathOf(g.labels[file]); g.defined[file] && !w.Files[path] {
			w.Files[path] = false
		}
	}
	for _, s := range g.covered.shown {
		w.Shown[s.folder] = w.Shown[s.folder] || s.alone
	}
	return w
}

// namedBelow returns the folder of a listing of all names in and below it, "" for the root, and whether a node is one.
func (g *Graph) namedBelow(node int) (folder string, is bool) {
	if g.kinds[node] != KindListing || !g.defined[node] {
		return "", false
	}
	name := g.labels[node][len(prefixes[KindListing]):]
	if g.covered.merged { // It begins with its adapter.
		_, name, _ = strings.Cut(name, " ")
	}
	folder, is = strings.CutSuffix("/"+unquoted(name), NamesBelow)
	// Listings of one adapter's own have a colon.
	return strings.TrimPrefix(strings.TrimSuffix(folder, "/."), "/"), is && !strings.Contains(folder, ":")
}

// eachReached calls f with the path of each file that is among some nodes, or that these depend on. It leaves out nodes that were
// seen, and sets them.
func (g *Graph) eachReached(from []int32, seen []bool, f func(file string)) {
	var pending []int32
	add := func(node int32) {
		if !seen[node] {
			seen[node] = true
			pending = append(pending, node)
		}
	}
	for _, node := range from {
		add(node)
	}
	for len(pending) > 0 {
		node := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if g.kinds[node] == KindFile && g.defined[node] {
			f(pathOf(g.labels[node]))
		}
		for _, dep := range g.dependencies(int(node)) {
			add(dep)
		}
	}
}
