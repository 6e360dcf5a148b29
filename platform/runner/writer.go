package runner

import (
	"context"
	"fmt"
	"strconv"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// writer appends a claimed service's records to one partition without waiting, and stops at the first
// that fails: nothing after it is sent.
type writer struct {
	o         Options
	service   string
	topic     string
	partition int32
	term      int64
	failed    chan error

	acknowledged acknowledged
	// ownRead is the offset behind what the owner has read of its topic: to its claim before it writes, then by checkTerm.
	ownRead int64
	// reported holds the records of the partition that the service has put among the dead letters; nil before it has looked.
	reported map[position]bool
}

// newWriter writes under a term.
func newWriter(o Options, service, topic string, partition int32, term int64) *writer {
	return &writer{o: o, service: service, topic: topic, partition: partition, term: term, failed: make(chan error, 1), ownRead: term + 1}
}

// envelope returns a record of the writer's under its term; what identifies it goes into its id.
func (w *writer) envelope(a Append) events.Envelope {
	if a.Envelope != nil {
		return *a.Envelope
	}
	identity := append([]string{events.TypeOf(a.Message), a.Queue, strconv.FormatInt(w.term, 10)}, a.Identity...)
	return events.Envelope{
		ID: events.DeriveID(w.o.Log.ID(), identity...), Source: w.service, Instance: w.o.Instance,
		Queue: a.Queue, Subject: a.Subject, Time: w.o.Now(), Term: w.term, Trace: a.Trace, Message: a.Message,
	}
}

// Write sends one record.
func (w *writer) Write(ctx context.Context, a Append) error {
	select {
	case err := <-w.failed:
		return err
	default:
	}
	n := w.acknowledged.sending()
	w.o.Log.AppendAsync(ctx, w.topic, w.partition, w.envelope(a), func(offset int64, err error) {
		if err == nil {
			w.acknowledged.got(n, offset)
			return
		}
		select {
		case w.failed <- fmt.Errorf("write to partition %d of %s: %w", w.partition, w.topic, err):
		default:
		}
	})
	return nil
}

// writeAndWait appends one record, and returns its offset.
func (w *writer) writeAndWait(ctx context.Context, a Append) (int64, error) {
	offsets, err := w.o.Log.Append(ctx, w.topic, w.partition, w.envelope(a))
	if err != nil {
		return 0, fmt.Errorf("write %s: %w", events.TypeOf(a.Message), err)
	}
	return offsets[0], nil
}

// checkTerm reads on in the own topic, and returns ErrSuperseded if another instance has claimed it.
func (w *writer) checkTerm(own journal.Cursor) error {
	for {
		e, ok, err := own.TryNext()
		if err != nil || !ok {
			return err
		}
		w.ownRead = e.Offset + 1
		if _, isClaim := e.Message.(*eventsv1.Claim); isClaim && e.Source == w.service && e.Offset > w.term {
			return ErrSuperseded
		}
	}
}
