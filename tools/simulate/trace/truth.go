package trace

// Truth knows which changes land: the same under every policy (decision 0021). A change
// lands if it is green, is not cancelled, and none of the earlier ones that it breaks with has landed.
type Truth struct {
	landed []uint64 // a bit for each number
	next   int
}

// Take takes the next change of the trace and reports whether it lands.
func (t *Truth) Take(c *Change) bool {
	for len(t.landed) <= c.Number/64 {
		t.landed = append(t.landed, 0)
	}
	t.next = c.Number + 1
	lands := c.Green && c.Cancelled == 0
	for _, b := range c.Breaks {
		lands = lands && !t.Lands(b)
	}
	if lands {
		t.landed[c.Number/64] |= 1 << (c.Number % 64)
	}
	return lands
}

// Lands reports whether a change that was taken lands.
func (t *Truth) Lands(number int) bool {
	return number >= 0 && number < t.next && t.landed[number/64]&(1<<(number%64)) != 0
}
