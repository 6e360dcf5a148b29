package ngboost_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"landfall.build/learning/ngboost"
)

// BenchmarkTwentySplits repeats the NGBoost paper's experiment on the five sets
// in testdata: a fifth of the training rows chooses the number of rounds, at
// most 2,000, by likelihood; a model of that many rounds is then trained on all
// of them, each round on half of the rows. It reports the mean test NLL and RMSE over the 20 splits, and fails
// where the NLL is more than 0.1 worse than the published one.
//
//	go test ./ngboost -run - -bench TwentySplits -benchtime 1x -timeout 1h
func BenchmarkTwentySplits(b *testing.B) {
	published := []struct {
		set string
		nll float64
	}{{"yacht", 0.20}, {"bostonHousing", 2.43}, {"energy", 0.60}, {"concrete", 3.04}, {"wine-quality-red", 0.91}}
	for _, p := range published {
		data := loadSet(b, p.set)
		trains, tests := splits(b, p.set)
		for name, method := range map[string]ngboost.Method{"exact": ngboost.Exact, "histogram": ngboost.Histogram} {
			b.Run(p.set+"/"+name, func(b *testing.B) {
				for range b.N {
					var nll, squares, rounds float64
					for k := range trains {
						m := trainAsPublished(b, pick(data, trains[k]), method, uint64(k))
						got := evaluate(b, m, pick(data, tests[k]))
						nll += got.NLL / 20
						squares += got.RMSE / 20
						rounds += float64(m.Rounds()) / 20
					}
					b.ReportMetric(nll, "NLL")
					b.ReportMetric(p.nll, "publishedNLL")
					b.ReportMetric(squares, "RMSE")
					b.ReportMetric(rounds, "rounds")
					if nll > p.nll+0.1 {
						b.Errorf("mean NLL %.3f, published %.2f", nll, p.nll)
					}
				}
			})
		}
	}
}

func trainAsPublished(t testing.TB, data ngboost.Data, method ngboost.Method, seed uint64) *ngboost.Model {
	t.Helper()
	order := rand.New(rand.NewPCG(seed, 1)).Perm(len(data.Rows))
	fifth := int(math.Round(0.2 * float64(len(order))))
	validation := pick(data, order[:fifth])
	_, report := train(t, pick(data, order[fifth:]), &validation, ngboost.Config{Method: method, Rounds: 2000, Patience: 400, RowFraction: 0.5, Seed: seed})
	m, _ := train(t, data, nil, ngboost.Config{Method: method, Rounds: report.Rounds, RowFraction: 0.5, Seed: seed})
	return m
}
