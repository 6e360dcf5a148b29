package matrix

import (
	"slices"
	"testing"
)

func TestTimes(t *testing.T) {
	got, err := Matrix{{1, 2}, {3, 4}}.Times(Matrix{{0, 1}, {1, 0}})
	if err != nil || !slices.Equal(got[0], []float64{2, 1}) || !slices.Equal(got[1], []float64{4, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestShapesMustGoTogether(t *testing.T) {
	if _, err := New(2, 3).Times(New(2, 3)); err == nil {
		t.Error("they need not")
	}
}
