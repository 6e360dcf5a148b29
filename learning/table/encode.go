package table

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"landfall.build/learning/internal/seal"
)

// Encoding is how categories become numbers. Zero fields mean the defaults.
type Encoding struct {
	// OneHot is the most values of a category that get a column each; 16 when zero.
	OneHot int
	// Smoothing is how many rows of the overall mean are added to the rows of a
	// value in target encoding; 5 when zero.
	Smoothing float64
}

// Encoder turns rows of the columns it was fitted on into features.
type Encoder struct {
	inputs   []input
	features []string
}

// input is one column that is used.
type input struct {
	name string
	kind Kind
	// levels are the values with a feature each, or those with an encoded target.
	levels  []string
	encoded []float64 // by level; nil for one-hot
	overall float64   // for levels never seen
	index   map[string]int
}

// Cell is one value to encode: Number, NaN when missing, or Text, empty when missing.
type Cell struct {
	Number float64
	Text   string
}

// maxLevels bounds the values of one category.
const maxLevels = 1 << 20

// FitEncoder learns the encoding from training rows and their target, and gives
// those rows encoded. Where a value is encoded by its mean target, a training
// row gets the mean over the rows before it only: with its own target in its
// features, a model would learn to trust them too much. Rows are therefore to
// be oldest first. Columns that never change are left out and named in dropped.
func FitEncoder(t *Table, target []float64, e Encoding) (encoder *Encoder, rows [][]float64, dropped []string, err error) {
	if e.OneHot == 0 {
		e.OneHot = 16
	}
	if e.Smoothing == 0 {
		e.Smoothing = 5
	}
	if e.OneHot < 1 || !(e.Smoothing > 0) || math.IsInf(e.Smoothing, 0) {
		return nil, nil, nil, fmt.Errorf("table: encoding with %d columns a category and smoothing %g: use 1 or more, and above 0", e.OneHot, e.Smoothing)
	}
	if len(target) != t.Rows {
		return nil, nil, nil, fmt.Errorf("%w: %d rows, %d targets", ErrMissing, t.Rows, len(target))
	}
	encoder = &Encoder{}
	earlier := map[string][]float64{}
	for _, c := range t.Columns {
		in := input{name: c.Name, kind: c.Kind}
		if c.Kind == Category {
			in.levels = levelsOf(c.Texts)
			if len(in.levels) > maxLevels {
				return nil, nil, nil, fmt.Errorf("%w: %q has %d different texts, at most %d", ErrTooLarge, c.Name, len(in.levels), maxLevels)
			}
		}
		if constant(c, in.levels) {
			dropped = append(dropped, c.Name)
			continue
		}
		in.fillIndex()
		if len(in.levels) > e.OneHot {
			earlier[c.Name] = in.encodeTarget(c.Texts, target, e.Smoothing)
		}
		encoder.add(in)
	}
	if len(encoder.inputs) == 0 {
		return nil, nil, nil, fmt.Errorf("%w: %d rows, %d columns", ErrConstant, t.Rows, len(t.Columns))
	}
	rows, err = encoder.Encode(t)
	if err != nil {
		return nil, nil, nil, err
	}
	feature := 0
	for _, in := range encoder.inputs {
		if values, encoded := earlier[in.name]; encoded {
			for i, row := range rows {
				row[feature] = values[i]
			}
		}
		feature += in.width()
	}
	return encoder, rows, dropped, nil
}

func levelsOf(texts []string) []string {
	seen := map[string]bool{}
	var levels []string
	for _, text := range texts {
		if text != "" && !seen[text] {
			seen[text] = true
			levels = append(levels, text)
		}
	}
	slices.Sort(levels)
	return levels
}

// constant counts missing as a value of its own.
func constant(c Column, levels []string) bool {
	if c.Kind == Category {
		return len(levels) == 0 || len(levels) == 1 && !slices.Contains(c.Texts, "")
	}
	for _, v := range c.Numbers {
		first := c.Numbers[0]
		if v != first && (v == v || first == first) {
			return false
		}
	}
	return true
}

func (in *input) fillIndex() {
	in.index = make(map[string]int, len(in.levels))
	for k, level := range in.levels {
		in.index[level] = k
	}
}

// encodeTarget fills encoded and gives each row what the rows before it say.
func (in *input) encodeTarget(texts []string, target []float64, smoothing float64) []float64 {
	in.overall = 0
	for _, y := range target {
		in.overall += y / float64(len(target))
	}
	sums, counts := make([]float64, len(in.levels)), make([]float64, len(in.levels))
	before := make([]float64, len(texts))
	mean := func(k int) float64 { return (sums[k] + smoothing*in.overall) / (counts[k] + smoothing) }
	for i, text := range texts {
		if text == "" {
			before[i] = math.NaN()
			continue
		}
		k := in.index[text]
		before[i] = mean(k)
		sums[k] += target[i]
		counts[k]++
	}
	in.encoded = make([]float64, len(in.levels))
	for k := range in.encoded {
		in.encoded[k] = mean(k)
	}
	return before
}

func (in *input) width() int {
	if in.kind == Category && in.encoded == nil {
		return len(in.levels)
	}
	return 1
}

