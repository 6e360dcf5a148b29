// Package tracer sends the trace of each change that leaves the queue to an OpenTelemetry collector. The trace is a fold of the log:
// package spans makes it. Nothing waits for the tracer, and it writes nothing to the log.
package tracer

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/ownership"
	"landfall.build/services/tracer/spans"
)

// Options of the service.
type Options struct {
	Log journal.Log
	// Sampled reports whether the trace of a change is sent.
	Sampled func(spans.Head) bool
	// Client sends. Run starts and stops it.
	Client  otlptrace.Client
	Version string
	Logger  *slog.Logger
	// Health, if set, is told how far the log is read.
	Health *health.Service
	// Meter, if set, measures.
	Meter metric.Meter
}

const (
	// lookBack is how many records of a topic are read at the start, for the traces of changes that are pending then.
	lookBack = 50_000
	// settling is how long, at least, a change has ended before its trace is due: what was written before it ended is in the log by then.
	settling = time.Second
	// tornAfter is how long send waits for the end of a topic.
	tornAfter = 10 * time.Second
	// batch is how many records of a topic are folded before the next one has its turn.
	batch = 256
)

// Run sends the traces of the partitions that the process owns, until the context ends.
func Run(ctx context.Context, o Options, owner ownership.Owner) error {
	if err := o.Client.Start(ctx); err != nil {
		return fmt.Errorf("traces by OTLP: %w", err)
	}
	s := newSender(o)
	done := make(chan struct{})
	go func() { s.run(); close(done) }()
	err := owner.Run(ctx, events.ServiceTracer, events.TopicChanges, func(ctx context.Context, partition int32) error {
		f := &follower{Options: o, partition: partition, sender: s, next: map[string]int64{}}
		return f.run(ctx)
	})
	s.close()
	<-done
	return err
}

// follower folds one partition.
type follower struct {
	Options
	partition int32
	sender    *sender
	fold      *spans.Fold
	// next are the offsets behind what is folded, by topic.
	next    map[string]int64
	reading *health.Partition
	// due is how many traces are sent next, the first that ended. They are sent once the topics are read up to ends, and at the latest
	// tornAfter after dueSince. It is 0 if none are.
	due      int
	ends     map[string]int64
	dueSince time.Time
	// settled is how many traces had ended at the last settle.
	settled int
}

// closed can always be received from.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (f *follower) run(ctx context.Context) error {
	f.reading = f.Health.Begin(f.partition, health.NoTerm)
	defer f.reading.End()
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	f.reading.CaughtUp()
	cursors := map[string]journal.Cursor{}
	for _, topic := range spans.Topics() {
		c, err := f.Log.Follow(ctx, topic, f.partition, f.next[topic])
		if err != nil {
			return fmt.Errorf("follow %s/%d: %w", topic, f.partition, err)
		}
		defer c.Close()
		cursors[topic] = c
	}
	tick := time.NewTicker(settling)
	defer tick.Stop()
	for {
		did, err := f.read(cursors)
		if err != nil {
			return err
		}
		f.send()
		var more <-chan struct{}
		if did {
			more = closed
		}
		select {
		case <-ctx.Done():
			f.due = f.fold.Ended()
			f.ends = nil
			f.send()
			return context.Cause(ctx)
		case <-more: // the other cases still have their turns
		case <-cursors[events.TopicChanges].Ready():
		case <-cursors[events.TopicDecisions].Ready():
		case <-cursors[events.TopicBuilds].Ready():
		case <-tick.C:
			if err := f.settle(ctx); err != nil {
				return err
			}
		}
	}
}

// catchUp folds the end of the topics, as it is now. The traces of what has ended there are not sent: most were.
func (f *follower) catchUp(ctx context.Context) error {
	merged, err := spans.Open(ctx, f.Log, f.partition, lookBack)
	if err != nil {
		return err
	}
	defer merged.Close()
	f.fold = spans.New(f.Log.ID(), merged.Inside(), f.Sampled)
	for {
		e, err := merged.Take(ctx)
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		f.fold.Apply(*e)
		if n := f.fold.Ended(); n > 0 {
			f.fold.Take(n)
		}
	}
	for topic, end := range merged.Ends() {
		f.next[topic] = end
		f.reading.Read(topic, end)
	}
	return nil
}

// read folds what has arrived, and reports whether something had.
func (f *follower) read(cursors map[string]journal.Cursor) (did bool, err error) {
	for _, topic := range spans.Topics() {
		for range batch {
			e, ok, err := cursors[topic].TryNext()
			if err != nil {
				return did, fmt.Errorf("read %s/%d: %w", topic, f.partition, err)
			}
			if !ok {
				break
			}
			f.fold.Apply(e)
			f.next[topic], did = e.Offset+1, true
		}
		f.reading.Read(topic, f.next[topic])
	}
	return did, nil
}

// settle decides, unless traces are due already, that those which had ended at the call before are due, and up to where the topics
// are read first. It is called once every settling.
func (f *follower) settle(ctx context.Context) error {
	if f.due == 0 && f.settled > 0 {
		ends := map[string]int64{}
		for _, topic := range spans.Topics() {
			end, err := f.Log.End(ctx, topic, f.partition)
			if err != nil {
				return fmt.Errorf("end of %s/%d: %w", topic, f.partition, err)
			}
			ends[topic] = end
		}
		f.due, f.ends, f.dueSince = f.settled, ends, time.Now()
		f.send()
	}
	f.settled = f.fold.Ended()
	return nil
}

// send sends the traces that are due once the topics are read up to ends. It waits tornAfter at most: parts of a record whose writer
// died are never read as a record.
func (f *follower) send() {
	for topic, end := range f.ends {
		if f.next[topic] < end && time.Since(f.dueSince) < tornAfter {
			return
		}
	}
	if f.due > 0 {
		for _, t := range f.fold.Take(f.due) {
			f.sender.put(t)
		}
		f.settled -= min(f.settled, f.due)
		f.due = 0
	}
}
