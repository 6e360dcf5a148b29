package proof

import (
	"context"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// reader is a cursor that shows a service something else than what the log has: what a rule would have it
// do is left out so.
type reader struct {
	journal.Cursor
	see func(*journal.Entry)
}

// TryNext implements journal.Cursor.
func (r *reader) TryNext() (journal.Entry, bool, error) {
	e, ok, err := r.Cursor.TryNext()
	if ok {
		r.see(&e)
	}
	return e, ok, err
}

// Next implements journal.Cursor.
func (r *reader) Next(ctx context.Context) (journal.Entry, error) {
	e, err := r.Cursor.Next(ctx)
	if err == nil {
		r.see(&e)
	}
	return e, err
}

// read follows a partition as a service does.
func (m *machine) read(service, topic string, partition int32, from int64) journal.Cursor {
	c := m.follow(topic, partition, from)
	if service == events.ServiceLander && topic == events.TopicBuilds || service == events.ServiceEnumerator && topic != events.TopicSpeculations {
		c = &lagging{c, m}
	}
	if see := m.seeing(service, topic, partition); see != nil {
		return &reader{c, see}
	}
	return c
}

// owning is a service's own topic as its owner under a term reads it.
func (m *machine) owning(c journal.Cursor, service string, term int64) journal.Cursor {
	switch m.leaves {
	case ReadToTheClaim:
		until := max(0, term-m.r.Int64N(16))
		return &reader{c, func(e *journal.Entry) {
			if e.Offset >= until && e.Offset < term {
				e.Offset = term // and so it writes before it has read up to its claim
			}
		}}
	case SnapshotsCount:
		return &reader{c, func(e *journal.Entry) {
			if journal.BeginsTerm(e.Envelope) && e.Source == service && e.Offset > term {
				e.Message = nil
			}
		}}
	}
	return c
}

// lagging is a topic that comes later than the others: who rests on it has to wait for it, and who merges it with others
// gets its records in another order.
type lagging struct {
	journal.Cursor
	m *machine
}

// TryNext implements journal.Cursor.
func (c *lagging) TryNext() (journal.Entry, bool, error) {
	if !c.m.patient && c.m.r.IntN(3) == 0 {
		return journal.Entry{}, false, nil
	}
	return c.Cursor.TryNext()
}

// seeing is how a service sees a topic while a rule is left out, nil for as it is.
func (m *machine) seeing(service, topic string, partition int32) func(*journal.Entry) {
	lander := service == events.ServiceLander
	switch m.leaves {
	case Terms:
		return everyTerm()
	case FirstOfAnID:
		return repeatsAsAttempts()
	case AdmittedOnce:
		return repeatsAsRevisions()
	case TooLateToStop:
		return cancelsAnyTime()
	case M5aRequires:
		return altering(func(a *eventsv1.Admission) { a.Requires = nil })
	case M19aNoResult:
		return noResultAsFailure
	case M20aWithdrawn:
		return nothingWithdrawn
	case M23cFoundAgain:
		return nothingOutdated
	case M24aByName:
		return everythingQuarantined
	case CancelWins:
		if lander {
			return unheard[*eventsv1.ChangeCancelled, *eventsv1.ChangeRevised]
		}
	case M19Holds:
		if lander {
			return unheard[*eventsv1.ChangeHeld, *eventsv1.QueuePaused]
		}
	case SettleFirst:
		if lander && topic == events.TopicChanges {
			term := m.terms[ownership{partitionOf{topic, partition}, service}]
			return func(e *journal.Entry) {
				if _, is := e.Message.(*eventsv1.LandIntended); is && e.Offset < term {
					e.Message = nil
				}
			}
		}
	case EvidencePosition:
		if d := events.TopicDecisions; lander && topic == d {
			return withoutPositions
		}
	}
	return nil
}

// unheard hides messages of two kinds.
func unheard[A, B proto.Message](e *journal.Entry) {
	switch e.Message.(type) {
	case A, B:
		e.Message = nil
	}
}

// everyTerm lets every record name the claim in force.
func everyTerm() func(*journal.Entry) {
	last := map[string]int64{}
	return func(e *journal.Entry) {
		if journal.BeginsTerm(e.Envelope) {
			last[e.Source] = e.Offset
		} else if term, claims := last[e.Source]; claims {
			e.Term = term
		}
	}
}

// repeatsAsAttempts gives a repeated result another attempt.
func repeatsAsAttempts() func(*journal.Entry) {
	type attempt struct {
		target, hash string
		number       uint32
	}
	seen := map[attempt]bool{}
	return func(e *journal.Entry) {
		f, is := e.Message.(*eventsv1.StepFinished)
		if !is {
			return
		}
		at := attempt{f.Target, f.Hash, f.Attempt}
		if seen[at] {
			f = proto.CloneOf(f)
			f.Attempt = uint32(1000 + e.Offset)
			e.Message = f
		}
		seen[at] = true
	}
}

// altering changes what is admitted.
func altering(alter func(*eventsv1.Admission)) func(*journal.Entry) {
	return func(e *journal.Entry) {
		switch e.Message.(type) {
		case *eventsv1.ChangeAdmitted, *eventsv1.ChangeRevised:
			e.Message = proto.Clone(e.Message)
			alter(e.Message.(interface{ GetAdmission() *eventsv1.Admission }).GetAdmission())
		}
	}
}

// repeatsAsRevisions gives a repeated admission another revision.
func repeatsAsRevisions() func(*journal.Entry) {
	type revision struct {
		queue, change string
		number        uint64
	}
	seen := map[revision]bool{}
	return func(e *journal.Entry) {
		altering(func(a *eventsv1.Admission) {
			for seen[revision{e.Queue, a.Change, a.Revision}] {
				a.Revision++
			}
			seen[revision{e.Queue, a.Change, a.Revision}] = true
		})(e)
	}
}

// cancelsAnyTime lets a cancellation of what is being landed end the intention.
func cancelsAnyTime() func(*journal.Entry) {
	open := map[string]*eventsv1.LandIntended{}
	return func(e *journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.LandIntended:
			open[e.Queue] = f
		case *eventsv1.ChangeLanded, *eventsv1.LandVoid:
			delete(open, e.Queue)
		case *eventsv1.ChangeCancelled:
			if i := open[e.Queue]; i != nil && i.Change.Change == f.Change {
				e.Message = &eventsv1.LandVoid{Change: i.Change, Decision: i.Decision, Commit: i.Commits[len(i.Commits)-1]}
				delete(open, e.Queue)
			}
		}
	}
}

