package ngboost_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"landfall.build/learning/ngboost"
)

// How long does a build take? Times grow with the number of targets, and vary
// more when it is built for the first time.
func Example() {
	random := rand.New(rand.NewPCG(1, 1))
	data := ngboost.Data{Features: []string{"targets", "first"}}
	for range 2000 {
		targets, first := math.Floor(1+100*random.Float64()), float64(random.IntN(2))
		seconds := (20 + targets) * math.Exp((0.1+0.4*first)*random.NormFloat64())
		data.Rows = append(data.Rows, []float64{targets, first})
		data.Target = append(data.Target, seconds)
	}
	older := ngboost.Data{Rows: data.Rows[:1600], Target: data.Target[:1600], Features: data.Features}
	newer := ngboost.Data{Rows: data.Rows[1600:], Target: data.Target[1600:], Features: data.Features}

	model, _, err := ngboost.Train(context.Background(), older, &newer, ngboost.Config{
		Distribution: ngboost.LogNormal, LearningRate: 0.05, Patience: 20,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, first := range []float64{0, 1} {
		p, err := model.Predict([]float64{80, first})
		low, high := p.Interval(0.9)
		fmt.Printf("80 targets, first %v: about %.0f s, 90 %% from %.0f to %.0f (%v)\n",
			first == 1, round(p.Median()), round(low), round(high), err)
	}
	// Output:
	// 80 targets, first false: about 100 s, 90 % from 80 to 130 (<nil>)
	// 80 targets, first true: about 100 s, 90 % from 50 to 240 (<nil>)
}

// round returns tens of seconds.
func round(seconds float64) float64 { return 10 * math.Round(seconds/10) }

func ExampleModel_MarshalBinary() {
	data := synthetic(100, 4, 1)
	model, _, err := ngboost.Train(context.Background(), data, nil, ngboost.Config{Rounds: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, err := model.MarshalBinary()
	if err != nil {
		fmt.Println(err)
		return
	}
	back, err := ngboost.Unmarshal(sealed)
	fmt.Println(back.Rounds(), err)

	sealed[200] ^= 1
	_, err = ngboost.Unmarshal(sealed)
	fmt.Println(err)
	// Output:
	// 10 <nil>
	// ngboost: model: hash mismatch
}
