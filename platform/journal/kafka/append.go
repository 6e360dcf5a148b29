package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	"landfall.build/platform/journal"
)

// AppendAsync implements journal.Log; the order is that of one service's calls for a partition. done is
// called on another goroutine; it must neither block, nor append, nor wait for an append. The call itself waits only
// where much waits for the broker: of a claimed writer 4,096 appends or 64 MiB, and there no longer than ctx; of all
// others together 65,536 records or 256 MiB.
func (l *Log) AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(offset int64, err error)) {
	la := l.lanes.lane(writer{topic, partition, e.Source})
	p := &pendingAppend{done: done, claim: journal.BeginsTerm(e)}
	p.records, p.refused = journal.RecordsOf(topic, partition, e)
	if p.refused == nil {
		p.refused = refusal(l.ctx, ctx, la.writer)
	}
	if p.refused == nil {
		p.refused = l.exists(topic, partition)
	}
	if la.claimed {
		if la.enterClaimed(l.ctx, ctx, p) {
			l.sendNext(la)
		}
		return
	}
	la.order.Lock()
	defer la.order.Unlock()
	la.enter(p)
	if p.refused != nil {
		p.err = p.refused
		go la.settle(p)
		return
	}
	l.send(la, p)
}

// sendNext sends the next append of a claimed writer; its arrival sends the one after it.
func (l *Log) sendNext(la *lane) {
	if p := la.takeNext(); p != nil {
		l.send(la, p)
	}
}

func (l *Log) send(la *lane, p *pendingAppend) {
	for _, r := range p.records {
		l.client.Produce(l.ctx, clientRecord(r), func(r *kgo.Record, err error) {
			l.arrived(la, p, r.Offset, err)
		})
	}
}

// arrived notes the client's result for one part.
func (l *Log) arrived(la *lane, p *pendingAppend, offset int64, err error) {
	if p.came == 0 {
		p.first = offset
	}
	p.came++
	p.last = offset
	if err != nil && p.err == nil {
		if l.ctx.Err() != nil {
			err = journal.ErrClosed
		} else if refused := l.options.refusal(l.client, err); refused != nil {
			err = refused
		} else {
			err = withRights(l.client, err)
		}
		p.err = fmt.Errorf("%w (%s/%d): %w", journal.ErrAppend, la.topic, la.partition, err)
	}
	if p.came < len(p.records) {
		return
	}
	if p.err == nil && p.last-p.first > journal.MaxSpan {
		p.err = fmt.Errorf("%w (%s/%d): other records came between its parts, %d offsets; no reader takes it",
			journal.ErrAppend, la.topic, la.partition, p.last-p.first)
	}
	if la.claimed {
		if p.err != nil {
			la.fail(p.err)
		}
		// Not on this goroutine: handing a record over may wait for callbacks like this one.
		if la.keepTurn() {
			go l.sendNext(la)
		}
	}
	la.settle(p)
}

// Append implements journal.Log.
func (l *Log) Append(ctx context.Context, topic string, partition int32, es ...events.Envelope) ([]int64, error) {
	type result struct {
		offset int64
		err    error
	}
	results := make([]chan result, len(es))
	for i, e := range es {
		came := make(chan result, 1)
		results[i] = came
		l.AppendAsync(ctx, topic, partition, e, func(offset int64, err error) { came <- result{offset, err} })
	}
	offsets := make([]int64, len(es))
	var failed error
	for i := range es {
		select {
		case r := <-results[i]:
			if r.err != nil && failed == nil {
				failed = r.err
			}
			offsets[i] = r.offset
		case <-ctx.Done():
			err := fmt.Errorf("%w (%s/%d): %w", journal.ErrAppend, topic, partition, ctx.Err())
			for _, e := range es[i:] {
				l.lanes.lane(writer{topic, partition, e.Source}).fail(err)
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
