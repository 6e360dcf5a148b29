// Package stats sums up samples.
package stats

import (
	"math"
	"slices"
)

// Mean of a sample; 0 of none.
func Mean(sample []float64) float64 {
	if len(sample) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range sample {
		sum += x
	}
	return sum / float64(len(sample))
}

// Percentile is the smallest element that p percent of the sample do not exceed; 0 of none.
func Percentile(sample []float64, p float64) float64 {
	if len(sample) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(sample))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the 50th percentile.
func Median(sample []float64) float64 { return Percentile(sample, 50) }
