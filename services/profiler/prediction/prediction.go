// Package prediction asks trained models: it opens a model as it stands in the log, refuses one that nothing may rest
// on, and predicts from a vector of package features. It is pure: the same model and vector give the same number.
package prediction

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/calibration"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
	"landfall.build/services/profiler/features"
)

// Reasons for which a model is not used. None goes away by itself: another model has to be put into use.
var (
	// ErrCorrupt occurs when a model's content is not what its version says, or cannot be read.
	ErrCorrupt = errors.New("it is corrupt")
	// ErrTooLarge occurs above events.MaxModelBytes.
	ErrTooLarge = errors.New("it is too large")
	// ErrSchema occurs when it was trained on features that this landfall does not compute.
	ErrSchema = errors.New("it was trained on other features")
	// ErrOld occurs when its data ended more than MaxAge ago.
	ErrOld = errors.New("it is too old")
	// ErrAbsurd occurs when it predicts what cannot be.
	ErrAbsurd = errors.New("it predicts what cannot be")
)

const (
	// MaxAge is how long after the end of its data a model is used, in microseconds: 180 days.
	MaxAge = 180 * 24 * 3600 * 1_000_000
	// mostSeconds bounds a predicted duration and its spread: 30 days.
	mostSeconds = 30 * 24 * 3600
	// surest is how near to 0 and 1 a predicted probability may come: certain is what is proven, and nothing else.
	surest = 0.001
)

// asked is a model of a yes or no: bytime's, or the regression alone of an older landfall.
type asked interface {
	Features() []string
	Predict(row []float64) (float64, error)
}

// Model is a model that may be used. It is for one goroutine.
type Model struct {
	kind    eventsv1.ModelKind
	version string
	until   int64
	index   []int // of its features in the schema
	schema  []features.Feature
	yesNo   asked
	mapped  calibration.Map // nil: as it is
	seconds *ngboost.Model
	median  int
	row     []float64
}

// KindName is the lower-case name of a kind: success, conflict, duration.
func KindName(k eventsv1.ModelKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "MODEL_KIND_"))
}

// KindOf is the inverse of KindName; unspecified for what is no kind.
func KindOf(name string) eventsv1.ModelKind {
	for _, k := range Kinds() {
		if KindName(k) == name {
			return k
		}
	}
	return eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED
}

// Kinds are all kinds of models.
func Kinds() []eventsv1.ModelKind {
	return []eventsv1.ModelKind{eventsv1.ModelKind_MODEL_KIND_SUCCESS, eventsv1.ModelKind_MODEL_KIND_CONFLICT, eventsv1.ModelKind_MODEL_KIND_DURATION}
}

// ShortVersion is as much of a version as people need.
func ShortVersion(version string) string { return version[:min(len(version), 12)] }

// Name is what predictions of a model call it: its kind and version.
func Name(k eventsv1.ModelKind, version string) string {
	return KindName(k) + "-" + ShortVersion(version)
}

// SchemaOf is the schema of the vectors that models of a kind take.
func SchemaOf(k eventsv1.ModelKind) []features.Feature {
	if k == eventsv1.ModelKind_MODEL_KIND_CONFLICT {
		return features.OfPair()
	}
	return features.OfChange()
}

// VersionOf is the version that a model's content has: a SHA-256 in hexadecimal.
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

// Sealed completes a model that was just trained: the schema, and the version that its content has.
func Sealed(m *eventsv1.Model) *eventsv1.Model {
	m.Schema = features.Version
	m.Version = VersionOf(m)
	return m
}

// Open reads a model. The error says what is wrong with it: ErrCorrupt, ErrTooLarge or ErrSchema.
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
		i := indexIn(out.schema, name)
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

func indexIn(schema []features.Feature, name string) int {
	for i, f := range schema {
		if f.Name == name {
			return i
		}
	}
	return -1
}

func (p *Model) read(m *eventsv1.Model) (err error) {
	var takes []string
	switch m.Kind {
	case eventsv1.ModelKind_MODEL_KIND_SUCCESS, eventsv1.ModelKind_MODEL_KIND_CONFLICT:
		if p.yesNo, err = readOutcome(m.Predictor); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		takes = p.yesNo.Features()
		if len(m.Calibration) > 0 {
			if p.mapped, err = calibration.Unmarshal(m.Calibration); err != nil {
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

// readOutcome reads what a training of today makes, or the regression alone that was made until trees came with it.
func readOutcome(predictor []byte) (asked, error) {
	m, err := bytime.Unmarshal(predictor)
	if errors.Is(err, bytime.ErrNotAModel) {
		return logistic.Unmarshal(predictor)
	}
	return m, err
}

// Name is what its predictions call it.
func (p *Model) Name() string { return Name(p.kind, p.version) }

// Old says whether the data of the model ended too long before a moment, in microseconds since 1970.
func (p *Model) Old(now int64) error {
	if now-p.until <= MaxAge {
		return nil
	}
	return fmt.Errorf("%w: its data ends %d days ago, more than %d", ErrOld, (now-p.until)/(24*3600*1_000_000), int64(MaxAge/(24*3600*1_000_000)))
}

// Row is a vector as models take it: the features of that index, those of a kind that is linear straightened. What is
// trained and what is asked go the same way.
func Row(dst []float64, schema []features.Feature, index []int, vector []float32, straight bool) []float64 {
	for _, i := range index {
		x := float64(vector[i])
		if straight {
			x = schema[i].Straightened(x)
		}
		dst = append(dst, x)
	}
	return dst
}

// Probability that a model of success or conflict gives a vector, between 0 and 1. The error is ErrAbsurd, or ErrSchema for
// a vector of another length.
func (p *Model) Probability(vector []float32) (float64, error) {
	if len(vector) != len(p.schema) {
		return 0, fmt.Errorf("%w: a vector of %d, and the schema has %d", ErrSchema, len(vector), len(p.schema))
	}
	p.row = Row(p.row[:0], p.schema, p.index, vector, true)
	x, err := p.yesNo.Predict(p.row)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrAbsurd, err)
	}
	if p.mapped != nil {
		x = p.mapped.Calibrate(x)
	}
	if !(x >= 0 && x <= 1) {
		return 0, fmt.Errorf("%w: a probability of %v", ErrAbsurd, x)
	}
	return Bounded(x), nil
}

// Bounded is a probability of a model as it is used: never nearer to 0 and 1 than a prediction may come.
func Bounded(p float64) float64 { return math.Max(surest, math.Min(1-surest, p)) }

// Distribution that a model of durations was fitted as; LogNormal for one of another kind, which has none.
func (p *Model) Distribution() ngboost.Distribution {
	if p.seconds == nil {
		return ngboost.LogNormal
	}
	return p.seconds.Distribution()
}

// Duration is the mean and standard deviation, in seconds, that a model of durations gives a vector. known is false where
// the vector lacks the median that durations are relative to: then nothing can be said. The error is as Probability's.
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
	if !(mean > 0 && mean <= mostSeconds && std >= 0 && std <= mostSeconds) {
		return 0, 0, false, fmt.Errorf("%w: %g s, give or take %g", ErrAbsurd, mean, std)
	}
	return mean, std, true, nil
}
