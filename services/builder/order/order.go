// Package order is the order in which the builder folds the three topics of a partition: every instance agrees on it
// where it matters. A decision comes after the records that it rests on, a withdrawal after the schedules and results
// before it, or a build that is over would look open again.
package order

import (
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/work"
	"landfall.build/services/journal"
)

// Ends are offsets in the topics of a partition: how far each is written, or read.
type Ends struct{ Decisions, Changes, Builds int64 }

// Into is what the records are folded into.
type Into interface {
	// Fold takes a record that counts.
	Fold(e journal.Entry)
	// ReadBuilds is told how far landfall.builds is read.
	ReadBuilds(next int64)
	// HasEarly says that there are preparations without a schedule, and ForgetEarly that those which still have none get
	// none any more.
	HasEarly() bool
	ForgetEarly()
}

// Order reads the topics of one partition. It is for one goroutine at a time.
type Order struct {
	into Into
	// ends asks the log how far it is written; see Ask.
	ends func() (Ends, error)

	decisions, changes, builds topic
	// decision and change are read and wait for others.
	decision, change *waiting
	// start is where the topics ended at the start; until they are read that far, nothing is done.
	start Ends
	// last caches the log's ends for look-ups: what was written before one record of a topic is read is before the ends
	// of the others that were taken after its own.
	last Ends
	// early is the offset in decisions that makes preparations without a schedule forgettable.
	early int64
	live  bool
}

type topic struct {
	cursor journal.Cursor
	terms  *journal.Terms
	next   int64
}

// waiting is a record that is folded once the other topics have been, up to these offsets.
type waiting struct {
	entry journal.Entry
	after Ends
}

// Ask reads how far the topics are written, in the order that an Order needs: results before the withdrawals that rest
// on them, schedules after the preparations that answer them.
func Ask(end func(topic string) (int64, error)) (e Ends, err error) {
	if e.Changes, err = end(events.TopicChanges); err != nil {
		return e, err
	}
	if e.Builds, err = end(events.TopicBuilds); err != nil {
		return e, err
	}
	e.Decisions, err = end(events.TopicDecisions)
	return e, err
}

// New is at the beginning of the topics; ends asks how far they are written.
func New(into Into, ends func() (Ends, error)) (*Order, error) {
	o := &Order{into: into, ends: ends}
	for name, t := range o.topics() {
		t.terms = journal.NewTerms(name)
	}
	var err error
	o.start, err = ends()
	o.last = o.start
	return o, err
}

func (o *Order) topics() map[string]*topic {
	return map[string]*topic{events.TopicDecisions: &o.decisions, events.TopicChanges: &o.changes, events.TopicBuilds: &o.builds}
}

// Open follows each topic from where it is read to. What follow gave is ended by Close.
func (o *Order) Open(follow func(topic string, from int64) (journal.Cursor, error)) (err error) {
	for name, t := range o.topics() {
		if t.cursor, err = follow(name, t.next); err != nil {
			o.Close()
			return err
		}
	}
	return nil
}

// Close ends what Open began.
func (o *Order) Close() {
	for _, t := range o.topics() {
		if t.cursor != nil {
			t.cursor.Close()
		}
	}
}

// Ready are told when a topic has more.
func (o *Order) Ready() (decisions, changes, builds <-chan struct{}) {
	return o.decisions.cursor.Ready(), o.changes.cursor.Ready(), o.builds.cursor.Ready()
}

// CaughtUp says that everything is folded that was there at the start.
func (o *Order) CaughtUp() bool {
	return !o.Waits() && o.decisions.next >= o.start.Decisions && o.changes.next >= o.start.Changes && o.builds.next >= o.start.Builds
}

// Begin is called once it has caught up: from then on no topic is held back.
func (o *Order) Begin() { o.live = true }

// Waits says that a record was read which waits for others.
func (o *Order) Waits() bool { return o.decision != nil || o.change != nil }

