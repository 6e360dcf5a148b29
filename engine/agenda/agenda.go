// Package agenda decides which analyses of a queue are wanted. It is the analyzer's core, and folds the counted facts of
// landfall.changes.
//
// A pending revision is analysed once, and again when something that conflicts with it came onto the mainline after the head
// that it was analysed on (M3). Each commit that came past the queue is analysed once (M23a).
//
// It is pure: the same facts in the same order want the same analyses, in every instance of the analyzer.
package agenda

import (
	"cmp"
	"slices"

	"landfall.build/engine/affected"
	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"

	"google.golang.org/protobuf/proto"
)

// Bounds of the moves of the mainline that are kept: how many, and how many names what they did has together. An analysis on an older head
// counts as outdated.
const (
	keptMoves = 256
	keptNames = 4 << 20
)

// Queue is the state of one queue. The zero value is not usable; see New.
type Queue struct {
	Lineup *lineup.Queue

	analyses map[string]*analysis // by change, of the pending revision
	// moves are the last moves of the mainline, oldest first, the one to the first head among them.
	moves []*move
	// names is how many the effects of moves have.
	names     int               `snapshot:"-"`
	sequences map[string]uint64 // commit → the last of moves that made it the head
	pushes    []*Push           // not analysed yet, in order
	surveyed  bool              // what the mainline had before the queue is known
	reading   string            // how trees were read in the last survey
}

// analysis is the analysis that counts for a pending revision.
type analysis struct {
	effect
	base string
	// since is the move that made base the head.
	since uint64
	// outdated is set when something that conflicts with the change came onto the mainline after base.
	outdated bool
}

// effect is what a change or a push does to the target graph, as far as it outdates the analyses of others.
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

// KeyOf returns the key of a reference. The key of nil is that of no change.
func KeyOf(r *eventsv1.ChangeRef) Key { return Key{r.GetChange(), r.GetRevision()} }

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Change, other.Change), cmp.Compare(k.Revision, other.Revision))
}

// names is how many targets and files the effect names.
func (e *effect) names() int {
	if e == nil {
		return 0
	}
	return len(e.footprint.Touched) + len(e.footprint.Leaves) + len(e.footprint.Added)
}

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
	// Forced is set if From is no ancestor of To.
	Forced bool
	// Offset is the offset of its MainlineMoved.
	Offset int64

	sequence uint64
}

// Task is a wanted analysis: of a push, of a change, or the survey of the mainline.
type Task struct {
	// Push is set if the task is about a push.
	Push *Push
	// Change is to be analysed on Base, the present head, which Sequence moves of the mainline made. It is nil for a push, and
	// for the survey, which names the targets of Base.
	Change   *lineup.Change
	Base     string
	Sequence uint64
	// Reading is how a survey is to read trees. First is set if the mainline was never surveyed.
	Reading string
	First   bool
}

