package graph

import "landfall.build/services/memberset"

// searchBudget bounds the looks that one question about live paths may take. When it runs out the
// answer is the one that waits.
const searchBudget = 1 << 14

// Constraint fixes members of A(c): a member that is not in Fixed is free.
type Constraint struct {
	Fixed, Value memberset.Set
}

// Live says whether a path of n that keeps the constraint is not dead. Out of budget it errs towards
// yes, which makes the caller wait.
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

// EachPath calls f for the paths of n in which no member that lands is shown red there, until f says
// stop. Paths that are dead only because a member is green are among them when greenToo is set (M19,
// Reject). It returns false if the budget ran out first.
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
