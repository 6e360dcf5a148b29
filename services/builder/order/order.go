// Package order is the order in which the builder folds the three topics of a partition. All instances agree on it where it
// matters: a decision comes after the records that it rests on, and a withdrawal of evidence after the schedules and results
// before it, or a build that is over would look open again.
package order

import (
	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Ends are offsets in the topics of a partition: how far each is written, or read.
type Ends struct{ Decisions, Changes, Builds int64 }

// Into is what the records are folded into.
type Into interface {
	// Fold takes a record that counts.
	Fold(e journal.Entry)
	// ReadBuilds takes the offset up to which landfall.builds is read.
	ReadBuilds(next int64)
	// HasEarly reports whether there are preparations whose schedule has not been read.
	HasEarly() bool
	// ForgetEarly drops those: their schedules do not come any more.
	ForgetEarly()
}

// Order reads the topics of one partition. It is for one goroutine at a time.
type Order struct {
	into Into
	// ends asks the log how far the topics are written; see Ask.
	ends func() (Ends, error)

	decisions, changes, builds topic
	// decision and change have been read and wait for other records; nil if none waits.
	decision, change *waiting
	// start is where the topics ended at the start. Until they are read that far, nobody acts on them.
	start Ends
	// last holds the ends that the last call of ends returned. A record below last in its own topic was written before that call,
	// so whatever comes before it in another topic is below last there.
	last Ends
	// early is set while there are preparations without a schedule: once decisions are read up to it, they have none.
	early int64
	live  bool
}

type topic struct {
	name   string
	cursor journal.Cursor
	terms  *journal.Terms
	// next is the offset of the next record that is folded.
	next int64
}

// waiting is a record that is folded once the other topics have been, up to these offsets.
type waiting struct {
	entry journal.Entry
	after Ends
}

// Ask asks how far the topics are written, in the sequence that an Order needs: changes first, so that the results on which
// a withdrawal rests are below the end of builds, and decisions last, so that the schedules of preparations are below theirs.
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

// New returns the order at the beginning of the topics; ends asks how far they are written, by Ask.
func New(into Into, ends func() (Ends, error)) (*Order, error) {
	o := &Order{into: into, ends: ends, decisions: newTopic(events.TopicDecisions), changes: newTopic(events.TopicChanges), builds: newTopic(events.TopicBuilds)}
	var err error
	o.start, err = ends()
	o.last = o.start
	return o, err
}

func newTopic(name string) topic { return topic{name: name, terms: journal.NewTerms(name)} }

func (o *Order) topics() []*topic { return []*topic{&o.decisions, &o.changes, &o.builds} }

// Open follows each topic from where it is read to, until Close.
func (o *Order) Open(follow func(topic string, from int64) (journal.Cursor, error)) (err error) {
	for _, t := range o.topics() {
		if t.cursor, err = follow(t.name, t.next); err != nil {
			o.Close()
			return err
		}
	}
	return nil
}

// Close ends the reading.
func (o *Order) Close() {
	for _, t := range o.topics() {
		if t.cursor != nil {
			t.cursor.Close()
		}
	}
}

// Ready returns the channels that are signalled when a topic has more.
func (o *Order) Ready() (decisions, changes, builds <-chan struct{}) {
	return o.decisions.cursor.Ready(), o.changes.cursor.Ready(), o.builds.cursor.Ready()
}

// CaughtUp reports whether everything is folded that was there at the start.
func (o *Order) CaughtUp() bool {
	return !o.Waits() && o.decisions.next >= o.start.Decisions && o.changes.next >= o.start.Changes && o.builds.next >= o.start.Builds
}

// Read calls f with each topic and the offset of the next record that is read.
func (o *Order) Read(f func(topic string, next int64)) {
	for _, t := range o.topics() {
		f(t.name, t.next)
	}
}

// Begin is called once it has caught up: from then on no topic is held back.
func (o *Order) Begin() { o.live = true }

// Waits reports whether a record was read that waits for others.
func (o *Order) Waits() bool { return o.decision != nil || o.change != nil }

// Step takes one record, if there is one that may be taken now. silent is set when nothing has come for long: what is waited
// for was torn apart and never comes. To go on without it is safe; at worst, work is done twice.
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
	// At the start neither changes nor builds are read ahead of the decisions: preparations would pile up, of changes that
	// have left, and whose results are forgotten before the end.
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

// restsOn reports whether the next decision waits for a change, and for nothing else: the decisions before it are folded, and
// the results that the selector knew. Newer results need not be, since the selector had not read them.
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
	if !counts || !steps.Withdraws(e.Message) {
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
