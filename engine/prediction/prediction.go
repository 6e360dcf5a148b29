// Package prediction asks trained models. It opens a model as the log holds it, refuses one that must not be used, and predicts from a
// vector of package features. The same model and vector give the same number.
package prediction

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/features"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
)

// Errors of models that must not be used. None is worth a retry: another model has to be put into use. Their texts are part of records.
var (
	// ErrCorrupt occurs when a model's content does not have the hash that is its version, or cannot be read.
	ErrCorrupt = errors.New("it is corrupt")
	// ErrTooLarge occurs above events.MaxModelBytes.
	ErrTooLarge = errors.New("it is too large")
	// ErrSchema occurs when it was trained on features that this release does not compute.
	ErrSchema = errors.New("it was trained on other features")
	// ErrOld occurs when its data ended more than MaxAge ago.
	ErrOld = errors.New("it is too old")
	// ErrAbsurd occurs when a prediction is outside the possible range.
	ErrAbsurd = errors.New("it predicts what cannot be")
)

const (
	// MaxAge is how long after the end of its data a model is used, in microseconds: 180 days.
	MaxAge = 180 * 24 * 3600 * 1_000_000
	// maxSeconds bounds a predicted duration and its deviation: 30 days.
	maxSeconds = 30 * 24 * 3600
	// minDoubt keeps predicted probabilities away from 0 and 1: only evidence is certain.
	minDoubt = 0.001
)

// classifier predicts a probability: bytime's model, or the logistic regression of older releases.
type classifier interface {
	Features() []string
	Predict(row []float64) (float64, error)
}

// Model is an opened model. It must not be used by several goroutines at once.
type Model struct {
	kind    eventsv1.ModelKind
	version string
	until   int64 // when its data ends
	schema  []features.Feature
	index   []int     // of its features in the schema
	row     []float64 // reused by predictions

	// Of a model of success or conflict; calibration may be nil.
	classifier  classifier
	calibration calibration.Map
	// Of a model of durations; median is the index of MedianSeconds.
	seconds *ngboost.Model
	median  int
}

// KindName returns the lower-case name of a kind: success, conflict or duration.
func KindName(k eventsv1.ModelKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "MODEL_KIND_"))
}

// KindOf is the inverse of KindName. It returns UNSPECIFIED for other names.
func KindOf(name string) eventsv1.ModelKind {
	for _, k := range Kinds() {
		if KindName(k) == name {
			return k
		}
	}
	return eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED
}

// Kinds returns all kinds of models.
func Kinds() []eventsv1.ModelKind {
	return []eventsv1.ModelKind{eventsv1.ModelKind_MODEL_KIND_SUCCESS, eventsv1.ModelKind_MODEL_KIND_CONFLICT, eventsv1.ModelKind_MODEL_KIND_DURATION}
}

// ShortVersion returns the prefix of a version that people see.
func ShortVersion(version string) string { return version[:min(len(version), 12)] }

// Name returns the name of a model as predictions give it: its kind and short version.
func Name(k eventsv1.ModelKind, version string) string {
	return KindName(k) + "-" + ShortVersion(version)
}

// SchemaOf returns the schema of the vectors that models of a kind take.
func SchemaOf(k eventsv1.ModelKind) []features.Feature {
	if k == eventsv1.ModelKind_MODEL_KIND_CONFLICT {
		return features.OfPair()
	}
	return features.OfChange()
}

// VersionOf returns the SHA-256 of a model's content in hexadecimal, which is its version.
func VersionOf(m *eventsv1.Model) string {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	number := func(n uint64) { field(binary.LittleEndian.AppendUint64(nil, n)) }
	field([]byte("landfall model 1"))
	number(uint64(m.GetKind()))
	number(uint64(m.GetSchema()))
	number(uint64(len(m.GetFeatures())))
	for _, name := range m.GetFeatures() {
		field([]byte(name))
	}
	field(m.GetPredictor())
	field(m.GetCalibration())
	number(uint64(m.GetCard().GetDataUntilUs()))
	return hex.EncodeToString(h.Sum(nil))
}

// Seal sets the schema and the version of a model that was just trained, and returns it.
func Seal(m *eventsv1.Model) *eventsv1.Model {
	m.Schema = features.Version
	m.Version = VersionOf(m)
	return m
}

