package enumerator

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/stage"
)

// Options of the enumerator.
type Options struct {
	stage.Options
	// Settings are the configured queues, by name. They reach the cores as facts only.
	Settings map[string]*eventsv1.QueueSettings
	// TickEvery is the least time between two ticks of a queue that has something pending. While nothing
	// but time passes there, ticks grow rarer, up to a minute.
	TickEvery time.Duration
}

// Run owns one partition until the context ends, the ownership is lost, or a write fails.
func Run(ctx context.Context, o Options, partition int32) error {
	l, err := Take(ctx, o, partition)
	if err != nil {
		return err
	}
	defer l.Close()
	ticker := time.NewTicker(l.o.TickEvery)
	defer ticker.Stop()
	for {
		did, err := l.Step(ctx)
		if err == nil && !did {
			err = l.wait(ctx, ticker.C)
		}
		if err != nil {
			return err
		}
	}
}

// Owner is the enumerator on one partition under one term. It is for one goroutine; any error ends the ownership.
type Owner struct {
	o         Options
	p         *Partition
	w         *stage.Writer
	partition int32
	own       journal.Cursor
	// sources are changes, builds and models.
	sources []journal.Cursor
	written int64
	quiet   map[string]*quiet
	keeping *stage.Keeping
	// offered is how much of what was written the keeping has been told of; what was folded before counts too.
	offered int64
}

