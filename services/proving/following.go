package proving

import (
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/work"
	"landfall.build/services/journal"
)

// buildFollower folds the topics in the order that the builder's own follower does: a decision comes after
// what it rests on, a withdrawal after the schedules and results before it.
type buildFollower struct {
	m                          *machine
	x                          *site
	queue                      *work.Queue
	decisions, changes, builds buildSource
	// decision and change are read and wait for others.
	decision, change *waitingRecord
	last             ends
	early            int64
}

type buildSource struct {
	cursor journal.Cursor
	terms  *journal.Terms
	next   int64
}

type waitingRecord struct {
	entry journal.Entry
	after ends
}

type ends struct{ decisions, changes, builds int64 }

func newBuildFollower(x *site, q *work.Queue, starts int) *buildFollower {
	m := x.m
	source := func(topic string) buildSource {
		from := m.resume(starts, topic, x.partition)
		return buildSource{cursor: m.read(events.ServiceBuilder, topic, x.partition, from), terms: journal.NewTerms(topic), next: from}
	}
	f := &buildFollower{
		m: m, x: x, queue: q, decisions: source(events.TopicDecisions), changes: source(events.TopicChanges), builds: source(events.TopicBuilds),
	}
	f.readEnds()
	return f
}

func (f *buildFollower) close() {
	for _, s := range []buildSource{f.decisions, f.changes, f.builds} {
		s.cursor.Close()
	}
}

func (f *buildFollower) readEnds() {
	f.last = ends{f.m.end(events.TopicDecisions, f.x.partition), f.m.end(events.TopicChanges, f.x.partition), f.m.end(events.TopicBuilds, f.x.partition)}
}

// step takes one record if there is one that may be taken; silent: nothing has come for long, so what is
// waited for never comes.
func (f *buildFollower) step(silent bool) bool {
	if f.decision == nil && f.readDecision() {
		return true
	}
	if d := f.decision; d != nil && (silent || f.reached(d)) {
		f.decision = nil
		f.fold(d.entry)
		return true
	}
	if c := f.change; c != nil && (silent || f.reached(c) || f.restsOn(c)) {
		f.change = nil
		f.fold(c.entry)
		f.changes.next = c.entry.Offset + 1
		return true
	}
	if f.change == nil && f.readChange() {
		return true
	}
	return f.readBuild()
}

func (f *buildFollower) reached(w *waitingRecord) bool {
	decided := f.decisions.next >= w.after.decisions && (f.decision == nil || f.decision == w)
	return decided && f.changes.next >= w.after.changes && f.builds.next >= w.after.builds
}

// restsOn says that the next decision waits for a change, and for nothing else: the decisions before it were folded,
// and the results that it was taken with.
func (f *buildFollower) restsOn(c *waitingRecord) bool {
	return f.decision != nil && f.decision.after.changes > c.entry.Offset && f.builds.next >= min(c.after.builds, f.decision.after.builds)
}

func (f *buildFollower) readDecision() bool {
	e, ok := next(f.decisions.cursor)
	if !ok {
		return false
	}
	f.decisions.next = e.Offset + 1
	if d, is := e.Message.(*eventsv1.Decision); f.decisions.terms.Counts(e) && is {
		f.decision = &waitingRecord{e, ends{changes: d.Positions.GetChanges(), builds: d.Positions.GetBuilds()}}
	}
	return true
}

func (f *buildFollower) readChange() bool {
	e, ok := next(f.changes.cursor)
	if !ok {
		return false
	}
	counts := f.changes.terms.Counts(e)
	if counts && work.Withdraws(e.Message) {
		if e.Offset >= f.last.changes {
			f.readEnds()
		}
		f.change = &waitingRecord{e, ends{decisions: f.last.decisions, builds: f.last.builds}}
		return true
	}
	if counts {
		f.fold(e)
	}
	f.changes.next = e.Offset + 1
	return true
}

func (f *buildFollower) readBuild() bool {
	e, ok := next(f.builds.cursor)
	if !ok {
		return false
	}
	if f.builds.terms.Counts(e) {
		f.fold(e)
	}
	f.builds.next = e.Offset + 1
	if _, is := e.Message.(*eventsv1.BuildPrepared); is && f.queue.Early() > 0 {
		if e.Offset >= f.last.builds {
			f.readEnds()
		}
		f.early = f.last.decisions
		f.forgetEarly()
	}
	return true
}

func (f *buildFollower) fold(e journal.Entry) {
	if e.Queue != f.x.queue || e.Message == nil {
		return
	}
	if _, forgets := e.Message.(*eventsv1.EvidenceForgotten); forgets && f.m.leaves == ForgottenByAll {
		return
	}
	f.queue.Apply(e.Message, work.Origin{Offset: e.Offset})
	if f.early > 0 {
		f.forgetEarly()
	}
}

// forgetEarly drops preparations of builds that are over, once no unread decision can be theirs.
func (f *buildFollower) forgetEarly() {
	if f.decision == nil && f.decisions.next >= f.early {
		f.early = 0
		f.queue.ForgetEarly()
	}
}
