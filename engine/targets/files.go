package targets

import "slices"

// Files returns the paths of files of the tree that a target depends on, sorted: directly, or, with through, also by way of
// definitions and listings, but not of other targets. At most so many nodes are looked at.
func (g *Graph) Files(name string, through bool, most int) (paths []string) {
	start, ok := slices.BinarySearch(g.labels, Label(KindTarget, name))
	if !ok || g.info[start] < 0 {
		return nil
	}
	seen := map[int32]bool{}
	for pending := []int{start}; len(pending) > 0; pending = pending[1:] {
		for _, dep := range g.dependencies(pending[0]) {
			if len(seen) == most {
				break
			}
			if seen[dep] || !g.defined[dep] {
				continue
			}
			seen[dep] = true
			switch g.kinds[dep] {
			case KindFile:
				paths = append(paths, pathOf(g.labels[dep]))
			case KindDefinition, KindListing:
				if through {
					pending = append(pending, int(dep))
				}
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// FilesIn returns the paths of files of the tree in a folder and below it, "" being the root, sorted; at most so many.
func (g *Graph) FilesIn(folder string, most int) (paths []string) {
	prefix := prefixes[KindFile]
	if folder != "" {
		prefix += folder + "/"
	}
	from, _ := slices.BinarySearch(g.labels, prefix)
	for i := from; i < len(g.labels) && len(paths) < most && len(g.labels[i]) >= len(prefix) && g.labels[i][:len(prefix)] == prefix; i++ {
		if g.defined[i] && g.kinds[i] == KindFile {
			paths = append(paths, pathOf(g.labels[i]))
		}
	}
	slices.Sort(paths)
	return paths
}
