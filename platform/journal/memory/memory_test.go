package memory_test

import (
	"context"
	"errors"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/journaltest"
	"landfall.build/platform/journal/memory"
)

func TestMemoryIsAJournal(t *testing.T) {
	journaltest.Run(t, memory.New(memory.Options{Partitions: 4}))
}

func claim() events.Envelope {
	return events.Envelope{ID: "claim", Source: events.ServiceSelector, Queue: "main", Term: -1, Message: &eventsv1.Claim{Service: events.ServiceSelector}}
}

func decision(id string) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceSelector, Queue: "main", Term: 0, Message: &eventsv1.Decision{}}
}

func step(id string, output int) events.Envelope {
	return events.Envelope{ID: id, Source: events.ServiceBuilder, Queue: "main", Term: -1, Message: &eventsv1.StepFinished{OutputTail: make([]byte, output)}}
}

// read returns the ids of all that readers see of a partition.
func read(t *testing.T, l *memory.Log, topic string) (ids []string) {
	t.Helper()
	c, err := l.Follow(context.Background(), topic, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		e, ok, err := c.TryNext()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return ids
		}
		ids = append(ids, e.ID)
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestFaultsDoWhatTheySay(t *testing.T) {
	verdicts := map[string]memory.Verdict{"before": memory.FailBefore, "after": memory.FailAfter, "late": memory.Late, "torn": memory.Torn}
	l := memory.New(memory.Options{Fault: func(topic string, partition int32, e events.Envelope) memory.Verdict { return verdicts[e.ID] }})
	for _, id := range []string{"a", "before", "after", "late", "torn", "b"} {
		output := 0
		if id == "torn" {
			output = 2 * events.MaxRecordBytes
		}
		_, err := l.Append(context.Background(), events.TopicBuilds, 0, step(id, output))
		if fails := verdicts[id] != memory.Deliver; fails != errors.Is(err, journal.ErrAppend) {
			t.Errorf("append of %s: %v", id, err)
		}
	}
	expect(t, read(t, l, events.TopicBuilds), "a", "after", "b")
	if !l.DeliverLate(events.TopicBuilds, 0) || l.DeliverLate(events.TopicBuilds, 0) {
		t.Error("one append was in flight")
	}
	expect(t, read(t, l, events.TopicBuilds), "a", "after", "b", "late")
}

func TestNothingOvertakesAFailedAppendOfAClaimedWriter(t *testing.T) {
	fail := false
	l := memory.New(memory.Options{Fault: func(string, int32, events.Envelope) memory.Verdict {
		if fail {
			return memory.FailBefore
		}
		return memory.Deliver
	}})
	ctx := context.Background()
	if _, err := l.Append(ctx, events.TopicDecisions, 0, claim(), decision("a")); err != nil {
		t.Fatal(err)
	}
	fail = true
	if _, err := l.Append(ctx, events.TopicDecisions, 0, decision("lost")); !errors.Is(err, journal.ErrAppend) {
		t.Fatal(err)
	}
	fail = false
	if _, err := l.Append(ctx, events.TopicDecisions, 0, decision("overtakes")); !errors.Is(err, journal.ErrAppend) {
		t.Fatalf("an append overtook a failed one: %v", err)
	}
	if _, err := l.Append(ctx, events.TopicDecisions, 0, claim(), decision("b")); err != nil {
		t.Fatalf("a new term does not begin: %v", err)
	}
	expect(t, read(t, l, events.TopicDecisions), "claim", "a", "claim", "b")
}

func TestASharedLogIsAJournal(t *testing.T) {
	journaltest.Run(t, memory.New(memory.Options{Partitions: 4, Shared: true}))
}

// A reader of a shared log gets what was appended, not a copy.
func TestASharedLogGivesReadersTheMessageItself(t *testing.T) {
	l := memory.New(memory.Options{Shared: true})
	e := step("s", 10)
	if _, err := l.Append(context.Background(), events.TopicBuilds, 0, e); err != nil {
		t.Fatal(err)
	}
	c, err := l.Follow(context.Background(), events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, ok, err := c.TryNext()
	if err != nil || !ok || got.Message != e.Message || got.Offset != 0 {
		t.Fatalf("got %v, %v, %v", got, ok, err)
	}
}
