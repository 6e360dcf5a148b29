package bytime_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"landfall.build/learning/bytime"
)

// Does a change pass? Large ones seldom do, and small ones seldom on Fridays, which no weight alone can say.
func Example() {
	random := rand.New(rand.NewPCG(1, 1))
	data := bytime.OutcomeData{Features: []string{"size", "friday"}}
	for i := range 3000 {
		size, friday, p := 5*random.Float64(), float64(random.IntN(2)), 0.9
		if size > 3 || size < 1 && friday == 1 {
			p = 0.2
		}
		data.Rows, data.Outcomes = append(data.Rows, []float64{size, friday}), append(data.Outcomes, random.Float64() < p)
		data.At, data.Ended = append(data.At, int64(i)), append(data.Ended, int64(i+5))
	}
	model, _, err := bytime.Outcome(context.Background(), data)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range [][]float64{{0.5, 0}, {0.5, 1}, {2, 1}, {4.5, 0}} {
		p, err := model.Predict(row)
		fmt.Printf("size %g, friday %g: %v (%v)\n", row[0], row[1], p > 0.5, err)
	}
	// Output:
	// size 0.5, friday 0: true (<nil>)
	// size 0.5, friday 1: false (<nil>)
	// size 2, friday 1: true (<nil>)
	// size 4.5, friday 0: false (<nil>)
}
