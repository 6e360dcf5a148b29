package course

import "time"

// Moment is the state of a queue at a time.
type Moment struct {
	// At is in seconds from the trace's beginning.
	At float64
	// Pending are changes, Running builds.
	Pending, Running int
}

// Bounds of a timeline: beyond the most moments every second one is dropped, and they grow rarer.
const (
	firstInterval = int64(5 * time.Minute / time.Microsecond)
	maxMoments    = 512
)

// timeline is the queue over time.
type timeline struct {
	moments  []Moment
	interval int64
	next     int64
}

// look records the present state, if that is due.
func (t *timeline) look(c *course) {
	if t.interval == 0 {
		t.interval = firstInterval
	}
	if c.clock < t.next {
		return
	}
	t.moments = append(t.moments, Moment{float64(c.clock) / 1e6, len(c.pending), len(c.builds())})
	t.next = c.clock - c.clock%t.interval + t.interval
	if len(t.moments) == maxMoments {
		for i := range maxMoments / 2 {
			t.moments[i] = t.moments[2*i]
		}
		t.moments, t.interval = t.moments[:maxMoments/2], 2*t.interval
	}
}
