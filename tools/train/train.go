// Package train is `landfall train`: it fits models of durations and outcomes to the table of a CSV file and measures them on rows that
// they were not trained on, and it trains the models of a queue from its history.
package train

import (
	"bufio"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"landfall.build/learning/bytime"
	"landfall.build/learning/fitted"
	"landfall.build/learning/table"
)

// ErrRows occurs if test rows are not rows of the table, or leave nothing to train on.
var ErrRows = errors.New("test rows that the table does not have")

// readTable reads a CSV file with a header.
func readTable(path string) (*table.Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := table.Read(bufio.NewReaderSize(f, 1<<20), table.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// readRows reads the numbers of the test rows, counted from 0 without the header and separated by white space.
func readRows(path string, rows int) (test []int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	words := bufio.NewScanner(f)
	words.Split(bufio.ScanWords)
	seen := make([]bool, rows)
	for words.Scan() {
		n, err := strconv.Atoi(words.Text())
		if err != nil {
			return nil, fmt.Errorf("%w: %s has %q, which is no number of a row", ErrRows, path, clip(words.Text()))
		}
		if n < 0 || n >= rows {
			return nil, fmt.Errorf("%w: %s names row %d; there are rows 0 to %d", ErrRows, path, n, rows-1)
		}
		if seen[n] {
			return nil, fmt.Errorf("%w: %s names row %d twice", ErrRows, path, n)
		}
		seen[n] = true
		test = append(test, n)
	}
	if err := words.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(test) == 0 || len(test) == rows {
		return nil, fmt.Errorf("%w: %s names %d of %d", ErrRows, path, len(test), rows)
	}
	return test, nil
}

// ended leaves out the rows whose target was not known yet at the time of the oldest test row. Without such a column it keeps all rows.
func ended(t *table.Table, c fitted.Columns, older, test []int) ([]int, error) {
	times, err := c.Times(t)
	if err != nil || times.Ended == nil || len(test) == 0 {
		return older, err
	}
	known := make([]int, 0, len(older))
	for _, i := range older {
		if times.Ended[i] < times.At[test[0]] {
			known = append(known, i)
		}
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%w: none had ended when the first of %d test rows began", bytime.ErrTooFewRows, len(test))
	}
	return known, nil
}

func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "…"
	}
	return text
}

// others returns the rows that are not among some.
func others(some []int, rows int) []int {
	is := make([]bool, rows)
	for _, i := range some {
		is[i] = true
	}
	rest := make([]int, 0, rows-len(some))
	for i := range rows {
		if !is[i] {
			rest = append(rest, i)
		}
	}
	return rest
}

func pick[T any](values []T, rows []int) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = values[row]
	}
	return out
}

// finite returns nil for numbers that JSON cannot hold.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// progress writes a line for every second that something takes, until stop.
func progress(ctx context.Context, to io.Writer, what string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				fmt.Fprintf(to, "%s, %.0f s\n", what, time.Since(began).Seconds())
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// keep writes a model to a file, unless the path is empty.
func keep(path string, m encoding.BinaryMarshaler) error {
	if path == "" {
		return nil
	}
	sealed, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	return os.WriteFile(path, sealed, 0o666)
}
