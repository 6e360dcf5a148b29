// Package past shows a queue as it was at a moment: the log is folded up to there, by the view that the present is served from. Checkpoints
// of the view, kept in memory, save most of the folding.
package past

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/services/gateway/view"
)

// ErrReading is wrapped by the error of a reading that its context ended. What was folded is kept, and the next reading goes on from there.
var ErrReading = errors.New("the log is being read")

// topics are those that the view folds, in the order in which records of one moment are folded.
var topics = []string{events.TopicChanges, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities}

// idle is after how long without a reader the state of the last reading is dropped. Checkpoints stay.
const idle = 10 * time.Minute

// Options of a past.
type Options struct {
	Log    journal.Log
	Queue  string
	Limits view.Limits
	// Every is after how many records a checkpoint is made, Bytes how many bytes of checkpoints are kept. Where they would be more,
	// every second one is dropped, and they are made half as often from then on.
	Every, Bytes int
}

// Past is the past of one queue. It is safe for concurrent use; one reader folds at a time.
type Past struct {
	Options
	partition int32
	// turn holds a token while nobody folds.
	turn chan struct{}
	// checkpoints are in the order of time.
	checkpoints []checkpoint
	bytes       int
	// last is the state at the last reading, nil if there is none.
	last *moment

	mu     sync.Mutex
	forget *time.Timer
}

// New returns the past of a queue of which nothing is folded yet.
func New(o Options) *Past {
	p := &Past{Options: o, partition: events.PartitionOf(o.Queue, o.Log.Partitions()), turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// moment is a state of the queue: the view, and how far each topic is folded.
type moment struct {
	view  *view.Queue
	folds map[string]*fold
	// until is the greatest time of a record that is folded, and records how many are.
	until   time.Time
	records int
}

// fold holds how far a topic is folded: up to the offset next. A record counts as written no earlier than those before it, whatever its
// writer's clock said: until is the greatest time so far.
type fold struct {
	next  int64
	until time.Time
	terms *journal.Terms
}

// Read calls f with the view as it was at a time, which f must not keep. Records of that time are part of it.
func (p *Past) Read(ctx context.Context, at time.Time, f func(*view.Queue)) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return fmt.Errorf("%w: somebody else's question is being answered: %w", ErrReading, context.Cause(ctx))
	}
	defer func() { p.turn <- struct{}{} }()
	p.keepForAWhile()
	m, err := p.before(at)
	if err != nil {
		return err
	}
	p.last = m
	if err := p.foldTo(ctx, m, at); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: it is folded up to %s: %w", ErrReading, m.until.UTC().Format(time.RFC3339), err)
		}
		p.last = nil
		return err
	}
	f(m.view)
	return nil
}

// keepForAWhile keeps the last state until nobody has read for a while.
func (p *Past) keepForAWhile() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.forget != nil {
		p.forget.Stop()
	}
	p.forget = time.AfterFunc(idle, func() {
		<-p.turn
		p.last = nil
		p.turn <- struct{}{}
	})
}

// before returns the newest state that is kept and holds nothing that was written after a time.
func (p *Past) before(at time.Time) (*moment, error) {
	i := len(p.checkpoints)
	for i > 0 && p.checkpoints[i-1].until.After(at) {
		i--
	}
	last := p.last
	if last != nil && last.until.After(at) {
		last = nil
	}
	switch {
	case last != nil && (i == 0 || last.records >= p.checkpoints[i-1].records):
		return last, nil
	case i > 0:
		return p.checkpoints[i-1].restore(p)
	}
	m := &moment{view: view.New(p.Queue, p.Limits), folds: map[string]*fold{}}
	for _, topic := range topics {
		m.folds[topic] = &fold{terms: journal.NewTerms(topic)}
	}
	return m, nil
}

// source is the part of a topic that is not folded yet.
type source struct {
	*fold
	reading *reading.Reading
	// ahead is the next record, nil at the end, and when its time.
	ahead *journal.Entry
	when  time.Time
}

func (s *source) advance(ctx context.Context) (err error) {
	if s.ahead, err = s.reading.Peek(ctx); err == nil && s.ahead != nil {
		s.when = s.until
		if s.ahead.Time.After(s.when) {
			s.when = s.ahead.Time
		}
	}
	return err
}

// foldTo folds what was written up to a time, in the order of time. After an error the moment is that of the last record that was folded.
func (p *Past) foldTo(ctx context.Context, m *moment, at time.Time) error {
	var sources []*source
	for _, topic := range topics {
		f := m.folds[topic]
		end, err := p.Log.End(ctx, topic, p.partition)
		if err != nil {
			return fmt.Errorf("end of %s/%d: %w", topic, p.partition, err)
		}
		if f.next >= end {
			continue
		}
		r, err := reading.To(ctx, p.Log, topic, p.partition, end, reading.Options{From: f.next})
		if err != nil {
			return err
		}
		defer r.Close()
		s := &source{fold: f, reading: r}
		if err := s.advance(ctx); err != nil {
			return err
		}
		sources = append(sources, s)
	}
	for {
		var first *source
		for _, s := range sources {
			if s.ahead != nil && !s.when.After(at) && (first == nil || s.when.Before(first.when)) {
				first = s
			}
		}
		if first == nil {
			return nil
		}
		if m.records%64 == 0 && ctx.Err() != nil { // a log in memory does not ask
			return context.Cause(ctx)
		}
		e := *first.ahead
		if counts := first.terms.Counts(e); counts && e.Err == nil && e.Queue == p.Queue {
			m.view.Fold(e)
		}
		first.next, first.until = e.Offset+1, first.when
		if m.records++; first.when.After(m.until) {
			m.until = first.when
		}
		if err := p.keep(m); err != nil {
			return err
		}
		if _, err := first.reading.Take(ctx); err != nil {
			return err
		}
		if err := first.advance(ctx); err != nil {
			return err
		}
	}
}

// keep makes a checkpoint of a moment if one is due.
func (p *Past) keep(m *moment) error {
	newest := 0
	if n := len(p.checkpoints); n > 0 {
		newest = p.checkpoints[n-1].records
	}
	if m.records < newest+p.Every {
		return nil
	}
	c, err := m.checkpoint()
	if err != nil {
		return err
	}
	p.checkpoints, p.bytes = append(p.checkpoints, c), p.bytes+len(c.state)
	for p.bytes > p.Bytes && len(p.checkpoints) > 1 {
		p.Every *= 2
		kept := p.checkpoints[:0]
		p.bytes = 0
		for i, c := range p.checkpoints {
			if i%2 == 1 {
				kept, p.bytes = append(kept, c), p.bytes+len(c.state)
			}
		}
		clear(p.checkpoints[len(kept):])
		p.checkpoints = kept
	}
	return nil
}
