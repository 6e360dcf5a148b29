package targets

import "slices"

// Names numbers labels, so that prepared changes are compared by number. It
// grows with every label that it sees: its owner starts a new one, and prepares
// the pending changes again, when it has outgrown what they need. Not for
// concurrent use while preparing.
type Names struct {
	ids  map[string]uint32
	hubs *Hubs
}

// NewNames returns an empty numbering, for changes between which these are hubs.
func NewNames(hubs *Hubs) *Names { return &Names{ids: make(map[string]uint32), hubs: hubs} }

func (n *Names) id(label string) uint32 {
	id, ok := n.ids[label]
	if !ok {
		id = uint32(len(n.ids))
		n.ids[label] = id
	}
	return id
}

// Set is one change, prepared for many pair tests. Sets of different Names must
// not be compared.
type Set struct {
	all bool
	// changes holds D, then the hubs of D, then the leaves; the first touched of them are D without its hubs.
	changes []uint32
	touched int
	changed bits
	added   []uint32 // N
	ends    bits     // N
}

// Prepare returns the set of what M1 compares of a change.
func (n *Names) Prepare(f Footprint) *Set {
	s := &Set{all: f.All}
	others, hubs := n.hubs.split(f.Touched)
	for _, name := range others {
		s.changes = append(s.changes, n.id(name))
	}
	s.touched = len(s.changes)
	for _, label := range slices.Concat(hubs, f.Leaves) {
		s.changes = append(s.changes, n.id(label))
	}
	for _, label := range f.Added {
		s.added = append(s.added, n.id(label))
	}
	// Ascending numbers keep the probes near each other in memory.
	slices.Sort(s.changes[:s.touched])
	slices.Sort(s.changes[s.touched:])
	slices.Sort(s.added)
	s.changed.addAll(s.changes)
	s.ends.addAll(s.added)
	return s
}

// Conflicts is Conflict without the reason: the smaller list is probed in the
// other change's bits.
func (s *Set) Conflicts(t *Set) bool {
	if s.all || t.all {
		return true
	}
	small, large := s, t
	if small.touched > large.touched {
		small, large = large, small
	}
	// Labels of targets and of other nodes differ, so probing targets in bits
	// that hold leaves as well finds targets only; a target is a hub for both or
	// for none.
	return large.changed.hasAny(small.changes[:small.touched]) || s.addsInto(t) || t.addsInto(s)
}

// addsInto reports whether s adds a dependency on what t changes.
func (s *Set) addsInto(t *Set) bool {
	if len(s.added) <= len(t.changes) {
		return t.changed.hasAny(s.added)
	}
	return s.ends.hasAny(t.changes)
}

// bits is a set of numbers in blocks of 4,096, of which only those in use exist:
// a change that touches 60 of a million targets takes a few kilobytes.
type bits []*[64]uint64

func (b *bits) addAll(ids []uint32) {
	for _, id := range ids {
		block := int(id >> 12)
		if block >= len(*b) {
			*b = append(*b, make(bits, block+1-len(*b))...)
		}
		if (*b)[block] == nil {
			(*b)[block] = new([64]uint64)
		}
		(*b)[block][id>>6&63] |= 1 << (id & 63)
	}
}

func (b bits) hasAny(ids []uint32) bool {
	for _, id := range ids {
		block := int(id >> 12)
		if block < len(b) && b[block] != nil && b[block][id>>6&63]&(1<<(id&63)) != 0 {
			return true
		}
	}
	return false
}
