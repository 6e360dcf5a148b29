package bytime

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// BenchmarkPredict asks both learners of 100 features: what one prediction of success or conflict costs.
func BenchmarkPredict(b *testing.B) {
	random := rand.New(rand.NewPCG(41, 0))
	var d OutcomeData
	for f := range 100 {
		d.Features = append(d.Features, fmt.Sprint("f", f))
	}
	for range 2000 {
		row := make([]float64, len(d.Features))
		for f := range row {
			row[f] = random.NormFloat64()
		}
		d.Rows, d.Outcomes = append(d.Rows, row), append(d.Outcomes, random.Float64() < 1/(1+math.Exp(-row[0]-2*math.Abs(row[1])+row[2]*row[3]+1)))
	}
	m, report, err := Outcome(b.Context(), d)
	if err != nil {
		b.Fatal(err)
	}
	if report.Rounds == 0 {
		b.Fatal("there are no trees")
	}
	b.ReportAllocs()
	k := 0
	for b.Loop() {
		if _, err := m.Predict(d.Rows[k%len(d.Rows)]); err != nil {
			b.Fatal(err)
		}
		k++
	}
	b.ReportMetric(float64(report.Rounds), "trees")
	b.ReportMetric(float64(len(report.Kept)), "weights")
}
