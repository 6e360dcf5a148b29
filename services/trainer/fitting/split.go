// Package fitting trains a model on a data set and judges whether it is better than what predicts now. The result depends on the rows,
// the model in use and the given time alone: it reads no clock, and its random numbers have a fixed seed.
package fitting

import (
	"math"
	"slices"

	"landfall.build/learning/bytime"
	"landfall.build/services/trainer/dataset"
)

// testShare is the share of the rows, the newest, that models are judged on. They are used for nothing else: settings are chosen on
// windows of the training rows (package bytime).
const testShare = 0.2

// parts are the rows of a data set, each part oldest first.
type parts struct{ training, test []dataset.Row }

// split splits rows by time. Rows that had not ended when the first test row began are in no part: nobody could have learned from them.
func split(rows []dataset.Row) parts {
	cut := len(rows) - int(math.Round(testShare*float64(len(rows))))
	// Rows of one time stay together, in the training part.
	for cut < len(rows) && cut > 0 && rows[cut].At == rows[cut-1].At {
		cut++
	}
	p := parts{slices.Clone(rows[:cut]), rows[cut:]}
	if len(p.test) > 0 {
		p.training = slices.DeleteFunc(p.training, func(r dataset.Row) bool { return r.Ended >= p.test[0].At })
	}
	return p
}

// timesOf returns the times of rows: a window is predicted only by rows that had ended before it.
func timesOf(rows []dataset.Row) bytime.Times {
	var t bytime.Times
	for _, r := range rows {
		t.At, t.Ended = append(t.At, r.At), append(t.Ended, r.Ended)
	}
	return t
}

// criticalValue is by how many standard errors a model must be better. One that is no better passes by chance once in twenty times.
const criticalValue = 1.645

// better reports whether losses are smaller than a rival's on the same rows by more than chance.
func better(losses, rival []float64) bool {
	n := float64(len(losses))
	if n < 2 {
		return false
	}
	mean, squares := 0.0, 0.0
	for i := range losses {
		mean += (rival[i] - losses[i]) / n
	}
	for i := range losses {
		d := rival[i] - losses[i] - mean
		squares += d * d
	}
	return mean > criticalValue*math.Sqrt(squares/(n-1)/n)
}

func average(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}
