package targets

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Hash is a SHA-256 over everything that can affect a node.
type Hash [sha256.Size]byte

// String returns 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash as 64 hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// encoding collects the fields of one hash. Each field is preceded by its
// length and each hash starts with its domain, so no two different records
// give the same bytes. The buffer is used again, so hashing does not allocate.
type encoding struct{ buffer []byte }

// version is part of every hash: it changes when the meaning of one does.
const version = "landfall.targets/1 "

func (e *encoding) begin(domain string) {
	e.buffer = binary.AppendUvarint(e.buffer[:0], uint64(len(version)+len(domain)))
	e.buffer = append(e.buffer, version...)
	e.buffer = append(e.buffer, domain...)
}

func (e *encoding) text(s string) {
	e.buffer = binary.AppendUvarint(e.buffer, uint64(len(s)))
	e.buffer = append(e.buffer, s...)
}

func (e *encoding) number(n uint64) { e.buffer = binary.AppendUvarint(e.buffer, n) }

// hash needs no length: all hashes have the same.
func (e *encoding) hash(h Hash) { e.buffer = append(e.buffer, h[:]...) }

// hashes are some of all, by their numbers.
func (e *encoding) hashes(all []Hash, numbers []int32) {
	at := len(e.buffer)
	e.buffer = slices.Grow(e.buffer, len(numbers)*sha256.Size)[:at+len(numbers)*sha256.Size]
	for _, n := range numbers {
		at += copy(e.buffer[at:at+sha256.Size], all[n][:])
	}
}

func (e *encoding) texts(list []string) {
	e.number(uint64(len(list)))
	for _, s := range list {
		e.text(s)
	}
}

// file is what a file is by itself.
func (e *encoding) file(mode uint32, object string) Hash {
	e.begin("file")
	e.number(uint64(mode))
	e.text(object)
	return e.sum()
}

func (e *encoding) sum() Hash { return sha256.Sum256(e.buffer) }
