// Package historian writes the history to ClickHouse: every record of the log, exactly once in effect, however often it or the server
// is killed. It has no state: ClickHouse knows what it has written.
package historian

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/ownership"
	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
)

// Store holds the history. *warehouse.Warehouse is one.
type Store interface {
	// Position returns how far a partition of a topic is written.
	Position(ctx context.Context, topic string, partition int32) (warehouse.Position, error)
	// Write writes a batch that follows the records before next. After an error part of it may be there.
	Write(ctx context.Context, topic string, partition int32, next int64, set *rows.Set) error
}

// Options of a historian.
type Options struct {
	Log journal.Log
	// Open connects to the store. It is called again until it succeeds.
	Open   func(ctx context.Context) (Store, error)
	Logger *slog.Logger
	// Interval is how long a record waits for others of its batch; 1 s if 0.
	Interval time.Duration
	// Topics are the topics to write; all if nil.
	Topics []string
	// Health, if set, is told how far the history is written.
	Health *health.Service
	// Meter, if set, measures.
	Meter metric.Meter
}

// Historian writes the history.
type Historian struct {
	options Options
	store   Store
	// inserts bounds the batches that are being written, large those in memory that are larger than smallBytes.
	inserts, large chan struct{}
	// sets holds empty sets, whose memory is used again.
	sets     chan *rows.Set
	failures failures

	metrics metrics

	mu  sync.Mutex
	lag map[TopicPartition]int64
}

// TopicPartition is one partition of one topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

func (l TopicPartition) String() string { return fmt.Sprintf("%s/%d", l.Topic, l.Partition) }

const (
	maxInserts = 2
	maxLarge   = 4
	// maxBytes bounds a batch; one record may be larger than that.
	maxBytes   = 8 << 20
	smallBytes = 256 << 10
	// lagEvery is how often the end of the log is read.
	lagEvery     = 5 * time.Second
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 15 * time.Second
)

// New returns a historian. Run runs it.
func New(o Options) *Historian {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Topics == nil {
		for _, t := range events.Topics() {
			if slices.Contains(t.Readers, events.ServiceHistorian) {
				o.Topics = append(o.Topics, t.Name)
			}
		}
	}
	h := &Historian{
		options: o, inserts: make(chan struct{}, maxInserts), large: make(chan struct{}, maxLarge),
		sets:     make(chan *rows.Set, maxLarge),
		failures: failures{log: o.Logger, health: o.Health}, lag: map[TopicPartition]int64{},
	}
	h.metrics = newMetrics(o.Meter, h)
	return h
}

