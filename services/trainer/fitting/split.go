// Package fitting makes a model of a data set, and says whether it is better than what predicts now: a function of the
// rows, the model in use and the moment. It reads no clock and draws no numbers but from a fixed seed.
package fitting

import (
	"math"
	"slices"

	"landfall.build/learning/bytime"
	"landfall.build/services/trainer/dataset"
)

// newestShare of the rows, by time, are what everything is judged on, and looked at for nothing else. What is chosen is chosen
// on windows of the older ones: package bytime.
const newestShare = 0.2

// parts of a data set, each oldest first.
type parts struct{ older, newest []dataset.Row }

// split parts rows by time. What had not ended when the newest began is in no part: then nobody could have known it.
func split(rows []dataset.Row) parts {
	older, newest := divide(rows, newestShare)
	return parts{older, newest}
}

// timesOf are the times of rows, by which windows learn only from what had ended.
func timesOf(rows []dataset.Row) bytime.Times {
	var t bytime.Times
	for _, r := range rows {
		t.At, t.Ended = append(t.At, r.At), append(t.Ended, r.Ended)
	}
	return t
}

func divide(rows []dataset.Row, share float64) (older, newer []dataset.Row) {
	cut := len(rows) - int(math.Round(share*float64(len(rows))))
	// Rows of one moment stay together, on the older side.
	for cut < len(rows) && cut > 0 && rows[cut].At == rows[cut-1].At {
		cut++
	}
	newer = rows[cut:]
	if len(newer) == 0 {
		return rows, nil
	}
	older = slices.Clone(rows[:cut])
	return slices.DeleteFunc(older, func(r dataset.Row) bool { return r.Ended >= newer[0].At }), newer
}

// sure is by how many standard errors a model has to be better: one that is no better is found to be, by chance, once in
// twenty times.
const sure = 1.645

// better says whether losses are smaller than a rival's, by more than chance gives, row by row.
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
	return mean > sure*math.Sqrt(squares/(n-1)/n)
}

func average(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}
