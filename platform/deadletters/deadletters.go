// Package deadletters reads landfall.dead-letters, the records that could not be read or handled, and publishes the land requests among
// them again.
package deadletters

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
)

// ErrUnsendable is returned for a dead letter that is not a land request, that this version cannot read, or that the log no longer has.
var ErrUnsendable = errors.New("it cannot be sent again")

// keptSendings is how many sendings of a dead letter are kept, the newest.
const keptSendings = 20

// Letter is a dead letter.
type Letter struct {
	*eventsv1.DeadLetter
	// Sent has when it was published again, newest last, and Times how often.
	Sent  []*eventsv1.DeadLetterSent
	Times int
}

// LastSent returns when it was published again last, nil for never.
func (l *Letter) LastSent() *eventsv1.DeadLetterSent {
	if len(l.Sent) == 0 {
		return nil
	}
	return l.Sent[len(l.Sent)-1]
}

// At returns a dead letter as it was at a time, in microseconds since 1970, and whether it was there.
func (l Letter) At(us int64) (then Letter, there bool) {
	for len(l.Sent) > 0 && l.LastSent().StampUs > us {
		l.Sent = l.Sent[:len(l.Sent)-1]
		l.Times--
	}
	return l, l.StampUs <= us
}

// Place returns where the record of a dead letter is, as TOPIC/PARTITION/OFFSET.
func Place(d interface {
	GetTopic() string
	GetPartition() int32
	GetOffset() int64
}) string {
	return fmt.Sprintf("%s/%d/%d", strings.TrimPrefix(d.GetTopic(), "landfall."), d.GetPartition(), d.GetOffset())
}

// Sendable reports whether a dead letter is a land request, which can be published again.
func (l *Letter) Sendable() bool { return l.Topic == events.TopicLandRequests }

// List holds the dead letters of a log, the first of each record. The zero value holds all; Newest bounds how many.
type List struct {
	Newest  int
	letters []*Letter
	known   map[string]*Letter
	dropped int
}

// Apply takes the next record of landfall.dead-letters.
func (l *List) Apply(m proto.Message) {
	switch m := m.(type) {
	case *eventsv1.DeadLetter:
		at := Place(m)
		if l.known[at] != nil {
			return
		}
		if l.known == nil {
			l.known = map[string]*Letter{}
		}
		l.known[at] = &Letter{DeadLetter: m}
		l.letters = append(l.letters, l.known[at])
		if l.Newest > 0 && len(l.letters) > l.Newest {
			delete(l.known, Place(l.letters[0]))
			l.letters[0] = nil
			l.letters = l.letters[1:]
			l.dropped++
		}
	case *eventsv1.DeadLetterSent:
		if letter := l.known[Place(m)]; letter != nil {
			letter.Sent = append(letter.Sent[max(0, len(letter.Sent)+1-keptSendings):len(letter.Sent):len(letter.Sent)], m)
			letter.Times++
		}
	}
}

// Letters returns the dead letters, in the order in which they were taken. They must not be changed.
func (l *List) Letters() []*Letter { return l.letters }

// Dropped returns how many older ones are not held any more.
func (l *List) Dropped() int { return l.dropped }

// Find returns the dead letter of a place, nil if there is none.
func (l *List) Find(place string) *Letter { return l.known[strings.TrimPrefix(place, "landfall.")] }

// Read returns the dead letters of a log.
func Read(ctx context.Context, log journal.Log) (*List, error) {
	list := &List{}
	apply := func(e *journal.Entry) bool { list.Apply(e.Message); return true }
	for p := range log.Partitions() {
		if err := reading.Each(ctx, log, events.TopicDeadLetters, p, apply); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Send publishes the land request of a dead letter again, if this version can read it (ErrUnsendable). Then it publishes by, which says who
// sent it and why, and returns the offset of that. A request without an id gets one that is derived from its record, so that it is admitted
// once, however often it is sent.
func Send(ctx context.Context, log journal.Log, d *eventsv1.DeadLetter, by *eventsv1.DeadLetterSent, source, instance string) (offset int64, err error) {
	if d.Topic != events.TopicLandRequests {
		return 0, fmt.Errorf("%s is no land request, and %w", Place(d), ErrUnsendable)
	}
	cursor, err := log.Follow(ctx, d.Topic, d.Partition, d.Offset)
	if err != nil {
		return 0, err
	}
	defer cursor.Close()
	e, err := cursor.Next(ctx)
	switch {
	case err != nil:
		return 0, err
	case e.Offset != d.Offset:
		return 0, fmt.Errorf("%s is no longer in the log, and %w", Place(d), ErrUnsendable)
	case e.Err != nil:
		return 0, fmt.Errorf("%s cannot be read by this version either, and %w: %w", Place(d), ErrUnsendable, e.Err)
	}
	land := e.Message.(*eventsv1.LandRequest)
	if d.Queue != "" && land.Queue != d.Queue {
		// The sender has the role in the letter's queue, and need not have it in the request's.
		return 0, fmt.Errorf("%s is for the queue %.80q, its dead letter says %.80q, and %w", Place(d), land.Queue, d.Queue, ErrUnsendable)
	}
	if land.RequestId == "" {
		land.RequestId = events.DeriveID(log.ID(), "land-request", fmt.Sprint(e.Partition), fmt.Sprint(e.Offset))
	}
	e.Envelope.ID = events.DeriveID(log.ID(), "sent-again", Place(d))
	if _, err := log.Append(ctx, d.Topic, events.PartitionOf(land.Queue, log.Partitions()), e.Envelope); err != nil {
		return 0, err
	}
	by.Topic, by.Partition, by.Offset = d.Topic, d.Partition, d.Offset
	// It goes into the partition of the dead letter, so that every reader finds it behind that one.
	offsets, err := log.Append(ctx, events.TopicDeadLetters, d.Partition, events.Envelope{
		ID:     events.DeriveID(log.ID(), "dead-letter-sent", Place(d), fmt.Sprint(by.StampUs)),
		Source: source, Instance: instance, Queue: land.Queue, Subject: d.Change, Time: time.UnixMicro(by.StampUs), Term: -1, Message: by,
	})
	if err != nil {
		return 0, err
	}
	return offsets[0], nil
}
