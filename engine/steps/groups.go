package steps

import eventsv1 "landfall.build/events/v1"

// Bounds of a group (M27a). Below leastGroupUs the start of a tool costs more than another worker gains; a group of more than
// mostGroupUs keeps its worker from what comes next for too long.
const (
	leastGroupUs = 10_000_000
	mostGroupUs  = 60_000_000
	mostGroup    = 256
	// brokenGroups is how often a version may have ended a group without a result before it runs alone.
	brokenGroups = 2
)

// Companions returns the steps that the worker which is given a step should run by the same invocation of the tool (M27a): those
// of the step's build and group that could be started too, in the order of M34. It leaves out those that are taken, and what would be
// more than may run for the build's author, unless the step is urgent.
func (q *Queue) Companions(s Step, nowUs int64, taken []Version) []Step {
	b := q.live[s.Build.GetBuild()]
	if b == nil || b.open == nil {
		return nil
	}
	place, asks := b.index[s.Version]
	if !asks || b.asked[place].group == 0 || q.breaksGroups(s.Version) {
		return nil
	}
	most := mostGroup
	if !s.Rank.Urgent {
		counted := q.countTaken(taken)
		most = b.payer.room(mostGroup)
		for _, p := range counted {
			p.add(-1)
		}
	}
	others := make(map[Version]bool, len(taken))
	for _, v := range taken {
		others[v] = true
	}
	group := b.asked[place].group
	var places []int
	work := b.asked[place].want.us
	for _, i := range b.order[b.first:] {
		a := &b.asked[i]
		if i == place || a.group != group || !b.open[i] || others[a.Version] || !q.unleased(a, nowUs) || q.breaksGroups(a.Version) {
			continue
		}
		places = append(places, i)
		work += a.want.us
	}
	list := q.fill(b, place, places, most, min(mostGroupUs, max(leastGroupUs, work/int64(max(1, q.Workers)))))
	for i := range list {
		list[i].Quotas = s.Quotas
	}
	return list
}

// fill returns the steps at some places of a build that fit beside a first one into a group of most steps and limitUs of work. A
// step whose dependencies are neither settled nor in the group waits, unless the group is none that orders them.
func (q *Queue) fill(b *build, first int, places []int, most int, limitUs int64) []Step {
	in := map[int]bool{first: true}
	ordered := b.ordered[b.asked[first].group-1]
	left := limitUs - b.asked[first].want.us
	var list []Step
	for _, i := range places {
		a := &b.asked[i]
		if len(in) >= most {
			break
		}
		if a.want.us > left || !b.readyWith(i, in, ordered) {
			continue
		}
		in[i] = true
		left -= a.want.us
		list = append(list, Step{
			Version: a.Version, Attempt: q.ledger.NextAttempt(a.Version), Part: a.part, Build: b.scheduled, Origin: b.origin})
	}
	return list
}

// readyWith reports whether all that a version depends on is settled or, if the group is ordered, in the group.
func (d *demand) readyWith(place int, in map[int]bool, ordered bool) bool {
	for _, n := range d.asked[place].needs {
		if d.open[n] && !(ordered && in[n]) {
			return false
		}
	}
	return true
}

// breaksGroups reports whether a version runs alone, because groups with it have ended too often without a result for it.
func (q *Queue) breaksGroups(v Version) bool {
	r := q.ledger.Result(v)
	return r != nil && r.Unreported() >= brokenGroups
}

// setGroups takes over which versions can be verified together. place has, for each version of the record, its place among those
// that are asked for, or -1. A version that takes something besides a worker runs alone; labels are not taken.
func setGroups(list []asked, place []int, groups []*eventsv1.StepGroup) (ordered []bool) {
	type key struct{ group, part int }
	numbers := map[key]int{}
	for i, g := range groups {
		for _, v := range g.GetVersions() {
			if int(v) >= len(place) || place[v] < 0 {
				continue
			}
			a := &list[place[v]]
			if a.group != 0 || len(a.claims.GetExclusive())+len(a.claims.GetResources()) > 0 {
				continue
			}
			of := key{i, int(a.part)}
			if numbers[of] == 0 {
				ordered = append(ordered, g.GetOrdered())
				numbers[of] = len(ordered)
			}
			a.group = numbers[of]
		}
	}
	return ordered
}
