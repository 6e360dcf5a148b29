package train

import (
	"fmt"
	"math"
	"slices"
)

// bending adds columns to a table of features so that a linear model can follow curves: of each feature that
// takes many values, how far it is above some of its quantiles. A column of counts is taken as log(1+x) first.
type bending struct {
	names []string
	logs  []bool
	// knots of each column, none for one that is left as it is.
	knots [][]float64
}

// manyValues is from how many different values on a column is bent.
const manyValues = 12

// fitBending looks at training rows. With straight, columns are only made logarithms.
func fitBending(rows [][]float64, names []string, straight bool) bending {
	b := bending{names: names, logs: make([]bool, len(names)), knots: make([][]float64, len(names))}
	for k := range names {
		values := make([]float64, 0, len(rows))
		for _, row := range rows {
			if !math.IsNaN(row[k]) {
				values = append(values, row[k])
			}
		}
		slices.Sort(values)
		if len(slices.Compact(slices.Clone(values))) < manyValues {
			continue
		}
		quantile := func(q float64) float64 { return values[int(q*float64(len(values)-1))] }
		// Never negative and with a long tail: a count, an age, a size.
		b.logs[k] = values[0] >= 0 && quantile(0.99) > 8*max(quantile(0.5), 1)
		if straight {
			continue
		}
		for _, q := range []float64{0.2, 0.4, 0.6, 0.8} {
			at := b.straight(k, quantile(q))
			if known := b.knots[k]; at > b.straight(k, values[0]) && (len(known) == 0 || at > known[len(known)-1]) {
				b.knots[k] = append(b.knots[k], at)
			}
		}
	}
	return b
}

func (b bending) straight(k int, x float64) float64 {
	if b.logs[k] {
		return math.Log1p(max(0, x))
	}
	return x
}

// features names the columns of what apply gives.
func (b bending) features() []string {
	var out []string
	for k, name := range b.names {
		out = append(out, name)
		for _, at := range b.knots[k] {
			if b.logs[k] {
				at = math.Expm1(at)
			}
			out = append(out, fmt.Sprintf("%s above %.4g", name, at))
		}
	}
	return out
}

// apply makes rows for the model. What is missing stays missing.
func (b bending) apply(rows [][]float64) [][]float64 {
	out := make([][]float64, len(rows))
	for i, row := range rows {
		wide := make([]float64, 0, 2*len(row))
		for k, x := range row {
			x = b.straight(k, x)
			wide = append(wide, x)
			for _, at := range b.knots[k] {
				if math.IsNaN(x) {
					wide = append(wide, x)
				} else {
					wide = append(wide, max(0, x-at))
				}
			}
		}
		out[i] = wide
	}
	return out
}
