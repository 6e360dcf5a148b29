package view

import (
	"maps"
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
)

// mark is where a reader of landfall.profiles may begin who wants to know all that is pending behind it.
type mark struct {
	// offset is that of a counted record, written under term.
	offset, term int64
	// settings and mainline are as they were told before.
	settings *eventsv1.QueueSettings
	mainline *eventsv1.Mainline
}

// told is a pending change with the record that first named it.
type told struct {
	of ref
	*mark
}

// ruling is a decision of the selector about a change.
type ruling struct {
	kind, decision string
	position       int64
	at             time.Time
}

// flag says that from behind a position on a build was known to be worthless, or not to be any more.
type flag struct {
	position  int64
	worthless bool
}

const (
	maxRulings = 16
	maxFlags   = 64
)

// foldProfile takes the graph with what is predicted of it, and notes from where on the log tells all about what it names.
func (q *Queue) foldProfile(p *eventsv1.Profile, e journal.Entry) {
	before := &mark{e.Offset, e.Term, q.settings, q.mainline}
	var fresh []ref
	for _, n := range p.GetDelta().GetNodes() {
		if of := refOf(n.Change); !n.Mainline && q.nodes[of] == nil {
			fresh = append(fresh, of)
		}
	}
	q.foldDelta(p.Delta)
	q.known.Apply(p)
	for _, of := range fresh {
		if q.nodes[of] != nil {
			q.told = append(q.told, told{of, before})
		}
	}
	left := func(t told) bool { return q.nodes[t.of] == nil }
	for len(q.told) > 0 && left(q.told[0]) {
		q.told = q.told[1:]
	}
	if len(q.told) > 2*len(q.nodes)+64 {
		q.told = slices.DeleteFunc(q.told, left)
	}
	for _, of := range fresh {
		if q.nodes[of] != nil && !q.gone(of) && q.from[of] == nil {
			q.from[of] = q.told[0].mark
		}
	}
}

// forgetPast drops what is kept of a revision for those who ask why.
func (q *Queue) forgetPast(of ref) {
	delete(q.from, of)
	delete(q.rulings, of)
}

// rule notes a decision.
func (q *Queue) rule(of ref, r ruling) {
	if q.gone(of) || slices.ContainsFunc(q.rulings[of], func(o ruling) bool { return o.decision == r.decision }) {
		return
	}
	list := append(q.rulings[of], r)
	q.rulings[of] = list[max(0, len(list)-maxRulings):]
}

// foldWorthless notes which builds have become worthless, and which are no longer. A priority may be read before the schedule
// of a build that it names, so flags of builds that are not known are kept, up to the number of builds that are.
func (q *Queue) foldWorthless(p *eventsv1.Priority) {
	put := func(build string, worthless bool) {
		list := append(q.flags[build], flag{p.Position, worthless})
		q.flags[build] = list[max(0, len(list)-maxFlags):]
	}
	for _, w := range p.Worthless {
		put(w.Build, true)
	}
	for _, build := range p.Recovered {
		put(build, false)
	}
	if len(q.flags) > q.limits.Builds {
		maps.DeleteFunc(q.flags, func(build string, _ []flag) bool { return q.builds[build] == nil })
	}
}
