package view

import (
	"maps"
	"slices"
	"sort"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/prioritizer/explanation"
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

// Past is what a full explanation wants of the log: what was known when each build was scheduled and each decision taken. Whoever
// reads gives Take the counted profiles of the queue from Offset on, which is one that counts, written under Term.
type Past struct {
	Offset, Term int64
	full         *Full
	of           *eventsv1.ChangeRef
	state        *explanation.State
	wanted       []wanted // by position
}

// wanted is a moment that is to be explained: of a build, or of a decision.
type wanted struct {
	position int64
	assumed  []*eventsv1.ChangeRef
	build    *BuildReasons
	ruling   *Ruling
}

// Take folds the next counted profile, and explains what was decided on it. ask calls its argument with the queue, which
// nobody changes meanwhile. It returns false once nothing more is wanted.
func (p *Past) Take(m *eventsv1.Profile, ask func(func(*Queue))) (more bool) {
	p.state.Apply(m)
	for len(p.wanted) > 0 && p.wanted[0].position < m.Position {
		p.wanted = p.wanted[1:]
		p.Omit(notAll)
	}
	var now []wanted
	for len(p.wanted) > 0 && p.wanted[0].position == m.Position {
		now = append(now, p.wanted[0])
		p.wanted = p.wanted[1:]
	}
	if len(now) > 0 {
		ask(func(q *Queue) {
			e := p.state.Explainer(q.how())
			for _, w := range now {
				if w.build != nil {
					w.build.Then = e.Worth(p.of, w.assumed)
				} else {
					w.ruling.Then = e.Verdict(p.of)
				}
			}
		})
	}
	return len(p.wanted) > 0
}

// Omit says why nothing more of the past is told.
func (p *Past) Omit(why string) { p.full.Omitted = why }

// notAll is said where a decision names a position of which no profile speaks.
const notAll = "The log does not tell all of what was known."

// Missing says that the log has ended, and more was wanted.
func (p *Past) Missing() { p.Omit(notAll) }

// pastOf is what is wanted of the log, nil if that is nothing. What it tells goes into f.
func (q *Queue) pastOf(c *change, f *Full) *Past {
	p := &Past{full: f, of: &eventsv1.ChangeRef{Change: c.admission.Change, Revision: c.admission.Revision}}
	for i, b := range q.inOrder(c.ref()) {
		if !b.scheduled {
			continue
		}
		p.wanted = append(p.wanted, wanted{position: b.position, build: &f.Builds[i], assumed: b.assumedRefs()})
	}
	for i := range f.Decisions {
		p.wanted = append(p.wanted, wanted{position: f.Decisions[i].Position, ruling: &f.Decisions[i]})
	}
	if len(p.wanted) == 0 {
		return nil
	}
	sort.SliceStable(p.wanted, func(i, j int) bool { return p.wanted[i].position < p.wanted[j].position })
	from := q.from[c.ref()]
	switch {
	case from == nil && c.settled == 0:
		p.Omit("What is predicted of it was not read yet; ask again.")
		return nil
	case from == nil:
		p.Omit("Where the log began to tell of it is not known any more.")
		return nil
	}
	p.Offset, p.Term, p.state = from.offset, from.term, explanation.New(from.settings, from.mainline)
	return p
}
