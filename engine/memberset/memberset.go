// Package memberset holds sets of small indices as events carry them: bit i is index i, least significant first, without
// trailing zero bytes.
package memberset

// Set is a set of indices below the size that it was made with. Copies share their bits.
type Set struct{ bits []byte }

// New returns an empty set for indices below n.
func New(n int) Set { return Set{make([]byte, (n+7)/8)} }

// FromBytes returns the set, for indices below n, that an event carries.
func FromBytes(n int, b []byte) Set {
	s := New(n)
	copy(s.bits, b)
	return s
}

// Add adds i.
func (s Set) Add(i int) { s.bits[i/8] |= 1 << (i % 8) }

// Remove removes i.
func (s Set) Remove(i int) { s.bits[i/8] &^= 1 << (i % 8) }

// Clear removes all.
func (s Set) Clear() { clear(s.bits) }

// Has reports whether i is in the set. An index beyond its size is not.
func (s Set) Has(i int) bool { return i/8 < len(s.bits) && s.bits[i/8]&(1<<(i%8)) != 0 }

// HasAny reports whether one of the indices is in the set.
func (s Set) HasAny(indices []uint32) bool {
	for _, i := range indices {
		if s.Has(int(i)) {
			return true
		}
	}
	return false
}

// Bytes returns the set as events carry it.
func (s Set) Bytes() []byte {
	n := len(s.bits)
	for n > 0 && s.bits[n-1] == 0 {
		n--
	}
	if n == 0 {
		return nil
	}
	return append([]byte(nil), s.bits[:n]...)
}

// Empty reports whether the set is empty.
func (s Set) Empty() bool {
	for _, b := range s.bits {
		if b != 0 {
			return false
		}
	}
	return true
}

// Equal reports whether two sets of one size are equal.
func (s Set) Equal(o Set) bool { return string(s.bits) == string(o.bits) }

// Get returns m[s.Key()] without allocating the key.
func Get[V any](m map[string]V, s Set) V { return m[string(s.bits)] }

// Key returns the set as a map key.
func (s Set) Key() string { return string(s.bits) }

// Clone returns a copy that shares nothing.
func (s Set) Clone() Set { return Set{append([]byte(nil), s.bits...)} }

// Over returns the set whose bits are in the slice, without a copy: it changes as they do.
func Over(bits []byte) Set { return Set{bits} }
