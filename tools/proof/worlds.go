package proof

import "fmt"

// breakWorld draws, for some targets, a time from which their steps fail whatever the tree holds, and one from which they do not.
func (s *schedule) breakWorld(x *site) {
	if s.worlds == nil {
		return
	}
	x.broken = map[string]bool{}
	of := ""
	if x != s.m.sites[0] {
		of = x.queue + " "
	}
	for i := range 1 + s.worlds.IntN(3) {
		target := x.editor.repo.targets[s.worlds.IntN(len(x.editor.repo.targets))]
		from := s.worlds.Int64N(s.span)
		s.ops = append(s.ops,
			operation{at: from, name: fmt.Sprintf("%sbreak%d", of, i), do: func() { x.broken[target] = true; s.m.tally[BrokenWorlds]++ }},
			operation{at: from + s.worlds.Int64N(s.span), name: fmt.Sprintf("%sheal%d", of, i), do: func() { x.broken[target] = false }})
	}
}
