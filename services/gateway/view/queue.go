package view

import (
	"maps"
	"slices"
	"sort"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/lineup"
	"landfall.build/services/prioritizer/explanation"
)

type ref struct {
	change   string
	revision uint64
}

func refOf(r *eventsv1.ChangeRef) ref { return ref{r.GetChange(), r.GetRevision()} }

// change is a change at its newest revision; its timeline spans all of them.
type change struct {
	admission  *eventsv1.Admission
	admittedAt time.Time
	analysis   *Analysis
	urgent     bool
	// settled is set once the revision is out of the queue.
	settled    lineup.State
	settledAt  time.Time
	settledSeq uint64
	// who and why of a cancellation.
	cancelled   Hold
	landed      *eventsv1.ChangeLanded
	dropped     *Dropped // of what landed
	reason      *eventsv1.Reason
	reasonBase  string
	lastRefusal *Refusal
	timeline    []Event
	omitted     int
	// modified is the fold's sequence number when something about it last changed.
	modified uint64
}

func (c *change) ref() ref { return ref{c.admission.Change, c.admission.Revision} }

// decided is a decision of the selector that nothing has answered yet.
type decided struct {
	kind, decision string
}

// Queue is the view of one queue. It is for one goroutine at a time.
type Queue struct {
	name   string
	limits Limits
	lineup *lineup.Queue

	changes  map[string]*change
	finished []finishedChange

	settings *eventsv1.QueueSettings
	mainline *eventsv1.Mainline
	// unreachable is what keeps the lander from working on it, nil if nothing does.
	unreachable *eventsv1.MainlineUnreachable
	nodes       map[ref]*eventsv1.Node
	ranking     *eventsv1.Ranking
	// ranks are the places in ranked; see rank.
	ranks     map[ref]int       `snapshot:"-"`
	ranked    *eventsv1.Ranking `snapshot:"-"`
	estimates map[ref]*eventsv1.Estimate
	models    map[eventsv1.ModelKind]*eventsv1.ModelUse
	decided   map[ref]decided
	// known is what a full explanation of what is pending rests on; it is asked only when somebody is.
	known *explanation.State
	// told are the pending changes in the order in which the log first named them, from the mark from which on it tells all about a
	// kept one.
	told    []told
	from    map[ref]*mark
	rulings map[ref][]ruling
	flags   map[string][]flag // by build

	builds     map[string]*build
	buildOrder []string
	ofChange   map[ref][]*build
	steps      stepStore

	// Topics are read side by side, so that a record may come before the one that it speaks of: events of
	// changes that are not known yet, and decisions that were answered before they were read.
	early         map[ref][]Event
	answered      map[string]bool
	answeredOrder []string

	// seq counts what was folded and showed.
	seq uint64
	// droppedSeq is the sequence number when a change that landed was last dropped, or came back.
	droppedSeq uint64
	// offset is that of the last record of landfall.changes.
	offset  int64
	running struct {
		seq   uint64
		count int
	}
}

type finishedChange struct {
	id     string
	seq    uint64
	offset int64 // in landfall.changes
}

// New is the view of a queue of which nothing is known.
func New(name string, limits Limits) *Queue {
	return &Queue{
		name: name, limits: limits, lineup: lineup.New(),
		changes: map[string]*change{}, nodes: map[ref]*eventsv1.Node{}, ranks: map[ref]int{}, estimates: map[ref]*eventsv1.Estimate{}, models: map[eventsv1.ModelKind]*eventsv1.ModelUse{},
		decided: map[ref]decided{}, known: explanation.New(nil, nil), from: map[ref]*mark{}, rulings: map[ref][]ruling{}, flags: map[string][]flag{},
		builds: map[string]*build{}, ofChange: map[ref][]*build{},
		steps: newStepStore(limits), early: map[ref][]Event{}, answered: map[string]bool{},
	}
}

// Lineup is the fold of landfall.changes that the view rests on; readers must not change it.
func (q *Queue) Lineup() *lineup.Queue { return q.lineup }

// Sequence rises with every record that could change an answer.
func (q *Queue) Sequence() uint64 { return q.seq }

// Offset is where landfall.changes was read up to. Unlike the sequence it means the same in every process.
func (q *Queue) Offset() int64 { return q.offset }

// After is the sequence number of which Since tells all changes that left the queue behind an offset of
// landfall.changes, and as little else of the past as it can.
func (q *Queue) After(offset int64) uint64 {
	i := sort.Search(len(q.finished), func(i int) bool { return q.finished[i].offset > offset })
	if i == len(q.finished) {
		return q.seq
	}
	return q.finished[i].seq - 1
}