// Step takes one record, if there is one that may be taken now. Silent says that nothing has come for long: what is
// waited for was torn and never comes. Nothing unsafe can follow, only work that is done twice.
func (o *Order) Step(silent bool) (did bool, err error) {
	if o.decision == nil {
		if did, err = o.readDecision(); did || err != nil {
			return did, err
		}
	}
	if d := o.decision; d != nil && (silent || o.reached(d)) {
		o.decision = nil
		o.fold(d.entry)
		return true, nil
	}
	if c := o.change; c != nil && (silent || o.reached(c) || o.restsOn(c)) {
		o.change = nil
		o.fold(c.entry)
		o.changes.next = c.entry.Offset + 1
		return true, nil
	}
	// At the start neither changes nor builds run ahead of the decisions: preparations would pile up, of changes that
	// have left, whose results are forgotten by the end.
	reading := !o.live && !silent && o.decisions.next < o.start.Decisions
	if reading && o.decision == nil {
		return false, nil
	}
	if o.change == nil && !(reading && o.changes.next >= o.decision.after.Changes) {
		if did, err = o.readChange(); did || err != nil {
			return did, err
		}
	}
	if reading && o.builds.next >= o.decision.after.Builds {
		return false, nil
	}
	return o.readBuild()
}

func (o *Order) reached(w *waiting) bool {
	decided := o.decisions.next >= w.after.Decisions && (o.decision == nil || o.decision == w)
	return decided && o.changes.next >= w.after.Changes && o.builds.next >= w.after.Builds
}

// restsOn says that the next decision waits for a change, and for nothing else: the decisions before it were folded,
// and the results that it was taken with. Results that are newer need not be: whoever took it had not read them.
func (o *Order) restsOn(c *waiting) bool {
	return o.decision != nil && o.decision.after.Changes > c.entry.Offset && o.builds.next >= min(c.after.Builds, o.decision.after.Builds)
}

func (o *Order) readDecision() (bool, error) {
	e, ok, err := o.decisions.cursor.TryNext()
	if err != nil || !ok {
		return false, err
	}
	o.decisions.next = e.Offset + 1
	d, isDecision := e.Message.(*eventsv1.Decision)
	if o.decisions.terms.Counts(e) && isDecision {
		o.decision = &waiting{entry: e, after: Ends{Changes: d.GetPositions().GetChanges(), Builds: d.GetPositions().GetBuilds()}}
	} else if o.early > 0 {
		o.forgetEarly()
	}
	return true, nil
}

func (o *Order) readChange() (bool, error) {
	e, ok, err := o.changes.cursor.TryNext()
	if err != nil || !ok {
		return false, err
	}
	counts := o.changes.terms.Counts(e)
	if !counts || !work.Withdraws(e.Message) {
		if counts {
			o.fold(e)
		}
		o.changes.next = e.Offset + 1
		return true, nil
	}
	if e.Offset >= o.last.Changes {
		if o.last, err = o.ends(); err != nil {
			return false, err
		}
	}
	o.change = &waiting{entry: e, after: Ends{Decisions: o.last.Decisions, Builds: o.last.Builds}}
	return true, nil
}

func (o *Order) readBuild() (bool, error) {
	e, ok, err := o.builds.cursor.TryNext()
	if err != nil || !ok {
		return false, err
	}
	if o.builds.terms.Counts(e) {
		o.fold(e)
	}
	o.builds.next = e.Offset + 1
	o.into.ReadBuilds(o.builds.next)
	if _, prepared := e.Message.(*eventsv1.BuildPrepared); !prepared || !o.into.HasEarly() {
		return true, nil
	}
	if e.Offset >= o.last.Builds {
		if o.last, err = o.ends(); err != nil {
			return false, err
		}
	}
	o.early = o.last.Decisions
	o.forgetEarly()
	return true, nil
}

// fold takes a counted record.
func (o *Order) fold(e journal.Entry) {
	if e.Queue == "" || e.Message == nil {
		return
	}
	o.into.Fold(e)
	if o.early > 0 {
		o.forgetEarly()
	}
}

// forgetEarly drops preparations of builds that are over, once no unread decision can be theirs.
func (o *Order) forgetEarly() {
	if o.decision != nil || o.decisions.next < o.early {
		return
	}
	o.early = 0
	o.into.ForgetEarly()
}
