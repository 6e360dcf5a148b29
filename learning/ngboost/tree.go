package ngboost

import "math"

// node sends a row right when its value is above threshold. slot says which
// value: below the number of features, that feature with missing as +∞; from
// there on, the feature slot−count with missing as −∞. So one comparison
// decides, and missing values go where training found it best.
//
// A threshold is a float32 although midpoints are computed in float64: rounded
// down it parts the same float32 values.
type node struct {
	threshold float32
	slot      uint32
}

// tree is complete: node i has children 2i+1 and 2i+2, 2^depth−1 nodes stand
// above 2^depth leaves. A leaf found early fills everything below it.
type tree struct {
	nodes  []node
	leaves []float64
}

func newTree(depth int) tree {
	return tree{nodes: make([]node, 1<<depth-1), leaves: make([]float64, 1<<depth)}
}

// noSplit sends everything to one side; both sides hold the same value.
var noSplit = node{threshold: math.MaxFloat32}

// fillLeaf makes position a leaf, at whatever depth it is.
func (t tree) fillLeaf(position int, value float64) {
	if inner := len(t.nodes); position >= inner {
		t.leaves[position-inner] = value
		return
	}
	t.nodes[position] = noSplit
	t.fillLeaf(2*position+1, value)
	t.fillLeaf(2*position+2, value)
}

func (t tree) setSplit(position int, s split, features int) {
	slot := uint32(s.feature)
	if s.missingLeft {
		slot += uint32(features)
	}
	t.nodes[position] = node{threshold: s.threshold, slot: slot}
}

// at returns the leaf value of one row of a table by columns.
func (t tree) at(values [][]float32, row int32) float64 {
	position := 0
	for position < len(t.nodes) {
		n := t.nodes[position]
		position = 2*position + 1
		feature, missingRight := int(n.slot), true
		if feature >= len(values) {
			feature, missingRight = feature-len(values), false
		}
		if v := values[feature][row]; v > n.threshold || v != v && missingRight {
			position++
		}
	}
	return t.leaves[position-len(t.nodes)]
}

// split is the best way found to part a node. Its worth is
// sum²/rows on the left plus the same on the right, which is largest where the
// squared error is smallest.
type split struct {
	found       bool
	feature     int32
	threshold   float32
	missingLeft bool
	worth       float64
	left, right share
	// bin is the last bin on the left, in histograms.
	bin int
}

// share is the sum of the target over some rows.
type share struct {
	sum  float64
	rows int
}

func (s share) mean() float64  { return s.sum / float64(s.rows) }
func (s share) worth() float64 { return s.sum * s.sum / float64(s.rows) }

// offer takes the candidate when it is better than the best so far and leaves
// enough rows on both sides. Of equals, the first stays.
func (s *split) offer(feature int32, left, right share, missingLeft bool, minLeaf int) bool {
	if left.rows < minLeaf || right.rows < minLeaf {
		return false
	}
	worth := left.worth() + right.worth()
	if s.found && !(worth > s.worth) {
		return false
	}
	*s = split{found: true, feature: feature, missingLeft: missingLeft, worth: worth, left: left, right: right}
	return true
}

// midpoint is the largest float32 not above the middle of low and high.
func midpoint(low, high float32) float32 {
	middle := float64(low)/2 + float64(high)/2
	threshold := float32(middle)
	if float64(threshold) > middle {
		threshold = math.Nextafter32(threshold, float32(math.Inf(-1)))
	}
	return threshold
}

// pure reports that a node's variance is rounding only, so that it is not
// split; the bound is the reference's.
func pure(total share, squares float64) bool {
	mean := total.mean()
	return squares/float64(total.rows)-mean*mean <= 0x1p-52
}

// A grower fits trees to targets over the same table, one at a time.
type grower interface {
	// grow fits a tree to target on the rows of batch and the columns of
	// features, and adds to gains, by feature, the squared error each split removes.
	grow(into tree, target []float64, batch []int32, features []int32, gains []float64)
}
