package steps

import (
	"fmt"
	"slices"

	"landfall.build/engine/evidence"
	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
)

// leasesFor returns the versions whose leases count for somebody: those in force at a time, and those that have lapsed.
func (s *twinState) leasesFor(of *eventsv1.StepQuota, now int64) (running, lapsed []Version) {
	for v, l := range s.leases {
		for _, o := range l.Quotas {
			switch {
			case o.Kind != of.Kind || o.Name != of.Name:
			case l.UntilUs >= now:
				running = append(running, v)
			default:
				lapsed = append(lapsed, v)
			}
		}
	}
	return running, lapsed
}

func without(list []Version, v Version) []Version {
	return slices.DeleteFunc(list, func(o Version) bool { return o == v })
}

// quotasOf returns those that bind a build's steps.
func (s *twinState) quotasOf(b *twinBuild) []quota.Quota {
	if b.scheduled.Change.Change.Change == "" {
		return nil
	}
	return quota.New(s.quotas).Of(b.author)
}

// running counts the leases in force at a time, and what is taken without one, for the first build that wants it.
func (s *twinState) running(now int64, taken []Version) map[quota.Account]int {
	count := map[quota.Account]int{}
	inForce := map[Version]bool{}
	for v, l := range s.leases {
		if l.UntilUs >= now {
			inForce[v] = true
			for _, o := range l.Quotas {
				count[quota.Account{Kind: o.Kind, Name: o.Name}]++
			}
		}
	}
	for _, v := range taken {
		var first *twinBuild
		for _, b := range s.live() {
			if !inForce[v] && slices.Contains(b.asks, v) && b.successor == "" && s.state(b, v) == evidence.Unknown && (first == nil || b.started < first.started) {
				first = b
			}
		}
		if first != nil {
			s.pay(first, count)
		}
	}
	return count
}

func (s *twinState) pay(b *twinBuild, running map[quota.Account]int) {
	for _, of := range s.quotasOf(b) {
		running[of.Account]++
	}
}

// room returns how many more steps may run for a build, at most 256.
func (s *twinState) room(b *twinBuild, running map[quota.Account]int) int {
	room := 256
	for _, of := range s.quotasOf(b) {
		room = min(room, of.Limit-running[of.Account])
	}
	return room
}

// claims describes for whom a step's lease counts.
func (s *twinState) claims(step Step) string {
	var list []*eventsv1.StepQuota
	for _, of := range s.quotasOf(s.build(step.Build.Build)) {
		o := &eventsv1.StepQuota{Kind: of.Kind, Name: of.Name, Limit: uint32(of.Limit)}
		if step.Rank.Urgent {
			o.Limit = 0
		}
		list = append(list, o)
	}
	return fmt.Sprint(list)
}