// Take claims a partition, folds what was written up to the claim, and writes the settings that the log does not have.
func Take(ctx context.Context, o Options, partition int32) (*Owner, error) {
	term, err := stage.Claim(ctx, o.Log, events.ServiceEnumerator, o.Instance, o.Version, events.TopicSpeculations, partition, o.Now())
	if err != nil {
		return nil, err
	}
	o.TickEvery = max(o.TickEvery, time.Second)
	l := &Owner{
		o: o, w: stage.NewWriter(o.Options, events.ServiceEnumerator, events.TopicSpeculations, partition, term), partition: partition,
		quiet: map[string]*quiet{}, keeping: stage.NewKeeping(o.Options, events.ServiceEnumerator, partition),
	}
	if l.p, l.own, err = restore(ctx, o, partition, term, l.keeping); err != nil {
		return nil, err
	}
	from := l.p.Positions()
	for _, source := range []struct {
		topic string
		from  int64
	}{{events.TopicChanges, from.Changes}, {events.TopicBuilds, from.Builds}, {events.TopicModels, from.Models}} {
		c, err := o.Log.Follow(ctx, source.topic, partition, source.from)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.sources = append(l.sources, c)
	}
	l.keeping.Live(l.w)
	l.offered = -l.p.count
	o.Logger.Debug(stage.SaysLive, "service", events.ServiceEnumerator, "partition", partition, "term", term)
	if err := l.settings(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Close ends the reading.
func (l *Owner) Close() {
	l.own.Close()
	for _, c := range l.sources {
		c.Close()
	}
}

// restore folds the own topic up to the claim: from the last snapshot on, if it is one of this log.
func restore(ctx context.Context, o Options, partition int32, term int64, keeping *stage.Keeping) (*Partition, journal.Cursor, error) {
	if kept, ok := keeping.Last(term); ok {
		p, err := Thaw(kept)
		if err != nil {
			err = fmt.Errorf("%w: %w", stage.ErrStale, err)
		} else {
			var own journal.Cursor
			if own, err = readOwn(ctx, o, p, partition, kept.Own, term); err == nil {
				return p, own, nil
			}
		}
		if !errors.Is(err, stage.ErrStale) {
			return nil, nil, err
		}
		keeping.Drop(err)
	}
	p := NewPartition()
	own, err := readOwn(ctx, o, p, partition, 0, term)
	return p, own, err
}

// readOwn folds the own topic from an offset up to the claim.
func readOwn(ctx context.Context, o Options, p *Partition, partition int32, from, term int64) (journal.Cursor, error) {
	own, err := o.Log.Follow(ctx, events.TopicSpeculations, partition, from)
	if err != nil {
		return nil, err
	}
	for {
		e, err := own.Next(ctx)
		if err == nil {
			if p.Own(e); p.Stale() {
				err = stage.ErrStale
			}
		}
		if err != nil {
			own.Close()
			return nil, err
		}
		if e.Offset >= term {
			return own, nil
		}
	}
}

// quiet is how long nothing but time has passed in a queue.
type quiet struct {
	since time.Time
	ticks int
}

// due says whether a tick is worth its records: each stage behind writes one for it, and all are kept.
func (q *quiet) due(now time.Time, every time.Duration) bool {
	return now.Sub(q.since) >= min(every<<min(q.ticks, 10), time.Minute)
}

// settings puts the configuration into the log where it differs from what the log has.
func (l *Owner) settings(ctx context.Context) error {
	names := make([]string, 0, len(l.o.Settings))
	for name := range l.o.Settings {
		if events.PartitionOf(name, l.o.Log.Partitions()) == l.partition {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		s := l.o.Settings[name]
		if l.p.Queue(name).Settings().GetHash() == s.Hash {
			continue
		}
		if err := l.write(ctx, name, l.p.Say(name, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: s}}, l.o.Now().UnixMicro())); err != nil {
			return err
		}
	}
	return nil
}

func (l *Owner) write(ctx context.Context, queue string, s *eventsv1.Speculation) error {
	l.written++
	return l.w.Write(ctx, queue, strconv.FormatInt(l.written, 10), "", s)
}

// Step merges what has arrived in the sources, without waiting; did is false if nothing had.
func (l *Owner) Step(ctx context.Context) (did bool, err error) {
	select {
	case err := <-l.w.Failed():
		return false, err
	default:
	}
	for _, c := range l.sources {
		took, err := l.drain(ctx, c)
		if err != nil {
			return did, err
		}
		did = did || took
	}
	if err := l.flush(ctx); err != nil {
		return did, err
	}
	told := int(l.written - l.offered)
	l.offered = l.written
	return did, l.keeping.Offer(told, l.own, l.p.Freeze)
}

// drain takes what has arrived in one topic.
func (l *Owner) drain(ctx context.Context, c journal.Cursor) (took bool, err error) {
	for range maxFacts {
		e, ok, err := c.TryNext()
		if err != nil || !ok {
			return took, err
		}
		took = true
		if why := Unfit(e); why != "" {
			stage.PutDeadLetter(ctx, l.o.Log, l.o.Logger, events.ServiceEnumerator, l.o.Instance, e, why)
		}
		for !l.p.Take(e) {
			if err := l.flush(ctx); err != nil {
				return took, err
			}
		}
	}
	return took, nil
}

func (l *Owner) flush(ctx context.Context) error {
	for l.p.Gathered() {
		queue, s := l.p.Flush(l.o.Now().UnixMicro())
		l.quiet[queue] = &quiet{since: time.Now()}
		if err := l.write(ctx, queue, s); err != nil {
			return err
		}
	}
	return nil
}

// tick lets time pass for every queue in which it can change something, as long as that is worth its records.
func (l *Owner) tick(ctx context.Context) error {
	names := make([]string, 0, len(l.p.queues))
	for name, q := range l.p.queues {
		if l.quiet[name] == nil {
			l.quiet[name] = &quiet{since: time.Now()}
		}
		if !q.Idle() && l.quiet[name].due(time.Now(), l.o.TickEvery) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		l.quiet[name] = &quiet{since: time.Now(), ticks: l.quiet[name].ticks + 1}
		if err := l.Tick(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// Tick lets a queue know the time, if that can change something in it.
func (l *Owner) Tick(ctx context.Context, queue string) error {
	if l.p.Queue(queue).Idle() {
		return nil
	}
	return l.write(ctx, queue, l.p.Say(queue, &eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}}, l.o.Now().UnixMicro()))
}

// Check reads on in the own topic to see whether another instance has claimed it.
func (l *Owner) Check() error { return l.w.CheckTerm(l.own) }

// wait returns when there may be something to do.
func (l *Owner) wait(ctx context.Context, ticks <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-l.sources[0].Ready():
	case <-l.sources[1].Ready():
	case <-l.sources[2].Ready():
	case <-ticks:
		return l.tick(ctx)
	case <-l.own.Ready():
		return l.Check()
	case err := <-l.w.Failed():
		return err
	}
	return nil
}
