// Package bytime trains models of data that drifts. All settings (penalties, features, rounds, shares, spreads) are chosen on several
// windows of rows, each newer than the rows that a trial was fitted to, so that no single week decides. Then the model is fitted to all
// rows. No row is used before its target was known.
//
// [Outcome] trains the probability of an event, by a logistic regression and boosted trees together; [Distribution] trains the
// distribution of a number, by [ngboost].
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

// Times has the times of rows, in any unit.
type Times struct {
	// At is when a prediction of each row was needed; it never falls. If nil, the rows are in order, and each target was known before
	// the next row.
	At []int64
	// Ended is when each target was known. If nil, it was known at once.
	Ended []int64
}

// windows is the number of windows that settings are chosen on, windowShare the share of all rows in each. With four windows of a tenth,
// each trial has at least six tenths of the rows, and slow drift shows more than once.
const (
	windows     = 4
	windowShare = 0.1
)

// fold is a window, and the rows that were known before it: as in cross-validation, but by time. Both are indices of rows, oldest first.
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

// folds splits the newest rows into windows, oldest first, each with the rows that were known before it.
func (t Times) folds(rows int) ([]fold, error) {
	if err := t.check(rows); err != nil {
		return nil, err
	}
	var out []fold
	for w := windows; w > 0; w-- {
		from := rows - int(math.Round(float64(w)*windowShare*float64(rows)))
		to := rows - int(math.Round(float64(w-1)*windowShare*float64(rows)))
		from, to = t.keepTies(from), t.keepTies(to)
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

// keepTies moves a border so that rows of one time stay together, on the older side.
func (t Times) keepTies(border int) int {
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