// Open reads a model. The error wraps ErrCorrupt, ErrTooLarge or ErrSchema.
func Open(m *eventsv1.Model) (*Model, error) {
	if n := proto.Size(m); n > events.MaxModelBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, n, events.MaxModelBytes)
	}
	if m.GetVersion() != VersionOf(m) {
		return nil, fmt.Errorf("%w: its content is not that of version %.12s", ErrCorrupt, m.GetVersion())
	}
	out := &Model{kind: m.Kind, version: m.Version, until: m.GetCard().GetDataUntilUs(), schema: SchemaOf(m.Kind)}
	if m.Schema != features.Version {
		return nil, fmt.Errorf("%w: version %d of the schema, this landfall has %d", ErrSchema, m.Schema, features.Version)
	}
	if len(m.Features) == 0 {
		return nil, fmt.Errorf("%w: it takes no features", ErrCorrupt)
	}
	for _, name := range m.Features {
		i := slices.IndexFunc(out.schema, func(f features.Feature) bool { return f.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: there is no %q", ErrSchema, name)
		}
		out.index = append(out.index, i)
	}
	out.row = make([]float64, len(out.index))
	if err := out.read(m); err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Model) read(m *eventsv1.Model) (err error) {
	var takes []string
	switch m.Kind {
	case eventsv1.ModelKind_MODEL_KIND_SUCCESS, eventsv1.ModelKind_MODEL_KIND_CONFLICT:
		if p.classifier, err = readClassifier(m.Predictor); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		takes = p.classifier.Features()
		if len(m.Calibration) > 0 {
			if p.calibration, err = calibration.Unmarshal(m.Calibration); err != nil {
				return fmt.Errorf("%w: its calibration: %w", ErrCorrupt, err)
			}
		}
	case eventsv1.ModelKind_MODEL_KIND_DURATION:
		if p.seconds, err = ngboost.Unmarshal(m.Predictor); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		takes = p.seconds.Features()
		p.median = features.IndexOfChange(features.MedianSeconds)
	default:
		return fmt.Errorf("%w: it is of no kind that this landfall knows (%d)", ErrSchema, m.Kind)
	}
	if strings.Join(takes, "\x00") != strings.Join(m.Features, "\x00") {
		return fmt.Errorf("%w: it takes other features than it says", ErrCorrupt)
	}
	return nil
}

// readClassifier reads a model of this release, or the logistic regression of older ones.
func readClassifier(predictor []byte) (classifier, error) {
	m, err := bytime.Unmarshal(predictor)
	if errors.Is(err, bytime.ErrNotAModel) {
		return logistic.Unmarshal(predictor)
	}
	return m, err
}

// Name returns the name of the model as predictions give it.
func (p *Model) Name() string { return Name(p.kind, p.version) }

// CheckAge returns ErrOld if the model's data ended more than MaxAge before a time in microseconds since 1970.
func (p *Model) CheckAge(now int64) error {
	if now-p.until <= MaxAge {
		return nil
	}
	return fmt.Errorf("%w: its data ends %d days ago, more than %d", ErrOld, (now-p.until)/(24*3600*1_000_000), int64(MaxAge/(24*3600*1_000_000)))
}

// Row appends to dst those values of a vector that a model takes, by their index in the schema. Linear models take them on a logarithmic
// scale. Training and prediction both use it.
func Row(dst []float64, schema []features.Feature, index []int, vector []float32, logScale bool) []float64 {
	for _, i := range index {
		x := float64(vector[i])
		if logScale {
			x = schema[i].LogScaled(x)
		}
		dst = append(dst, x)
	}
	return dst
}

// Probability returns what a model of success or conflict predicts, between 0 and 1. The error wraps ErrAbsurd, or ErrSchema for a
// vector of another length.
func (p *Model) Probability(vector []float32) (float64, error) {
	if len(vector) != len(p.schema) {
		return 0, fmt.Errorf("%w: a vector of %d, and the schema has %d", ErrSchema, len(vector), len(p.schema))
	}
	p.row = Row(p.row[:0], p.schema, p.index, vector, true)
	x, err := p.classifier.Predict(p.row)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrAbsurd, err)
	}
	if p.calibration != nil {
		x = p.calibration.Calibrate(x)
	}
	if !(x >= 0 && x <= 1) {
		return 0, fmt.Errorf("%w: a probability of %v", ErrAbsurd, x)
	}
	return Clamp(x), nil
}

// Clamp returns a probability of a model as the queue uses it: kept away from 0 and 1.
func Clamp(p float64) float64 { return math.Max(minDoubt, math.Min(1-minDoubt, p)) }

// Distribution returns the distribution that a model of durations was fitted as.
func (p *Model) Distribution() ngboost.Distribution { return p.seconds.Distribution() }

// Duration returns the mean and standard deviation, in seconds, that a model of durations predicts. known is false for a vector without
// the median that durations are relative to. The errors are those of Probability.
func (p *Model) Duration(vector []float32) (mean, std float64, known bool, err error) {
	if len(vector) != len(p.schema) {
		return 0, 0, false, fmt.Errorf("%w: a vector of %d, and the schema has %d", ErrSchema, len(vector), len(p.schema))
	}
	median := float64(vector[p.median])
	if !(median > 0) {
		return 0, 0, false, nil
	}
	p.row = Row(p.row[:0], p.schema, p.index, vector, false)
	d, err := p.seconds.Predict(p.row)
	if err != nil {
		return 0, 0, false, fmt.Errorf("%w: %w", ErrAbsurd, err)
	}
	mean, std = d.Mean()*median, d.StandardDeviation()*median
	if !(mean > 0 && mean <= maxSeconds && std >= 0 && std <= maxSeconds) {
		return 0, 0, false, fmt.Errorf("%w: %g s, give or take %g", ErrAbsurd, mean, std)
	}
	return mean, std, true, nil
}
