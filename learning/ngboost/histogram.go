package ngboost

// cell is what a histogram holds of one bin.
type cell struct {
	sum  float64
	rows int64
}

// histogramGrower tries the borders between bins.
type histogramGrower struct {
	table   binned
	depth   int
	minLeaf int

	// offsets[f] is where feature f's cells start in a histogram: one for each
	// bin, and one more for the missing rows.
	offsets []int
	cells   int
	levels  [][]cell // one histogram for each level of the tree
	rows    []int32
	spill   []int32
	picked  []float64 // the target in the order of a node's rows

	target   []float64
	features []int32
	visit    visit
	gains    []float64
	into     tree
}

func newHistogramGrower(table binned, depth, minLeaf int) *histogramGrower {
	g := &histogramGrower{
		table: table, depth: depth, minLeaf: minLeaf,
		offsets: make([]int, len(table.codes)),
		levels:  make([][]cell, depth),
		rows:    make([]int32, table.columns.count),
		spill:   make([]int32, table.columns.count),
		picked:  make([]float64, table.columns.count),
	}
	for f, spans := range table.spans {
		g.offsets[f] = g.cells
		g.cells += len(spans) + 1
	}
	for level := range g.levels {
		g.levels[level] = make([]cell, g.cells)
	}
	return g
}

func (g *histogramGrower) grow(into tree, target []float64, batch, features []int32, gains []float64) {
	g.into, g.target, g.features, g.gains = into, target, features, gains
	rows := g.rows[:len(batch)]
	copy(rows, batch)
	total, squares := g.pick(rows)
	if pure(total, squares) || total.rows < 2*g.minLeaf {
		g.into.fillLeaf(0, total.mean())
		return
	}
	g.count(g.levels[0], rows)
	g.visit = newVisit(features)
	g.growNode(0, 0, rows, total, g.levels[0], 0)
}

// pick copies the rows' targets to picked and sums them.
func (g *histogramGrower) pick(rows []int32) (total share, squares float64) {
	total.rows = len(rows)
	picked := g.picked[:len(rows)]
	for k, i := range rows {
		v := g.target[i]
		picked[k] = v
		total.sum += v
		squares += v * v
	}
	return total, squares
}

// count fills a histogram with the rows last picked.
func (g *histogramGrower) count(histogram []cell, rows []int32) {
	picked := g.picked[:len(rows)]
	whole := len(rows) == g.table.columns.count
	for _, f := range g.features {
		var bins [256]cell
		codes := g.table.codes[f]
		if whole {
			countAll(&bins, codes, picked)
		} else {
			countSome(&bins, codes, rows, picked)
		}
		last := len(g.table.spans[f])
		to := histogram[g.offsets[f] : g.offsets[f]+last+1]
		copy(to, bins[:last])
		to[last] = bins[missingBin]
	}
}

// countAll needs the rows to be 0, 1, 2, …
func countAll(bins *[256]cell, codes []uint8, picked []float64) {
	codes = codes[:len(picked)]
	for i, v := range picked {
		c := &bins[codes[i]]
		c.sum += v
		c.rows++
	}
}

func countSome(bins *[256]cell, codes []uint8, rows []int32, picked []float64) {
	picked = picked[:len(rows)]
	for k, i := range rows {
		c := &bins[codes[i]]
		c.sum += picked[k]
		c.rows++
	}
}