// noResultAsFailure takes what says nothing for a failure.
func noResultAsFailure(e *journal.Entry) {
	f, is := e.Message.(*eventsv1.StepFinished)
	if !is {
		return
	}
	switch f.Outcome {
	case eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN:
		f = proto.CloneOf(f)
		f.Outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		e.Message = f
	}
}

// nothingWithdrawn hides for which attempts somebody left.
func nothingWithdrawn(e *journal.Entry) {
	switch e.Message.(type) {
	case *eventsv1.ChangeRejected, *eventsv1.ChangeEjected:
		e.Message = proto.Clone(e.Message)
		if r := e.Message.(interface{ GetReason() *eventsv1.Reason }).GetReason(); r != nil {
			r.Failed = nil
		}
	case *eventsv1.ChangeRetried:
		e.Message = &eventsv1.ChangeRetried{Change: e.Message.(*eventsv1.ChangeRetried).Change}
	}
}

// nothingOutdated hides what has to be found again.
func nothingOutdated(e *journal.Entry) {
	if f, is := e.Message.(*eventsv1.Refused); is {
		f = proto.CloneOf(f)
		f.BaseOutdated = nil
		e.Message = f
	}
}

// withoutPositions lets decisions rest on nothing.
func withoutPositions(e *journal.Entry) {
	if d, is := e.Message.(*eventsv1.Decision); is {
		d = proto.CloneOf(d)
		d.Positions = nil
		e.Message = d
	}
}
