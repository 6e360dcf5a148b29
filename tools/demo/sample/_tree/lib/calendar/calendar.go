// Package calendar counts working days.
package calendar

import "time"

// Day makes a day, in UTC.
func Day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Working says whether the shop works on a day.
func Working(day time.Time) bool {
	return day.Weekday() != time.Saturday && day.Weekday() != time.Sunday
}

// NextWorking is the first working day after a day.
func NextWorking(day time.Time) time.Time {
	for {
		if day = day.AddDate(0, 0, 1); Working(day) {
			return day
		}
	}
}

// After is the n-th working day after a day.
func After(day time.Time, n int) time.Time {
	for range n {
		day = NextWorking(day)
	}
	return day
}
