// Package table reads CSV files into typed columns with missing values, and
// turns them into rows of numbers to learn from: numbers stay, categories
// become one column each up to 16 of them, and beyond that the smoothed mean of
// the target.
package table

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// Kind is what a column holds.
type Kind uint8

const (
	// Number is any finite number.
	Number Kind = iota + 1
	// Truth is true or false, as 1 and 0.
	Truth
	// Time is an instant, as seconds since 1970; written in RFC 3339, or as a Number.
	Time
	// Category is any text.
	Category
)

// String returns the lower-case name.
func (k Kind) String() string {
	switch k {
	case Number:
		return "number"
	case Truth:
		return "truth"
	case Time:
		return "time"
	case Category:
		return "category"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Errors of this package; each is wrapped with the line, the column and the
// value it is about. They are about the file: the same file gives them again.
var (
	// ErrEmpty occurs when there is no header or no row.
	ErrEmpty = errors.New("table: empty")
	// ErrHeader occurs when a column has no name, or two have the same.
	ErrHeader = errors.New("table: bad header")
	// ErrTooManyColumns occurs above Options.Columns.
	ErrTooManyColumns = errors.New("table: too many columns")
	// ErrTooLarge occurs above Options.Rows, Options.Bytes or the longest cell.
	ErrTooLarge = errors.New("table: too large")
	// ErrSyntax occurs when the file is not CSV, or rows differ in length.
	ErrSyntax = errors.New("table: not a CSV table")
	// ErrText occurs when a cell does not fit its column's kind.
	ErrText = errors.New("table: cell of the wrong kind")
	// ErrColumn occurs when a column that is asked for does not exist or has the wrong kind.
	ErrColumn = errors.New("table: unusable column")
	// ErrMissing occurs when a target is missing in a row.
	ErrMissing = errors.New("table: missing target")
	// ErrConstant occurs when no column takes two different values.
	ErrConstant = errors.New("table: every column is constant")
)

// Column is one column of a table.
type Column struct {
	Name string
	Kind Kind
	// Numbers has one entry per row, NaN where missing; nil for categories.
	Numbers []float64
	// Texts has one entry per row of a category, empty where missing; nil for others.
	Texts []string
}

// Table is columns of equal length.
type Table struct {
	Columns []Column
	Rows    int
}

// Column finds a column by name.
func (t *Table) Column(name string) (*Column, error) {
	for k := range t.Columns {
		if t.Columns[k].Name == name {
			return &t.Columns[k], nil
		}
	}
	names := make([]string, 0, 10)
	for _, c := range t.Columns[:min(len(t.Columns), 10)] {
		names = append(names, c.Name)
	}
	return nil, fmt.Errorf("%w: %q; the first are %s", ErrColumn, name, strings.Join(names, ", "))
}

// Target returns a column of numbers or times in which nothing is missing.
func (t *Table) Target(name string) ([]float64, error) {
	c, err := t.Column(name)
	if err != nil {
		return nil, err
	}
	if c.Kind == Category {
		return nil, fmt.Errorf("%w: %q holds text such as %q, not numbers", ErrColumn, name, firstText(c.Texts))
	}
	for i, v := range c.Numbers {
		if math.IsNaN(v) {
			return nil, fmt.Errorf("%w: row %d of %q; drop such rows", ErrMissing, i+1, name)
		}
	}
	return c.Numbers, nil
}

func firstText(texts []string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// Outcomes returns a column that holds nothing but 0 and 1, or true and false.
func (t *Table) Outcomes(name string) ([]bool, error) {
	values, err := t.Target(name)
	if err != nil {
		return nil, err
	}
	outcomes := make([]bool, len(values))
	for i, v := range values {
		if v != 0 && v != 1 {
			return nil, fmt.Errorf("%w: row %d of %q is %g, an outcome is 0 or 1, true or false", ErrColumn, i+1, name, v)
		}
		outcomes[i] = v == 1
	}
	return outcomes, nil
}

// Without is the table without some columns; names that do not exist are ignored.
func (t *Table) Without(names ...string) *Table {
	out := &Table{Rows: t.Rows}
	for _, c := range t.Columns {
		if !slices.Contains(names, c.Name) {
			out.Columns = append(out.Columns, c)
		}
	}
	return out
}

// Pick is the table of some rows, by number from zero, in the order given.
func (t *Table) Pick(rows []int) *Table {
	out := &Table{Rows: len(rows), Columns: make([]Column, len(t.Columns))}
	for k, c := range t.Columns {
		to := Column{Name: c.Name, Kind: c.Kind}
		for _, i := range rows {
			if c.Kind == Category {
				to.Texts = append(to.Texts, c.Texts[i])
			} else {
				to.Numbers = append(to.Numbers, c.Numbers[i])
			}
		}
		out.Columns[k] = to
	}
	return out
}

// SplitByTime parts the rows at a time, so that the newest share of them, from
// 0 to 1, comes after: both parts are oldest first. Rows of equal time stay
// together, on the older side.
func (t *Table) SplitByTime(name string, share float64) (older, newer []int, err error) {
	times, err := t.Target(name)
	if err != nil {
		return nil, nil, err
	}
	if !(share >= 0 && share <= 1) {
		return nil, nil, fmt.Errorf("table: the newest share of %g: use 0 to 1", share)
	}
	order := make([]int, t.Rows)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return times[order[a]] < times[order[b]] })
	cut := len(order) - int(math.Round(share*float64(len(order))))
	for cut > 0 && cut < len(order) && times[order[cut]] == times[order[cut-1]] {
		cut++
	}
	return order[:cut], order[cut:], nil
}
