package course

import (
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/policy"
)

// Coverage measures the estimates of when changes are decided: every ten minutes all pending changes are estimated, and
// compared with the outcome.
type Coverage struct {
	// Told counts the estimates, Unknown the changes without one.
	Told, Unknown int
	// Within50 and Within90 count those whose change was decided between the 25th and the 75th, the 5th and the 95th
	// percentile, Early and Late those before the 5th and after the 95th.
	Within50, Within90, Early, Late int
	// Width90 sums the distances of the 5th and the 95th percentile, Off the errors of the 50th, in seconds.
	Width90, Off float64
}

// Share50 is the share of estimates whose 50 % interval held.
func (c Coverage) Share50() float64 { return float64(c.Within50) / float64(max(1, c.Told)) }

// Share90 is the same for the 90 % interval.
func (c Coverage) Share90() float64 { return float64(c.Within90) / float64(max(1, c.Told)) }

// Add adds the counts of another simulation.
func (c *Coverage) Add(o Coverage) {
	c.Told += o.Told
	c.Unknown += o.Unknown
	c.Within50 += o.Within50
	c.Within90 += o.Within90
	c.Early += o.Early
	c.Late += o.Late
	c.Width90 += o.Width90
	c.Off += o.Off
}

const estimateEvery = int64(10 * time.Minute / time.Microsecond)

// estimate has the prioritizer estimate the pending changes, if that is due and production's rules start and end the
// policy's builds.
func (c *course) estimate() {
	e, can := c.policy.(policy.Estimating)
	if !can || c.o.Kind.Traits.Exclusive || c.clock < c.nextEstimate {
		return
	}
	c.nextEstimate = c.clock - c.clock%estimateEvery + estimateEvery
	for _, t := range e.Estimates(c.best, queueName, c.clock) {
		p := c.pending[t.Change.Change]
		switch {
		case p == nil:
		case t.Unknown != "":
			c.result.Coverage.Unknown++
		default:
			p.told = append(p.told, t)
		}
	}
}

// judge compares the estimates of a change with when it was decided. The clock has a resolution: what is decided in a round
// may have been known since the one before, and the queue learns at its next plan that a build has begun, so the build
// seems to end later by up to a tick.
func (v *Coverage) judge(told []*eventsv1.Estimate, at, round int64) {
	for _, t := range told {
		v.Told++
		within := func(from, to int64) bool { return at+tickEvery >= from && at-round <= to }
		switch {
		case within(t.P5Us, t.P95Us):
			v.Within90++
			if within(t.P25Us, t.P75Us) {
				v.Within50++
			}
		case at+tickEvery < t.P5Us:
			v.Early++
		default:
			v.Late++
		}
		v.Width90 += float64(t.P95Us-t.P5Us) / 1e6
		v.Off += float64(max(at, t.P50Us)-min(at, t.P50Us)) / 1e6
	}
}
