package runner_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
)

// replier is a core that writes one record for each of another service, and then has nothing to do.
type replier struct {
	runner.Core
	live        bool
	next        int64
	owed, wrote int
}

func (r *replier) Apply(in runner.Input) {
	if in.Record == nil {
		return
	}
	r.next = in.Record.Offset + 1
	if in.Record.Source != events.ServiceLander {
		r.owed++
	}
}

func (r *replier) Decide() []runner.Effect {
	if r.owed == r.wrote {
		return nil
	}
	return []runner.Effect{runner.Append{Queue: "q", Message: &eventsv1.Refused{}}}
}

func (r *replier) Fold(runner.Effect)          { r.wrote++ }
func (r *replier) NeedsOwn() bool              { return !r.live }
func (r *replier) GoLive(time.Time)            { r.live = true }
func (r *replier) Stale() bool                 { return false }
func (r *replier) Next(string) int64           { return r.next }
func (r *replier) CanBatch(journal.Entry) bool { return true }

// posts is a board that keeps how far the lander has read its topic.
type posts struct{ next chan int64 }

func (p posts) Ends(ctx context.Context, topics []string) (map[health.TopicPartition]int64, error) {
	return map[health.TopicPartition]int64{}, nil
}

func (p posts) Post(ctx context.Context, beats []health.Beat) error {
	for _, b := range beats {
		for _, partition := range b.Partitions {
			select {
			case p.next <- partition.Next[events.TopicChanges]:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

func (p posts) Read(context.Context) ([]health.Beat, error) { return nil, nil }

// TestARecordThatAServiceWroteAndReadBackCountsAsRead: a lander whose last act was a refusal is not behind by it.
func TestARecordThatAServiceWroteAndReadBackCountsAsRead(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	board := posts{make(chan int64)}
	process := health.New("i", "test", board, slog.New(slog.DiscardHandler))
	go process.Run(ctx)
	done := make(chan error, 1)
	go func() {
		done <- runner.Run(ctx, runner.Options{
			Log: log, Instance: "i", Version: "test", Logger: slog.New(slog.DiscardHandler), Health: process.Service(events.ServiceLander),
		}, runner.Service{
			Name: events.ServiceLander, Output: events.TopicChanges, Sources: []string{events.TopicChanges}, ReadsBack: true, Batch: 1,
			New: func() runner.Core { return &replier{} },
		}, 0)
	}()
	read := func(records int64) {
		for next := int64(-1); next != records; {
			select {
			case next = <-board.next:
			case <-ctx.Done():
				t.Fatalf("the service counts as having read %d of %d records", next, records)
			}
		}
	}
	read(1) // the claim
	if _, err := log.Append(ctx, events.TopicChanges, 0, events.Envelope{
		Source: events.ServiceGateway, Queue: "q", Term: -1, Message: &eventsv1.ChangeAdmitted{},
	}); err != nil {
		t.Fatal(err)
	}
	read(3) // the admission and the refusal
	cancel()
	<-done
}