func (e *Encoder) add(in input) {
	e.inputs = append(e.inputs, in)
	if in.width() == 1 && (in.kind != Category || in.encoded != nil) {
		e.features = append(e.features, in.name)
		return
	}
	for _, level := range in.levels {
		e.features = append(e.features, in.name+"="+level)
	}
}

// Features names what Encode gives: the column's name, or name=value.
func (e *Encoder) Features() []string { return slices.Clone(e.features) }

// Inputs names the columns an encoder wants, in the order of EncodeRow's cells.
func (e *Encoder) Inputs() []string {
	names := make([]string, len(e.inputs))
	for k, in := range e.inputs {
		names[k] = in.name
	}
	return names
}

// Encode encodes all rows of a table that has the columns fitted on, among
// others and in any order. A value never seen is zero in every column of a
// one-hot category, and the overall mean in target encoding.
func (e *Encoder) Encode(t *Table) ([][]float64, error) {
	columns := make([]*Column, len(e.inputs))
	for k, in := range e.inputs {
		c, err := t.Column(in.name)
		if err != nil {
			return nil, err
		}
		if (c.Kind == Category) != (in.kind == Category) {
			return nil, fmt.Errorf("%w: %q is a %v here, a %v in training", ErrColumn, in.name, c.Kind, in.kind)
		}
		columns[k] = c
	}
	width := len(e.features)
	cells := make([]float64, 0, width*t.Rows)
	rows := make([][]float64, t.Rows)
	for i := range rows {
		start := len(cells)
		for k := range e.inputs {
			var cell Cell
			if c := columns[k]; c.Kind == Category {
				cell.Text = c.Texts[i]
			} else {
				cell.Number = c.Numbers[i]
			}
			cells = e.inputs[k].append(cells, cell)
		}
		rows[i] = cells[start:len(cells):len(cells)]
	}
	return rows, nil
}

// EncodeRow appends one row's features to dst, which it returns; cells stand in
// the order of Inputs. It allocates nothing when dst has room for them. The
// error is [ErrColumn], when there are not as many cells as inputs.
func (e *Encoder) EncodeRow(dst []float64, cells []Cell) ([]float64, error) {
	if len(cells) != len(e.inputs) {
		return dst, fmt.Errorf("%w: %d cells for %d inputs", ErrColumn, len(cells), len(e.inputs))
	}
	for k := range e.inputs {
		dst = e.inputs[k].append(dst, cells[k])
	}
	return dst, nil
}

func (in *input) append(dst []float64, c Cell) []float64 {
	if in.kind != Category {
		return append(dst, c.Number)
	}
	level, known := in.index[c.Text]
	if in.encoded != nil {
		switch {
		case c.Text == "":
			return append(dst, math.NaN())
		case !known:
			return append(dst, in.overall)
		}
		return append(dst, in.encoded[level])
	}
	for k := range in.levels {
		value := 0.0
		if c.Text == "" {
			value = math.NaN()
		} else if known && k == level {
			value = 1
		}
		dst = append(dst, value)
	}
	return dst
}

// ErrNotAnEncoder wraps every refusal of UnmarshalEncoder.
var ErrNotAnEncoder = errors.New("table: not an encoder")

const (
	magic   = "ENCm"
	version = 1
)

// MarshalBinary writes the encoder, with the SHA-256 of what stands before at the end.
func (e *Encoder) MarshalBinary() ([]byte, error) {
	var w seal.Writer
	w.Uint32(uint32(len(e.inputs)))
	for _, in := range e.inputs {
		w.Text(in.name)
		w.Uint8(uint8(in.kind))
		w.Texts(in.levels)
		w.Floats(in.encoded)
		w.Float64(in.overall)
	}
	return seal.Close(magic, version, w.Bytes)
}

// UnmarshalEncoder reads what MarshalBinary wrote and accepts nothing else.
func UnmarshalEncoder(sealed []byte) (*Encoder, error) {
	_, payload, err := seal.Open(magic, version, sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAnEncoder, err)
	}
	r := seal.NewReader(payload)
	e := &Encoder{}
	for range r.Count("inputs", 1<<16, 21) {
		in := input{name: r.Text("name", 1024), kind: Kind(r.Uint8())}
		in.levels = r.Texts("levels", maxLevels, longestCell)
		if in.encoded = r.Floats("encoded levels", maxLevels); len(in.encoded) == 0 {
			in.encoded = nil
		}
		in.overall = r.Finite("overall mean")
		in.check(r)
		if r.Err() != nil {
			break
		}
		in.fillIndex()
		e.add(in)
	}
	if len(e.inputs) == 0 {
		r.Refuse("no inputs")
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotAnEncoder, err)
	}
	return e, nil
}

func (in *input) check(r *seal.Reader) {
	isCategory := in.kind == Category
	switch {
	case r.Err() != nil:
	case in.kind < Number || in.kind > Category:
		r.Refuse("%q is a %v", in.name, in.kind)
	case isCategory != (len(in.levels) > 0):
		r.Refuse("%q is a %v with %d levels", in.name, in.kind, len(in.levels))
	case in.encoded != nil && len(in.encoded) != len(in.levels):
		r.Refuse("%q has %d levels and %d encoded", in.name, len(in.levels), len(in.encoded))
	}
	for k := 1; k < len(in.levels); k++ {
		if in.levels[k] <= in.levels[k-1] {
			r.Refuse("the levels of %q are not in order", in.name)
		}
	}
}
