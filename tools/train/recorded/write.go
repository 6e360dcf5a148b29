package recorded

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// WriteOutcomes writes the settled builds as a table to train on: began (seconds since 1970), what was
// known, and passed, which is 1 for SUCCESS.
func WriteOutcomes(out io.Writer, rows []Row) (written int, err error) {
	return write(out, rows, "passed", func(r Row) (target float64, ok bool) {
		return truth(r.Result == "SUCCESS"), r.Settled()
	})
}

// WriteDurations writes the whole builds as a table to train on: the same columns, and seconds. Durations drift, and
// trees do not follow what they have never seen: learn them relative to one of the medians.
func WriteDurations(out io.Writer, rows []Row) (written int, err error) {
	return write(out, rows, "seconds", func(r Row) (target float64, ok bool) {
		return r.Took.Seconds(), r.timed() && r.Took > 0
	})
}

func write(out io.Writer, rows []Row, target string, of func(Row) (float64, bool)) (written int, err error) {
	w := csv.NewWriter(out)
	header := append([]string{"began"}, Columns()...)
	if err := w.Write(append(header, target)); err != nil {
		return 0, err
	}
	for _, r := range rows {
		value, ok := of(r)
		if !ok {
			continue
		}
		line := []string{strconv.FormatInt(r.Started.Unix(), 10)}
		for _, x := range r.Known {
			line = append(line, number(x))
		}
		if err := w.Write(append(line, number(value))); err != nil {
			return written, err
		}
		written++
	}
	w.Flush()
	return written, w.Error()
}

func number(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 8, 64)
}
