package reading_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/journal/reading"
)

// held returns a log of n records and one that is torn after one part.
func held(t *testing.T, n int) *memory.Log {
	t.Helper()
	log := memory.New(memory.Options{Partitions: 1, Fault: func(_ string, _ int32, e events.Envelope) memory.Verdict {
		if e.ID == "torn" {
			return memory.Torn
		}
		return memory.Deliver
	}})
	put := func(id, text string) error {
		_, err := log.Append(t.Context(), events.TopicBuilds, 0, events.Envelope{ID: id, Source: "builder", Queue: "q", Term: -1, Message: &eventsv1.StepFinished{Reason: text}})
		return err
	}
	for range n {
		if err := put("whole", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("torn", strings.Repeat("x", events.MaxRecordBytes+1)); !errors.Is(err, journal.ErrAppend) {
		t.Fatal(err)
	}
	return log
}

func TestAReadingEndsWhereItWasToldAndPassesTornEnds(t *testing.T) {
	const n = 700
	log := held(t, n)
	for end, torn := range map[int64]int64{0: 0, 1: 0, 300: 0, n: 0, n + 1: 1} {
		told := int64(0)
		r, err := reading.To(t.Context(), log, events.TopicBuilds, 0, end, reading.Options{Patience: time.Millisecond, Read: func(offsets int64) { told += offsets }})
		if err != nil {
			t.Fatal(err)
		}
		got := int64(0)
		for {
			peeked, err := r.Peek(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			e, err := r.Take(t.Context())
			if err != nil || e != peeked {
				t.Fatalf("%v %v, after a look at %v", e, err, peeked)
			}
			if e == nil {
				break
			}
			if e.Offset != got {
				t.Fatalf("offset %d after %d records", e.Offset, got)
			}
			got++
		}
		r.Close()
		if got != min(end, n) || r.Torn() != torn || told != end {
			t.Errorf("to %d: %d records, %d torn, told of %d", end, got, r.Torn(), told)
		}
	}
}

// TestABrokerThatFallsSilentFarFromTheEndIsAnError: what ended early must not pass for the whole.
func TestABrokerThatFallsSilentFarFromTheEndIsAnError(t *testing.T) {
	log := held(t, 3)
	r, err := reading.To(t.Context(), log, events.TopicBuilds, 0, 5+journal.MaxSpan, reading.Options{Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 3 {
		if e, err := r.Take(t.Context()); e == nil || err != nil {
			t.Fatal(e, err)
		}
	}
	if e, err := r.Take(t.Context()); err == nil || e != nil {
		t.Errorf("%v, %v", e, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Take(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
