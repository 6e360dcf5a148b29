package runner

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/platform/telemetry"
)

// position is where a record is in the writer's partition.
type position struct {
	topic  string
	offset int64
}

// deadLetter reports a record that cannot be handled, unless an instance of the service has done so before. An error ends the
// ownership before the record is passed over: the next owner meets it again.
func (w *writer) deadLetter(ctx context.Context, d DeadLetter) error {
	e := d.Entry
	if w.reported == nil {
		w.reported = map[position]bool{}
		if err := w.readReported(ctx); err != nil {
			w.o.Logger.Warn("the dead letters cannot be read; what is among them is reported again", "partition", w.partition, "error", err)
		}
	}
	at := position{e.Topic, e.Offset}
	if w.reported[at] {
		return nil
	}
	if err := putDeadLetter(ctx, w.o.Log, w.o.Logger, w.service, w.o.Instance, d); err != nil {
		return err
	}
	w.reported[at] = true
	return nil
}

func (w *writer) readReported(ctx context.Context) error {
	return reading.Each(ctx, w.o.Log, events.TopicDeadLetters, w.partition, func(e *journal.Entry) bool {
		if d, is := e.Message.(*eventsv1.DeadLetter); is && d.Service == w.service && d.Partition == w.partition {
			w.reported[position{d.Topic, d.Offset}] = true
		}
		return true
	})
}

// Bounds of what a dead letter repeats of a record; the record itself is still in its own topic.
const (
	maxBuriedBytes       = 64 << 10
	maxBuriedKeyBytes    = 1 << 10
	maxBuriedHeaderBytes = 16 << 10
)

// Pauses between two tries to write a dead letter.
const (
	firstDeadLetterPause = 100 * time.Millisecond
	lastDeadLetterPause  = 5 * time.Second
)

// PutDeadLetter records what could not be handled and why. It tries until the record is written or the context ends, so
// that nothing is passed over that nobody hears of.
func PutDeadLetter(ctx context.Context, log journal.Log, logger *slog.Logger, service, instance string, d DeadLetter) {
	for pause := firstDeadLetterPause; ; pause = min(2*pause, lastDeadLetterPause) {
		err := putDeadLetter(ctx, log, logger, service, instance, d)
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.Error("a dead letter is not written; it is tried again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// putDeadLetter is one try. After an error nobody knows whether the record was written.
func putDeadLetter(ctx context.Context, log journal.Log, logger *slog.Logger, service, instance string, letter DeadLetter) error {
	e, reason := letter.Entry, letter.Reason
	at := fmt.Sprintf("%s/%d/%d", e.Topic, e.Partition, e.Offset)
	// What cannot be decoded has any bytes, and its reason may quote them; a text of Protobuf is UTF-8.
	e.Queue, e.Subject, reason = readable(e.Queue), readable(e.Subject), readable(reason)
	level := slog.LevelError
	if e.Topic == events.TopicLandRequests {
		level = slog.LevelInfo // others write it, and anything into it; who asked is answered
	}
	logger.Log(ctx, level, "dead letter", "at", at, "queue", e.Queue, "change", e.Subject, "reason", reason, telemetry.TraceID(e.Trace))
	d := &eventsv1.DeadLetter{
		Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Service: service, Reason: reason,
		Queue: e.Queue, Change: e.Subject, Type: readable(e.HeaderType()), Value: e.Raw[:min(len(e.Raw), maxBuriedBytes)], StampUs: time.Now().UnixMicro(),
		Key: e.Key[:min(len(e.Key), maxBuriedKeyBytes)], Headers: buriedHeaders(e), Advice: letter.Advice,
	}
	if e.Topic == events.TopicLandRequests {
		d.RequestId, d.Change = namesOf(e)
	}
	if d.Advice == "" {
		d.Advice = adviceOn(e)
	}
	if _, err := log.Append(ctx, events.TopicDeadLetters, e.Partition, events.Envelope{
		ID:     events.DeriveID(log.ID(), "dead-letter", service, at),
		Source: service, Instance: instance, Queue: e.Queue, Subject: d.Change, Time: time.Now(), Term: -1, Message: d,
	}); err != nil {
		return fmt.Errorf("write the dead letter of %s: %w", at, err)
	}
	return nil
}

// buriedHeaders returns the first headers of a record.
func buriedHeaders(e journal.Entry) (headers []*eventsv1.RecordHeader) {
	room := maxBuriedHeaderBytes
	for _, h := range e.Headers {
		if room -= len(h.Key) + len(h.Value); room < 0 {
			break
		}
		headers = append(headers, &eventsv1.RecordHeader{Key: readable(h.Key), Value: h.Value})
	}
	return headers
}

// namesOf returns the request id and the change of a land request; either is "" if it cannot be read.
func namesOf(e journal.Entry) (request, change string) {
	if land, is := e.Message.(*eventsv1.LandRequest); is {
		return land.RequestId, cmp.Or(land.Change, e.Subject)
	}
	request, change = events.NamesOf(e.Raw)
	return readable(request), readable(cmp.Or(change, e.Subject))
}

func adviceOn(e journal.Entry) string {
	if e.Topic == events.TopicLandRequests {
		return "Correct the program that published it, and publish the request again."
	}
	return "The queue goes on without the record. Find out who wrote it: no program but Landfall's services may write to this topic."
}

// readable puts the replacement character in the place of each run of bytes that is no UTF-8.
func readable(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
