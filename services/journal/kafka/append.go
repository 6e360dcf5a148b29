package kafka

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/services/journal"
)

// appends is what the log knows of its own writing.
//
// After a failed append on a partition nothing of that writer may overtake: the client fails all that
// it still holds for the partition, and from then on every append of that service to that partition
// fails until the service appends a Claim (journal.ClaimedWriters). The services whose records need
// no term go on: their records may come in any order.
type appends struct {
	claimed map[journal.ClaimedWriter]bool

	mu     sync.Mutex
	places map[place]*placeAppends
	failed map[writer]error
}

type place struct {
	topic     string
	partition int32
}

type writer struct {
	place
	source string
}

// placeAppends gives the appends of one partition their order.
type placeAppends struct {
	// order is held from taking a place in pending to handing all records to the client.
	order sync.Mutex

	mu      sync.Mutex
	pending []*pendingAppend
	telling bool
}

// pendingAppend is one event on its way. All but settled belongs to the client's callbacks, which come
// in order.
type pendingAppend struct {
	done        func(offset int64, err error)
	parts       int
	came        int
	first, last int64
	err         error
	settled     bool
}

func (a *appends) init() {
	a.claimed = journal.ClaimedWriters()
	a.places = map[place]*placeAppends{}
	a.failed = map[writer]error{}
}

func (a *appends) at(p place) *placeAppends {
	a.mu.Lock()
	defer a.mu.Unlock()
	pa := a.places[p]
	if pa == nil {
		pa = &placeAppends{}
		a.places[p] = pa
	}
	return pa
}

// admit is nil if the writer may append, and forgets an earlier failure at a claim.
func (a *appends) admit(w writer, e events.Envelope) error {
	if !a.claimed[journal.ClaimedWriter{Topic: w.topic, Service: w.source}] {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if journal.BeginsTerm(e) {
		delete(a.failed, w)
	}
	return a.failed[w]
}

func (a *appends) fail(w writer, err error) {
	if a.claimed[journal.ClaimedWriter{Topic: w.topic, Service: w.source}] {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.failed[w] = err
	}
}

// settle marks an append as done and tells everyone at the head of the queue. One goroutine tells at
// a time, so done is called in the order of the appends.
func (pa *placeAppends) settle(p *pendingAppend) {
	pa.mu.Lock()
	defer pa.mu.Unlock()
	p.settled = true
	if pa.telling {
		return
	}
	pa.telling = true
	for len(pa.pending) > 0 && pa.pending[0].settled {
		head := pa.pending[0]
		pa.pending[0] = nil
		pa.pending = pa.pending[1:]
		pa.mu.Unlock()
		if head.err != nil {
			head.done(-1, head.err)
		} else {
			head.done(head.last, nil)
		}
		pa.mu.Lock()
	}
	pa.telling = false
}

// AppendAsync implements journal.Log. done is called on another goroutine; it must neither block nor
// append. Only where more than 65,536 records or 256 MiB wait for the broker does the call wait too.
func (l *Log) AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(offset int64, err error)) {
	w := writer{place{topic, partition}, e.Source}
	records, err := journal.RecordsOf(topic, partition, e)
	if err == nil {
		err = l.exists(w.place)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("append to %s/%d: %w", topic, partition, ctx.Err())
	}
	if err == nil && l.ctx.Err() != nil {
		err = journal.ErrClosed
	}
	pa := l.appends.at(w.place)
	p := &pendingAppend{done: done, parts: len(records)}
	pa.order.Lock()
	defer pa.order.Unlock()
	pa.mu.Lock()
	pa.pending = append(pa.pending, p)
	pa.mu.Unlock()
	if err == nil {
		err = l.appends.admit(w, e)
	} else {
		l.appends.fail(w, fmt.Errorf("%w: an earlier append was not tried: %w", journal.ErrAppend, err))
	}
	if err != nil {
		p.err = err
		go pa.settle(p)
		return
	}
	for _, r := range records {
		l.client.Produce(l.ctx, clientRecord(r), func(r *kgo.Record, err error) {
			l.arrived(w, pa, p, r.Offset, err)
		})
	}
}

// arrived is the client's word on one part.
func (l *Log) arrived(w writer, pa *placeAppends, p *pendingAppend, offset int64, err error) {
	if p.came == 0 {
		p.first = offset
	}
	p.came++
	p.last = offset
	if err != nil && p.err == nil {
		if l.ctx.Err() != nil {
			err = journal.ErrClosed
		}
		p.err = fmt.Errorf("%w (%s/%d): %w", journal.ErrAppend, w.topic, w.partition, err)
		l.appends.fail(w, p.err)
	}
	if p.came < p.parts {
		return
	}
	if p.err == nil && p.last-p.first > journal.MaxSpan {
		p.err = fmt.Errorf("%w (%s/%d): other records came between its parts, %d offsets; no reader takes it",
			journal.ErrAppend, w.topic, w.partition, p.last-p.first)
		l.appends.fail(w, p.err)
	}
	pa.settle(p)
}

// Append implements journal.Log.
func (l *Log) Append(ctx context.Context, topic string, partition int32, es ...events.Envelope) ([]int64, error) {
	type result struct {
		offset int64
		err    error
	}
	results := make(chan result, len(es))
	for _, e := range es {
		l.AppendAsync(ctx, topic, partition, e, func(offset int64, err error) { results <- result{offset, err} })
	}
	offsets := make([]int64, 0, len(es))
	var failed error
	for range es {
		select {
		case r := <-results:
			if r.err != nil && failed == nil {
				failed = r.err
			}
			offsets = append(offsets, r.offset)
		case <-ctx.Done():
			err := fmt.Errorf("%w (%s/%d): %w", journal.ErrAppend, topic, partition, ctx.Err())
			for _, e := range es {
				l.appends.fail(writer{place{topic, partition}, e.Source}, err)
			}
			return nil, err
		}
	}
	if failed != nil {
		return nil, failed
	}
	return offsets, nil
}

// Write appends records as they are, as a program that is not Landfall may; their offsets are ignored.
func (l *Log) Write(ctx context.Context, records ...journal.Record) error {
	all := make([]*kgo.Record, len(records))
	for i, r := range records {
		all[i] = clientRecord(r)
	}
	if err := l.client.ProduceSync(ctx, all...).FirstErr(); err != nil {
		return fmt.Errorf("%w: %w", journal.ErrAppend, err)
	}
	return nil
}

func clientRecord(r journal.Record) *kgo.Record {
	headers := make([]kgo.RecordHeader, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = kgo.RecordHeader{Key: h.Key, Value: h.Value}
	}
	return &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Headers: headers}
}
