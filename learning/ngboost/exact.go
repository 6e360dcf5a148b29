package ngboost

import "slices"

// narrowest is the smallest gap between neighbouring values that is split,
// in float32, as in the reference.
const narrowest = float32(1e-7)

// presorted holds, for every feature, all rows by ascending value, missing last.
type presorted struct {
	columns columns
	rows    [][]int32
}

func presort(c columns) presorted {
	sorted := presorted{columns: c, rows: make([][]int32, len(c.values))}
	for f, values := range c.values {
		order := make([]int32, c.count)
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return compareMissingLast(values[a], values[b]) })
		sorted.rows[f] = order
	}
	return sorted
}

func compareMissingLast(a, b float32) int {
	switch {
	case a < b || b != b && a == a:
		return -1
	case a > b || a != a && b == b:
		return 1
	}
	return 0
}

// exactGrower tries every midpoint. The rows of a node stand between the same
// two positions in every feature's order, so no node sorts again.
type exactGrower struct {
	sorted  presorted
	depth   int
	minLeaf int

	order   [][]int32 // by feature, the batch's rows: sorted within each node
	inBatch []bool
	goLeft  []bool
	spill   []int32

	target   []float64
	features []int32
	visit    visit
	gains    []float64
	into     tree
}

func newExactGrower(sorted presorted, depth, minLeaf int) *exactGrower {
	n, width := sorted.columns.count, len(sorted.rows)
	cells := make([]int32, n*width)
	order := make([][]int32, width)
	for f := range order {
		order[f] = cells[f*n : (f+1)*n]
	}
	return &exactGrower{
		sorted: sorted, depth: depth, minLeaf: minLeaf, order: order,
		inBatch: make([]bool, n), goLeft: make([]bool, n), spill: make([]int32, n),
	}
}

func (g *exactGrower) grow(into tree, target []float64, batch, features []int32, gains []float64) {
	g.into, g.target, g.features, g.gains = into, target, features, gains
	for _, f := range features {
		g.loadOrder(f, batch)
	}
	g.visit = newVisit(features)
	g.growNode(0, 0, 0, len(batch), 0)
}

// loadOrder fills the feature's order with the batch's rows.
func (g *exactGrower) loadOrder(f int32, batch []int32) {
	all := g.sorted.rows[f]
	if len(batch) == len(all) {
		copy(g.order[f], all)
		return
	}
	clear(g.inBatch)
	for _, i := range batch {
		g.inBatch[i] = true
	}
	kept := g.order[f][:0]
	for _, i := range all {
		if g.inBatch[i] {
			kept = append(kept, i)
		}
	}
}

// growNode makes a node of the rows between low and high at a position of the
// tree; constants counts the features known to be constant there.
func (g *exactGrower) growNode(position, level, low, high, constants int) {
	total, squares := share{rows: high - low}, 0.0
	for _, i := range g.order[g.features[0]][low:high] {
		total.sum += g.target[i]
		squares += g.target[i] * g.target[i]
	}
	if level == g.depth || total.rows < 2*g.minLeaf || pure(total, squares) {
		g.into.fillLeaf(position, total.mean())
		return
	}
	var best split
	constants = g.visit.node(constants, func(f int32) bool {
		return !g.searchFeature(&best, f, total, low, high)
	})
	if !best.found {
		g.into.fillLeaf(position, total.mean())
		return
	}
	g.gains[best.feature] += max(0, best.worth-total.worth())
	g.into.setSplit(position, best, len(g.order))
	if level+1 == g.depth {
		g.into.fillLeaf(2*position+1, best.left.mean())
		g.into.fillLeaf(2*position+2, best.right.mean())
		return
	}
	g.partition(best, low, high)
	middle := low + best.left.rows
	g.growNode(2*position+1, level+1, low, middle, constants)
	g.growNode(2*position+2, level+1, middle, high, constants)
}

// searchFeature offers every split of one feature: missing values to the right,
// then, where there are any, missing values to the left. In a node without
// missing values they follow the larger side. It reports whether the feature
// varies in the node.
func (g *exactGrower) searchFeature(best *split, f int32, total share, low, high int) bool {
	values, order := g.sorted.columns.values[f], g.order[f][low:high]
	present := len(order)
	for present > 0 && values[order[present-1]] != values[order[present-1]] {
		present--
	}
	if present == 0 {
		return false
	}
	missing := share{rows: len(order) - present}
	for _, i := range order[present:] {
		missing.sum += g.target[i]
	}
	if missing.rows == 0 && values[order[present-1]] <= values[order[0]]+narrowest {
		return false
	}
	g.searchPresent(best, f, total, order[:present], share{})
	if missing.rows == 0 {
		return true
	}
	left := share{sum: total.sum - missing.sum, rows: present}
	if best.offer(f, left, missing, false, g.minLeaf) {
		best.threshold = noSplit.threshold
	}
	g.searchPresent(best, f, total, order[:present], missing)
	return true
}

// searchPresent offers the midpoints of the present values, with aside added on the left.
func (g *exactGrower) searchPresent(best *split, f int32, total share, order []int32, aside share) {
	values := g.sorted.columns.values[f]
	left := aside
	value := values[order[0]]
	for k := 1; k < len(order); k++ {
		left.sum += g.target[order[k-1]]
		left.rows++
		next := values[order[k]]
		if next <= value+narrowest {
			value = next
			continue
		}
		right := share{sum: total.sum - left.sum, rows: total.rows - left.rows}
		missingLeft := aside.rows > 0
		if len(order) == total.rows {
			missingLeft = left.rows > right.rows
		}
		if best.offer(f, left, right, missingLeft, g.minLeaf) {
			best.threshold = midpoint(value, next)
		}
		value = next
	}
}

// partition brings the rows that go left before the others, keeping the order
// on both sides.
func (g *exactGrower) partition(best split, low, high int) {
	values := g.sorted.columns.values[best.feature]
	for _, i := range g.order[best.feature][low:high] {
		v := values[i]
		g.goLeft[i] = v <= best.threshold || v != v && best.missingLeft
	}
	for _, f := range g.features {
		order := g.order[f][low:high]
		lefts, rights := 0, 0
		for _, i := range order {
			if g.goLeft[i] {
				order[lefts] = i
				lefts++
			} else {
				g.spill[rights] = i
				rights++
			}
		}
		copy(order[lefts:], g.spill[:rights])
	}
}
