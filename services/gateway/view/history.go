package view

import (
	"slices"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// history is what a full explanation needs to read from the log what was known when a decision was taken.
type history struct {
	// named are the pending changes in the order in which the log first named them.
	named []named
	// from is, for each kept revision, the record of landfall.profiles from which on the log has all that concerns it.
	from map[ref]*start
	// decisions are those of the selector about each kept revision, oldest first.
	decisions map[ref][]decision
}

// start is where a reader of landfall.profiles begins who wants to know everything that was pending behind it.
type start struct {
	// offset is that of a counted record, written under term.
	offset, term int64
	// settings and mainline are those that were in force before the record.
	settings *eventsv1.QueueSettings
	mainline *eventsv1.Mainline
}

// named is a pending change with the record that first named it.
type named struct {
	of ref
	*start
}

// decision is one of the selector about a change.
type decision struct {
	kind, id string
	position int64
	at       time.Time
}

const maxDecisions = 16

func newHistory() history {
	return history{from: map[ref]*start{}, decisions: map[ref][]decision{}}
}

// foldProfile takes the graph with what is predicted of it, and notes from where on the log has all that concerns what it names.
func (q *Queue) foldProfile(p *eventsv1.Profile, e journal.Entry) {
	before := &start{e.Offset, e.Term, q.known.Settings(), q.known.Mainline()}
	var fresh []ref
	for _, n := range p.GetDelta().GetNodes() {
		if of := refOf(n.Change); !n.Mainline && q.node(of) == nil {
			fresh = append(fresh, of)
		}
	}
	q.known.Apply(p)
	q.foldDelta(p.GetDelta())
	h := &q.history
	for _, of := range fresh {
		if q.node(of) != nil {
			h.named = append(h.named, named{of, before})
		}
	}
	left := func(n named) bool { return q.node(n.of) == nil }
	for len(h.named) > 0 && left(h.named[0]) {
		h.named = h.named[1:]
	}
	if len(h.named) > 2*q.known.Nodes()+64 {
		h.named = slices.DeleteFunc(h.named, left)
	}
	for _, of := range fresh {
		if q.node(of) != nil && !q.gone(of) && h.from[of] == nil {
			h.from[of] = h.named[0].start
		}
	}
}

// forgetHistory drops what is kept of a revision for those who ask why.
func (q *Queue) forgetHistory(of ref) {
	delete(q.history.from, of)
	delete(q.history.decisions, of)
}

// noteDecision keeps a decision, once, for those who ask why.
func (q *Queue) noteDecision(of ref, d decision) {
	kept := q.history.decisions[of]
	if q.gone(of) || slices.ContainsFunc(kept, func(o decision) bool { return o.id == d.id }) {
		return
	}
	kept = append(kept, d)
	q.history.decisions[of] = kept[max(0, len(kept)-maxDecisions):]
}