// Fold takes the next counted record of a topic. The effect is the lineup's; it is zero for records of
// other topics than landfall.changes.
func (q *Queue) Fold(e journal.Entry) lineup.Effect {
	q.seq++
	if e.Topic == events.TopicChanges {
		q.offset = e.Offset
	}
	switch m := e.Message.(type) {
	case *eventsv1.Decision:
		q.foldDecision(m)
	case *eventsv1.Profile:
		q.foldProfile(m, e)
	case *eventsv1.Priority:
		q.foldRanking(m)
		q.foldWorthless(m)
		q.foldEstimates(m.Estimates)
		q.foldModels(m.Models)
	case *eventsv1.BuildPrepared:
		q.foldPrepared(m)
	case *eventsv1.EvidenceForgotten:
		q.steps.forget(m)
	case *eventsv1.StepLeased:
		q.steps.lease(m)
	case *eventsv1.StepFinished:
		q.foldStep(m)
	case *eventsv1.ChangeAnalyzed:
		q.foldAnalysis(m, e.Time)
	case *eventsv1.MainlineUnreachable:
		q.foldUnreachable(m, e.Time)
	case *eventsv1.MainlineReachable:
		q.foldReachable(m, e.Time)
	default:
		return q.foldChangeFact(e)
	}
	return lineup.Effect{}
}

// pending gives a change if that revision of it is pending.
func (q *Queue) pendingAt(r ref) *change {
	if c := q.changes[r.change]; c != nil && c.settled == 0 && c.admission.Revision == r.revision {
		return c
	}
	return nil
}

// kept gives a change if the view has that revision of it, finished or not.
func (q *Queue) keptAt(r ref) *change {
	if c := q.changes[r.change]; c != nil && c.admission.Revision == r.revision {
		return c
	}
	return nil
}

// gone says that a revision is over and forgotten, so that nothing about it is worth keeping. A
// revision that is not known yet is not gone: its admission may be on its way.
func (q *Queue) gone(r ref) bool {
	return q.lineup.Known(r.change) >= r.revision && q.keptAt(r) == nil
}

func (q *Queue) touch(c *change) { c.modified = q.seq }

func (q *Queue) finish(c *change, s lineup.State, at time.Time) {
	c.settled, c.settledAt, c.settledSeq = s, at, q.seq
	c.admission.Description = clip(c.admission.Description, maxFinishedText)
	delete(q.decided, c.ref())
	delete(q.estimates, c.ref())
	q.finished = append(q.finished, finishedChange{c.admission.Change, q.seq, q.offset})
	for len(q.finished) > q.limits.Finished {
		oldest := q.finished[0]
		q.finished = q.finished[1:]
		if old := q.changes[oldest.id]; old != nil && old.settled != 0 && old.settledSeq == oldest.seq {
			q.forgetBuilds(old.ref())
			q.forgetPast(old.ref())
			delete(q.changes, oldest.id)
		}
	}
}

// note puts an event on a change's timeline; the middle of one that is too long is left out.
func (q *Queue) note(c *change, at time.Time, kind, text string) {
	q.touch(c)
	if len(c.timeline) >= maxTimeline {
		c.timeline = slices.Delete(c.timeline, keptTimelineHead, keptTimelineHead+1)
		c.omitted++
	}
	c.timeline = append(c.timeline, Event{At: at, Kind: kind, Text: text, seq: q.seq})
}

// noteAt is note for facts of other topics than the change's own.
func (q *Queue) noteAt(of ref, at time.Time, kind, text string) {
	if c := q.keptAt(of); c != nil {
		q.note(c, at, kind, text)
		return
	}
	waiting, known := q.early[of]
	if q.gone(of) || of.change == "" || len(waiting) >= maxEarlyEvents || (!known && len(q.early) >= maxEarlyChanges) {
		return
	}
	q.early[of] = append(waiting, Event{At: at, Kind: kind, Text: text})
}

func (q *Queue) noteEarly(c *change) {
	for _, e := range q.early[c.ref()] {
		q.note(c, e.At, e.Kind, e.Text)
	}
	maps.DeleteFunc(q.early, func(of ref, _ []Event) bool {
		return of.change == c.admission.Change && of.revision <= c.admission.Revision
	})
}

func (q *Queue) answer(r *eventsv1.ChangeRef, decision string) {
	if d, open := q.decided[refOf(r)]; open && d.decision == decision {
		delete(q.decided, refOf(r))
	}
	if decision == "" || q.answered[decision] {
		return
	}
	q.answered[decision] = true
	q.answeredOrder = append(q.answeredOrder, decision)
	if len(q.answeredOrder) > maxAnswered {
		delete(q.answered, q.answeredOrder[0])
		q.answeredOrder = q.answeredOrder[1:]
	}
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most] + "…"
}

func stamp(us int64, otherwise time.Time) time.Time {
	if us == 0 {
		return otherwise.UTC()
	}
	return time.UnixMicro(us).UTC()
}
