package runner_test

import (
	"context"
	"errors"
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

// counter is a core that writes, for each input, how many it has seen.
type counter struct{ seen, written int64 }

func (c *counter) Apply(proto.Message, int64) { c.seen++ }
func (c *counter) Decide() proto.Message {
	return &eventsv1.Profile{Position: c.seen - 1, StampUs: c.seen}
}
func (c *counter) Fold(m proto.Message)    { c.written = m.(*eventsv1.Profile).StampUs }
func (c *counter) Snapshot() proto.Message { return nil }

func counterStage() runner.Stage {
	return runner.Stage{
		Name: events.ServiceProfiler, Input: events.TopicLandRequests, Output: events.TopicProfiles,
		New:           func(string) runner.QueueCore { return &counter{} },
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Profile).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Offset },
	}
}

// slowInput is a log whose input arrives one record at a time, with nothing in between, as from a broker
// that answers late.
type slowInput struct {
	*memory.Log
	topic string
}

func (l slowInput) Follow(ctx context.Context, topic string, p int32, from int64) (journal.Cursor, error) {
	c, err := l.Log.Follow(ctx, topic, p, from)
	if err != nil || topic != l.topic {
		return c, err
	}
	return &slowCursor{Cursor: c, ready: make(chan struct{}, 1)}, nil
}

type slowCursor struct {
	journal.Cursor
	ready chan struct{}
	open  bool
}

func (c *slowCursor) TryNext() (journal.Entry, bool, error) {
	if !c.open {
		c.open = true
		time.AfterFunc(time.Millisecond, func() {
			select {
			case c.ready <- struct{}{}:
			default:
			}
		})
		return journal.Entry{}, false, nil
	}
	c.open = false
	return c.Cursor.TryNext()
}

func (c *slowCursor) Ready() <-chan struct{} { return c.ready }

func appendInputs(t *testing.T, log journal.Log, n int) {
	t.Helper()
	for range n {
		if _, err := log.Append(t.Context(), events.TopicLandRequests, 0, events.Envelope{
			Source: "client", Queue: "q", Term: -1, Message: &eventsv1.LandRequest{Queue: "q"},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// outputs reads n counted records of the stage.
func outputs(t *testing.T, log journal.Log, n int) []int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := log.Follow(ctx, events.TopicProfiles, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	terms := journal.NewTerms(events.TopicProfiles)
	var out []int64
	for len(out) < n {
		e, err := c.Next(ctx)
		if err != nil {
			t.Fatalf("after %v: %v", out, err)
		}
		if terms.Counts(e) {
			out = append(out, e.Message.(*eventsv1.Profile).StampUs)
		}
	}
	return out
}

func run(t *testing.T, log journal.Log, instance string) (stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- runner.Run(ctx, runner.Options{Log: log, Instance: instance, Version: "test", Logger: slog.New(slog.DiscardHandler)}, counterStage().Service(), 0)
	}()
	return func() error { cancel(); return <-done }
}

// TestARestartedStageGoesOnWhereItsRecordsEnd also when its input comes slower than its own records: these
// must not be taken for claims to look at, and lost.
func TestARestartedStageGoesOnWhereItsRecordsEnd(t *testing.T) {
	log := slowInput{memory.New(memory.Options{Partitions: 1}), events.TopicLandRequests}
	appendInputs(t, log, 20)
	stop := run(t, log, "first")
	outputs(t, log, 20)
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	appendInputs(t, log, 5)
	stop = run(t, log, "second")
	got := outputs(t, log, 25)
	for i, v := range got {
		if v != int64(i+1) {
			t.Fatalf("record %d says %d inputs; all: %v", i, v, got)
		}
	}
	stop()
}

// TestASupersededStageStops: another instance's claim ends the ownership.
func TestASupersededStageStops(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	appendInputs(t, log, 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- runner.Run(ctx, runner.Options{Log: log, Instance: "first", Version: "test", Logger: slog.New(slog.DiscardHandler)}, counterStage().Service(), 0)
	}()
	outputs(t, log, 3)
	stop := run(t, log, "second")
	defer stop()
	if err := <-done; !errors.Is(err, runner.ErrSuperseded) {
		t.Fatalf("the first instance ended with %v, want ErrSuperseded", err)
	}
}

// TestARecordThatAnswersNoInputDoesNotStopAStage: it was forged, or repeated by a broker.
func TestARecordThatAnswersNoInputDoesNotStopAStage(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	appendInputs(t, log, 3)
	stop := run(t, log, "first")
	outputs(t, log, 3)
	stop()
	for _, position := range []int64{0, 2, 7} {
		if _, err := log.Append(t.Context(), events.TopicProfiles, 0, events.Envelope{
			Source: events.ServiceProfiler, Queue: "q", Term: 0, Message: &eventsv1.Profile{Position: position, StampUs: 100 + position},
		}); err != nil {
			t.Fatal(err)
		}
	}
	appendInputs(t, log, 9)
	stop = run(t, log, "second")
	defer stop()
	got := outputs(t, log, 3+3+4)
	// The one for input 7 stands, and so does that nothing was written for those before it; 8 to 11 get theirs.
	if last := got[len(got)-1]; last != 12 {
		t.Errorf("the stage went on to %v", got)
	}
}

// busy is a core that always has something to do.
type busy struct {
	runner.Core
	ticked chan struct{}
	live   bool
}

func (b *busy) Apply(in runner.Input) {
	if in.Tick != nil {
		select {
		case b.ticked <- struct{}{}:
		default:
		}
	}
}
func (b *busy) Decide() []runner.Effect     { return []runner.Effect{runner.Log{Level: slog.LevelDebug}} }
func (b *busy) Fold(runner.Effect)          {}
func (b *busy) NeedsOwn() bool              { return !b.live }
func (b *busy) GoLive(time.Time)            { b.live = true }
func (b *busy) Stale() bool                 { return false }
func (b *busy) Next(string) int64           { return 0 }
func (b *busy) CanBatch(journal.Entry) bool { return true }

// TestAServiceThatIsNeverIdleHearsOfTheTime.
func TestAServiceThatIsNeverIdleHearsOfTheTime(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := &busy{ticked: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() {
		done <- runner.Run(ctx, runner.Options{Log: log, Instance: "i", Version: "test", Logger: slog.New(slog.DiscardHandler)}, runner.Service{
			Name: events.ServiceLander, Output: events.TopicChanges, Sources: []string{events.TopicChanges}, ReadsBack: true, Batch: 1,
			TickEvery: time.Second, New: func() runner.Core { return b },
		}, 0)
	}()
	select {
	case <-b.ticked:
	case <-ctx.Done():
		t.Error("it was never told")
	}
	cancel()
	<-done
}
