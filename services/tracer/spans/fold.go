// Package spans folds what a log holds of a change into a trace: a span for the change, and below it spans for its analyses, builds,
// steps, decisions and pushes.
//
// It is a function of the log. Ids are derived from what a span is about, so the trace that is sent while a change is in the queue and
// the one that somebody makes of the log later are the same.
package spans

import (
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/telemetry"
)

// Bounds of one trace. What is beyond them is counted and left out.
const (
	maxAnalyses = 50
	maxBuilds   = 200
	maxSteps    = 700
	maxAttempts = 50
	maxEvents   = 100
	// maxVersions bounds the target versions of a build whose steps are found by them.
	maxVersions = 20_000
	// maxUnknown bounds the changes of a queue of which builds were read before their admission.
	maxUnknown = 10_000
)

// Topics returns the topics that a Fold takes.
func Topics() []string {
	return []string{events.TopicChanges, events.TopicDecisions, events.TopicBuilds}
}

// Head is what is known of a change when its trace begins.
type Head struct {
	Queue, Change string
	Revision      uint64
	TraceID       trace.TraceID
	// Parent is the upstream's span; it is not valid if the request came without.
	Parent trace.SpanContext
}

// Fold folds one partition of the topics. The records of each topic have to come in their order. Those of different topics may come
// in any order, as long as all that belongs to a change comes before its Take.
type Fold struct {
	logID  string
	wanted func(Head) bool
	terms  map[string]*journal.Terms
	// inside is set if the first records of the topics may be missing. begun then holds the pairs of topic and service that a record
	// was read from.
	inside bool
	begun  map[[2]string]bool
	queues map[string]*queue
	ended  []*change
}

// New returns a fold of nothing. The traces of changes for which wanted is false are not made. inside says that the first records of
// the topics may be missing.
func New(logID string, inside bool, wanted func(Head) bool) *Fold {
	f := &Fold{logID: logID, wanted: wanted, terms: map[string]*journal.Terms{}, inside: inside, begun: map[[2]string]bool{}, queues: map[string]*queue{}}
	for _, topic := range Topics() {
		f.terms[topic] = journal.NewTerms(topic)
	}
	return f
}

// ref is a revision of a change.
type ref struct {
	change   string
	revision uint64
}

func refOf(c *eventsv1.ChangeRef) ref { return ref{c.GetChange(), c.GetRevision()} }

// queue folds one queue.
type queue struct {
	name   string
	lineup *lineup.Queue
	// changes holds the pending changes, those that have ended and are not taken yet, and those whose admission is not read yet; unknown
	// counts the last.
	changes map[ref]*change
	unknown int
	builds  map[string]*build
}

// change is what is known of a revision.
type change struct {
	ref
	queue     *queue
	admission *eventsv1.Admission
	// root is its own span, parent that of the upstream.
	root, parent trace.SpanContext
	// unwanted is set if no trace is made of it.
	unwanted bool
	admitted time.Time
	analyses []analysis
	builds   []*build
	steps    int
	attempts []*attempt
	events   []Event
	left     int

	ended   time.Time
	outcome string
	reason  *eventsv1.Reason
	who     string
}

type analysis struct {
	*eventsv1.ChangeAnalyzed
	instance string
}

// build is a build of a change.
type build struct {
	id     string
	change *change
	base   string
	// scheduled is nil if its decision is not read.
	scheduled *eventsv1.BuildScheduled
	assumed   []*change
	stamp, at time.Time
	// versions are those that prepared lists.
	prepared *eventsv1.BuildPrepared
	versions map[version]bool
	aborted  time.Time
	why      string
	steps    []*step
}

type version struct{ target, hash string }

// step is an attempt that finished.
type step struct {
	*eventsv1.StepFinished
	// owner is the build that it ran for, nil if that is not known.
	owner *build
	at    time.Time
}

// attempt is what the lander made of a decision.
type attempt struct {
	id, verdict, why   string
	stamp, decided     time.Time
	intended, finished time.Time
	base               string
	commits            []string
	result, message    string
}

// Verdicts and results of attempts; a result is "" while there is none.
const (
	land    = "land"
	reject  = "reject"
	eject   = "eject"
	landed  = "landed"
	refused = "refused"
	void    = "given up"
)

