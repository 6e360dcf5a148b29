// Package agenda says which analyses of a queue are wanted: the analyzer's core.
//
// It folds the counted facts of landfall.changes and answers what is asked and not answered. A pending
// revision is asked about once, and again when something came onto the mainline, after the head that it
// was analysed on, that conflicts with it (MODEL M3); each commit that came past the queue is asked about
// once (M23a).
//
// It is pure: the same facts in the same order ask for the same, in every instance of the analyzer.
package agenda

import (
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/affected"
	"landfall.build/services/analyzer/targets"
	"landfall.build/services/lineup"

	"google.golang.org/protobuf/proto"
)

// keptMoves bounds how much of the mainline's past is kept. An analysis on an older head counts as
// outdated.
const keptMoves = 256

// Queue is the state of one queue. The zero value is not usable; see New.
type Queue struct {
	Lineup *lineup.Queue

	analyses map[string]*analysis // by change, of the pending revision
	// moves are the last ones of the mainline, oldest first; the first head is among them.
	moves     []*move
	sequences map[string]uint64 // commit → when it was the head last, of those in moves
	pushes    []*Push           // not analysed yet, in order
}

// analysis is the one that stands for a pending revision.
type analysis struct {
	effect
	base string
	// since is the move that made base the head.
	since uint64
	// outdated: what came onto the mainline after base conflicts with the change.
	outdated bool
}

// effect is what a change or a push does, as far as it matters to the analyses of others.
type effect struct {
	ref       *eventsv1.ChangeRef // nil for a push
	outcome   eventsv1.AnalysisOutcome
	footprint targets.Footprint
	// neighbours are the changes that touch a path that this one touches.
	neighbours map[Key]bool
}

// Key names a revision of a change.
type Key struct {
	Change   string
	Revision uint64
}

// KeyOf gives the key of a reference; of nil, that of no change.
func KeyOf(r *eventsv1.ChangeRef) Key { return Key{r.GetChange(), r.GetRevision()} }

// move is one step of the mainline.
type move struct {
	sequence uint64
	to       string
	// effect is nil for the first head, and for a push that is not analysed yet.
	effect *effect
}

// Push is a commit that came past the queue.
type Push struct {
	From, To string
	// Forced: From is no ancestor of To.
	Forced bool
	// Offset is the place of its MainlineMoved.
	Offset int64

	sequence uint64
}

// Task is one analysis that is wanted: of a push, or of a change.
type Task struct {
	// Push is nil if the task is about a change.
	Push *Push
	// Change is to be analysed on Base, the present head, which Sequence moves of the mainline made.
	Change   *lineup.Change
	Base     string
	Sequence uint64
}

// New is a queue of which nothing is known.
func New() *Queue {
	return &Queue{Lineup: lineup.New(), analyses: map[string]*analysis{}, sequences: map[string]uint64{}}
}

// Apply folds one counted fact of landfall.changes at its offset.
func (q *Queue) Apply(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.ChangeAnalyzed:
		q.analyzed(f)
		return
	case *eventsv1.MainlineAnalyzed:
		q.pushAnalyzed(f)
		return
	}
	moves := q.Lineup.Sequence
	result := q.Lineup.Apply(m, offset)
	var left *analysis
	if result.Left != nil {
		left = q.analyses[result.Left.ID()]
		delete(q.analyses, result.Left.ID())
	}
	if q.Lineup.Sequence == moves {
		return
	}
	if result.Left != nil {
		q.move(landedEffect(result.Left, left))
		return
	}
	moved := m.(*eventsv1.MainlineMoved)
	q.move(nil)
	if !moved.Initial {
		q.pushes = append(q.pushes, &Push{
			From: moved.From, To: moved.To, Forced: moved.Forced, Offset: offset, sequence: q.Lineup.Sequence,
		})
	}
}

