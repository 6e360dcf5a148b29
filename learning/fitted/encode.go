package fitted

import (
	"fmt"
	"math"
	"slices"

	"landfall.build/learning/bytime"
	"landfall.build/learning/calibration"
	"landfall.build/learning/internal/seal"
	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
)

const (
	magicOutcome      = "FITo"
	magicDistribution = "FITd"
	version           = 1
	maxName           = 1024
)

// Errors of UnmarshalOutcome and UnmarshalDistribution, each wrapped with what is wrong. None goes away by reading the same
// bytes again.
var (
	// ErrNotAModel occurs when bytes do not begin as such a model.
	ErrNotAModel = seal.ErrNotAModel
	// ErrTruncated and ErrCorrupt occur when bytes are missing, or not those that were written.
	ErrTruncated = seal.ErrTruncated
	ErrCorrupt   = seal.ErrCorrupt
	// ErrAbsurd occurs when intact bytes hold what no training produces.
	ErrAbsurd = seal.ErrAbsurd
)

// when writes a time that may be NaN.
func when(w *seal.Writer, until float64) {
	if math.IsNaN(until) {
		w.Uint8(0)
		return
	}
	w.Uint8(1)
	w.Float64(until)
}

func readWhen(r *seal.Reader) float64 {
	if r.Uint8() == 0 {
		return math.NaN()
	}
	return r.Finite("time of the newest row")
}

// parts writes parts of a model that have an encoding of their own.
func parts(w *seal.Writer, of ...interface{ MarshalBinary() ([]byte, error) }) error {
	for _, part := range of {
		sealed, err := part.MarshalBinary()
		if err != nil {
			return fmt.Errorf("fitted: %w", err)
		}
		w.Text(string(sealed))
	}
	return nil
}

// MarshalBinary writes the model with all that it needs, and the SHA-256 of what stands before at the end. Equal models give
// equal bytes.
func (m *Outcome) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	when(&w, m.until)
	w.Uint32(uint32(len(m.logScaled)))
	for _, is := range m.logScaled {
		w.Uint8(map[bool]uint8{true: 1}[is])
	}
	if err := parts(&w, m.encoder, m.model); err != nil {
		return nil, err
	}
	if m.calibration == nil {
		w.Text("")
	} else if err := parts(&w, m.calibration); err != nil {
		return nil, err
	}
	return seal.Close(magicOutcome, version, w.Bytes)
}

// UnmarshalOutcome reads what MarshalBinary wrote and accepts nothing else.
func UnmarshalOutcome(sealed []byte) (*Outcome, error) {
	_, payload, err := seal.Open(magicOutcome, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	r := seal.NewReader(payload)
	m := &Outcome{until: readWhen(r), logScaled: make([]bool, r.Count("features on a logarithmic scale", 1<<16, 1))}
	for i := range m.logScaled {
		m.logScaled[i] = r.Uint8() == 1
	}
	encoder, model, mapped := r.Text("encoder", seal.MaxBytes), r.Text("model", seal.MaxBytes), r.Text("calibration", seal.MaxBytes)
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	if m.encoder, err = table.UnmarshalEncoder([]byte(encoder)); err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	if m.model, err = bytime.Unmarshal([]byte(model)); err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	if mapped != "" {
		of, err := calibration.Unmarshal([]byte(mapped))
		if err != nil {
			return nil, fmt.Errorf("fitted: %w", err)
		}
		is := false
		if m.calibration, is = of.(*calibration.Platt); !is {
			return nil, fmt.Errorf("fitted: %w: a calibration of another kind", ErrAbsurd)
		}
	}
	if len(m.logScaled) != len(m.encoder.Features()) || !slices.Equal(m.encoder.Features(), m.model.Features()) {
		return nil, fmt.Errorf("fitted: %w: the model takes other features than the encoder gives", ErrAbsurd)
	}
	return m, nil
}

// MarshalBinary is as that of Outcome.
func (m *Distribution) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	when(&w, m.until)
	w.Text(m.over)
	if err := parts(&w, m.encoder, m.model); err != nil {
		return nil, err
	}
	return seal.Close(magicDistribution, version, w.Bytes)
}

// UnmarshalDistribution reads what MarshalBinary wrote and accepts nothing else.
func UnmarshalDistribution(sealed []byte) (*Distribution, error) {
	_, payload, err := seal.Open(magicDistribution, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	r := seal.NewReader(payload)
	m := &Distribution{until: readWhen(r), over: r.Text("column to divide by", maxName)}
	encoder, model := r.Text("encoder", seal.MaxBytes), r.Text("model", seal.MaxBytes)
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	if m.encoder, err = table.UnmarshalEncoder([]byte(encoder)); err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	if m.model, err = ngboost.Unmarshal([]byte(model)); err != nil {
		return nil, fmt.Errorf("fitted: %w", err)
	}
	if !slices.Equal(m.encoder.Features(), m.model.Features()) {
		return nil, fmt.Errorf("fitted: %w: the model takes other features than the encoder gives", ErrAbsurd)
	}
	return m, nil
}
