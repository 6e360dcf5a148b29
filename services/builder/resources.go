package builder

import (
	"fmt"
	"time"

	eventsv1 "landfall.build/events/v1"
)

// othersPatience is how long a step that takes more than this builder has is left to other builders. Then this one ends it, so
// that the change shows why it waits.
const othersPatience = 5 * time.Minute

// fits reports whether a step that takes these amounts may start now, besides the steps that run. If it takes more than this
// builder has in all, later is the time after which to ask again; else it is an hour.
func (s *session) fits(amounts []*eventsv1.ResourceAmount, now time.Time) (fits bool, later time.Duration) {
	if lacking := s.lacking(amounts); lacking != "" {
		since, seen := s.unfit[lacking]
		if !seen {
			since = now
			s.unfit[lacking] = now
			s.Logger.Warn("a step is left to other builders", "reason", lacking)
		}
		left := since.Add(s.othersPatience).Sub(now)
		return left <= 0, max(left, time.Millisecond)
	}
	for _, a := range amounts {
		used := int64(0)
		for key, j := range s.jobs {
			if key.Version != j.step.Version {
				continue // a companion, which takes nothing
			}
			for _, taken := range j.step.Claims.GetResources() {
				if taken.GetName() == a.GetName() {
					used += taken.GetAmount()
				}
			}
		}
		if used+a.GetAmount() > int64(s.Configuration.Builder.Resources[a.GetName()]) {
			return false, time.Hour
		}
	}
	return true, time.Hour
}

// lacking returns a sentence about an amount that this builder never has, "" if it can have all of them.
func (b *Builder) lacking(amounts []*eventsv1.ResourceAmount) string {
	for _, a := range amounts {
		if has := b.Configuration.Builder.Resources[a.GetName()]; a.GetAmount() > int64(has) {
			return fmt.Sprintf("The step takes %d of %s, and this builder has %d in builder.resources.", a.GetAmount(), a.GetName(), has)
		}
	}
	return ""
}
