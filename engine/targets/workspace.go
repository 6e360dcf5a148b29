package targets

import "slices"

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
	// Shown has the folders of Builder.ShowNames, "" for the root. The value is its argument alone.
	Shown map[string]bool
}

// Workspace returns the closed workspace of a target; nil of one that is verified where all files are, and of one that is not there.
func (g *Graph) Workspace(name string) *Workspace {
	start, found := slices.BinarySearch(g.labels, Label(KindTarget, name))
	if !found || g.info[start] < 0 || !g.targets[g.info[start]].closed {
		return nil
	}
	w, seen := &Workspace{Files: map[string]bool{}, Shown: map[string]bool{}}, make([]bool, len(g.labels))
	seen[start] = true
	pending := []int32{int32(start)}
	for _, file := range g.covered.everywhere {
		seen[file] = true
		pending = append(pending, file)
	}
	for len(pending) > 0 {
		node := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if g.kinds[node] == KindFile && g.defined[node] {
			w.Files[pathOf(g.labels[node])] = true
		}
		for _, dep := range g.dependencies(int(node)) {
			if !seen[dep] {
				seen[dep] = true
				pending = append(pending, dep)
			}
		}
	}
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
