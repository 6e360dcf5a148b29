package view

import (
	"maps"
	"slices"
	"sort"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/explanation"
	"landfall.build/engine/flakes"
	"landfall.build/engine/lineup"
	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
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
	// lastRefusal is the last one by the land guard, or by the remote of a push.
	lastRefusal *Refusal
	// earlier are the revisions before the newest one, oldest first.
	earlier []Revision
	// end is how the revision left the queue.
	end      ending
	timeline []Event
	// omitted is how many events were left out of the timeline.
	omitted int
	// modified is the view's sequence number when something about the change was last noted.
	modified uint64
}

// ending is how a revision left the queue. Its state is 0 while the revision is pending.
type ending struct {
	state lineup.State
	at    time.Time
	// seq is the view's sequence number at which it left.
	seq uint64
	// Who cancelled it and why.
	who, why string
	landed   *eventsv1.ChangeLanded
	// dropped is set while a change that landed is not on the mainline.
	dropped *Dropped
	// reason of a rejection or an ejection, and the mainline's head that it was found on.
	reason *eventsv1.Reason
	base   string
}

func (c *change) ref() ref { return ref{c.admission.Change, c.admission.Revision} }

func (c *change) pending() bool { return c.end.state == 0 }

// openDecision is a decision of the selector that the lander has not answered yet.
type openDecision struct {
	kind, decision string
}

// Queue is the view of one queue. It is for one goroutine at a time.
type Queue struct {
	// by is who had the record written that is being folded.
	by     string `snapshot:"-"`
	name   string
	limits Limits
	lineup *lineup.Queue

	changes map[string]*change
	// finished are the changes that left the queue, oldest first.
	finished []finishedChange
	// droppedSeq is the sequence number when a change that landed was last dropped, or came back.
	droppedSeq uint64
	// lateSeq is the sequence number when something was last noted about a change that had left the queue before.
	lateSeq uint64 `snapshot:"-"`
	// open are the decisions that the lander has not answered yet.
	open map[ref]openDecision
	// pauses are the last keptPauses pauses that are over, oldest first.
	pauses []PauseOver
	// unreachable is what keeps the lander from working on the mainline, nil if nothing does.
	unreachable *eventsv1.MainlineUnreachable

	// known is the speculation graph with what is predicted of it. A full explanation rests on it.
	known *explanation.State
	// check is the node of what was pushed past the queue, nil if nothing was.
	check *eventsv1.Node
	// survey is what is left to prove of what the mainline had before the queue, nil if it was never surveyed.
	survey *eventsv1.Survey
	// surveyedAgain is set once trees are read in another way than on the first day: which targets were red then is not known of
	// the versions that they have now.
	surveyedAgain bool
	priority      priorities
	history       history
	builds        buildStore
	steps         stepStore
	// choice is what workers choose their steps by.
	choice *steps.Queue
	early  earlyFacts
	// pushes are the newest commits that came past the queue, oldest first.
	pushes []*push
	// flakes has the targets that contradicted themselves; quarantines are those in force.
	flakes *flakes.Stats
	// owners has who owns each target that has had a flake.
	owners      map[string][]string
	quarantines evidence.Quarantines
	stuck       stuck `snapshot:"-"`
	// unseen are the quarantines that name no target which the queue has seen, as of a generation of the steps.
	unseen struct {
		generation uint64
		names      []string
	} `snapshot:"-"`

	// serviceTroubles are the services that are not at work, as of now.
	serviceTroubles []ServiceTrouble `snapshot:"-"`
	shadow          bool             `snapshot:"-"`

	// seq counts the records that were folded.
	seq uint64
	// offset is that of the last record of landfall.changes.
	offset int64
}

// Settings returns the queue's settings, nil if none were read. Readers must not change them.
func (q *Queue) Settings() *eventsv1.QueueSettings { return q.known.Settings() }

