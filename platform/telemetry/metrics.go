package telemetry

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
)

// Log is a log as one service uses it, which counts what goes in and out.
type Log struct {
	journal.Log
	topics map[string]*traffic
	took   metric.Float64Histogram
}

// traffic is what a service reads from a topic and writes to it.
type traffic struct {
	sent     metric.MeasurementOption
	consumed atomic.Int64
	// last has the time of the last record that was read, in microseconds, by partition.
	last []atomic.Int64

	mu     sync.Mutex
	byType map[string]int64
}

// eventType is the type of a record, as landfall log shows it.
const eventType = attribute.Key("landfall.event.type")

// Measure returns the log as a service uses it, and measures how far the service has read by its health. saved returns when the
// service last saved a snapshot of a partition.
func Measure(m metric.Meter, log journal.Log, s *health.Service, saved func(partition int32) time.Time) *Log {
	l := &Log{Log: log, topics: map[string]*traffic{}}
	kafka := attribute.String("messaging.system", "kafka")
	send := attribute.String("messaging.operation.name", "send")
	for _, t := range events.Topics() {
		l.topics[t.Name] = &traffic{
			sent: metric.WithAttributeSet(attribute.NewSet(kafka, send, Topic.String(t.Name))),
			last: make([]atomic.Int64, log.Partitions()), byType: map[string]int64{},
		}
	}
	l.took = Histogram(m, "messaging.client.operation.duration", "s", "Time from an append to its acknowledgement.", Short)
	Total(m, "messaging.client.sent.messages", "{message}", "Records that the service wrote and that were acknowledged.", func(observe Observe) {
		for name, t := range l.topics {
			t.mu.Lock()
			for kind, n := range t.byType {
				observe(float64(n), kafka, Topic.String(name), eventType.String(kind))
			}
			t.mu.Unlock()
		}
	})
	Total(m, "messaging.client.consumed.messages", "{message}", "Records that the service read.", func(observe Observe) {
		for name, t := range l.topics {
			if n := t.consumed.Load(); n > 0 {
				observe(float64(n), kafka, Topic.String(name))
			}
		}
	})
	Gauge(m, "landfall.service.ready", "", "1 while the service can work, else 0; /readyz says why.", func(observe Observe) {
		ready := 0.0
		if s.Ready() == nil {
			ready = 1
		}
		observe(ready)
	})
	Gauge(m, "landfall.broker.silence", "s", "How long the log's broker has not answered the process; 0 while it does.", func(observe Observe) {
		observe(s.BrokerSilent().Seconds())
	})
	Total(m, "landfall.clock.jumps", "s", "By how much the machine's clock was set, forward or back, while the process ran.", func(observe Observe) {
		observe(s.ClockJumped().Seconds())
	})
	eachTopic := func(f func(topic string, p health.PartitionCheck, behind int64, attributes ...attribute.KeyValue)) {
		for _, p := range s.Check().Partitions {
			for topic, behind := range p.Topics {
				f(topic, p, behind, Topic.String(topic), partitionOf(p.Partition))
			}
		}
	}
	Gauge(m, "landfall.consumer.lag", "{record}", "Records of the log that the service has not taken.", func(observe Observe) {
		eachTopic(func(_ string, _ health.PartitionCheck, behind int64, attributes ...attribute.KeyValue) {
			observe(float64(behind), attributes...)
		})
	})
	Gauge(m, "landfall.consumer.lag.time", "s", "Age of the last record that the service has taken, while there are more; else 0.", func(observe Observe) {
		eachTopic(func(topic string, p health.PartitionCheck, behind int64, attributes ...attribute.KeyValue) {
			observe(l.age(topic, p.Partition, behind), attributes...)
		})
	})
	Gauge(m, "landfall.partition.term", "{record}", "Term under which the service works on a partition; -1 if it claims none. Absent for partitions of others.", func(observe Observe) {
		for _, p := range s.Check().Partitions {
			observe(float64(p.Term), partitionOf(p.Partition))
		}
	})
	Gauge(m, "landfall.snapshot.age", "s", "Age of the last snapshot of a partition; absent if there is none.", func(observe Observe) {
		for _, p := range s.Check().Partitions {
			if at := saved(p.Partition); !at.IsZero() {
				observe(time.Since(at).Seconds(), partitionOf(p.Partition))
			}
		}
	})
	return l
}

func partitionOf(number int32) attribute.KeyValue { return Partition.String(strconv.Itoa(int(number))) }

func (l *Log) age(topic string, partition int32, behind int64) float64 {
	t := l.topics[topic]
	if t == nil || behind == 0 || int(partition) >= len(t.last) || t.last[partition].Load() == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMicro(t.last[partition].Load())).Seconds())
}

// wrote counts records that were acknowledged.
func (l *Log) wrote(topic string, began time.Time, records ...events.Envelope) {
	t := l.topics[topic]
	if t == nil {
		return
	}
	t.mu.Lock()
	for _, e := range records {
		t.byType[events.TypeOf(e.Message)]++
	}
	t.mu.Unlock()
	l.took.Record(context.Background(), time.Since(began).Seconds(), t.sent)
}

// Append implements journal.Log.
func (l *Log) Append(ctx context.Context, topic string, partition int32, e ...events.Envelope) ([]int64, error) {
	began := time.Now()
	offsets, err := l.Log.Append(ctx, topic, partition, e...)
	if err == nil {
		l.wrote(topic, began, e...)
	}
	return offsets, err
}

// AppendAsync implements journal.Log.
func (l *Log) AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(offset int64, err error)) {
	began := time.Now()
	l.Log.AppendAsync(ctx, topic, partition, e, func(offset int64, err error) {
		if err == nil {
			l.wrote(topic, began, e)
		}
		done(offset, err)
	})
}

// Follow implements journal.Log.
func (l *Log) Follow(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	c, err := l.Log.Follow(ctx, topic, partition, from)
	if t := l.topics[topic]; err == nil && t != nil {
		c = &cursor{c, t, &t.last[partition]}
	}
	return c, err
}

// FollowSparingly implements journal.Sparing. Who looks something up that way has not taken it: how far the service has read is measured by
// other cursors.
func (l *Log) FollowSparingly(ctx context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	c, err := journal.FollowSparingly(ctx, l.Log, topic, partition, from)
	if t := l.topics[topic]; err == nil && t != nil {
		c = &cursor{c, t, new(atomic.Int64)}
	}
	return c, err
}

// cursor counts what is read.
type cursor struct {
	journal.Cursor
	traffic *traffic
	last    *atomic.Int64
}

func (c *cursor) read(e journal.Entry) {
	c.traffic.consumed.Add(1)
	if !e.Time.IsZero() {
		c.last.Store(e.Time.UnixMicro())
	}
}

// Next implements journal.Cursor.
func (c *cursor) Next(ctx context.Context) (journal.Entry, error) {
	e, err := c.Cursor.Next(ctx)
	if err == nil {
		c.read(e)
	}
	return e, err
}

// TryNext implements journal.Cursor.
func (c *cursor) TryNext() (journal.Entry, bool, error) {
	e, ok, err := c.Cursor.TryNext()
	if ok {
		c.read(e)
	}
	return e, ok, err
}