// Apply folds a record. Records that do not count change nothing.
func (f *Fold) Apply(e journal.Entry) {
	terms := f.terms[e.Topic]
	if terms == nil {
		return
	}
	if f.inside {
		f.begin(terms, e)
	}
	if !terms.Counts(e) || e.Queue == "" {
		return
	}
	q := f.queues[e.Queue]
	if q == nil {
		q = &queue{name: e.Queue, lineup: lineup.New(), changes: map[ref]*change{}, builds: map[string]*build{}}
		f.queues[e.Queue] = q
	}
	switch e.Topic {
	case events.TopicChanges:
		f.change(q, e)
	case events.TopicDecisions:
		if d, is := e.Message.(*eventsv1.Decision); is {
			q.decision(d, e.Time)
		}
	case events.TopicBuilds:
		switch m := e.Message.(type) {
		case *eventsv1.BuildPrepared:
			q.prepare(m)
		case *eventsv1.StepFinished:
			q.finish(m, e.Time)
		}
	}
}

// begin takes the term of a service's first record for the one in force, since the service's claim may be missing.
func (f *Fold) begin(terms *journal.Terms, e journal.Entry) {
	at := [2]string{e.Topic, e.Source}
	if f.begun[at] || e.Message == nil {
		return
	}
	if f.begun[at] = true; e.Term >= 0 {
		terms.Restore(e.Source, e.Term)
	}
}

// change folds a fact of landfall.changes.
func (f *Fold) change(q *queue, e journal.Entry) {
	if a, is := e.Message.(*eventsv1.ChangeAnalyzed); is {
		if c := q.changes[refOf(a.Change)]; c.open() {
			if len(c.analyses) < maxAnalyses {
				c.analyses = append(c.analyses, analysis{a, e.Instance})
			} else {
				c.left++
			}
		}
		return
	}
	consequence := q.lineup.Apply(e.Message, e.Offset)
	if !consequence.Applied {
		f.missed(q, e)
		return
	}
	if left := consequence.Left; left != nil {
		f.leave(q, q.changes[ref{left.ID(), left.Revision()}], e)
	}
	if consequence.Entered != nil {
		f.enter(q, consequence.Entered.Admission, e.Time)
	}
	switch m := e.Message.(type) {
	case *eventsv1.LandIntended:
		if a := q.changes[refOf(m.Change)].attempt(m.Decision, land); a != nil {
			a.intended, a.base, a.commits = e.Time, m.Base, m.Commits
		}
	case *eventsv1.LandVoid:
		q.changes[refOf(m.Change)].attempt(m.Decision, land).finish(e.Time, void, m.Reason)
	case *eventsv1.Refused:
		q.changes[refOf(m.Change)].attempt(m.Decision, land).finish(e.Time, refused, m.Message)
	case *eventsv1.ChangeHeld:
		q.event(m.Change, e.Time, "held", m.Why)
	case *eventsv1.ChangeReleased:
		q.event(m.Change, e.Time, "released", m.Why)
	case *eventsv1.ChangeMoved:
		q.event(m.Change, e.Time, "moved", m.Why)
	case *eventsv1.ChangeRetried:
		q.event(m.Change.GetChange(), e.Time, "retried", m.Why)
	}
}

// missed forgets a change that ends, and whose admission was not read.
func (f *Fold) missed(q *queue, e journal.Entry) {
	var of *eventsv1.ChangeRef
	switch m := e.Message.(type) {
	case *eventsv1.ChangeLanded:
		of = m.Change
	case *eventsv1.ChangeRejected:
		of = m.Change
	case *eventsv1.ChangeEjected:
		of = m.Change
	case *eventsv1.ChangeCancelled:
		of = &eventsv1.ChangeRef{Change: m.Change, Revision: m.Revision}
	}
	if c := q.changes[refOf(of)]; c != nil && c.admission == nil {
		q.unknown--
		q.forget(c)
	}
}

// enter begins the trace of a revision.
func (f *Fold) enter(q *queue, a *eventsv1.Admission, at time.Time) {
	c := q.changes[ref{a.Change, a.Revision}]
	if c == nil {
		c = q.add(ref{a.Change, a.Revision})
	} else {
		q.unknown--
	}
	c.admission, c.admitted = a, at
	own := telemetry.OwnTrace(f.logID, a.Queue, a.Change, a.Revision)
	c.root, c.parent = own, telemetry.SpanContext(a.Trace)
	switch {
	case !c.parent.IsValid():
	case c.parent.SpanID() == own.SpanID():
		c.parent = trace.SpanContext{}
	default:
		c.root = own.WithTraceID(c.parent.TraceID())
	}
	if c.unwanted = !f.wanted(Head{Queue: q.name, Change: a.Change, Revision: a.Revision, TraceID: c.root.TraceID(), Parent: c.parent}); c.unwanted {
		q.forgetBuilds(c)
	}
}

