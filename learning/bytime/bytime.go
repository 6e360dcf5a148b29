// Package bytime trains models of what changes with time. Whatever is chosen (penalties, features, rounds, shares, spreads)
// is chosen by windows of rows that are newer than what a trial was fitted to, several of them, so that no single week
// decides; then the model is fitted to all rows, the newest included. No row is used before its target was known.
//
// [Outcome] is the probability of a yes or no, by a logistic regression and boosted trees together; [Distribution] that of a
// number, by [ngboost].
package bytime

import (
	"errors"
	"fmt"
	"math"
)

// ErrShape occurs when rows and their times do not fit together, or the times fall.
var ErrShape = errors.New("bytime: rows and times do not fit")

// ErrTooFewRows occurs when too little is left of the rows before a window, or of the windows.
var ErrTooFewRows = errors.New("bytime: too few rows")

// Times says when rows were asked about and when their targets were known, in any unit.
type Times struct {
	// At has an entry for each row, and never falls; nil says that the rows are in order and that each target was known
	// before the next row.
	At []int64
	// Ended has one for each row, or is nil: then each target was known at once.
	Ended []int64
}

// Windows are the newest windows of the rows that choices are made by, and the share of all rows that each of them has. Four
// of a tenth: each trial has at least six tenths of the rows, and drift of weeks is seen more than once.
const (
	windows     = 4
	windowShare = 0.1
)

// fold is a window, and the rows that were known before it. Both are indices of rows, oldest first.
type fold struct{ known, window []int }

func (t Times) check(rows int) error {
	if t.At != nil && len(t.At) != rows || t.Ended != nil && (t.At == nil || len(t.Ended) != rows) {
		return fmt.Errorf("%w: %d rows, %d times, %d ends", ErrShape, rows, len(t.At), len(t.Ended))
	}
	for i := range t.At {
		if i > 0 && t.At[i] < t.At[i-1] {
			return fmt.Errorf("%w: row %d is older than the one before it", ErrShape, i)
		}
	}
	return nil
}

// folds parts rows into the newest windows, oldest first, each with what was known before it.
func (t Times) folds(rows int) ([]fold, error) {
	if err := t.check(rows); err != nil {
		return nil, err
	}
	var out []fold
	for w := windows; w > 0; w-- {
		from := rows - int(math.Round(float64(w)*windowShare*float64(rows)))
		to := rows - int(math.Round(float64(w-1)*windowShare*float64(rows)))
		from, to = t.moment(from), t.moment(to)
		if from >= to || from >= rows {
			continue
		}
		f := fold{window: span(from, to)}
		for i := range from {
			if t.Ended == nil || t.Ended[i] < t.At[from] {
				f.known = append(f.known, i)
			}
		}
		out = append(out, f)
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("%w: %d make %d windows to choose by", ErrTooFewRows, rows, len(out))
	}
	return out, nil
}

// moment moves a border so that rows of one moment stay together, on the older side.
func (t Times) moment(border int) int {
	for t.At != nil && border > 0 && border < len(t.At) && t.At[border] == t.At[border-1] {
		border++
	}
	return border
}

func span(from, to int) []int {
	out := make([]int, to-from)
	for i := range out {
		out[i] = from + i
	}
	return out
}

func pick[T any](values []T, index []int) []T {
	out := make([]T, len(index))
	for k, i := range index {
		out[k] = values[i]
	}
	return out
}
