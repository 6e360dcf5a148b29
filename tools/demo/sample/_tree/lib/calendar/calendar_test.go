package calendar

import (
	"testing"
	"time"
)

func TestWeekendsAreStepped(t *testing.T) {
	friday := Day(2026, time.January, 9)
	if got := NextWorking(friday); !got.Equal(Day(2026, time.January, 12)) {
		t.Errorf("after Friday comes %s", got.Format(time.DateOnly))
	}
}

func TestFiveWorkingDaysAreAWeek(t *testing.T) {
	for d := 5; d < 10; d++ {
		day := Day(2026, time.January, d)
		if got := After(day, 5); !got.Equal(day.AddDate(0, 0, 7)) {
			t.Errorf("five working days after %s is %s", day.Format(time.DateOnly), got.Format(time.DateOnly))
		}
	}
}
