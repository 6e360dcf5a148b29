// Package historian keeps the history in ClickHouse: every record of the log, exactly once in effect, however
// often it or the server is killed. What it has written is asked of ClickHouse itself; it keeps nothing.
package historian

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"landfall.build/events"
	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
	"landfall.build/services/journal"
	"landfall.build/services/journal/ownership"
)

// Store is where the history is. *warehouse.Warehouse is one.
type Store interface {
	// Position says where a partition of a topic stands.
	Position(ctx context.Context, topic string, partition int32) (warehouse.Position, error)
	// Write writes a batch that follows what is before next. After an error some of it may be there.
	Write(ctx context.Context, topic string, partition int32, next int64, set *rows.Set) error
}

// Options of a historian.
type Options struct {
	Log journal.Log
	// Open connects to the store, and is asked again until it does.
	Open   func(ctx context.Context) (Store, error)
	Logger *slog.Logger
	// Interval is how long a record waits for others to be written with it; 1 s if 0.
	Interval time.Duration
	// Topics are those that it keeps; nil is all.
	Topics []string
}

// Historian writes the history.
type Historian struct {
	options Options
	store   Store
	// inserts bounds what the server does for it at one time, large the batches that are larger than
	// smallBytes and in memory.
	inserts, large chan struct{}
	// sets are empty ones, whose memory is used again.
	sets     chan *rows.Set
	troubles troubles

	written atomic.Int64 // records

	mu  sync.Mutex
	lag map[Lane]int64
}

// Lane is one partition of one topic.
type Lane struct {
	Topic     string
	Partition int32
}

func (l Lane) String() string { return fmt.Sprintf("%s/%d", l.Topic, l.Partition) }

const (
	maxInserts = 2
	maxLarge   = 4
	// maxBytes bounds a batch; one record may be larger than that.
	maxBytes   = 8 << 20
	smallBytes = 256 << 10
	// lagEvery is how often the end of the log is looked at.
	lagEvery     = 5 * time.Second
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 15 * time.Second
)

// New makes a historian; Run runs it.
func New(o Options) *Historian {
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Topics == nil {
		for _, t := range events.Topics() {
			o.Topics = append(o.Topics, t.Name)
		}
	}
	return &Historian{
		options: o, inserts: make(chan struct{}, maxInserts), large: make(chan struct{}, maxLarge),
		sets:     make(chan *rows.Set, maxLarge),
		troubles: troubles{log: o.Logger}, lag: map[Lane]int64{},
	}
}

