package delivery

import (
	"testing"
	"time"

	"bookshop.example/lib/calendar"
)

func TestFarParcelsTakeLonger(t *testing.T) {
	monday := calendar.Day(2026, time.January, 5)
	for to, want := range map[string]int{"Berlin": 6, "Cologne": 7, "Munich": 8} {
		got, err := Arrival(Network(), "Hamburg", to, monday)
		if err != nil || got.Day() != want {
			t.Errorf("to %s on %s, %v", to, got.Format(time.DateOnly), err)
		}
	}
}

func TestNobodyDeliversToAnIsland(t *testing.T) {
	if _, err := Arrival(Network(), "Hamburg", "Helgoland", calendar.Day(2026, time.January, 5)); err == nil {
		t.Error("somebody does")
	}
}
