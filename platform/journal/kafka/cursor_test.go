package kafka_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
)

func output(id string, bytes int) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceBuilder, Queue: "main", Term: -1, Message: &eventsv1.StepFinished{OutputTail: make([]byte, bytes)}}
}

func TestASlowCursorHoldsUpNobodyAndStaysSmall(t *testing.T) {
	l := open(t, cluster(t), nil)
	slow, err := l.Follow(ctx, events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := l.Follow(ctx, events.TopicBuilds, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if kafka.Readers(l) != 1 {
		t.Errorf("%d clients read two partitions", kafka.Readers(l))
	}
	const n, size = 150, 400_000 // 60 MB, more than three times what is held
	largest := 0
	for i := range n {
		if _, err := l.Append(ctx, events.TopicBuilds, 0, output(fmt.Sprint(i), size)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(ctx, events.TopicBuilds, 1, output(fmt.Sprint(i), 10)); err != nil {
			t.Fatal(err)
		}
		if e, err := quick.Next(ctx); err != nil || e.ID != fmt.Sprint(i) {
			t.Fatalf("the quick cursor got %s, %v", e.ID, err)
		}
		largest = max(largest, kafka.Queued(slow))
	}
	if most := kafka.MaxQueued + 8<<20; largest > most {
		t.Errorf("the slow cursor held %d bytes, more than %d", largest, most)
	}
	if largest < kafka.MaxQueued/2 {
		t.Errorf("the slow cursor held %d bytes: nothing was put to the test", largest)
	}
	for i := range n {
		if e, err := slow.Next(ctx); err != nil || e.ID != fmt.Sprint(i) {
			t.Fatalf("the slow cursor got %s for %d, %v", e.ID, i, err)
		}
	}
}

// TestWhoFollowsSparinglyHoldsLittle of what nobody has taken yet, beside one that reads fast.
func TestWhoFollowsSparinglyHoldsLittle(t *testing.T) {
	l := open(t, cluster(t), nil)
	const n, size = 100, 100_000
	for i := range n {
		e := output(fmt.Sprint(i), size)
		_, _ = rand.Read(e.Message.(*eventsv1.StepFinished).OutputTail) // bounds are of what is sent, which is compressed
		if _, err := l.Append(ctx, events.TopicBuilds, 0, e); err != nil {
			t.Fatal(err)
		}
	}
	fast, err := l.Follow(ctx, events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	sparing, err := l.FollowSparingly(ctx, events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sparing.Next(ctx); err != nil {
		t.Fatal(err)
	}
	for kafka.Queued(fast) < n*size { // all that there is
		time.Sleep(time.Millisecond)
	}
	if held := kafka.Queued(sparing); held > kafka.MaxSparing {
		t.Errorf("%d bytes are held, more than %d", held, kafka.MaxSparing)
	}
	for i := 1; i < n; i++ {
		if e, err := sparing.Next(ctx); err != nil || e.ID != fmt.Sprint(i) {
			t.Fatalf("got %s for %d, %v", e.ID, i, err)
		}
	}
}

func TestAsManyClientsReadAsCursorsOnOnePartition(t *testing.T) {
	l := open(t, cluster(t), nil)
	before := kafka.Readers(l)
	for range 3 {
		for p := range int32(4) {
			if _, err := l.Follow(ctx, events.TopicBuilds, p, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := kafka.Readers(l); got > before+3 {
		t.Errorf("%d clients for 3 cursors on each partition", got)
	}
}

func TestRecordsThatWereDeletedAreMissed(t *testing.T) {
	c := cluster(t)
	l := open(t, c, nil)
	for i := range 10 {
		if _, err := l.Append(ctx, events.TopicBuilds, 0, output(fmt.Sprint(i), 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.DeleteRecords(events.TopicBuilds, 0, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Follow(ctx, events.TopicBuilds, 0, 4); !errors.Is(err, kafka.ErrCut) || !strings.Contains(err.Error(), "landfall.builds/0 begins at record 5") {
		t.Errorf("got %v", err)
	}
	cursor, err := l.Follow(ctx, events.TopicBuilds, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := cursor.Next(ctx); err != nil || e.ID != "5" {
		t.Errorf("got %s, %v", e.ID, err)
	}
}

func TestACursorWhoseRecordsVanishSaysSo(t *testing.T) {
	c := cluster(t)
	l := open(t, c, nil)
	cursor, err := l.Follow(ctx, events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 { // more than the cursor and its client take without being read
		if _, err := l.Append(ctx, events.TopicBuilds, 0, output(fmt.Sprint(i), 500_000)); err != nil {
			t.Fatal(err)
		}
	}
	for kafka.Queued(cursor) <= kafka.MaxQueued {
		time.Sleep(time.Millisecond)
	}
	if err := c.DeleteRecords(events.TopicBuilds, 0, -1); err != nil {
		t.Fatal(err)
	}
	var last journal.Entry
	for {
		e, err := cursor.Next(ctx)
		if err != nil {
			if !strings.Contains(err.Error(), "landfall.builds/0") {
				t.Errorf("got %v", err)
			}
			break
		}
		if last.Message != nil && e.Offset != last.Offset+1 {
			t.Fatalf("%d follows %d without a word", e.Offset, last.Offset)
		}
		last = e
	}
}