// Run writes the history of the partitions that this process owns, until ctx ends. While the store cannot be reached, or refuses, it
// tries again: the log keeps what the history lacks.
func (h *Historian) Run(ctx context.Context, owner ownership.Owner) error {
	for backoff := firstBackoff; h.store == nil; backoff = min(2*backoff, lastBackoff) {
		store, err := h.options.Open(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h.failures.note("open", err)
		if err == nil {
			h.store = store
			break
		}
		if pause(ctx, backoff) != nil {
			return ctx.Err()
		}
	}
	return owner.Run(ctx, events.ServiceHistorian, events.TopicChanges, h.runPartition)
}

// runPartition writes one partition of every topic until ctx ends.
func (h *Historian) runPartition(ctx context.Context, partition int32) error {
	var topics sync.WaitGroup
	reading := h.options.Health.Begin(partition, health.NoTerm)
	defer reading.End()
	var behind atomic.Int64
	behind.Store(int64(len(h.options.Topics)))
	for _, topic := range h.options.Topics {
		caughtUp := false
		written := func(next, end int64) {
			reading.Read(topic, next)
			if !caughtUp && next >= end {
				if caughtUp = true; behind.Add(-1) == 0 {
					reading.CaughtUp()
				}
			}
		}
		topics.Go(func() { h.keepHistory(ctx, TopicPartition{topic, partition}, written) })
	}
	topics.Wait()
	return ctx.Err()
}

// keepHistory writes one partition of a topic until ctx ends. After an error it begins where ClickHouse says that it stands.
// written is called with how far the history is written, and where the log ended.
func (h *Historian) keepHistory(ctx context.Context, tp TopicPartition, written func(next, end int64)) {
	defer h.forget(tp)
	backoff := firstBackoff
	for {
		progress, err := h.follow(ctx, tp, written)
		if ctx.Err() != nil {
			return
		}
		h.failures.note(tp.String(), err)
		if progress {
			backoff = firstBackoff
		}
		if pause(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// follow writes a partition from where it stands until something fails. progress is set if it wrote something, or if there was nothing
// to write.
func (h *Historian) follow(ctx context.Context, tp TopicPartition, written func(next, end int64)) (progress bool, err error) {
	at, err := h.store.Position(ctx, tp.Topic, tp.Partition)
	if err != nil {
		return false, err
	}
	end, err := h.options.Log.End(ctx, tp.Topic, tp.Partition)
	if err != nil {
		return false, err
	}
	if end <= at.Open {
		return false, fmt.Errorf("%s ends at %d, but its history has records up to %d: the log lost records, or is another one under the same id", tp, end, at.Open)
	}
	h.setLag(tp, end-at.Next)
	written(at.Next, end)
	cursor, err := h.options.Log.Follow(ctx, tp.Topic, tp.Partition, at.Next)
	if err != nil {
		return false, err
	}
	defer cursor.Close()
	if progress = end == at.Next; progress {
		// Without a record to write, no batch would show that the failure is over.
		h.failures.note(tp.String(), nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan batch)
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		g := gatherer{historian: h, tp: tp, cursor: cursor, terms: at.Terms(tp.Topic), to: batches}
		cancel(g.run(ctx, at))
	}()
	defer func() {
		cancel(nil)
		<-gathered
	}()
	wrote, err := h.write(ctx, tp, at.Next, end, batches, written)
	return progress || wrote, err
}

// write writes batches as they come, the first one from next on.
func (h *Historian) write(ctx context.Context, tp TopicPartition, next, end int64, batches <-chan batch, written func(next, end int64)) (wrote bool, err error) {
	lag := time.NewTicker(lagEvery)
	defer lag.Stop()
	for {
		select {
		case <-ctx.Done():
			return wrote, context.Cause(ctx)
		case <-lag.C:
			if end, err = h.options.Log.End(ctx, tp.Topic, tp.Partition); err != nil {
				return wrote, err
			}
			h.setLag(tp, max(0, end-next))
		case b := <-batches:
			err := h.send(ctx, tp, next, b.set)
			b.free()
			if err != nil {
				return wrote, err
			}
			next, wrote = b.set.Last()+1, true
			h.keepSet(b.set)
			h.setLag(tp, max(0, end-next))
			written(next, end)
			h.failures.note(tp.String(), nil)
		}
	}
}

func (h *Historian) send(ctx context.Context, tp TopicPartition, next int64, set *rows.Set) error {
	select {
	case h.inserts <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.inserts }()
	began := time.Now()
	err := h.store.Write(ctx, tp.Topic, tp.Partition, next, set)
	h.metrics.stored(set.Len(), began, err)
	return err
}

func (h *Historian) emptySet() *rows.Set {
	select {
	case s := <-h.sets:
		return s
	default:
		return &rows.Set{}
	}
}

// keepSet keeps the memory of a set that was written, unless it is huge.
func (h *Historian) keepSet(s *rows.Set) {
	if s.Bytes() > 2*maxBytes {
		return
	}
	s.Reset()
	select {
	case h.sets <- s:
	default:
	}
}

// Lag returns, for each partition that this process writes, how many records of the log are not yet in the history.
func (h *Historian) Lag() map[TopicPartition]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.lag)
}

func (h *Historian) setLag(tp TopicPartition, records int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lag[tp] = records
}

// forget ends the measurements of a partition that this process does not own any more.
func (h *Historian) forget(tp TopicPartition) {
	h.mu.Lock()
	delete(h.lag, tp)
	h.mu.Unlock()
	h.failures.forget(tp.String())
}

// pause waits, and returns an error if ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// failures logs that the history cannot be written, once in a while, and that it can again.
type failures struct {
	log    *slog.Logger
	health *health.Service

	mu       sync.Mutex
	names    map[string]bool // of what fails now
	logged   bool
	loggedAt time.Time
}

// repeatAfter is when a failure that goes on is logged again.
const repeatAfter = 5 * time.Minute

// count returns how many things fail now.
func (f *failures) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.names)
}

// forget removes a name, without a message: nothing was repaired.
func (f *failures) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.names, name); len(f.names) == 0 {
		f.logged = false
		f.health.SetTrouble("")
	}
}

// note takes the result of an attempt at what the name stands for.
func (f *failures) note(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		if f.names[name] {
			delete(f.names, name)
			if len(f.names) == 0 {
				f.log.Warn("the history is written again")
				f.health.SetTrouble("")
				f.logged = false
			}
		}
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if f.names == nil {
		f.names = map[string]bool{}
	}
	f.names[name] = true
	f.health.SetTrouble("the history cannot be written: " + err.Error())
	if f.logged && time.Since(f.loggedAt) < repeatAfter {
		f.log.Debug("the history cannot be written", "what", name, "error", err)
		return
	}
	f.logged, f.loggedAt = true, time.Now()
	f.log.Warn("the history cannot be written now; the historian tries again, and the queue goes on without it", "error", err)
}
