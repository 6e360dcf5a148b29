package calibration

import (
	"fmt"

	"landfall.build/learning/internal/seal"
)

// Errors of [Unmarshal]; each is wrapped with what is wrong.
var (
	// ErrNotAMap occurs when the bytes do not begin as a map of this package.
	ErrNotAMap = seal.ErrNotAModel
	// ErrVersion occurs when a newer program wrote the map.
	ErrVersion = seal.ErrVersion
	// ErrTruncated occurs when bytes are missing or left over.
	ErrTruncated = seal.ErrTruncated
	// ErrCorrupt occurs when the bytes do not match their hash.
	ErrCorrupt = seal.ErrCorrupt
	// ErrAbsurd occurs when intact bytes hold a map that falls or leaves 0 to 1.
	ErrAbsurd = seal.ErrAbsurd
)

const (
	magic     = "CALm"
	version   = 1
	kindSteps = 1
	kindPlatt = 2
	maxBlocks = 1 << 20
)

// MarshalBinary writes the map, with the SHA-256 of what stands before at the end.
func (m *Isotonic) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Uint8(kindSteps)
	w.Floats(m.at)
	w.Floats(m.value)
	return seal.Close(magic, version, w.Bytes)
}

// MarshalBinary writes the map, with the SHA-256 of what stands before at the end.
func (m *Platt) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Uint8(kindPlatt)
	w.Float64(m.Slope)
	w.Float64(m.Shift)
	return seal.Close(magic, version, w.Bytes)
}

// Unmarshal reads either kind of map and accepts nothing else.
func Unmarshal(sealed []byte) (Map, error) {
	_, payload, err := seal.Open(magic, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("calibration: map: %w", err)
	}
	r := seal.NewReader(payload)
	var m Map
	switch kind := r.Uint8(); kind {
	case kindSteps:
		m = readIsotonic(r)
	case kindPlatt:
		p := &Platt{Slope: r.Finite("slope"), Shift: r.Finite("shift")}
		if r.Err() == nil && !(p.Slope > 0) {
			r.Refuse("slope is %g", p.Slope)
		}
		m = p
	default:
		r.Refuse("kind %d", kind)
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("calibration: map: %w", err)
	}
	return m, nil
}

func readIsotonic(r *seal.Reader) *Isotonic {
	m := &Isotonic{at: r.Floats("blocks", maxBlocks), value: r.Floats("values", maxBlocks)}
	if r.Err() != nil {
		return m
	}
	if len(m.at) == 0 || len(m.at) != len(m.value) {
		r.Refuse("%d blocks with %d values", len(m.at), len(m.value))
		return m
	}
	for k, v := range m.value {
		if !(v > 0 && v < 1) || m.at[k] < 0 || m.at[k] > 1 {
			r.Refuse("block %d maps %g to %g", k, m.at[k], v)
		}
		if k > 0 && (m.at[k] <= m.at[k-1] || v < m.value[k-1]) {
			r.Refuse("block %d does not rise", k)
		}
	}
	return m
}
