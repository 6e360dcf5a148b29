package graph

import "landfall.build/engine/memberset"

// searchBudget bounds how many prefixes of paths one question about live paths may visit. When it runs out, the answer is the
// one that makes the caller wait.
const searchBudget = 1 << 14

// Constraint fixes some members of A(c): those in Fixed land if they are in Value, and fail if not. The others are free.
type Constraint struct {
	Fixed, Value memberset.Set
}

// Live reports whether some path of n that keeps the constraint is not dead. Out of budget it returns true, which makes the caller
// wait.
func (g *Graph) Live(n *Node, c Constraint) bool {
	budget := searchBudget
	return g.live(n, c, memberset.New(len(n.Ahead)), 0, &budget)
}

func (g *Graph) live(n *Node, c Constraint, s memberset.Set, j int, budget *int) bool {
	if j == len(n.Ahead) {
		return true
	}
	if *budget--; *budget < 0 {
		return true
	}
	land, fail := g.May(n, s, j)
	if land && (!c.Fixed.Has(j) || c.Value.Has(j)) {
		s.Add(j)
		if g.live(n, c, s, j+1, budget) {
			return true
		}
		s.Remove(j)
	}
	if fail && (!c.Fixed.Has(j) || !c.Value.Has(j)) {
		if g.live(n, c, s, j+1, budget) {
			return true
		}
	}
	return false
}

// LivePath reports whether the path of n in which the members in set land, and no others, is not dead (M9).
func (g *Graph) LivePath(n *Node, set memberset.Set) bool {
	prefix := memberset.New(len(n.Ahead))
	for j := range n.Ahead {
		land, fail := g.May(n, prefix, j)
		if set.Has(j) && !land || !set.Has(j) && !fail {
			return false
		}
		if set.Has(j) {
			prefix.Add(j)
		}
	}
	return true
}

// EachPath calls f for each path of n that is not dead (May), until f returns false. It returns false if the budget ran out first.
func (g *Graph) EachPath(n *Node, f func(s memberset.Set) (goOn bool)) (complete bool) {
	return eachPath(n, func(s memberset.Set, j int) (land, fail bool) { return g.May(n, s, j) }, f)
}

// EachEnding calls f for each path of n but those that M5 and M5a rule out, until f returns false (M19). Results of a member rule none out:
// a green one may be cancelled, and a red or blocked one may land once the mainline is repaired. It returns false if the budget ran out
// first.
func (g *Graph) EachEnding(n *Node, f func(s memberset.Set) (goOn bool)) (complete bool) {
	return eachPath(n, func(s memberset.Set, j int) (land, fail bool) { return !g.ruledOut(n, s, j), true }, f)
}

func eachPath(n *Node, may func(s memberset.Set, j int) (land, fail bool), f func(s memberset.Set) (goOn bool)) bool {
	budget := searchBudget
	s := memberset.New(len(n.Ahead))
	var walk func(j int) (goOn, complete bool)
	walk = func(j int) (bool, bool) {
		if budget--; budget < 0 {
			return false, false
		}
		if j == len(n.Ahead) {
			return f(s), true
		}
		land, fail := may(s, j)
		if land {
			s.Add(j)
			goOn, complete := walk(j + 1)
			s.Remove(j)
			if !goOn {
				return false, complete
			}
		}
		if fail {
			return walk(j + 1)
		}
		return true, true
	}
	_, complete := walk(0)
	return complete
}