// landedEffect is what a change that landed did. Nothing is known of one without an analysis.
func landedEffect(c *lineup.Change, a *analysis) *effect {
	if a == nil {
		return &effect{ref: c.Ref(), footprint: targets.Footprint{All: true}}
	}
	return &a.effect
}

// move notes the present head, and whom what made it outdates.
func (q *Queue) move(e *effect) {
	m := &move{sequence: q.Lineup.Sequence, to: q.Lineup.Head, effect: e}
	q.moves = append(q.moves, m)
	q.sequences[m.to] = m.sequence
	if len(q.moves) > keptMoves {
		if old := q.moves[0]; q.sequences[old.to] == old.sequence {
			delete(q.sequences, old.to)
		}
		q.moves = append([]*move(nil), q.moves[1:]...)
	}
	for _, a := range q.analyses {
		if a.base == m.to {
			// The head is back at a commit that it was at before.
			a.since, a.outdated = m.sequence, false
		} else if e != nil {
			a.outdated = a.outdated || meets(a, e)
		}
	}
}

// analyzed folds an analysis: the first of (change, revision, base) stands, and one on an older head does
// not replace one on a newer head.
func (q *Queue) analyzed(f *eventsv1.ChangeAnalyzed) {
	if q.Lineup.PendingAt(f.Change) == nil {
		return
	}
	since, known := q.sequences[f.Base]
	if old := q.analyses[f.Change.Change]; old != nil {
		if old.base == f.Base || known && since < q.sequences[old.base] {
			return
		}
	}
	a := &analysis{
		effect: effect{ref: f.Change, outcome: f.Outcome, footprint: affected.Footprint(f.Affected), neighbours: map[Key]bool{}},
		base:   f.Base, since: since, outdated: !known,
	}
	for _, t := range f.Textual {
		a.neighbours[KeyOf(t.Other)] = true
	}
	q.analyses[f.Change.Change] = a
	for _, m := range q.moves {
		if m.sequence > since && m.effect != nil {
			a.outdated = a.outdated || meets(a, m.effect)
		}
	}
}

// pushAnalyzed folds what a commit that came past the queue did; the first record of each push stands.
func (q *Queue) pushAnalyzed(f *eventsv1.MainlineAnalyzed) {
	for i, p := range q.pushes {
		if p.From != f.From || p.To != f.To {
			continue
		}
		q.pushes = append(q.pushes[:i:i], q.pushes[i+1:]...)
		e := &effect{footprint: affected.Footprint(f.Affected)}
		for _, m := range q.moves {
			if m.sequence == p.sequence {
				m.effect = e
			}
		}
		for _, a := range q.analyses {
			if a.since < p.sequence {
				a.outdated = a.outdated || meets(a, e)
			}
		}
		return
	}
}

// Wanted lists what is asked and not answered: pushes in order, then changes in queue order. Nothing is
// asked of changes before the first head is known.
func (q *Queue) Wanted() []Task {
	var tasks []Task
	for _, p := range q.pushes {
		tasks = append(tasks, Task{Push: p})
	}
	if q.Lineup.Head == "" {
		return tasks
	}
	for _, c := range q.Lineup.Order() {
		if q.wants(c) {
			tasks = append(tasks, Task{Change: c, Base: q.Lineup.Head, Sequence: q.Lineup.Sequence})
		}
	}
	return tasks
}

func (q *Queue) wants(c *lineup.Change) bool {
	a := q.analyses[c.ID()]
	return a == nil || a.outdated && a.base != q.Lineup.Head
}

// Answers says whether a finished task is still worth a record: its push is not analysed yet; or its
// revision is pending and has no analysis on that base or a newer head.
func (q *Queue) Answers(t Task) bool {
	if t.Push != nil {
		for _, p := range q.pushes {
			if p.Offset == t.Push.Offset {
				return true
			}
		}
		return false
	}
	if q.Lineup.PendingAt(t.Change.Ref()) == nil {
		return false
	}
	a := q.analyses[t.Change.ID()]
	return a == nil || a.base != t.Base && a.since <= t.Sequence
}
