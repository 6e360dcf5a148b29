package table

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options bounds and guides reading. Zero fields mean the defaults.
type Options struct {
	// Kinds says what named columns hold; others are recognised by their cells.
	Kinds map[string]Kind
	// Columns is the most columns; 4,096 when zero.
	Columns int
	// Rows is the most rows; 2,000,000 when zero.
	Rows int
	// Bytes is the largest file; 1 GiB when zero.
	Bytes int64
	// Comma separates cells; ',' when zero.
	Comma rune
}

const longestCell = 64 << 10

func (o Options) withDefaults() Options {
	if o.Columns == 0 {
		o.Columns = 4096
	}
	if o.Rows == 0 {
		o.Rows = 2_000_000
	}
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	if o.Comma == 0 {
		o.Comma = ','
	}
	return o
}

// Read reads a CSV file with a header. Empty cells, NA, N/A, NaN, null, None, -
// and ? are missing. A column is of the first kind among Truth, Number and Time
// that all its cells fit, else a Category; but one in which nine of ten cells
// are numbers is refused for the cell that is not, since that is most often a
// mistake: Options.Kinds settles it.
func Read(r io.Reader, options Options) (*Table, error) {
	o := options.withDefaults()
	bounded := &boundedReader{from: r, left: o.Bytes}
	lines := csv.NewReader(bounded)
	lines.Comma, lines.ReuseRecord, lines.TrimLeadingSpace = o.Comma, true, true
	header, err := lines.Read()
	if err != nil {
		return nil, readError(err, bounded)
	}
	names, err := readHeader(header, o)
	if err != nil {
		return nil, err
	}
	cells := make([][]string, len(names))
	for rows := 0; ; rows++ {
		record, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, readError(err, bounded)
		}
		if rows >= o.Rows {
			return nil, fmt.Errorf("%w: more than %d rows", ErrTooLarge, o.Rows)
		}
		for k, cell := range record {
			if len(cell) > longestCell {
				return nil, fmt.Errorf("%w: row %d of %q has %d bytes, at most %d", ErrTooLarge, rows+1, names[k], len(cell), longestCell)
			}
			cells[k] = append(cells[k], normalise(cell))
		}
	}
	if len(cells[0]) == 0 {
		return nil, fmt.Errorf("%w: a header of %d columns and no row", ErrEmpty, len(names))
	}
	t := &Table{Rows: len(cells[0])}
	for k, name := range names {
		c, err := readColumn(name, cells[k], o.Kinds[name])
		if err != nil {
			return nil, err
		}
		t.Columns = append(t.Columns, c)
		cells[k] = nil
	}
	return t, nil
}

// boundedReader fails, rather than ends, when the file is too large.
type boundedReader struct {
	from     io.Reader
	left     int64
	exceeded bool
}

func (b *boundedReader) Read(to []byte) (int, error) {
	if b.left <= 0 {
		b.exceeded = true
		return 0, ErrTooLarge
	}
	n, err := b.from.Read(to[:min(int64(len(to)), b.left)])
	b.left -= int64(n)
	return n, err
}

func readError(err error, b *boundedReader) error {
	var syntax *csv.ParseError
	switch {
	case b.exceeded:
		return fmt.Errorf("%w: the file has more bytes than allowed", ErrTooLarge)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: no header", ErrEmpty)
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return fmt.Errorf("table: %w", err)
}

func readHeader(header []string, o Options) ([]string, error) {
	if len(header) > o.Columns {
		return nil, fmt.Errorf("%w: %d, at most %d", ErrTooManyColumns, len(header), o.Columns)
	}
	names := make([]string, len(header))
	at := map[string]int{}
	for k, name := range header {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		if name == "" || len(name) > 1024 {
			return nil, fmt.Errorf("%w: the name of column %d has %d bytes, from 1 to 1024", ErrHeader, k+1, len(name))
		}
		if other, twice := at[name]; twice {
			return nil, fmt.Errorf("%w: columns %d and %d are both named %q", ErrHeader, other+1, k+1, name)
		}
		names[k], at[name] = name, k
	}
	for _, name := range slices.Sorted(maps.Keys(o.Kinds)) { // so that the same file gives the same error
		kind := o.Kinds[name]
		if _, exists := at[name]; !exists {
			return nil, fmt.Errorf("%w: %q, which is to be a %v", ErrColumn, name, kind)
		}
		if kind < Number || kind > Category {
			return nil, fmt.Errorf("%w: %q cannot be a %v", ErrColumn, name, kind)
		}
	}
	return names, nil
}

var missingWords = []string{"na", "n/a", "nan", "null", "none", "-", "?"}

// normalise trims a cell and empties it when it means missing. The result does
// not share the reader's memory.
func normalise(cell string) string {
	cell = strings.TrimSpace(cell)
	if len(cell) <= 4 && slices.Contains(missingWords, strings.ToLower(cell)) {
		return ""
	}
	return strings.Clone(cell)
}

func readColumn(name string, cells []string, kind Kind) (Column, error) {
	if kind == 0 {
		var err error
		if kind, err = recognise(name, cells); err != nil {
			return Column{}, err
		}
	}
	if kind == Category {
		return Column{Name: name, Kind: kind, Texts: cells}, nil
	}
	c := Column{Name: name, Kind: kind, Numbers: make([]float64, len(cells))}
	for i, cell := range cells {
		value, fits := parse(cell, kind)
		if !fits {
			return Column{}, wrongKind(name, i, cell, kind)
		}
		c.Numbers[i] = value
	}
	return c, nil
}

func wrongKind(name string, row int, cell string, kind Kind) error {
	if len(cell) > 40 {
		cell = cell[:40] + "…"
	}
	return fmt.Errorf("%w: row %d of %q is %q, not a %v", ErrText, row+1, name, cell, kind)
}

// recognise finds a column's kind. A column with nothing in it is a Number.
func recognise(name string, cells []string) (Kind, error) {
	fits := map[Kind]int{}
	misfit, present := -1, 0
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		present++
		for _, kind := range []Kind{Truth, Number, Time} {
			if _, ok := parse(cell, kind); ok {
				fits[kind]++
			} else if kind == Number && misfit < 0 {
				misfit = i
			}
		}
	}
	switch {
	case present == 0 || fits[Number] == present:
		return Number, nil
	case fits[Truth] == present:
		return Truth, nil
	case fits[Time] == present:
		return Time, nil
	case present >= 10 && fits[Number]*10 >= present*9:
		return 0, fmt.Errorf("%w; %d of %d cells are numbers", wrongKind(name, misfit, cells[misfit], Number), fits[Number], present)
	}
	return Category, nil
}

// parse reads a cell as a kind other than Category.
func parse(cell string, kind Kind) (float64, bool) {
	if cell == "" {
		return math.NaN(), true
	}
	switch kind {
	case Truth:
		switch strings.ToLower(cell) {
		case "true", "yes", "1":
			return 1, true
		case "false", "no", "0":
			return 0, true
		}
		return 0, false
	case Time:
		if t, err := time.Parse(time.RFC3339, cell); err == nil {
			return float64(t.UnixNano()) / 1e9, true
		}
	}
	v, err := strconv.ParseFloat(cell, 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}
