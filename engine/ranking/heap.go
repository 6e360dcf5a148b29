package ranking

// ordered is an element of a heap. before reports whether it comes out earlier.
type ordered[T any] interface {
	*T
	before(other *T) bool
}

// push adds an element to a heap.
func push[T any, P ordered[T]](heap *[]T, x T) {
	h := append(*heap, x)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !P(&h[i]).before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	*heap = h
}

// pop removes the first element.
func pop[T any, P ordered[T]](heap *[]T) T {
	h := *heap
	top, last := h[0], len(h)-1
	h[0] = h[last]
	clear(h[last:])
	*heap = h[:last]
	sink[T, P](*heap, 0)
	return top
}

// sink moves an element down to its place.
func sink[T any, P ordered[T]](h []T, i int) {
	for {
		first := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(h) && P(&h[down]).before(&h[first]) {
				first = down
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}
