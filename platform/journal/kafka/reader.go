package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/platform/journal"
)

// reader is one client that reads for many cursors, each of another partition. One goroutine takes
// what the client has fetched and puts it into the cursors' queues; it never waits for a cursor. A
// cursor whose queue is long has its partition paused, so others go on and memory stays bounded.
type reader struct {
	client *kgo.Client
	pace   pace
	// archived, if set, goes on with a cursor whose next records were deleted from the brokers.
	archived func(*cursor)
	stop     context.CancelFunc
	ended    chan struct{}

	mu      sync.Mutex
	cursors map[place]*cursor
	// polls counts the polls begun; retired says during which one a partition was given up. Until
	// that poll is over, it may still bring records of the former cursor.
	polls   uint64
	retired map[place]uint64
	wake    context.CancelFunc
}

type place struct {
	topic     string
	partition int32
}

func newReader(o Options, p pace, archived func(*cursor)) (*reader, error) {
	client, err := kgo.NewClient(o.reader(p)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &reader{client: client, pace: p, archived: archived, stop: stop, ended: make(chan struct{}), cursors: map[place]*cursor{}, retired: map[place]uint64{}}
	go r.run(ctx)
	return r, nil
}

// take makes a cursor's partition this client's, unless it reads it already, or at another pace. It reports whether the cursor needs
// no other reader.
func (r *reader) take(c *cursor) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pace != c.pace || r.cursors[c.at] != nil {
		return false
	}
	if during, ok := r.retired[c.at]; ok {
		if r.polls <= during {
			return false
		}
		delete(r.retired, c.at)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return true
	}
	r.cursors[c.at] = c
	c.reader = r
	r.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.at.topic: {c.at.partition: kgo.NewOffset().At(c.start)}})
	return true
}

// drop gives up a cursor's partition.
func (r *reader) drop(c *cursor) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cursors[c.at] == c {
		r.giveUp(c)
	}
}

// giveUp removes a cursor's partition from the client. The reader is locked.
func (r *reader) giveUp(c *cursor) {
	delete(r.cursors, c.at)
	partition := map[string][]int32{c.at.topic: {c.at.partition}}
	r.client.RemoveConsumePartitions(partition)
	r.client.ResumeFetchPartitions(partition)
	r.retired[c.at] = r.polls
	if r.wake != nil {
		r.wake()
	}
}

func (r *reader) run(ctx context.Context) {
	defer close(r.ended)
	for ctx.Err() == nil {
		poll, wake := context.WithCancel(ctx)
		r.mu.Lock()
		r.polls++
		r.wake = wake
		r.mu.Unlock()
		fetches := r.client.PollFetches(poll)
		wake()
		r.hand(fetches)
	}
}

// hand passes fetched records to their cursors.
func (r *reader) hand(fetches kgo.Fetches) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		c := r.cursors[place{p.Topic, p.Partition}]
		if c == nil {
			return
		}
		if errors.Is(p.Err, kerr.OffsetOutOfRange) && r.archived != nil && c.leave() {
			r.giveUp(c)
			go r.archived(c)
			return
		}
		if p.Err != nil && !errors.Is(p.Err, context.Canceled) && !errors.Is(p.Err, kgo.ErrClientClosed) {
			c.fail(fmt.Errorf("read %s/%d: %w", p.Topic, p.Partition, withRights(r.client, p.Err)))
			return
		}
		if len(p.Records) > 0 {
			c.put(p.Records)
		}
	})
}

func (r *reader) pause(at place) {
	r.client.PauseFetchPartitions(map[string][]int32{at.topic: {at.partition}})
}

// resume is for a cursor that still has its partition.
func (r *reader) resume(c *cursor) {
	r.client.ResumeFetchPartitions(map[string][]int32{c.at.topic: {c.at.partition}})
}

func (r *reader) close() {
	r.mu.Lock()
	open := make([]*cursor, 0, len(r.cursors))
	for _, c := range r.cursors {
		open = append(open, c)
	}
	r.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	r.stop()
	<-r.ended
	r.client.Close()
}

// Follow implements journal.Log. An offset beyond the end is waited for. Records that were deleted from the brokers come from the
// archive.
func (l *Log) Follow(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	return l.follow(ctx, topic, partition, from, fast)
}

// FollowSparingly implements journal.Sparing.
func (l *Log) FollowSparingly(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	return l.follow(ctx, topic, partition, from, sparing)
}

func (l *Log) follow(ctx context.Context, topic string, partition int32, from int64, p pace) (journal.Cursor, error) {
	if err := l.exists(topic, partition); err != nil {
		return nil, err
	}
	first, err := l.listOffset(ctx, topic, partition, -2)
	if err != nil {
		return nil, err
	}
	end, err := l.listOffset(ctx, topic, partition, -1)
	if err != nil {
		return nil, err
	}
	start := min(end, journal.ReadFrom(from))
	if l.options.Archive == nil {
		if first > from {
			return nil, cutAt(topic, partition, first)
		}
		start = max(first, start)
	}
	c := newCursor(place{topic, partition}, start, from, p)
	if start >= first {
		return c, l.attach(c)
	}
	go l.readArchive(c)
	return c, nil
}

// attach gives a cursor to a reader, which begins at the cursor's start.
func (l *Log) attach(c *cursor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return journal.ErrClosed
	}
	for _, r := range l.readers {
		if r.take(c) {
			return nil
		}
	}
	var archived func(*cursor)
	if l.options.Archive != nil {
		archived = l.readArchive
	}
	r, err := newReader(l.options, c.pace, archived)
	if err != nil {
		return err
	}
	l.readers = append(l.readers, r)
	r.take(c)
	return nil
}

func recordOf(r *kgo.Record) journal.Record {
	headers := make([]events.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = events.Header{Key: h.Key, Value: h.Value}
	}
	return journal.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Headers: headers, Time: r.Timestamp.UTC()}
}
