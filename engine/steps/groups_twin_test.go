package steps

import (
	"slices"

	"landfall.build/engine/evidence"
)

// companions goes through a build's steps in order, and takes each that could be started beside those that it has taken.
func (s *twinState) companions(of Step, now int64, workers int, taken []Version) []string {
	var list []string
	b := s.build(of.Build.Build)
	broken := func(v Version) bool {
		n := 0
		for _, f := range s.aborted {
			if f.Unreported && f.Target == v.Target && f.Hash == v.Hash {
				n++
			}
		}
		return n >= 2
	}
	group := func(v Version) (number int, ordered bool) {
		for i, t := range b.prepared.Versions {
			if t.Target != v.Target || t.Hash != v.Hash || t.Trivial || t.Absent {
				continue
			}
			if t.Part != b.parts[v] || len(exclusiveOf(v.Target)) > 0 {
				return 0, false
			}
			for n, g := range b.prepared.Groups {
				if slices.Contains(g.Versions, uint32(i)) {
					return n + 1, g.Ordered
				}
			}
			return 0, false
		}
		return 0, false
	}
	key, ordered := group(of.Version)
	if key == 0 || broken(of.Version) {
		return nil
	}
	var could []Version
	work := s.us[of.Version]
	for _, v := range s.order(b) {
		other, _ := group(v)
		l := s.leases[v]
		if v == of.Version || other != key || b.parts[v] != of.Part || broken(v) || s.state(b, v) != evidence.Unknown || l != nil && l.UntilUs >= now || slices.Contains(taken, v) {
			continue
		}
		could = append(could, v)
		work += s.us[v]
	}
	room := 256
	if !of.Rank.Urgent {
		room = s.room(b, s.running(now, taken))
	}
	left := min(60_000_000, max(10_000_000, work/int64(max(1, workers)))) - s.us[of.Version]
	in := []Version{of.Version}
	for _, v := range could {
		waits := slices.ContainsFunc(b.needs[v], func(n Version) bool {
			return s.state(b, n) == evidence.Unknown && !(ordered && slices.Contains(in, n))
		})
		if waits || s.us[v] > left || len(in) >= room {
			continue
		}
		left -= s.us[v]
		in = append(in, v)
		list = append(list, describe(v, s.ledger.NextAttempt(v), of.Part, b.scheduled.Build))
	}
	return list
}