// New returns a queue without facts.
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
	case *eventsv1.MainlineSurveyed:
		q.mainlineSurveyed(f)
		return
	}
	moves := q.Lineup.Sequence
	consequence := q.Lineup.Apply(m, offset)
	var left *analysis
	if consequence.Left != nil {
		left = q.analyses[consequence.Left.ID()]
		delete(q.analyses, consequence.Left.ID())
	}
	if q.Lineup.Sequence == moves {
		return
	}
	if consequence.Left != nil {
		q.move(landedEffect(consequence.Left, left))
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

// landedEffect returns what a change that landed did. Without an analysis it may have done anything.
func landedEffect(c *lineup.Change, a *analysis) *effect {
	if a == nil {
		return &effect{ref: c.Ref(), footprint: targets.Footprint{All: true}}
	}
	return &a.effect
}

// move adds the present head, and outdates the analyses that meet what made it the head.
func (q *Queue) move(e *effect) {
	sequence, head := q.Lineup.Sequence, q.Lineup.Head
	q.addMove(sequence, head, e)
	for _, a := range q.analyses {
		if a.base == head {
			// The head is back at a commit that it was at before.
			a.since, a.outdated = sequence, false
		} else if e != nil {
			a.outdated = a.outdated || meets(a, e)
		}
	}
}

// addMove adds the newest move of the mainline and drops the oldest ones beyond the bounds.
func (q *Queue) addMove(sequence uint64, to string, e *effect) {
	q.moves = append(q.moves, &move{sequence: sequence, to: to, effect: e})
	q.names += e.names()
	q.sequences[to] = sequence
	for len(q.moves) > keptMoves || q.names > keptNames && len(q.moves) > 1 {
		old := q.moves[0]
		if q.sequences[old.to] == old.sequence {
			delete(q.sequences, old.to)
		}
		q.names -= old.effect.names()
		q.moves = slices.Clone(q.moves[1:])
	}
}

// mainlineSurveyed folds a survey. If it reads trees in another way than the one before, the analyses of pending changes are void.
// Such a survey does not count while a landing is intended, as that was proven by the reading before; another survey follows it.
func (q *Queue) mainlineSurveyed(f *eventsv1.MainlineSurveyed) {
	if f.Commit != q.Lineup.Head || f.Again && q.Lineup.Intention != nil {
		return
	}
	if q.surveyed && f.Reading != "" && f.Reading != q.reading {
		clear(q.analyses)
	}
	q.surveyed = true
	q.reading = cmp.Or(f.Reading, q.reading)
}

// analyzed folds an analysis. The first of (change, revision, base) counts, and one on an older head does not replace one on a
// newer head.
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

// pushAnalyzed folds the analysis of a push. The first record of each push counts.
func (q *Queue) pushAnalyzed(f *eventsv1.MainlineAnalyzed) {
	for i, p := range q.pushes {
		if p.From != f.From || p.To != f.To {
			continue
		}
		q.pushes = append(q.pushes[:i:i], q.pushes[i+1:]...)
		e := &effect{footprint: affected.Footprint(f.Affected)}
		for _, m := range q.moves {
			if m.sequence == p.sequence {
				q.names += e.names() - m.effect.names()
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

// Wanted returns the wanted analyses: of pushes in order, then of changes in queue order, and last the survey of the mainline (M23b).
// A survey is wanted if there was none, or if the last one had another reading than the caller's; "" is none. Without a head there are
// only the pushes.
func (q *Queue) Wanted(reading string) []Task {
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
	if q.wantsSurvey(reading) {
		tasks = append(tasks, Task{Base: q.Lineup.Head, Sequence: q.Lineup.Sequence, Reading: reading, First: !q.surveyed})
	}
	return tasks
}

// Names returns how many targets and files the pending changes affect, without some of them.
func (q *Queue) Names(without map[string]bool) (n int) {
	for change, a := range q.analyses {
		if !without[change] {
			n += a.names()
		}
	}
	return n
}

func (q *Queue) wants(c *lineup.Change) bool {
	a := q.analyses[c.ID()]
	return a == nil || a.outdated && a.base != q.Lineup.Head
}

func (q *Queue) wantsSurvey(reading string) bool {
	return !q.surveyed || reading != "" && reading != q.reading && q.Lineup.Intention == nil
}

// Reading returns how trees were read in the last survey, "" if there is none that says it.
func (q *Queue) Reading() string { return q.reading }

// IsSurvey reports whether a task is the survey of the mainline.
func (t Task) IsSurvey() bool { return t.Push == nil && t.Change == nil }

// Answers reports whether a finished task is still worth a record: its push is not analysed yet, or its revision is pending
// and has no analysis on that base or a newer head, or the mainline is not surveyed and is still at that base.
func (q *Queue) Answers(t Task) bool {
	if t.Push != nil {
		for _, p := range q.pushes {
			if p.Offset == t.Push.Offset {
				return true
			}
		}
		return false
	}
	if t.IsSurvey() {
		return q.wantsSurvey(t.Reading) && t.Base == q.Lineup.Head
	}
	if q.Lineup.PendingAt(t.Change.Ref()) == nil {
		return false
	}
	a := q.analyses[t.Change.ID()]
	return a == nil || a.base != t.Base && a.since <= t.Sequence
}
