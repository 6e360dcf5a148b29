package ngboost

// tieSeed seeds the order in which each tree visits features. It is what the reference's trees draw from their seed 0.
const tieSeed = 209652396

// visit yields features in the order in which the reference's trees visit
// them. Of splits that are exactly as good, the first seen wins, so the order
// decides between features that part the training rows alike, as one-hot or
// otherwise dependent columns do; a fixed order would always favour the first
// column, and predictions for new rows suffer from it.
//
// Features found constant in a node are not visited below it. They
// stand at the front of order, and each node says how many it knows.
type visit struct {
	state     uint32
	order     []int32
	constants []int32
}

func newVisit(features []int32) visit {
	return visit{state: tieSeed, order: append([]int32(nil), features...), constants: make([]int32, len(features))}
}

// random is Marsaglia's 32-bit xorshift below bound.
func (v *visit) random(bound int) int {
	if v.state == 0 {
		v.state = 1
	}
	v.state ^= v.state << 13
	v.state ^= v.state >> 17
	v.state ^= v.state << 5
	return int(v.state%(1<<31)) % bound
}

// node calls try for each feature of a node that is not among the first known
// ones in order, which are constant. try reports whether the feature is constant too. node returns how many
// are known to be constant to the children.
func (v *visit) node(known int, try func(feature int32) (constant bool)) int {
	left := len(v.order) // order[left:] has been tried
	drawn, found := 0, 0
	for left > known+found {
		k := drawn + v.random(left-found-drawn)
		if k < known {
			v.order[drawn], v.order[k] = v.order[k], v.order[drawn]
			drawn++
			continue
		}
		k += found
		if try(v.order[k]) {
			v.order[k], v.order[known+found] = v.order[known+found], v.order[k]
			found++
			continue
		}
		left--
		v.order[left], v.order[k] = v.order[k], v.order[left]
	}
	// Siblings expect the constants of their parent in the order they were found.
	copy(v.order[:known], v.constants[:known])
	copy(v.constants[known:known+found], v.order[known:known+found])
	return known + found
}