// priorities are what the prioritizer said last.
type priorities struct {
	ranking   *eventsv1.Ranking
	estimates map[ref]*eventsv1.Estimate
	models    map[eventsv1.ModelKind]*eventsv1.ModelUse
	// line is which changes wait for a slot as of a sequence number of the view; see inLine.
	line struct {
		seq    uint64
		places map[ref]int
	} `snapshot:"-"`
}

// earlyFacts are facts of other topics that were read before the ones that they refer to: topics are read side by side.
type earlyFacts struct {
	// events of changes whose admission was not read yet.
	events map[ref][]Event
	// answered are the ids of decisions that the lander has answered; order has them oldest first.
	answered map[string]bool
	order    []string
}

type finishedChange struct {
	id     string
	seq    uint64
	offset int64 // in landfall.changes
}

// New returns the view of a queue before its first record.
func New(name string, limits Limits) *Queue {
	return &Queue{
		name: name, limits: limits, lineup: lineup.New(),
		changes: map[string]*change{}, open: map[ref]openDecision{}, known: explanation.New(nil, nil),
		priority: priorities{estimates: map[ref]*eventsv1.Estimate{}, models: map[eventsv1.ModelKind]*eventsv1.ModelUse{}},
		history:  newHistory(), builds: newBuildStore(), steps: newStepStore(limits), choice: steps.New(),
		early: earlyFacts{events: map[ref][]Event{}, answered: map[string]bool{}}, flakes: flakes.New(), owners: map[string][]string{},
	}
}

// Lineup returns the order of the queue, as landfall.changes has it; readers must not change it.
func (q *Queue) Lineup() *lineup.Queue { return q.lineup }

// Sequence returns a number that rises with every record that could change an answer.
func (q *Queue) Sequence() uint64 { return q.seq }

// Offset returns the offset of the last record of landfall.changes. Unlike the sequence it means the same in every process.
func (q *Queue) Offset() int64 { return q.offset }

// After returns the sequence number from which on Since lists every change that left the queue behind an offset of
// landfall.changes, and few others.
func (q *Queue) After(offset int64) uint64 {
	i := sort.Search(len(q.finished), func(i int) bool { return q.finished[i].offset > offset })
	if i == len(q.finished) {
		return q.seq
	}
	return q.finished[i].seq - 1
}

// Fold takes the next counted record of a topic. The consequence is the lineup's, or that of a quarantine. It is
// zero for records of other topics than landfall.changes.
func (q *Queue) Fold(e journal.Entry) lineup.Consequence {
	q.seq++
	q.by = actorText(events.ActorOf(e.Message))
	defer func() { q.by = "" }()
	if e.Topic == events.TopicChanges {
		q.offset = e.Offset
	}
	q.foldChoice(e)
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
	case *eventsv1.MainlineAnalyzed:
		q.foldPushAnalyzed(m)
		return q.foldChangeFact(e)
	case *eventsv1.MainlineSurveyed:
		if m.Again && m.Commit == q.lineup.Head && q.lineup.Intention == nil {
			q.surveyedAgain = true
			q.noteAll(e.Time, "reread", readOtherwise)
		}
	case *eventsv1.MainlineUnreachable:
		q.foldUnreachable(m, e.Time)
	case *eventsv1.MainlineReachable:
		q.foldReachable(m, e.Time)
	case *eventsv1.TargetQuarantined, *eventsv1.QuarantineEnded:
		return q.foldQuarantine(e.Message)
	default:
		return q.foldChangeFact(e)
	}
	return lineup.Consequence{}
}

// pendingAt returns a change if that revision of it is pending, else nil.
func (q *Queue) pendingAt(r ref) *change {
	if c := q.changes[r.change]; c != nil && c.pending() && c.admission.Revision == r.revision {
		return c
	}
	return nil
}

// keptAt returns a change if the view has that revision of it, finished or not, else nil.
func (q *Queue) keptAt(r ref) *change {
	if c := q.changes[r.change]; c != nil && c.admission.Revision == r.revision {
		return c
	}
	return nil
}

