package ngboost_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"landfall.build/learning/ngboost"
)

// synthetic has a mean and a spread that depend on the first columns; a tenth
// of the columns have few values, as counts and one-hot columns do.
func synthetic(rows, features int, seed uint64) ngboost.Data {
	random := rand.New(rand.NewPCG(seed, 2))
	data := ngboost.Data{Rows: make([][]float64, rows), Target: make([]float64, rows)}
	for i := range data.Rows {
		row := make([]float64, features)
		for f := range row {
			row[f] = random.NormFloat64()
			if f%10 == 9 {
				row[f] = math.Floor(2 * math.Abs(row[f]))
			}
		}
		mean := 3*row[0] + row[1]*row[2]
		data.Rows[i], data.Target[i] = row, mean+math.Exp(row[3]/2)*random.NormFloat64()
	}
	return data
}

func BenchmarkTrain(b *testing.B) {
	for _, c := range []struct {
		method         ngboost.Method
		rows, features int
	}{{ngboost.Histogram, 20_000, 100}, {ngboost.Exact, 4_000, 20}, {ngboost.Histogram, 4_000, 20}} {
		name := map[ngboost.Method]string{ngboost.Histogram: "histogram", ngboost.Exact: "exact"}[c.method]
		b.Run(fmt.Sprintf("%s/%dx%d/500rounds", name, c.rows, c.features), func(b *testing.B) {
			data := synthetic(c.rows, c.features, 1)
			for b.Loop() {
				train(b, data, nil, ngboost.Config{Method: c.method})
			}
		})
	}
}

func BenchmarkPredict(b *testing.B) {
	for _, depth := range []int{3, 5} {
		b.Run(fmt.Sprintf("100features/500rounds/depth%d", depth), func(b *testing.B) {
			data := synthetic(2_000, 100, 1)
			m, _ := train(b, data, nil, ngboost.Config{Method: ngboost.Histogram, Depth: depth})
			b.ReportAllocs()
			var k int
			for b.Loop() {
				p, err := m.Predict(data.Rows[k%len(data.Rows)])
				if err != nil || !(p.Sigma > 0) {
					b.Fatal(p, err)
				}
				k++
			}
		})
	}
}
