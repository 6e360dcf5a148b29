package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/gateway/api"
)

// progress is how far a partition is folded. Writers wait by it until they have read back what they wrote.
type progress struct {
	mu    sync.Mutex
	next  int64
	moved chan struct{}
}

func newProgress() *progress { return &progress{moved: make(chan struct{})} }

// progressOf returns how far a partition of a topic is folded that writers read back; nil of another topic.
func (g *Gateway) progressOf(topic string, partition int32) *progress {
	switch topic {
	case events.TopicChanges:
		return g.folded[partition]
	case events.TopicAccess:
		return g.accessFolded[partition]
	case events.TopicDeadLetters:
		return g.lettersFolded[partition]
	}
	return nil
}

func (p *progress) set(next int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = next
	close(p.moved)
	p.moved = make(chan struct{})
}

// wait returns once the record at an offset is folded.
func (p *progress) wait(ctx context.Context, offset int64) error {
	for {
		p.mu.Lock()
		done, moved := p.next > offset, p.moved
		p.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// startFolding follows every partition of the topics, and returns once everything that is in them now is folded.
func (g *Gateway) startFolding(ctx context.Context, start func(func(context.Context) error), topics ...string) error {
	var caughtUp []<-chan struct{}
	for _, topic := range topics {
		for partition := range g.Log.Partitions() {
			end, err := g.Log.End(ctx, topic, partition)
			if err != nil {
				return fmt.Errorf("end of %s/%d: %w", topic, partition, err)
			}
			done := make(chan struct{})
			caughtUp = append(caughtUp, done)
			start(func(ctx context.Context) error { return g.followTopic(ctx, topic, partition, end, done) })
		}
	}
	for _, done := range caughtUp {
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// followTopic folds one partition until the context ends. It closes caughtUp once it is past end.
func (g *Gateway) followTopic(ctx context.Context, topic string, partition int32, end int64, caughtUp chan<- struct{}) error {
	fold := g.partitions[partition].folds[topic]
	cursor, err := g.Log.Follow(ctx, topic, partition, fold.next)
	if err != nil {
		return fmt.Errorf("follow %s/%d: %w", topic, partition, err)
	}
	defer cursor.Close()
	folded := g.progressOf(topic, partition)
	folded.set(fold.next)
	g.partitions[partition].health.Read(topic, fold.next)
	waiting := true
	check := func(next int64) {
		if waiting && next >= end {
			waiting = false
			close(caughtUp)
			g.partitions[partition].caughtUp()
		}
	}
	check(fold.next)
	for {
		e, err := nextEntry(ctx, cursor, waiting)
		if errors.Is(err, errIdle) {
			// A torn record at the end, or records that a broker leaves out, give no entry.
			check(end)
			continue
		}
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", topic, partition, err)
		}
		g.partitions[partition].fold(topic, e.Offset+1, func(terms *journal.Terms) { g.foldEntry(ctx, terms, e) })
		folded.set(e.Offset + 1)
		check(e.Offset + 1)
	}
}

// errIdle is returned if no record came for a while, though more were expected.
var errIdle = errors.New("idle")

const idleAfter = 3 * time.Second

func nextEntry(ctx context.Context, cursor journal.Cursor, impatient bool) (journal.Entry, error) {
	if !impatient {
		return cursor.Next(ctx)
	}
	if e, ok, err := cursor.TryNext(); ok || err != nil {
		return e, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, idleAfter, errIdle)
	defer cancel()
	e, err := cursor.Next(limited)
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return e, errIdle
	}
	return e, err
}

func (g *Gateway) foldEntry(ctx context.Context, terms *journal.Terms, e journal.Entry) {
	counts := terms.Counts(e)
	switch {
	case e.Topic == events.TopicDeadLetters:
		g.foldLetter(e.Message)
	case errors.Is(e.Err, events.ErrUndecodable):
		g.bury(ctx, runner.DeadLetter{Entry: e, Reason: e.Err.Error()})
	case e.Err != nil:
		g.Logger.Debug("a record of a newer version is stepped over", "topic", e.Topic, "partition", e.Partition, "offset", e.Offset, "error", e.Err)
	case e.Topic == events.TopicAccess:
		g.access.apply(e.Message)
		if _, key := e.Message.(*eventsv1.GatewayKey); !key {
			g.lists.Changed(api.PartTokens, "")
		}
	case counts:
		if q := g.queues[e.Queue]; q != nil {
			q.fold(e)
		}
	}
}

type position struct {
	topic     string
	partition int32
	offset    int64
}

// deadLetters has the positions of records that were reported, so that each is reported once.
type deadLetters struct {
	mu   sync.Mutex
	seen map[position]bool
}

// put notes a position, and reports whether it is new.
func (d *deadLetters) put(p position) (fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fresh = !d.seen[p]
	d.seen[p] = true
	return fresh
}

// readBack waits until the records of one append are folded.
func (g *Gateway) readBack(ctx context.Context, partition int32, offsets []int64) error {
	if len(offsets) == 0 {
		return nil
	}
	return g.folded[partition].wait(ctx, offsets[len(offsets)-1])
}

// group runs f for each number below n, at most limit at a time.
func group(n, limit int, f func(int)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, limit)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	running.Wait()
}
