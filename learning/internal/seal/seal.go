// Package seal frames a model's bytes so that damage is found before any of
// them is believed: four bytes of magic, a version, the payload's length, the
// payload, and the SHA-256 of all that. The hash also names the model.
package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// MaxBytes is the largest sealed model: whatever is longer is refused unread.
const MaxBytes = 64 << 20

// Errors of [Open] and [Reader.Close]. None goes away by reading the same bytes again.
var (
	// ErrNotAModel occurs when the bytes do not begin as a model of the wanted kind.
	ErrNotAModel = errors.New("not a model of this kind")
	// ErrVersion occurs when the model was written by a newer format.
	ErrVersion = errors.New("unknown format version")
	// ErrTruncated occurs when bytes are missing or left over.
	ErrTruncated = errors.New("wrong length")
	// ErrCorrupt occurs when the bytes do not match their hash.
	ErrCorrupt = errors.New("hash mismatch")
	// ErrTooLarge occurs above MaxBytes.
	ErrTooLarge = errors.New("too large")
	// ErrAbsurd occurs when intact bytes hold what no training produces.
	ErrAbsurd = errors.New("absurd content")
)

const header = 4 + 2 + 4

// Close frames a payload. magic has four bytes.
func Close(magic string, version uint16, payload []byte) ([]byte, error) {
	total := header + len(payload) + sha256.Size
	if total > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, total, MaxBytes)
	}
	out := make([]byte, 0, total)
	out = append(out, magic...)
	out = binary.LittleEndian.AppendUint16(out, version)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(payload)))
	out = append(out, payload...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// Open checks a frame and gives its payload, which shares memory with sealed.
// Versions from 1 to newest are accepted.
func Open(magic string, newest uint16, sealed []byte) (version uint16, payload []byte, err error) {
	switch {
	case len(sealed) > MaxBytes:
		return 0, nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(sealed), MaxBytes)
	case len(sealed) < header+sha256.Size:
		return 0, nil, fmt.Errorf("%w: %d bytes, at least %d", ErrTruncated, len(sealed), header+sha256.Size)
	case string(sealed[:4]) != magic:
		return 0, nil, fmt.Errorf("%w: it begins with %q, not %q", ErrNotAModel, sealed[:4], magic)
	}
	version = binary.LittleEndian.Uint16(sealed[4:])
	if version < 1 || version > newest {
		return 0, nil, fmt.Errorf("%w: %d, this program knows 1 to %d", ErrVersion, version, newest)
	}
	length := int64(binary.LittleEndian.Uint32(sealed[6:]))
	if want := header + length + sha256.Size; want != int64(len(sealed)) {
		return 0, nil, fmt.Errorf("%w: %d bytes, the header says %d", ErrTruncated, len(sealed), want)
	}
	body := sealed[:len(sealed)-sha256.Size]
	sum := sha256.Sum256(body)
	if !bytes.Equal(sum[:], sealed[len(body):]) {
		return 0, nil, ErrCorrupt
	}
	return version, body[header:], nil
}

// Hash returns the hexadecimal hash a frame ends with. The frame has been made by
// Close or accepted by Open.
func Hash(sealed []byte) string {
	return hex.EncodeToString(sealed[len(sealed)-sha256.Size:])
}

// Writer appends values in little-endian order.
type Writer struct{ Bytes []byte }

func (w *Writer) Uint8(v uint8)     { w.Bytes = append(w.Bytes, v) }
func (w *Writer) Uint32(v uint32)   { w.Bytes = binary.LittleEndian.AppendUint32(w.Bytes, v) }
func (w *Writer) Float32(v float32) { w.Uint32(math.Float32bits(v)) }
func (w *Writer) Float64(v float64) {
	w.Bytes = binary.LittleEndian.AppendUint64(w.Bytes, math.Float64bits(v))
}

// Text writes a length and the bytes.
func (w *Writer) Text(v string) {
	w.Uint32(uint32(len(v)))
	w.Bytes = append(w.Bytes, v...)
}

// Floats writes a length and the numbers.
func (w *Writer) Floats(v []float64) {
	w.Uint32(uint32(len(v)))
	for _, x := range v {
		w.Float64(x)
	}
}

// Texts writes a length and the strings.
func (w *Writer) Texts(v []string) {
	w.Uint32(uint32(len(v)))
	for _, s := range v {
		w.Text(s)
	}
}

// Reader takes values off a payload. The first failure stays: everything read
// after it is zero, and Close reports it.
type Reader struct {
	rest []byte
	err  error
}

// NewReader reads a payload.
func NewReader(payload []byte) *Reader { return &Reader{rest: payload} }

// Refuse records that what was read is absurd; what says how.
func (r *Reader) Refuse(what string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrAbsurd, fmt.Sprintf(what, args...))
	}
}

// Err is the first failure so far.
func (r *Reader) Err() error { return r.err }

// Close reports the first failure, or bytes left over.
func (r *Reader) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%w: %d bytes left over", ErrTruncated, len(r.rest))
	}
	return r.err
}

func (r *Reader) take(count int) []byte {
	if r.err == nil && count > len(r.rest) {
		r.err = fmt.Errorf("%w: %d bytes wanted, %d left", ErrTruncated, count, len(r.rest))
	}
	if r.err != nil {
		return nil
	}
	taken := r.rest[:count]
	r.rest = r.rest[count:]
	return taken
}

func (r *Reader) Uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *Reader) Uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *Reader) Float32() float32 { return math.Float32frombits(r.Uint32()) }

func (r *Reader) Float64() float64 {
	if b := r.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// Finite reads a number that is neither NaN nor infinite; name says which.
func (r *Reader) Finite(name string) float64 {
	v := r.Float64()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		r.Refuse("%s is %g", name, v)
		return 0
	}
	return v
}

// Count reads a length of at most most, of things that take at least size bytes
// each: a length that the bytes left cannot hold is refused before any memory
// is asked for.
func (r *Reader) Count(name string, most, size int) int {
	v := int64(r.Uint32())
	if v > int64(most) {
		r.Refuse("%d %s, at most %d", v, name, most)
	} else if v*int64(size) > int64(len(r.rest)) && r.err == nil {
		r.err = fmt.Errorf("%w: %d %s do not fit into the %d bytes left", ErrTruncated, v, name, len(r.rest))
	}
	if r.err != nil {
		return 0
	}
	return int(v)
}

// Text reads a string of at most most bytes.
func (r *Reader) Text(name string, most int) string {
	return string(r.take(r.Count("bytes of "+name, most, 1)))
}

// Texts reads at most most strings of at most longest bytes each.
func (r *Reader) Texts(name string, most, longest int) []string {
	out := make([]string, r.Count(name, most, 4))
	for i := range out {
		out[i] = r.Text(name, longest)
	}
	return out
}

// Floats reads at most most finite numbers.
func (r *Reader) Floats(name string, most int) []float64 {
	out := make([]float64, r.Count(name, most, 8))
	for i := range out {
		out[i] = r.Finite(name)
	}
	return out
}
