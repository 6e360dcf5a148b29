package whatif

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sentence returns a result in words: "With 8 workers instead of 4: …".
func sentence(q Question, o Outcome) string {
	var what []string
	p, c := q.Present, q.Chosen
	if p.Workers != c.Workers {
		what = append(what, fmt.Sprintf("%s instead of %d", count(c.Workers, "worker"), p.Workers))
	}
	if p.Threshold != c.Threshold {
		what = append(what, fmt.Sprintf("a threshold of %s instead of %s", number(c.Threshold), number(p.Threshold)))
	}
	switch {
	case p.BypassThreshold == c.BypassThreshold:
	case c.BypassThreshold > 1:
		what = append(what, "no bypasses")
	case p.BypassThreshold > 1:
		what = append(what, fmt.Sprintf("a bypass threshold of %s instead of no bypasses", number(c.BypassThreshold)))
	default:
		what = append(what, fmt.Sprintf("a bypass threshold of %s instead of %s", number(c.BypassThreshold), number(p.BypassThreshold)))
	}
	if len(what) == 0 {
		what = []string{"the present setting"}
	}
	return fmt.Sprintf("With %s: half of %s wait up to %s, 95 of 100 up to %s; each takes %s times as long as alone, and the workers are busy for %s.",
		strings.Join(what, " and "), count(o.Changes, "change"), instead(Duration, o.Chosen.WaitP50, o.Present.WaitP50), instead(Duration, o.Chosen.WaitP95, o.Present.WaitP95),
		instead(figure, o.Chosen.Slowdown, o.Present.Slowdown), instead(Hours, o.Chosen.WorkerHours, o.Present.WorkerHours))
}

// instead names two figures, or that they are the same.
func instead(shown func(float64) string, now, before float64) string {
	a, b := shown(now), shown(before)
	if a == b {
		return a + " as before"
	}
	return a + " instead of " + b
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// figure has two digits.
func figure(x float64) string {
	if x >= 10 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// Duration is a time in the unit that suits it.
func Duration(seconds float64) string {
	switch {
	case seconds < 0.5:
		return "0 s"
	case seconds < 100:
		return figure(seconds) + " s"
	case seconds < 6000:
		return figure(seconds/60) + " min"
	}
	return figure(seconds/3600) + " h"
}

// Hours is a time of workers, given in hours.
func Hours(x float64) string {
	if x < 1 {
		return Duration(3600 * x)
	}
	return strconv.FormatFloat(x, 'g', 3, 64) + " h"
}
