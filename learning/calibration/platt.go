package calibration

import (
	"fmt"
	"math"
)

// Platt is the logistic function of a straight line in the log-odds: two
// parameters, for few rows.
type Platt struct {
	// Slope is above zero, and one with Shift zero changes nothing.
	Slope, Shift float64
}

// farthestOdds keeps log-odds finite for probabilities of 0 and 1.
const farthestOdds = 30

// FitPlatt fits the line by Newton's method to Platt's targets, which are short
// of 0 and 1 by what the number of rows can tell. A model so bad that higher
// probabilities come true less often gets a slope of almost zero: its map is
// the overall share.
func FitPlatt(probabilities []float64, outcomes []bool) (*Platt, error) {
	if err := checkFit(probabilities, outcomes); err != nil {
		return nil, fmt.Errorf("platt: %w", err)
	}
	yes := float64(count(outcomes))
	no := float64(len(outcomes)) - yes
	high, low := (yes+1)/(yes+2), 1/(no+2)
	odds, targets := make([]float64, len(outcomes)), make([]float64, len(outcomes))
	for i, p := range probabilities {
		odds[i], targets[i] = logOdds(p), low
		if outcomes[i] {
			targets[i] = high
		}
	}
	slope, shift := newton(odds, targets, math.Log((yes+1)/(no+1)))
	if !(slope > leastSlope) {
		return &Platt{Slope: leastSlope, Shift: math.Log((yes + 1) / (no + 1))}, nil
	}
	return &Platt{Slope: slope, Shift: shift}, nil
}

const leastSlope = 1e-6

func logOdds(p float64) float64 {
	return min(max(math.Log(p)-math.Log1p(-p), -farthestOdds), farthestOdds)
}

// newton minimises the cross-entropy, with halved steps where a full one goes up.
func newton(odds, targets []float64, shift float64) (slope, intercept float64) {
	slope, intercept = 0, shift
	value := crossEntropy(odds, targets, slope, intercept)
	for range 100 {
		var g0, g1 float64
		h00, h01, h11 := 1e-12, 0.0, 1e-12
		for i, o := range odds {
			p := probability(slope*o + intercept)
			r, c := p-targets[i], p*(1-p)
			g0 += r * o
			g1 += r
			h00 += c * o * o
			h01 += c * o
			h11 += c
		}
		determinant := h00*h11 - h01*h01
		if math.Abs(g0)+math.Abs(g1) < 1e-9*float64(len(odds)) || !(determinant > 0) {
			break
		}
		d0, d1 := (h11*g0-h01*g1)/determinant, (h00*g1-h01*g0)/determinant
		step := 1.0
		for ; step > 1e-10; step /= 2 {
			next := crossEntropy(odds, targets, slope-step*d0, intercept-step*d1)
			if next < value {
				slope, intercept, value = slope-step*d0, intercept-step*d1, next
				break
			}
		}
		if step <= 1e-10 {
			break
		}
	}
	return slope, intercept
}

func crossEntropy(odds, targets []float64, slope, shift float64) (sum float64) {
	for i, o := range odds {
		z := slope*o + shift
		sum += max(z, 0) - z*targets[i] + math.Log1p(math.Exp(-math.Abs(z)))
	}
	return sum
}

func probability(odds float64) float64 {
	if odds >= 0 {
		return 1 / (1 + math.Exp(-odds))
	}
	e := math.Exp(odds)
	return e / (1 + e)
}

// Calibrate applies the line.
func (m *Platt) Calibrate(p float64) float64 {
	odds := m.Slope*logOdds(within(p)) + m.Shift
	return probability(min(max(odds, -farthestOdds), farthestOdds))
}
