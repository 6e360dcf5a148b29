package client

import (
	"fmt"
	"strings"
	"time"
)

// ParseTime reads a time as people write it: RFC 3339; a date and a time, or a time of today, on this machine's
// clock; or a duration before now, as -10m.
func ParseTime(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if ago, err := time.ParseDuration(text); err == nil && ago <= 0 {
		return now.Add(ago), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	for _, layout := range []string{"15:04:05", "15:04"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			y, mo, d := now.Date()
			return time.Date(y, mo, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), now.Location()), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 14:05, \"2026-01-31 14:05:30\", 2026-01-31T14:05:30Z, or -10m for ten minutes ago", text)
}