// gone reports whether a revision is over and forgotten, so that nothing about it is worth keeping. A
// revision that is not known yet is not gone: its admission may still be read.
func (q *Queue) gone(r ref) bool {
	return q.lineup.Known(r.change) >= r.revision && q.keptAt(r) == nil
}

// node returns what the speculation graph has of a pending revision, nil if nothing.
func (q *Queue) node(of ref) *eventsv1.Node { return q.known.Node(of.change, of.revision) }

// touch makes Since list a finished change to whoever has not read it since.
func (q *Queue) touch(c *change) {
	c.modified = q.seq
	if c.late() {
		q.lateSeq = q.seq
	}
}

// late reports whether something was noted about the change after it had left the queue.
func (c *change) late() bool { return !c.pending() && c.modified > c.end.seq }

// finish keeps a change as one that left the queue, and forgets the oldest of those if they are too many.
func (q *Queue) finish(c *change, as lineup.State, at time.Time) {
	c.end.state, c.end.at, c.end.seq = as, at, q.seq
	if text := clip(c.admission.Description, maxFinishedText); text != c.admission.Description {
		c.admission = proto.CloneOf(c.admission) // it is shared with the lineup and with answers
		c.admission.Description = text
	}
	delete(q.open, c.ref())
	delete(q.priority.estimates, c.ref())
	q.settleBuilds(c.ref())
	q.finished = append(q.finished, finishedChange{c.admission.Change, q.seq, q.offset})
	for len(q.finished) > q.limits.Finished {
		oldest := q.finished[0]
		q.finished = q.finished[1:]
		if old := q.stillFinished(oldest); old != nil {
			for back := range min(keptRevisions, old.admission.Revision) {
				q.forgetBuilds(ref{oldest.id, old.admission.Revision - back})
			}
			q.forgetHistory(old.ref())
			delete(q.changes, oldest.id)
		}
	}
}

// note puts an event on a change's timeline. Of one that is too long the middle is left out.
func (q *Queue) note(c *change, at time.Time, kind, text string) {
	q.touch(c)
	if len(c.timeline) >= maxTimeline {
		c.timeline = slices.Delete(c.timeline, keptTimelineHead, keptTimelineHead+1)
		c.omitted++
	}
	c.timeline = append(c.timeline, Event{At: at, Kind: kind, Text: text, By: q.by, seq: q.seq})
}

// noteAt is note for facts of other topics than landfall.changes. The change's admission may still be read.
func (q *Queue) noteAt(of ref, at time.Time, kind, text string) {
	if c := q.keptAt(of); c != nil {
		q.note(c, at, kind, text)
		return
	}
	waiting, known := q.early.events[of]
	if q.gone(of) || of.change == "" || len(waiting) >= maxEarlyEvents || (!known && len(q.early.events) >= maxEarlyChanges) {
		return
	}
	q.early.events[of] = append(waiting, Event{At: at, Kind: kind, Text: text})
}

// noteEarly notes the events that were read before the change's admission.
func (q *Queue) noteEarly(c *change) {
	for _, e := range q.early.events[c.ref()] {
		q.note(c, e.At, e.Kind, e.Text)
	}
	maps.DeleteFunc(q.early.events, func(of ref, _ []Event) bool {
		return of.change == c.admission.Change && of.revision <= c.admission.Revision
	})
}

// answer notes that the lander has answered a decision. The decision itself may still be read.
func (q *Queue) answer(r *eventsv1.ChangeRef, decision string) {
	if d, open := q.open[refOf(r)]; open && d.decision == decision {
		delete(q.open, refOf(r))
	}
	if decision == "" || q.early.answered[decision] {
		return
	}
	q.early.answered[decision] = true
	q.early.order = append(q.early.order, decision)
	if len(q.early.order) > maxAnswered {
		delete(q.early.answered, q.early.order[0])
		q.early.order = q.early.order[1:]
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
