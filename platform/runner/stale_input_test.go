package runner_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
)

// tracker is a core whose record says how many of its records it has folded.
type tracker struct{ position, folded int64 }

func (c *tracker) Apply(m proto.Message, _ int64) { c.position = m.(*eventsv1.Profile).Position }
func (c *tracker) Decide() proto.Message {
	return &eventsv1.Priority{Position: c.position, StampUs: c.folded}
}
func (c *tracker) Fold(proto.Message)      { c.folded++ }
func (c *tracker) Snapshot() proto.Message { return nil }

// TestStaleInputsTakeNoRecordAway: an input that a superseded instance wrote does not count, so a record of the
// stage's own that answers an earlier position must not be given up because of it.
func TestStaleInputsTakeNoRecordAway(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	claim := func() int64 {
		term, err := runner.Claim(t.Context(), log, events.ServiceProfiler, "x", "test", events.TopicProfiles, 0, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return term
	}
	input := func(term, position int64) {
		if _, err := log.Append(t.Context(), events.TopicProfiles, 0, events.Envelope{
			Source: events.ServiceProfiler, Queue: "q", Term: term, Message: &eventsv1.Profile{Position: position}}); err != nil {
			t.Fatal(err)
		}
	}
	old := claim()
	fresh := claim()
	for position := range int64(4) { // the instance that was superseded does not know it yet
		input(old, position)
	}
	for position := range int64(4) {
		input(fresh, position)
	}
	s := runner.Stage{
		Name: events.ServicePrioritizer, Input: events.TopicProfiles, Output: events.TopicPriorities,
		New:           func(string) runner.QueueCore { return &tracker{} },
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Priority).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Message.(*eventsv1.Profile).GetPosition() },
	}
	for _, want := range []int{4, 6} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- runner.Run(ctx, runner.Options{Log: log, Instance: "i", Version: "test", Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}, s.Service(), 0)
		}()
		got := priorities(t, log, want)
		for i, folded := range got {
			if folded != int64(i) {
				t.Errorf("record %d rests on %d records of the stage's own: %v", i, folded, got)
				break
			}
		}
		cancel()
		<-done
		input(fresh, int64(want))
		input(fresh, int64(want+1))
	}
}

func priorities(t *testing.T, log journal.Log, n int) (out []int64) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := log.Follow(ctx, events.TopicPriorities, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	terms := journal.NewTerms(events.TopicPriorities)
	for len(out) < n {
		e, err := c.Next(ctx)
		if err != nil {
			t.Fatalf("after %v: %v", out, err)
		}
		if terms.Counts(e) {
			out = append(out, e.Message.(*eventsv1.Priority).StampUs)
		}
	}
	return out
}
