package logistic

import (
	"fmt"

	"landfall.build/learning/internal/seal"
)

// Errors of [Unmarshal]; each is wrapped with what is wrong. A model that meets
// one is not usable, and reading it again will not help.
var (
	// ErrNotAModel occurs when the bytes do not begin as a model of this package.
	ErrNotAModel = seal.ErrNotAModel
	// ErrVersion occurs when a newer program wrote the model.
	ErrVersion = seal.ErrVersion
	// ErrTruncated occurs when bytes are missing or left over.
	ErrTruncated = seal.ErrTruncated
	// ErrCorrupt occurs when the bytes do not match their hash.
	ErrCorrupt = seal.ErrCorrupt
	// ErrTooLarge occurs above 64 MiB.
	ErrTooLarge = seal.ErrTooLarge
	// ErrAbsurd occurs when intact bytes hold what no fit produces.
	ErrAbsurd = seal.ErrAbsurd
)

const (
	magic   = "LGRm"
	version = 1
	// maxName is the longest name of a feature, in bytes.
	maxName = 1024
)

// MarshalBinary writes the model, with the SHA-256 of what stands before at the
// end. Equal models give equal bytes.
func (m *Model) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Texts(m.features)
	w.Floats(m.mean)
	w.Floats(m.deviation)
	w.Floats(m.weights)
	w.Floats(m.missing)
	w.Float64(m.intercept)
	sealed, err := seal.Close(magic, version, w.Bytes)
	if err != nil {
		return nil, fmt.Errorf("logistic: model: %w", err)
	}
	return sealed, nil
}

// Hash is the hexadecimal SHA-256 of the model's bytes: its name.
func (m *Model) Hash() (string, error) {
	sealed, err := m.MarshalBinary()
	if err != nil {
		return "", err
	}
	return seal.Hash(sealed), nil
}

// Unmarshal reads what MarshalBinary wrote and accepts nothing else.
func Unmarshal(sealed []byte) (*Model, error) {
	_, payload, err := seal.Open(magic, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("logistic: model: %w", err)
	}
	r := seal.NewReader(payload)
	m := &Model{features: r.Texts("features", MaxFeatures, maxName)}
	for _, field := range []struct {
		name string
		to   *[]float64
	}{{"means", &m.mean}, {"deviations", &m.deviation}, {"weights", &m.weights}, {"weights of missing values", &m.missing}} {
		*field.to = r.Floats(field.name, MaxFeatures)
		if len(*field.to) != len(m.features) {
			r.Refuse("%d %s for %d features", len(*field.to), field.name, len(m.features))
		}
	}
	for f, deviation := range m.deviation {
		if deviation < 0 {
			r.Refuse("deviation %d is %g", f, deviation)
		}
	}
	m.intercept = r.Finite("intercept")
	m.checkRange(r)
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("logistic: model: %w", err)
	}
	return m, nil
}

// maxWeight bounds what one column may do to the log-odds: sums over all
// columns stay finite, whatever the row.
const maxWeight = 1e100

func (m *Model) checkRange(r *seal.Reader) {
	if len(m.features) == 0 {
		r.Refuse("no features")
	}
	all := append(append([]float64{m.intercept}, m.weights...), m.missing...)
	for _, w := range all {
		if w > maxWeight || w < -maxWeight {
			r.Refuse("a weight is %g", w)
		}
	}
}