func (q *queue) add(r ref) *change {
	c := &change{ref: r, queue: q}
	q.changes[r] = c
	return c
}

// leave ends the trace of a revision.
func (f *Fold) leave(q *queue, c *change, e journal.Entry) {
	if c == nil {
		return
	}
	c.ended = e.Time
	switch m := e.Message.(type) {
	case *eventsv1.ChangeLanded:
		c.outcome = "landed"
		if a := c.attempt(m.Decision, land); a != nil {
			a.base, a.commits = m.Base, m.Commits
			a.finish(e.Time, landed, "")
		}
	case *eventsv1.ChangeRejected:
		c.outcome, c.reason = "rejected", m.Reason
		c.attempt(m.Decision, reject).finish(e.Time, c.outcome, m.Reason.GetMessage())
	case *eventsv1.ChangeEjected:
		c.outcome, c.reason = "ejected", m.Reason
		c.attempt(m.Decision, eject).finish(e.Time, c.outcome, m.Reason.GetMessage())
	case *eventsv1.ChangeCancelled:
		c.outcome, c.who = "cancelled", m.Who
	default:
		c.outcome = "revised"
	}
	if c.unwanted {
		q.forget(c)
		return
	}
	f.ended = append(f.ended, c)
}

// open reports whether what is read of a change belongs to its trace.
func (c *change) open() bool {
	return c != nil && !c.unwanted && c.admission != nil && c.ended.IsZero()
}

// attempt returns the attempt of a decision, made if it is not known. It returns nil if the change's trace is not made, or is full.
func (c *change) attempt(decision, verdict string) *attempt {
	if c == nil || c.unwanted {
		return nil
	}
	for _, a := range c.attempts {
		if a.id == decision {
			return a
		}
	}
	if len(c.attempts) == maxAttempts {
		c.left++
		return nil
	}
	a := &attempt{id: decision, verdict: verdict}
	c.attempts = append(c.attempts, a)
	return a
}

func (a *attempt) finish(at time.Time, result, message string) {
	if a != nil {
		a.finished, a.result, a.message = at, result, message
	}
}

// event notes what people did with a pending change.
func (q *queue) event(id string, at time.Time, name, why string) {
	pending := q.lineup.Pending(id)
	if pending == nil {
		return
	}
	c := q.changes[ref{id, pending.Revision()}]
	if !c.open() {
		return
	}
	if len(c.events) == maxEvents {
		c.left++
		return
	}
	c.events = append(c.events, Event{Name: name, Time: at, Text: why})
}

// decision folds what the selector decided.
func (q *queue) decision(d *eventsv1.Decision, at time.Time) {
	stamp := time.UnixMicro(d.StampUs)
	verdict := func(c *eventsv1.ChangeRef, id, verdict, why string) {
		if a := q.of(refOf(c)).attempt(id, verdict); a != nil {
			a.verdict, a.stamp, a.decided, a.why = verdict, stamp, at, why // the answer may have been read first
		}
	}
	for _, item := range d.Items {
		switch x := item.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			s := x.BuildScheduled
			if b := q.build(s.Build, refOf(s.Change.GetChange())); b != nil {
				b.scheduled, b.base, b.stamp, b.at = s, s.Base, stamp, at
				for _, other := range s.Assumed {
					b.assume(q, other.Change)
				}
			} else if c := q.changes[refOf(s.Change.GetChange())]; c != nil && !c.unwanted {
				c.left++
			}
		case *eventsv1.DecisionItem_BuildAborted:
			if b := q.builds[x.BuildAborted.Build]; b != nil {
				b.aborted, b.why = at, x.BuildAborted.Why
			}
		case *eventsv1.DecisionItem_LandDecided:
			verdict(x.LandDecided.Change, x.LandDecided.Decision, land, x.LandDecided.Why)
		case *eventsv1.DecisionItem_RejectDecided:
			verdict(x.RejectDecided.Change, x.RejectDecided.Decision, reject, x.RejectDecided.Reason.GetMessage())
		case *eventsv1.DecisionItem_EjectDecided:
			verdict(x.EjectDecided.Change, x.EjectDecided.Decision, eject, x.EjectDecided.Reason.GetMessage())
		}
	}
}

// of returns a change, and begins it if its admission is not read yet. It returns nil for one that is gone.
func (q *queue) of(r ref) *change {
	if c := q.changes[r]; c != nil {
		return c
	}
	if r.change == "" || q.lineup.Known(r.change) >= r.revision || q.unknown >= maxUnknown {
		return nil
	}
	q.unknown++
	return q.add(r)
}

