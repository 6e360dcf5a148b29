package steps

import (
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// Place is where the first step stands of those that a change waits for.
type Place struct {
	Step
	// Open is how many steps of the change no worker runs.
	Open int
	// Before is how many steps come before this one, First the first of them; nil if this one is next.
	Before int
	First  *Step
	// Full is the quota for which the step is not among those that workers would start; nil if there is none.
	Full *Full
}

// Share is what a build that wants a step adds to the step's index (M33).
type Share struct {
	Build    string
	Change   string
	Value    float64
	WaitedUs int64
	// WorkUs is how long the open steps of the build are likely to take together.
	WorkUs int64
	Index  float64
}

// PlaceOf returns where a change's first waiting step stands at a time (microseconds since 1970), among the first so many steps
// that workers would start. Without a step, Open is how many there are behind those.
func (q *Queue) PlaceOf(c *eventsv1.ChangeRef, nowUs int64, among int) Place {
	p := Place{}
	mine := map[Version]bool{}
	var author *payer
	for _, b := range q.ofChange[c.GetChange()] {
		if b.successor != "" || b.change().GetRevision() != c.GetRevision() {
			continue
		}
		author = b.payer
		for i, open := range b.open {
			if a := &b.asked[i]; open && q.unleased(a, nowUs) {
				mine[a.Version] = true
			}
		}
	}
	if p.Open = len(mine); p.Open == 0 {
		return p
	}
	list := q.Next(nowUs, among, nil, nil)
	p.Before = slices.IndexFunc(list, func(s Step) bool { return mine[s.Version] })
	if p.Before < 0 {
		p.Before, p.Full = len(list), author.fullWith(list)
	} else {
		p.Step = list[p.Before]
	}
	if p.Before > 0 {
		p.First = &list[0]
	}
	return p
}

// Shares returns what makes up the index of a version at a time, in the order in which its builds began to ask for it.
func (q *Queue) Shares(v Version, nowUs int64) []Share {
	w := q.wanted[v]
	if w == nil {
		return nil
	}
	var list []Share
	for _, b := range w.askers {
		if b.successor == "" && b.open[b.place] {
			list = append(list, Share{b.id(), b.change().GetChange(), b.value, max(0, q.waitedTo(nowUs)-b.sinceUs), b.workUs, q.indexOf(b.build, nowUs)})
		}
	}
	return list
}

// PatienceUs returns the time that waits are held to (M33).
func (q *Queue) PatienceUs() int64 { return q.estimates.patienceUs(q.Workers) }
