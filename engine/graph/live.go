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

// EachPath calls f for each path of n in which every member that lands may land (May), until f returns false. Paths that reject a
// member which is green on them are left out unless greenToo is set (M19, Reject). It returns false if the budget ran out first.
func (g *Graph) EachPath(n *Node, greenToo bool, f func(s memberset.Set) (goOn bool)) bool {
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
		land, fail := g.May(n, s, j)
		if land {
			s.Add(j)
			goOn, complete := walk(j + 1)
			s.Remove(j)
			if !goOn {
				return false, complete
			}
		}
		if fail || greenToo {
			return walk(j + 1)
		}
		return true, true
	}
	_, complete := walk(0)
	return complete
}
