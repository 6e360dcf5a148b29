package stage

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
)

// Writer appends a claimed service's records to one partition without waiting, and stops at the first
// that fails: nothing after it is sent.
type Writer struct {
	o         Options
	service   string
	topic     string
	partition int32
	term      int64
	failed    chan error

	acknowledged acknowledged
	// ownRead is the offset behind what the owner has read of its topic: to its claim before it writes, then by CheckTerm.
	ownRead int64
	// reported are the offsets of this writer's input that are among the dead letters; nil before it has looked.
	reported map[int64]bool
}

// NewWriter writes under a term.
func NewWriter(o Options, service, topic string, partition int32, term int64) *Writer {
	return &Writer{o: o, service: service, topic: topic, partition: partition, term: term, failed: make(chan error, 1), ownRead: term + 1}
}

// Envelope is a record of the writer's under its term; what identifies it goes into its id.
func (w *Writer) Envelope(queue, subject, identity, trace string, m proto.Message) events.Envelope {
	return events.Envelope{
		ID:     events.DeriveID(w.o.Log.ID(), events.TypeOf(m), queue, identity, strconv.FormatInt(w.term, 10)),
		Source: w.service, Instance: w.o.Instance, Queue: queue, Subject: subject,
		Time: w.o.Now(), Term: w.term, Trace: trace, Message: m,
	}
}

// Write sends one record; its position identifies it.
func (w *Writer) Write(ctx context.Context, queue, position, trace string, m proto.Message) error {
	select {
	case err := <-w.failed:
		return err
	default:
	}
	n := w.acknowledged.sending()
	w.o.Log.AppendAsync(ctx, w.topic, w.partition, w.Envelope(queue, "", position, trace, m), func(offset int64, err error) {
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

// Failed yields the first error of a write.
func (w *Writer) Failed() <-chan error { return w.failed }

// Wait returns when there may be something to read, with an error when the ownership has ended. It reads on
// in the own topic, unless own is nil, to see whether another instance has claimed it.
func (w *Writer) Wait(ctx context.Context, own journal.Cursor, ready <-chan struct{}) error {
	var claims <-chan struct{}
	if own != nil {
		claims = own.Ready()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.failed:
			return err
		case <-ready:
			return nil
		case <-claims:
			if err := w.CheckTerm(own); err != nil {
				return err
			}
		}
	}
}

// CheckTerm reads on in the stage's own topic and says whether another instance has claimed it.
func (w *Writer) CheckTerm(own journal.Cursor) error {
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
