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
	term, err := stage.Claim(ctx, o.Log, events.ServiceEnumerator, o.Instance, o.Version, events.TopicSpeculations, partition, time.Now())
	if err != nil {
		return err
	}
	keeping := stage.NewKeeping(o.Options, events.ServiceEnumerator, partition)
	p, own, err := restore(ctx, o, partition, term, keeping)
	if err != nil {
		return err
	}
	defer own.Close()
	from := p.Positions()
	changes, err := o.Log.Follow(ctx, events.TopicChanges, partition, from.Changes)
	if err != nil {
		return err
	}
	defer changes.Close()
	builds, err := o.Log.Follow(ctx, events.TopicBuilds, partition, from.Builds)
	if err != nil {
		return err
	}
	defer builds.Close()
	models, err := o.Log.Follow(ctx, events.TopicModels, partition, from.Models)
	if err != nil {
		return err
	}
	defer models.Close()
	o.TickEvery = max(o.TickEvery, time.Second)
	l := &loop{o: o, p: p, quiet: map[string]*quiet{}, w: stage.NewWriter(o.Options, events.ServiceEnumerator, events.TopicSpeculations, partition, term), partition: partition, keeping: keeping}
	keeping.Live(l.w)
	l.offered = -p.count
	o.Logger.Debug(stage.SaysLive, "service", events.ServiceEnumerator, "partition", partition, "term", term)
	if err := l.settings(ctx); err != nil {
		return err
	}
	return l.run(ctx, own, []journal.Cursor{changes, builds, models})
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

type loop struct {
	o         Options
	p         *Partition
	w         *stage.Writer
	partition int32
	written   int64
	quiet     map[string]*quiet
	keeping   *stage.Keeping
	// offered is how much of what was written the keeping has been told of; what was folded before counts too.
	offered int64
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
func (l *loop) settings(ctx context.Context) error {
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
		if err := l.write(ctx, name, l.p.Say(name, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: s}}, time.Now().UnixMicro())); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) write(ctx context.Context, queue string, s *eventsv1.Speculation) error {
	l.written++
	return l.w.Write(ctx, queue, strconv.FormatInt(l.written, 10), "", s)
}

// run merges the sources: changes, builds and models.
func (l *loop) run(ctx context.Context, own journal.Cursor, sources []journal.Cursor) error {
	ticker := time.NewTicker(l.o.TickEvery)
	defer ticker.Stop()
	for {
		took := false
		for _, c := range sources {
			n, err := l.drain(ctx, c)
			if err != nil {
				return err
			}
			took = took || n
		}
		if err := l.flush(ctx); err != nil {
			return err
		}
		if err := l.keeping.Offer(int(l.written-l.offered), own, l.p.Freeze); err != nil {
			return err
		}
		l.offered = l.written
		if took {
			continue
		}
		if err := l.wait(ctx, own, sources, ticker.C); err != nil {
			return err
		}
	}
}

// drain takes what has arrived in one topic.
func (l *loop) drain(ctx context.Context, c journal.Cursor) (took bool, err error) {
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

func (l *loop) flush(ctx context.Context) error {
	for l.p.Gathered() {
		queue, s := l.p.Flush(time.Now().UnixMicro())
		l.quiet[queue] = &quiet{since: time.Now()}
		if err := l.write(ctx, queue, s); err != nil {
			return err
		}
	}
	return nil
}

// tick lets time pass for every queue in which it can change something.
func (l *loop) tick(ctx context.Context) error {
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
		s := l.p.Say(name, &eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}}, time.Now().UnixMicro())
		if err := l.write(ctx, name, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) wait(ctx context.Context, own journal.Cursor, sources []journal.Cursor, ticks <-chan time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-sources[0].Ready():
	case <-sources[1].Ready():
	case <-sources[2].Ready():
	case <-ticks:
		return l.tick(ctx)
	case <-own.Ready():
		return l.w.CheckTerm(own)
	case err := <-l.w.Failed():
		return err
	}
	return nil
}
