package calibration

import (
	"fmt"
	"slices"
	"sort"
)

// Isotonic is the rising map of least squared error, by pooling adjacent
// violators. It joins the centres of its blocks with straight lines, so that it
// has no steps. It suits a thousand rows and more; below that, use Platt.
type Isotonic struct {
	// at and value are the blocks' centres and calibrated probabilities, both rising.
	at, value []float64
}

type block struct{ weight, at, yes float64 }

func (b block) share() float64 { return b.yes / b.weight }

// FitIsotonic fits a map. Probabilities stay off 0 and 1 by what n rows can
// tell: they lie from 1/(n+2) to 1−1/(n+2).
func FitIsotonic(probabilities []float64, outcomes []bool) (*Isotonic, error) {
	if err := checkFit(probabilities, outcomes); err != nil {
		return nil, fmt.Errorf("isotonic: %w", err)
	}
	order := make([]int, len(probabilities))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(probabilities[a], probabilities[b]) })

	var blocks []block
	for _, i := range order {
		next := block{weight: 1, at: probabilities[i]}
		if outcomes[i] {
			next.yes = 1
		}
		// Equal probabilities are one block from the start: no map can part them.
		if last := len(blocks) - 1; last >= 0 && blocks[last].at == next.at {
			next = pool(blocks[last], next)
			blocks = blocks[:last]
		}
		blocks = append(blocks, next)
	}
	blocks = poolViolators(blocks)

	least := 1 / (float64(len(outcomes)) + 2)
	m := &Isotonic{at: make([]float64, len(blocks)), value: make([]float64, len(blocks))}
	for k, b := range blocks {
		m.at[k], m.value[k] = b.at, min(max(b.share(), least), 1-least)
	}
	return m, nil
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func pool(a, b block) block {
	weight := a.weight + b.weight
	return block{weight: weight, at: a.at + (b.at-a.at)*b.weight/weight, yes: a.yes + b.yes}
}

// poolViolators joins neighbours until shares rise, and centres too, which
// rounding may have made equal.
func poolViolators(blocks []block) []block {
	kept := blocks[:0:0]
	for _, b := range blocks {
		for len(kept) > 0 && (kept[len(kept)-1].share() >= b.share() || kept[len(kept)-1].at >= b.at) {
			b = pool(kept[len(kept)-1], b)
			kept = kept[:len(kept)-1]
		}
		kept = append(kept, b)
	}
	return kept
}

// Calibrate interpolates between blocks and is constant beyond the outer ones.
func (m *Isotonic) Calibrate(probability float64) float64 {
	p := within(probability)
	k := sort.SearchFloat64s(m.at, p)
	switch {
	case k == 0:
		return m.value[0]
	case k == len(m.at):
		return m.value[k-1]
	}
	share := (p - m.at[k-1]) / (m.at[k] - m.at[k-1])
	return m.value[k-1] + share*(m.value[k]-m.value[k-1])
}
