// Package forecast predicts by simulation how long the stock of a book lasts.
package forecast

import "math/rand/v2"

// Model of the demand for a book.
type Model struct {
	// Stock is the number of copies to begin with.
	Stock int
	// Chance is the probability that somebody buys a copy within an hour.
	Chance float64
}

// Hours simulates how many hours the stock lasts, on average over that many runs.
func (m Model) Hours(runs int, seed uint64) float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	total := 0
	for range runs {
		for left := m.Stock; left > 0; total++ {
			if random.Float64() < m.Chance {
				left--
			}
		}
	}
	return float64(total) / float64(runs)
}
