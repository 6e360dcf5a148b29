package ngboost

import "math"

// shortest bounds the halving when the tolerance is zero: no step that is
// shorter moves a parameter in its last digit.
const shortest = 0x1p-60

// searchStep finds the step length, a power of two, along −step: doubling from
// one while the loss stays at or below start and the length at most 256, then
// halving until the loss is below start or the mean step is shorter than
// tolerance. meanNorm is the mean length of step over the batch. loss is called
// once for each length tried.
func searchStep(start, meanNorm, tolerance float64, loss func(scale float64) float64) float64 {
	scale := 1.0
	tried := map[float64]float64{}
	at := func(scale float64) float64 {
		value, known := tried[scale]
		if !known {
			value = loss(scale)
			tried[scale] = value
		}
		return value
	}
	for {
		value := at(scale)
		if !finite(value) || value > start || scale > 256 {
			break
		}
		scale *= 2
	}
	for {
		value := at(scale)
		if meanNorm*scale < tolerance || scale < shortest || finite(value) && value < start {
			return scale
		}
		scale /= 2
	}
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// meanNorm is the mean over the batch of the Euclidean length of the two components.
func meanNorm(step parameters, batch []int32) float64 {
	var sum float64
	for _, i := range batch {
		sum += math.Sqrt(step.mu[i]*step.mu[i] + step.s[i]*step.s[i])
	}
	return sum / float64(len(batch))
}
