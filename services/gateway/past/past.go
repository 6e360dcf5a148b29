// Package past shows a queue as it was at a moment: the log is folded up to there, by the view that the present is served from. Checkpoints
// of the view, kept on disk, save most of the folding. They are made behind the log, by a fold of its own (decision 0098).
package past

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/platform/snapshot"
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
	// Every is after how many records a checkpoint is made, and Bytes how many bytes of checkpoints are kept.
	Every int
	Bytes int64
	// Kept holds the states of the checkpoints; nil keeps them in memory.
	Kept *snapshot.Series
	// Rest is how long CatchUp rests, as a multiple of the time that it worked.
	Rest   int
	Logger *slog.Logger
}

// Past is the past of one queue. It is safe for concurrent use; one reader folds at a time, beside CatchUp.
type Past struct {
	Options
	partition int32
	// turn holds a token while no reader folds.
	turn chan struct{}
	// last is the state at the last reading, nil if there is none.
	last *moment
	// caughtUp is set once there are checkpoints up to the end of the log, but for the last few records.
	caughtUp atomic.Bool
	// quotas is set once a moment was asked for in which what changes wait for rests on what workers choose their steps by.
	quotas bool

	opening sync.Mutex
	opened  bool

	mu sync.Mutex
	// checkpoints are in the order of the log, which is that of time.
	checkpoints []checkpoint
	bytes       int64
	// failed is when a checkpoint could not be kept.
	failed time.Time
	forget *time.Timer
}

// New returns the past of a queue of which nothing is folded yet.
func New(o Options) *Past {
	if o.Kept == nil {
		o.Kept, _ = (*snapshot.Store)(nil).Series(snapshot.SeriesKey{}) // in memory nothing fails
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
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
	// whole is set if what workers choose their steps by is folded too.
	whole bool
}

// fold holds how far a topic is folded: up to the offset next. A record counts as written no earlier than those before it, whatever its
// writer's clock said: until is the greatest time so far.
type fold struct {
	next  int64
	until time.Time
	terms *journal.Terms
}

// Read calls f with the view as it was at a time, which f must not keep. Records of that time are part of it. Only if whole is set
// the view may be asked where a step waits.
func (p *Past) Read(ctx context.Context, at time.Time, whole bool, f func(*view.Queue)) error {
	return p.read(ctx, at, whole, func(m *moment) { f(m.view) })
}

func (p *Past) read(ctx context.Context, at time.Time, whole bool, f func(*moment)) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return fmt.Errorf("%w: somebody else's question is being answered: %w", ErrReading, context.Cause(ctx))
	}
	defer func() { p.turn <- struct{}{} }()
	p.keepForAWhile()
	if err := p.open(ctx); err != nil {
		return err
	}
	// Checkpoints are made of whole moments.
	whole = whole || p.quotas || !p.caughtUp.Load()
	m, err := p.readTo(ctx, at, whole)
	if err == nil && !whole && m.view.HasQuotas() {
		p.quotas = true
		m, err = p.readTo(ctx, at, true)
	}
	if err == nil {
		f(m)
	}
	return err
}

func (p *Past) readTo(ctx context.Context, at time.Time, whole bool) (*moment, error) {
	last := p.last
	p.last = nil // two states are not held at a time
	m := p.before(at, whole, last)
	p.last = m
	if err := p.foldTo(ctx, m, at, func(m *moment) error { p.keep(m); return nil }); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: it is folded up to %s: %w", ErrReading, m.until.UTC().Format(time.RFC3339), err)
		}
		p.last = nil
		return nil, err
	}
	return m, nil
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

// before returns the newest state, of those that are kept and the last one, that holds nothing that was written after a time.
func (p *Past) before(at time.Time, whole bool, last *moment) *moment {
	if last != nil && (last.until.After(at) || whole && !last.whole) {
		last = nil
	}
	for {
		c := p.newestBefore(at)
		switch {
		case last != nil && last.records >= c.records:
			return last
		case c.records == 0:
			return p.beginning(whole)
		}
		last = nil
		m, err := p.restore(c, whole)
		if err == nil {
			return m
		}
		p.dropDamaged(c, err)
	}
}

// newestBefore returns the newest checkpoint that holds nothing that was written after a time, or the beginning of the log.
func (p *Past) newestBefore(at time.Time) (c checkpoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.checkpoints) - 1; i >= 0; i-- {
		if !p.checkpoints[i].Until.After(at) {
			return p.checkpoints[i]
		}
	}
	return c
}

// beginning returns the moment before the first record.
func (p *Past) beginning(whole bool) *moment {
	m := &moment{view: view.New(p.Queue, p.Limits), folds: map[string]*fold{}, whole: whole}
	if !whole {
		m.view.DropChoice()
	}
	for _, topic := range topics {
		m.folds[topic] = &fold{terms: journal.NewTerms(topic)}
	}
	return m
}

// ends returns where the topics end.
func (p *Past) ends(ctx context.Context) (map[string]int64, error) {
	ends := map[string]int64{}
	for _, topic := range topics {
		end, err := p.Log.End(ctx, topic, p.partition)
		if err != nil {
			return nil, fmt.Errorf("end of %s/%d: %w", topic, p.partition, err)
		}
		ends[topic] = end
	}
	return ends, nil
}

// CatchUp makes the checkpoints that are due, so that no question waits for the whole log to be folded. It rests in between, and keeps
// nothing in memory.
func (p *Past) CatchUp(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	ends, err := p.ends(ctx)
	if err != nil {
		return err
	}
	at := time.Now().Add(-settled)
	c, ahead := p.newest(), int64(0)
	for topic, end := range ends {
		ahead += end - c.Folds[topic].Next
	}
	if ahead >= int64(p.Every) {
		began := time.Now()
		err := p.foldTo(ctx, p.before(at, true, nil), at, func(m *moment) error {
			p.keep(m)
			worked := time.Since(began)
			if worked < shortest {
				return nil
			}
			select {
			case <-time.After(time.Duration(p.Rest) * worked):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			began = time.Now()
			return nil
		})
		if err != nil {
			return err
		}
	}
	p.caughtUp.Store(true)
	return nil
}

// shortest is for how long CatchUp works before it rests.
const shortest = 5 * time.Millisecond

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

// foldTo folds what was written up to a time, in the order of time, and calls each after each record. It reads sparingly, so that it
// holds little and is not counted as read. After an error the moment is that of the last record that was folded.
func (p *Past) foldTo(ctx context.Context, m *moment, at time.Time, each func(*moment) error) error {
	ends, err := p.ends(ctx)
	if err != nil {
		return err
	}
	var sources []*source
	for _, topic := range topics {
		f, end := m.folds[topic], ends[topic]
		if f.next >= end {
			continue
		}
		r, err := reading.To(ctx, p.Log, topic, p.partition, end, reading.Options{From: f.next, Sparing: true})
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
		if err := each(m); err != nil {
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
