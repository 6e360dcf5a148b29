package recorded

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// ColumnEnded is when a build ended, in seconds since 1970: no feature, but when its target was known.
const ColumnEnded = "ended"

// WriteOutcomes writes the settled builds as a table to train on: began (seconds since 1970), with ends also when the build
// ended, what was known, and passed, which is 1 for SUCCESS.
func WriteOutcomes(out io.Writer, rows []Row, ends bool) (written int, err error) {
	return write(out, rows, ends, "passed", func(r Row) (target float64, ok bool) {
		return truth(r.Result == "SUCCESS"), r.Settled()
	})
}

// WriteDurations writes the whole builds as a table to train on: the same columns, and seconds. Durations drift, and
// trees do not follow what they have never seen: learn them relative to typical_seconds or one of the medians.
func WriteDurations(out io.Writer, rows []Row, ends bool) (written int, err error) {
	return write(out, rows, ends, "seconds", func(r Row) (target float64, ok bool) {
		return r.Took.Seconds(), r.timed() && r.Took > 0
	})
}

func write(out io.Writer, rows []Row, ends bool, target string, of func(Row) (float64, bool)) (written int, err error) {
	w := csv.NewWriter(out)
	header := []string{"began"}
	if ends {
		header = append(header, ColumnEnded)
	}
	if err := w.Write(append(append(header, Columns()...), target)); err != nil {
		return 0, err
	}
	for _, r := range rows {
		value, ok := of(r)
		if !ok {
			continue
		}
		line := []string{strconv.FormatInt(r.Started.Unix(), 10)}
		if ends {
			line = append(line, strconv.FormatFloat(float64(r.ended().UnixMilli())/1000, 'f', -1, 64))
		}
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
