package kafka

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Log implements journal.Log.
type Log struct {
	options    Options
	client     *kgo.Client
	partitions int32
	topics     map[string]bool
	id         string

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	lanes lanes

	mu      sync.Mutex
	closed  bool
	readers []*reader
}

// Open connects, creates the topics if it may, and learns the log's id, or gives it one.
func Open(ctx context.Context, o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	client, err := connect(ctx, &o)
	if err != nil {
		return nil, err
	}
	l := &Log{options: o, client: client, topics: map[string]bool{}}
	for _, t := range events.Topics() {
		l.topics[t.Name] = true
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	if err := l.prepare(ctx, began.Add(o.Wait)); err != nil {
		l.Close()
		return nil, err
	}
	o.opening.Store(false)
	return l, nil
}

// Check connects, and checks the topics as Open does. It makes and writes nothing.
func Check(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	client, err := connect(ctx, &o)
	if err != nil {
		return err
	}
	defer client.Close()
	n, err := commonPartitions(ctx, kadm.NewClient(client))
	if err == nil && o.Partitions > 0 && n != o.Partitions {
		return wrongPartitions(events.TopicChanges, n, o.Partitions)
	}
	if err == nil {
		err = checkBeginning(ctx, kadm.NewClient(client), o.Archive)
	}
	return withRights(client, err)
}

// prepare prepares the topics. Until a moment it tries again after errors that a broker that starts, or takes over, makes.
func (l *Log) prepare(ctx context.Context, until time.Time) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := l.prepareOnce(ctx)
		if err == nil || ctx.Err() != nil || !isTransient(err) || time.Now().Add(pause).After(until) {
			return withRights(l.client, err)
		}
		l.options.Log.Info("the brokers are not ready", "brokers", l.options.addresses(), "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// isTransient reports whether an error can end by itself.
func isTransient(err error) bool {
	var connection *net.OpError
	return kerr.IsRetriable(err) || errors.As(err, &connection) || errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, journal.ErrAppend) || errors.Is(err, errNotMade)
}

func (l *Log) prepareOnce(ctx context.Context) error {
	if n := l.options.Partitions; n > 0 {
		if err := ensureTopics(ctx, l.client, n, l.options.Replication); err != nil {
			return err
		}
	}
	var err error
	if l.partitions, err = commonPartitions(ctx, kadm.NewClient(l.client)); err != nil {
		return err
	}
	if err := checkBeginning(ctx, kadm.NewClient(l.client), l.options.Archive); err != nil {
		return err
	}
	if err := l.checkArchive(ctx); err != nil {
		return err
	}
	return l.identify(ctx)
}

// refusalWait is how long Open tries on a broker that refuses it.
const refusalWait = 5 * time.Second

// ErrNoBroker is returned by Open if no broker answers in its time.
var ErrNoBroker = errors.New("no Kafka broker answered")

// connect waits until a broker answers.
func connect(ctx context.Context, o *Options) (*kgo.Client, error) {
	began, tell := time.Now(), time.Duration(0)
	var refusedSince time.Time // zero if it was not refused at last
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		if o.Client != nil {
			o.client = o.Client()
		}
		o.last = &lastConnection{}
		client, err := kgo.NewClient(append(o.producer(), kgo.WithHooks(o.last))...)
		if err != nil {
			return nil, fmt.Errorf("kafka client: %w", err)
		}
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err = client.Ping(attempt)
		cancel()
		if err == nil {
			return client, nil
		}
		client.Close()
		waited, limit := time.Since(began), o.Wait
		if refused := o.refusal(client, err); refused == nil {
			refusedSince = time.Time{}
		} else {
			if refusedSince.IsZero() {
				refusedSince = time.Now()
			}
			// It is not away. Soon after its start a broker may do so too.
			limit, err = min(limit, refusedSince.Sub(began)+refusalWait), refused
		}
		if ctx.Err() != nil || waited+wait > limit {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			if errors.Is(err, ErrRefused) {
				return nil, fmt.Errorf("%w at %s: %w", ErrNoBroker, o.addresses(), err)
			}
			return nil, fmt.Errorf("%w at %s within %s: %w", ErrNoBroker, o.addresses(), waited.Round(time.Second/10), err)
		}
		if waited >= tell {
			tell = waited + 10*time.Second
			o.Log.Warn("waiting for Kafka", "brokers", o.addresses(), "waited", waited.Round(time.Second).String(), "at_most", o.Wait.String(), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// identify finds the first LogCreated, or appends one and looks again: whoever was first stands.
func (l *Log) identify(ctx context.Context) error {
	for range 2 {
		created, err := l.firstCreated(ctx)
		if err != nil {
			return fmt.Errorf("read the log's id: %w", err)
		}
		if created != nil {
			if created.Partitions != uint32(l.partitions) {
				return fmt.Errorf("the log was created with %d partitions, its topics have %d now: the number never changes",
					created.Partitions, l.partitions)
			}
			l.id = created.LogId
			if l.options.Archive != nil {
				l.options.Archive.Of(l.id)
			}
			return nil
		}
		var id [16]byte
		rand.Read(id[:])
		e := events.Envelope{
			ID: hex.EncodeToString(id[:]), Source: "log", Instance: l.options.ClientID, Time: time.Now(), Term: -1,
			Message: &eventsv1.LogCreated{LogId: hex.EncodeToString(id[:]), Partitions: uint32(l.partitions)},
		}
		if _, err := l.Append(ctx, events.TopicChanges, 0, e); err != nil {
			return fmt.Errorf("write the log's id: %w", err)
		}
	}
	return errors.New("the log's id was written and cannot be read back")
}

func (l *Log) firstCreated(ctx context.Context) (*eventsv1.LogCreated, error) {
	end, err := l.End(ctx, events.TopicChanges, 0)
	if err != nil || end == 0 {
		return nil, err
	}
	cursor, err := l.Follow(ctx, events.TopicChanges, 0, 0)
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for {
		e, err := cursor.Next(ctx)
		if err != nil {
			return nil, err
		}
		if created, is := e.Message.(*eventsv1.LogCreated); is && created.LogId != "" {
			return created, nil
		}
		if e.Offset >= end-1 {
			return nil, nil
		}
	}
}

// Admin returns a client for requests about the cluster. It ends with the log.
func (l *Log) Admin() *kadm.Client { return kadm.NewClient(l.client) }

// ID implements journal.Log.
func (l *Log) ID() string { return l.id }

// exists refuses a topic or a partition that the log does not have: without it, a mistake in the program would look like a slow broker.
func (l *Log) exists(topic string, partition int32) error {
	if partition >= 0 && partition < l.partitions && l.topics[topic] {
		return nil
	}
	return fmt.Errorf("no topic %s with a partition %d in this log", topic, partition)
}

// Partitions implements journal.Log.
func (l *Log) Partitions() int32 { return l.partitions }

// End implements journal.Log.
func (l *Log) End(ctx context.Context, topic string, partition int32) (int64, error) {
	if err := l.exists(topic, partition); err != nil {
		return 0, err
	}
	return l.listOffset(ctx, topic, partition, -1)
}

// listOffset asks for the first (at -2) or the end (at -1) offset of a partition.
func (l *Log) listOffset(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	for try := 0; ; try++ {
		offset, err := l.listOffsetOnce(ctx, topic, partition, at)
		if err == nil || try == 8 || !kerr.IsRetriable(err) {
			if err != nil {
				if l.ctx.Err() != nil {
					err = journal.ErrClosed
				}
				return 0, fmt.Errorf("offsets of %s/%d: %w", topic, partition, withRights(l.client, err))
			}
			return offset, nil
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(10 * time.Millisecond << try):
		}
	}
}

func (l *Log) listOffsetOnce(ctx context.Context, topic string, partition int32, at int64) (int64, error) {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, at
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, p)
	request := kmsg.NewPtrListOffsetsRequest()
	request.ReplicaID = -1
	request.Topics = append(request.Topics, t)
	response, err := request.RequestWith(ctx, l.client)
	if err != nil {
		return 0, err
	}
	if len(response.Topics) != 1 || len(response.Topics[0].Partitions) != 1 {
		return 0, errors.New("the broker answered for other partitions")
	}
	got := response.Topics[0].Partitions[0]
	return got.Offset, kerr.ErrorForCode(got.ErrorCode)
}

// Close ends every cursor, and fails the appends that have not been acknowledged.
func (l *Log) Close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	readers := l.readers
	l.mu.Unlock()
	l.cancel()
	for _, r := range readers {
		r.close()
	}
	l.client.Close()
}