// build returns a build of a change, made if it is not known; nil if no trace is made of the change.
func (q *queue) build(id string, r ref) *build {
	if b := q.builds[id]; b != nil {
		return b
	}
	c := q.of(r)
	if c == nil || c.unwanted {
		return nil
	}
	if len(c.builds) == maxBuilds {
		return nil
	}
	b := &build{id: id, change: c}
	q.builds[id] = b
	c.builds = append(c.builds, b)
	return b
}

// assume notes a change that a build assumes to land, if its trace is known.
func (b *build) assume(q *queue, other *eventsv1.ChangeRef) {
	if c := q.changes[refOf(other)]; c != nil {
		b.assumed = append(b.assumed, c)
	}
}

func (q *queue) prepare(p *eventsv1.BuildPrepared) {
	b := q.build(p.Build, refOf(p.Change))
	if b == nil || b.prepared != nil {
		return
	}
	b.base, b.versions = p.Base, map[version]bool{}
	for _, v := range p.Versions[:min(len(p.Versions), maxVersions)] {
		if !v.Trivial && !v.Absent {
			b.versions[version{v.Target, v.Hash}] = true
		}
	}
	b.prepared = &eventsv1.BuildPrepared{Outcome: p.Outcome, Message: p.Message, Worker: p.Worker, StartedUs: p.StartedUs, FinishedUs: p.FinishedUs}
}

// finish adds a step to each change that it serves: to the build that it ran for, or else to the change's first build that waits for
// that version.
func (q *queue) finish(f *eventsv1.StepFinished, at time.Time) {
	owner := q.builds[f.Build]
	var s *step
	for _, c := range q.changes {
		b := owner
		if owner == nil || owner.change != c {
			b = c.waiting(version{f.Target, f.Hash}, at)
		}
		if b == nil || !c.ended.IsZero() && at.After(c.ended) {
			continue
		}
		if c.steps++; c.steps > maxSteps {
			c.left++
			continue
		}
		if s == nil {
			s = &step{StepFinished: withoutOutput(f), owner: owner, at: at}
		}
		b.steps = append(b.steps, s)
	}
}

// waiting returns the first build of a change that waits at a time for a target version, nil if none does.
func (c *change) waiting(v version, at time.Time) *build {
	for _, b := range c.builds {
		if b.versions[v] && (b.aborted.IsZero() || !at.After(b.aborted)) {
			return b
		}
	}
	return nil
}

// withoutOutput returns what a trace shows of a step, which holds on to nothing else of the record.
func withoutOutput(f *eventsv1.StepFinished) *eventsv1.StepFinished {
	return &eventsv1.StepFinished{Target: f.Target, Hash: f.Hash, Attempt: f.Attempt, Outcome: f.Outcome, FailedCommand: f.FailedCommand, Reason: f.Reason,
		Worker: f.Worker, Build: f.Build, StartedUs: f.StartedUs, FinishedUs: f.FinishedUs, Group: f.Group}
}

func (q *queue) forget(c *change) {
	delete(q.changes, c.ref)
	q.forgetBuilds(c)
}

func (q *queue) forgetBuilds(c *change) {
	for _, b := range c.builds {
		delete(q.builds, b.id)
	}
	c.builds = nil
}

// Ended returns how many changes have ended and are not taken.
func (f *Fold) Ended() int { return len(f.ended) }

// EndedBefore returns how many changes Take may take that ended before a time: those before the first one that ended later.
func (f *Fold) EndedBefore(t time.Time) int {
	n := 0
	for n < len(f.ended) && f.ended[n].ended.Before(t) {
		n++
	}
	return n
}

// Take returns the traces of the n changes that ended first and are not taken yet, and forgets these.
func (f *Fold) Take(n int) []Trace {
	out := make([]Trace, 0, n)
	for _, c := range f.ended[:n] {
		if c.admission != nil {
			out = append(out, c.assemble(c.ended))
		}
		c.queue.forget(c)
	}
	f.ended = slices.Delete(f.ended, 0, n)
	return out
}

// Pending returns the traces of changes that have not ended, as they are at a time, in the order of the queues' names and of their
// lineups.
func (f *Fold) Pending(now time.Time) (out []Trace) {
	for _, name := range slices.Sorted(maps.Keys(f.queues)) {
		q := f.queues[name]
		for _, p := range q.lineup.Order() {
			if c := q.changes[ref{p.ID(), p.Revision()}]; c.open() {
				out = append(out, c.assemble(now))
			}
		}
	}
	return out
}
