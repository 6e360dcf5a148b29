package recorded

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// WriteOutcomes writes the settled builds as a table to train on: began (seconds since 1970), project, branch, what
// was known, and passed, which is 1 for SUCCESS.
func WriteOutcomes(out io.Writer, rows []Row) (written int, err error) {
	return write(out, rows, "passed", func(r Row) (target float64, ok bool) {
		return truth(r.Result == "SUCCESS"), r.settled()
	})
}

// WriteDurations writes the whole builds as a table to train on, with ratio for a target: how many times the median
// of the last five whole builds of its project it took. Durations drift, and trees do not follow what they have
// never seen. A first build, without such a median, is left out. The relative error of a predicted ratio is that of
// the duration; the mean of log_median has to be added to its mean negative log-likelihood.
func WriteDurations(out io.Writer, rows []Row) (written int, err error) {
	median := column("median_5")
	return write(out, rows, "ratio", func(r Row) (target float64, ok bool) {
		base := r.Known[median]
		return r.Took.Seconds() / base, r.timed() && base > 0 && r.Took > 0
	})
}

func column(name string) int {
	for i, c := range Columns() {
		if c == name {
			return i
		}
	}
	return -1
}

func write(out io.Writer, rows []Row, target string, of func(Row) (float64, bool)) (written int, err error) {
	w := csv.NewWriter(out)
	header := append([]string{"began", "project", "branch"}, Columns()...)
	if err := w.Write(append(header, "log_median", target)); err != nil {
		return 0, err
	}
	median := column("median_5")
	for _, r := range rows {
		value, ok := of(r)
		if !ok {
			continue
		}
		line := []string{strconv.FormatInt(r.Started.Unix(), 10), r.Project, r.Project + "/" + r.Branch}
		for _, x := range r.Known {
			line = append(line, number(x))
		}
		if err := w.Write(append(line, number(math.Log(r.Known[median])), number(value))); err != nil {
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