// growNode splits a node whose histogram is counted, and may overwrite the
// histogram; constants counts the features known to be constant in it.
func (g *histogramGrower) growNode(position, level int, rows []int32, total share, histogram []cell, constants int) {
	var best split
	constants = g.visit.node(constants, func(f int32) bool {
		return !g.searchFeature(&best, f, total, histogram)
	})
	if !best.found {
		g.into.fillLeaf(position, total.mean())
		return
	}
	best = g.refine(best, rows, total, histogram)
	g.gains[best.feature] += max(0, best.worth-total.worth())
	g.into.setSplit(position, best, len(g.offsets))
	left, right := 2*position+1, 2*position+2
	if level+1 == g.depth {
		g.into.fillLeaf(left, best.left.mean())
		g.into.fillLeaf(right, best.right.mean())
		return
	}
	leftRows, rightRows := g.partition(best, rows)
	// The smaller child is counted, the larger is what remains of its parent.
	smaller, leftCells, rightCells := g.levels[level+1], histogram, histogram
	smallRows := rightRows
	if len(leftRows) < len(rightRows) {
		smallRows, leftCells = leftRows, smaller
	} else {
		rightCells = smaller
	}
	g.pick(smallRows)
	g.count(smaller, smallRows)
	g.subtract(histogram, smaller)
	g.growChild(left, level+1, leftRows, leftCells, constants)
	g.growChild(right, level+1, rightRows, rightCells, constants)
}

func (g *histogramGrower) growChild(position, level int, rows []int32, histogram []cell, constants int) {
	total, squares := g.pick(rows)
	if total.rows < 2*g.minLeaf || pure(total, squares) {
		g.into.fillLeaf(position, total.mean())
		return
	}
	g.growNode(position, level, rows, total, histogram, constants)
}

func (g *histogramGrower) subtract(from, part []cell) {
	for _, f := range g.features {
		start := g.offsets[f]
		end := start + len(g.table.spans[f]) + 1
		a, b := from[start:end], part[start:end]
		for k := range a {
			a[k].sum -= b[k].sum
			a[k].rows -= b[k].rows
		}
	}
}

// searchFeature offers every border between bins with rows: missing values to
// the right, then to the left. It reports whether the feature varies in the node.
func (g *histogramGrower) searchFeature(best *split, f int32, total share, histogram []cell) bool {
	last := len(g.table.spans[f])
	cells := histogram[g.offsets[f] : g.offsets[f]+last+1]
	missing := share{sum: cells[last].sum, rows: int(cells[last].rows)}
	varies := g.searchPresent(best, f, total, cells[:last], share{}, missing.rows == 0)
	if missing.rows == 0 || missing.rows == total.rows {
		return varies
	}
	left := share{sum: total.sum - missing.sum, rows: total.rows - missing.rows}
	if best.offer(f, left, missing, false, g.minLeaf) {
		best.bin = last
	}
	g.searchPresent(best, f, total, cells[:last], missing, false)
	return true
}

// searchPresent offers the borders between the bins of present values, with
// aside added on the left, and reports whether there was one. complete says
// that nothing is missing.
func (g *histogramGrower) searchPresent(best *split, f int32, total share, cells []cell, aside share, complete bool) bool {
	left, present := aside, total.rows
	if !complete {
		present = 0
		for b := range cells {
			present += int(cells[b].rows)
		}
		present += aside.rows
	}
	borders := false
	for b := range cells {
		if cells[b].rows == 0 {
			continue
		}
		left.sum += cells[b].sum
		left.rows += int(cells[b].rows)
		if left.rows == present {
			break
		}
		borders = true
		right := share{sum: total.sum - left.sum, rows: total.rows - left.rows}
		missingLeft := aside.rows > 0
		if complete {
			missingLeft = left.rows > right.rows
		}
		if best.offer(f, left, right, missingLeft, g.minLeaf) {
			best.bin = b
		}
	}
	return borders
}

// partition brings the rows that go left before the others, keeping the order.
func (g *histogramGrower) partition(best split, rows []int32) (left, right []int32) {
	values := g.table.columns.values[best.feature]
	lefts, rights := 0, 0
	for _, i := range rows {
		if v := values[i]; v <= best.threshold || v != v && best.missingLeft {
			rows[lefts] = i
			lefts++
		} else {
			g.spill[rights] = i
			rights++
		}
	}
	copy(rows[lefts:], g.spill[:rights])
	return rows[:lefts], rows[lefts:]
}
