package client

import (
	"testing"
	"time"
)

func TestTimesAreReadAsPeopleWriteThem(t *testing.T) {
	zone := time.FixedZone("x", 2*3600)
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, zone)
	for text, want := range map[string]time.Time{
		"2026-01-31T14:05:30Z":   time.Date(2026, 1, 31, 14, 5, 30, 0, time.UTC),
		"2026-01-31 14:05:30":    time.Date(2026, 1, 31, 14, 5, 30, 0, zone),
		"2026-01-31 14:05:30.25": time.Date(2026, 1, 31, 14, 5, 30, 250_000_000, zone),
		"2026-01-31 14:05":       time.Date(2026, 1, 31, 14, 5, 0, 0, zone),
		"2026-01-31":             time.Date(2026, 1, 31, 0, 0, 0, 0, zone),
		"14:05":                  time.Date(2026, 3, 4, 14, 5, 0, 0, zone),
		"14:05:06":               time.Date(2026, 3, 4, 14, 5, 6, 0, zone),
		"-10m":                   now.Add(-10 * time.Minute),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v (%v), want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10m", "noon", "25:00", "-1", "1e3"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, text := range []string{"14:05", "-10m", "2026-01-31 14:05:30", "2026-01-31T14:05:30Z", "", "99:99", "-9223372036854775808ns"} {
		f.Add(text)
	}
	now := time.Date(2026, 3, 4, 15, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, err := ParseTime(text, now)
		if err != nil {
			return
		}
		again, err := ParseTime(at.Format(time.RFC3339Nano), now)
		if year := at.Year(); year >= 0 && year <= 9999 && (err != nil || !again.Equal(at)) {
			t.Errorf("%q is %s, and that is %s (%v)", text, at, again, err)
		}
	})
}
