package steps

import (
	"slices"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// shares reports whether a build takes part in the sharing.
func (b *twinBuild) shares() bool {
	return b.prepared != nil && b.successor == "" && !b.scheduled.Idle && b.value > 0
}

// workLeft is how long the open steps of a build take together.
func (s *twinState) workLeft(b *twinBuild) (us int64) {
	for _, v := range b.asks {
		if s.state(b, v) == evidence.Unknown {
			us += s.us[v]
		}
	}
	return us
}

// share gives work out until the next of those that share has enough, and goes on with the others.
func (s *twinState) share(done int64, f *eventsv1.StepFinished) {
	left := float64(done)
	for {
		type one struct{ end, worth float64 }
		var all []one
		for _, g := range s.gone {
			if g[0] > s.given {
				all = append(all, one{g[0], g[1]})
			}
		}
		took := float64(f.FinishedUs - f.StartedUs)
		now := f.FinishedUs - int64(left/float64(done)*took)
		for _, b := range s.live() {
			if !b.shares() {
				continue
			}
			if end := b.began + float64(b.got+s.workLeft(b))/b.value; end > s.given {
				all = append(all, one{end, b.value})
				b.through = 0
			} else if b.through == 0 {
				b.through = max(1, now)
			}
		}
		if left == 0 || len(all) == 0 {
			return
		}
		worth, first := 0.0, all[0].end
		for _, o := range all {
			worth, first = worth+o.worth, min(first, o.end)
		}
		if need := float64((first - s.given) * worth); need <= left {
			s.given, left = first, left-need
		} else {
			s.given, left = s.given+left/worth, 0
		}
	}
}

// lateOf is from when on the first of the builds that want a version is late, and for how long beside sharing it has been there.
func (s *twinState) lateOf(v evidence.Version, asking []*twinBuild, now int64) (late bool, times float64) {
	from := int64(0)
	for _, b := range s.live() {
		now = max(now, b.since)
	}
	for _, b := range asking {
		if !slices.Contains(b.asks, v) || !b.shares() || s.state(b, v) != evidence.Unknown || b.through == 0 {
			continue
		}
		took := max(1, b.through-b.at, b.got+s.workLeft(b))
		if of := b.at + 2*took; from == 0 || of < from {
			from, late = of, of <= now
			slope := 1 / float64(took)
			times = float64(slope*float64(now)) - float64(b.at)/float64(took)
		}
	}
	return late, times
}
