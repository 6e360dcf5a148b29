package view

import (
	"slices"
	"time"
)

const (
	// paceStep and paceSteps are the time that a pace counts landings in: a day, by ten minutes.
	paceStep  = 10 * time.Minute
	paceSteps = 144
	// paceWaits is of how long the waits are.
	paceWaits = 4 * time.Hour
)

// Pace is how fast a queue has landed changes lately, of the changes that the gateway keeps.
type Pace struct {
	// Since is when Landed begins, which counts the landings of each ten minutes from then on; later ones are left out if there are
	// none.
	Since  time.Time `json:"since"`
	Landed []int     `json:"landed"`
	// LastLandedAt is when the last change landed, which is LastLanded.
	LastLandedAt time.Time `json:"last_landed_at,omitzero"`
	LastLanded   *Landed   `json:"last_landed,omitempty"`
	// Waits is how many changes landed in the last four hours. WaitP50 and WaitP95 are in seconds: within how long half, and 95 of 100, of
	// them did. Both are 0 if none did.
	Waits   int     `json:"waits"`
	WaitP50 float64 `json:"wait_p50_s"`
	WaitP95 float64 `json:"wait_p95_s"`
}

// Landed is a change that has landed.
type Landed struct {
	Change string `json:"change"`
	Title  string `json:"title,omitempty"`
}

// Pace returns how fast the queue has landed changes up to now.
func (q *Queue) Pace(now time.Time) *Pace {
	p := &Pace{Since: now.UTC().Truncate(paceStep).Add(-(paceSteps - 1) * paceStep), Landed: []int{}}
	counts, used := make([]int, paceSteps), 0
	var waits []time.Duration
	for i := len(q.finished) - 1; i >= 0; i-- {
		c := q.stillFinished(q.finished[i])
		if c == nil || c.end.landed == nil {
			continue
		}
		if c.end.at.After(p.LastLandedAt) {
			p.LastLandedAt, p.LastLanded = c.end.at, &Landed{c.admission.Change, c.admission.Title}
		}
		if step := int(c.end.at.Sub(p.Since) / paceStep); step >= 0 && step < paceSteps && !c.end.at.Before(p.Since) {
			counts[step]++
			used = max(used, step+1)
		}
		if now.Sub(c.end.at) < paceWaits {
			waits = append(waits, c.end.at.Sub(c.admittedAt))
		}
	}
	p.Landed = append(p.Landed, counts[:used]...)
	if n := len(waits); n > 0 {
		slices.Sort(waits)
		p.Waits = n
		p.WaitP50, p.WaitP95 = waits[(n-1)/2].Seconds(), waits[(n*95+99)/100-1].Seconds()
	}
	return p
}