// Run writes the history of the partitions that this process owns, until ctx ends. While the store cannot be
// reached, or refuses, it tries again: the log keeps what the history lacks.
func (h *Historian) Run(ctx context.Context, owner ownership.Owner) error {
	for backoff := firstBackoff; h.store == nil; backoff = min(2*backoff, lastBackoff) {
		store, err := h.options.Open(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		h.troubles.note("open", err)
		if err == nil {
			h.store = store
			break
		}
		if pause(ctx, backoff) != nil {
			return ctx.Err()
		}
	}
	return owner.Run(ctx, events.ServiceHistorian, events.TopicChanges, h.partition)
}

// partition keeps the history of one partition of every topic.
func (h *Historian) partition(ctx context.Context, partition int32) error {
	var lanes sync.WaitGroup
	for _, topic := range h.options.Topics {
		lanes.Go(func() { h.keepLane(ctx, Lane{topic, partition}) })
	}
	lanes.Wait()
	return ctx.Err()
}

// keepLane writes a lane until ctx ends. After any error it begins with what ClickHouse says.
func (h *Historian) keepLane(ctx context.Context, lane Lane) {
	defer h.forget(lane)
	backoff := firstBackoff
	for {
		well, err := h.follow(ctx, lane)
		if ctx.Err() != nil {
			return
		}
		h.troubles.note(lane.String(), err)
		if well {
			backoff = firstBackoff
		}
		if pause(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// follow writes a lane from where it stands until something fails, and says whether all was well before that: it wrote
// something, or there was nothing to write.
func (h *Historian) follow(ctx context.Context, lane Lane) (well bool, err error) {
	at, err := h.store.Position(ctx, lane.Topic, lane.Partition)
	if err != nil {
		return false, err
	}
	end, err := h.options.Log.End(ctx, lane.Topic, lane.Partition)
	if err != nil {
		return false, err
	}
	if end <= at.Open {
		return false, fmt.Errorf("%s ends at %d, but its history has records up to %d: the log lost records, or is another one under the same id", lane, end, at.Open)
	}
	h.setLag(lane, end-at.Next)
	cursor, err := h.options.Log.Follow(ctx, lane.Topic, lane.Partition, at.Next)
	if err != nil {
		return false, err
	}
	defer cursor.Close()
	if well = end == at.Next; well {
		// Nothing may come for days, and no batch would then say that the trouble is over.
		h.troubles.note(lane.String(), nil)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	batches := make(chan batch)
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		g := gatherer{historian: h, lane: lane, cursor: cursor, terms: at.Terms(lane.Topic), to: batches}
		cancel(g.run(ctx, at))
	}()
	defer func() {
		cancel(nil)
		<-gathered
	}()
	wrote, err := h.write(ctx, lane, at.Next, end, batches)
	return well || wrote, err
}

// write writes batches as they come, the first one from next on.
func (h *Historian) write(ctx context.Context, lane Lane, next, end int64, batches <-chan batch) (wrote bool, err error) {
	look := time.NewTicker(lagEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return wrote, context.Cause(ctx)
		case <-look.C:
			if end, err = h.options.Log.End(ctx, lane.Topic, lane.Partition); err != nil {
				return wrote, err
			}
			h.setLag(lane, max(0, end-next))
		case b := <-batches:
			records := int64(b.set.Len())
			err := h.send(ctx, lane, next, b.set)
			b.free()
			if err != nil {
				return wrote, err
			}
			next, wrote = b.set.Last()+1, true
			h.written.Add(records)
			h.keepSet(b.set)
			h.setLag(lane, max(0, end-next))
			h.troubles.note(lane.String(), nil)
		}
	}
}

func (h *Historian) send(ctx context.Context, lane Lane, next int64, set *rows.Set) error {
	select {
	case h.inserts <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-h.inserts }()
	return h.store.Write(ctx, lane.Topic, lane.Partition, next, set)
}

func (h *Historian) emptySet() *rows.Set {
	select {
	case s := <-h.sets:
		return s
	default:
		return &rows.Set{}
	}
}

// keepSet takes a set that was written. One that a huge record was in is let go.
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

// Lag is how many records of each lane that this process writes are in the log and not yet in the history.
func (h *Historian) Lag() map[Lane]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.lag)
}

func (h *Historian) setLag(lane Lane, records int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lag[lane] = records
}

// forget ends what is measured of a lane: from now on it is another process's, or nobody's.
func (h *Historian) forget(lane Lane) {
	h.mu.Lock()
	delete(h.lag, lane)
	h.mu.Unlock()
	h.troubles.forget(lane.String())
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// troubles tells people when the history cannot be written, once for as long as it is so, and when it can again.
type troubles struct {
	log *slog.Logger

	mu     sync.Mutex
	of     map[string]bool
	told   string
	toldAt time.Time
}

// repeatAfter is when the same trouble is told again.
const repeatAfter = 5 * time.Minute

// count is how many things go wrong now.
func (t *troubles) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.of)
}

// forget takes what is named so from what goes wrong; nobody is told, since nothing was mended.
func (t *troubles) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.of, name); len(t.of) == 0 {
		t.told = ""
	}
}

// note takes how something ended that is named so: with an error, or well.
func (t *troubles) note(name string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		if t.of[name] {
			delete(t.of, name)
			if len(t.of) == 0 {
				t.log.Warn("the history is written again")
				t.told = ""
			}
		}
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if t.of == nil {
		t.of = map[string]bool{}
	}
	t.of[name] = true
	if t.told != "" && time.Since(t.toldAt) < repeatAfter {
		t.log.Debug("the history cannot be written", "what", name, "err", err)
		return
	}
	t.told, t.toldAt = err.Error(), time.Now()
	t.log.Warn("the history cannot be written now; it is tried again, and the queue goes on without it", "err", err)
}
