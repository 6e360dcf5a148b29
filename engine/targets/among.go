package targets

import "slices"

// Among returns, for each of some targets, which others of them it depends on: directly, or through targets that are not
// among them. A target that the graph lacks depends on nothing. It returns nil if there is no such dependency, or more than
// most. Targets that depend on each other are listed both ways.
func (g *Graph) Among(names []string, most int) [][]int {
	place := make(map[int32]int, len(names))
	var nodes []int32
	for i, name := range names {
		if node, ok := slices.BinarySearch(g.labels, Label(KindTarget, name)); ok && g.info[node] >= 0 {
			place[int32(node)] = i
			nodes = append(nodes, int32(node))
		}
	}
	reaches := g.reach(nodes) // the rest of the graph depends on none of them
	seen := make([]int, len(g.labels))
	out, total := make([][]int, len(names)), 0
	for turn, from := range nodes {
		pending := []int32{from}
		for len(pending) > 0 {
			node := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			for _, dep := range g.dependencies(int(node)) {
				if !reaches[dep] || dep == from || seen[dep] == turn+1 {
					continue
				}
				seen[dep] = turn + 1
				if other, is := place[dep]; is {
					out[place[from]] = append(out[place[from]], other)
					total++
				} else {
					pending = append(pending, dep)
				}
			}
		}
		slices.Sort(out[place[from]])
		if total > most {
			return nil
		}
	}
	if total == 0 {
		return nil
	}
	return out
}
