package client

import (
	"fmt"
	"math"
	"strings"
	"time"

	"landfall.build/services/gateway/view"
)

// clock is the time from which people are told how long something takes. Tests stop it.
var clock = time.Now

// unit is the unit of the times of one estimate.
type unit struct {
	name string
	of   time.Duration
}

var units = []unit{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}}

// unitFor returns the largest unit of which a time has at least two.
func unitFor(d time.Duration) unit {
	for i := len(units) - 1; i > 0; i-- {
		if d >= 2*units[i].of {
			return units[i]
		}
	}
	return units[0]
}

// remaining returns how many whole units a time is away, at least 0.
func (u unit) remaining(at, now time.Time) int {
	return int(math.Max(0, math.Round(float64(at.Sub(now))/float64(u.of))))
}

// briefETA is when a change will be decided, for a table: "12 min (8-25)", the interval having a probability of 90 %. Where the
// median is now, in that unit, it is "within 25 min".
func briefETA(e *view.ETA, now time.Time) string {
	switch {
	case e == nil:
		return "-"
	case e.Unknown != "":
		return "unknown"
	case late(e, now):
		return "late"
	case !e.To90.After(now):
		return "any moment"
	}
	u := unitFor(e.To90.Sub(now))
	if u.remaining(e.Median, now) == 0 {
		return fmt.Sprintf("within %d %s", u.remaining(e.To90, now), u.name)
	}
	return fmt.Sprintf("%d %s (%d-%d)", u.remaining(e.Median, now), u.name, u.remaining(e.From90, now), u.remaining(e.To90, now))
}

// late reports whether the upper end of the interval of 90 % passed more than a minute ago, or what runs has taken longer than predicted.
func late(e *view.ETA, now time.Time) bool {
	return now.Sub(e.To90) > time.Minute || !e.OverdueFrom.IsZero() && now.Sub(e.OverdueFrom) > time.Minute
}

// decided is a sentence, after others, about when a change will be decided; "" if there is no estimate that says something.
func decided(e *view.ETA, now time.Time) string {
	if e == nil || e.Unknown != "" || !e.To90.After(now) {
		return ""
	}
	when := briefETA(e, now)
	if !strings.HasPrefix(when, "within") {
		when = "in " + when
	}
	return " Decided " + when + "."
}

// fullETA is when a change will be decided, in a sentence.
func fullETA(e *view.ETA, now time.Time) string {
	switch {
	case e == nil:
		return ""
	case e.Unknown != "":
		return "no estimate: " + e.Unknown
	case late(e, now):
		return "later than expected"
	case !e.To90.After(now):
		return "at any moment"
	}
	u := unitFor(e.To90.Sub(now))
	if u.remaining(e.Median, now) == 0 {
		return fmt.Sprintf("within %d %s with a probability of 95 %%", u.remaining(e.To90, now), u.name) + lands(e)
	}
	return fmt.Sprintf("in about %d %s (50 %%: %d to %d, 90 %%: %d to %d)",
		u.remaining(e.Median, now), u.name, u.remaining(e.From50, now), u.remaining(e.To50, now), u.remaining(e.From90, now), u.remaining(e.To90, now)) + lands(e)
}

// lands continues an estimate with how likely the change lands, if that says something.
func lands(e *view.ETA) string {
	switch {
	case e.Lands <= 0:
		return ""
	case e.Lands < 0.01:
		return "; it is unlikely to land"
	}
	return fmt.Sprintf("; it lands with a probability of %.2g", e.Lands)
}
