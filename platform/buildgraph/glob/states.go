package glob

// MaxSegments bounds the segments of a pattern that is walked with States.
const MaxSegments = 63

// States is the set of segments that can come next on the way down a tree, one bit each. Walking with sets visits each
// folder once, however many ways a pattern matches it.
type States uint64

// From returns the states of a walk that begins at a segment.
func (p Pattern) From(segment int) States { return p.skipDeep(1 << segment) }

// skipDeep adds what follows each **, as it may stand for no folder at all.
func (p Pattern) skipDeep(s States) States {
	for i := range len(p) - 1 {
		if s&(1<<i) != 0 && p[i].Kind == Deep {
			s |= 1 << (i + 1)
		}
	}
	return s
}

// Enter returns the states inside the named folder; 0 if the pattern matches nothing in it.
func (p Pattern) Enter(s States, name string) States {
	var next States
	for i, segment := range p {
		switch {
		case s&(1<<i) == 0:
		case segment.Kind == Deep:
			next |= 1 << i
		case i < len(p)-1 && segment.Matches(name):
			next |= 1 << (i + 1)
		}
	}
	return p.skipDeep(next)
}

// Accepts reports whether the pattern matches the file of that name.
func (p Pattern) Accepts(s States, name string) bool {
	last := len(p) - 1
	return s&(1<<last) != 0 && p[last].Matches(name)
}
