// Package memberset is small sets of indices, as the events carry them: bit i, least significant first,
// no trailing zero bytes.
package memberset

// Set of indices below a size given at its making.
type Set struct{ bits []byte }

// New is empty, for indices below n.
func New(n int) Set { return Set{make([]byte, (n+7)/8)} }

// FromBytes reads a set as an event has it.
func FromBytes(n int, b []byte) Set {
	s := New(n)
	copy(s.bits, b)
	return s
}

// Add puts i into the set.
func (s Set) Add(i int) { s.bits[i/8] |= 1 << (i % 8) }

// Remove takes i out of the set.
func (s Set) Remove(i int) { s.bits[i/8] &^= 1 << (i % 8) }

// Has says whether i is in the set; an index beyond it is not.
func (s Set) Has(i int) bool { return i/8 < len(s.bits) && s.bits[i/8]&(1<<(i%8)) != 0 }

// HasAny says whether one of several indices is in the set.
func (s Set) HasAny(indices []uint32) bool {
	for _, i := range indices {
		if s.Has(int(i)) {
			return true
		}
	}
	return false
}

// Bytes gives the set as events carry it.
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

// Empty says whether nothing is in the set.
func (s Set) Empty() bool {
	for _, b := range s.bits {
		if b != 0 {
			return false
		}
	}
	return true
}

// Equal says whether two sets over the same indices hold the same.
func (s Set) Equal(o Set) bool { return string(s.bits) == string(o.bits) }

// Get is m[s.Key()], without making the key.
func Get[V any](m map[string]V, s Set) V { return m[string(s.bits)] }

// Key is the set as a map key.
func (s Set) Key() string { return string(s.bits) }

// Clone is a copy that shares nothing.
func (s Set) Clone() Set { return Set{append([]byte(nil), s.bits...)} }

// Over is the set that these bits are, without copying them: it changes as they do.
func Over(bits []byte) Set { return Set{bits} }
