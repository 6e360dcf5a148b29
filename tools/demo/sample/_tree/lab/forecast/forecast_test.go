package forecast

import (
	"math"
	"testing"
)

// The mean is known: stock / chance. So many runs that the third digit is certain take a while.
func TestTheSimulationAgreesWithTheFormula(t *testing.T) {
	m := Model{Stock: 40, Chance: 0.05}
	want := float64(m.Stock) / m.Chance
	got := m.Hours(400_000, 7)
	if math.Abs(got-want) > want/1000 {
		t.Errorf("%.2f hours, and %.2f by the formula", got, want)
	}
}
