package snapshot

import (
	"fmt"
	"unsafe"
)

// Names of targets, changes, builds and workers stand in a state many times over. Each string is written once; where it
// stands again its number is written, and thawing it makes no other string.

// minShared is the length from which on a string is worth a number; one that is longer than maxShared hardly repeats.
const (
	minShared = 4
	maxShared = 256
)

// text is for strings: twice the length and the bytes, or twice the number of one before, and one.
func text(c *codec) {
	c.freeze = func(f *freezer, p unsafe.Pointer) error {
		s := *(*string)(p)
		shared := len(s) >= minShared && len(s) <= maxShared && !f.plain
		if shared {
			if number, known := f.texts[s]; known {
				f.uint(number<<1 | 1)
				return nil
			}
			f.texts[s] = uint64(len(f.texts))
		}
		f.uint(uint64(len(s)) << 1)
		f.out = append(f.out, s...)
		return nil
	}
	c.thaw = func(t *thawer, p unsafe.Pointer) error {
		n, err := t.uint()
		if err != nil {
			return err
		}
		if number := n >> 1; n&1 == 1 {
			if number >= uint64(len(t.texts)) {
				return fmt.Errorf("%w: string %d comes before it was written", ErrCorrupt, number)
			}
			*(*string)(p) = t.texts[number]
			return nil
		}
		if n >>= 1; n > uint64(len(t.in)) {
			return fmt.Errorf("%w: a string of %d bytes in %d", ErrCorrupt, n, len(t.in))
		}
		s := string(t.in[:n])
		t.in = t.in[n:]
		if n >= minShared && n <= maxShared {
			t.texts = append(t.texts, s)
		}
		*(*string)(p) = s
		return nil
	}
}
