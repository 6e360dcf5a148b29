package analyzer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/agenda"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
	"landfall.build/services/stage"
)

// quietBeforeStart is how long nothing has to arrive before a partition counts as read up to its end
// although its last record is none (a torn one).
const quietBeforeStart = 2 * time.Second

// partition is one goroutine's: it folds, starts jobs, and writes what they found.
type partition struct {
	*Analyzer
	number int32
	terms  *journal.Terms
	cursor journal.Cursor
	// seen is the offset after the last record that was read; end is where the log ended at the start.
	// Before it is reached no job is started, since its answer may be there.
	seen, end int64
	lastRead  time.Time
	live      bool

	queues  map[string]*folded
	results chan result
	over    <-chan struct{} // closed when nobody reads results any more
	jobs    sync.WaitGroup
	keeper  *snapshot.Keeper
}

// folded is one queue as the log has it, with the jobs that are under way for it.
type folded struct {
	name   string
	agenda *agenda.Queue
	jobs   map[string]*job
	traces map[string]string // change → trace of its admission
	dirty  bool
}

func (a *Analyzer) runPartition(ctx context.Context, number int32) error {
	end, err := a.Log.End(ctx, events.TopicChanges, number)
	if err != nil {
		return ended(ctx, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &partition{
		Analyzer: a, number: number, terms: journal.NewTerms(events.TopicChanges), end: end,
		lastRead: time.Now(), queues: map[string]*folded{}, results: make(chan result),
		over:   ctx.Done(),
		keeper: snapshot.NewKeeper(a.Snapshots, snapshot.Key{Log: a.Log.ID(), Service: events.ServiceAnalyzer, Partition: number}, a.Logger),
	}
	if state, ok := p.keeper.Load(); ok {
		if err := p.thaw(state); err != nil {
			p.keeper.Drop(err)
		}
	}
	if p.cursor, err = a.Log.Follow(ctx, events.TopicChanges, number, p.seen); err != nil {
		cancel()
		return ended(ctx, err)
	}
	defer p.cursor.Close()
	defer p.jobs.Wait()
	defer cancel()
	return ended(ctx, p.loop(ctx))
}

// ended hides the error of a service that was told to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (p *partition) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := p.drain(); err != nil {
			return err
		}
		timer.Reset(p.startJobs(ctx, time.Now()))
		select {
		case <-p.cursor.Ready():
		case r := <-p.results:
			// What others have written meanwhile decides what the result is still worth.
			if err := p.drain(); err != nil {
				return err
			}
			p.take(ctx, r)
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain folds what has arrived.
func (p *partition) drain() error {
	for {
		e, ok, err := p.cursor.TryNext()
		if err != nil {
			return fmt.Errorf("read %s: %w", events.TopicChanges, err)
		}
		if !ok {
			return nil
		}
		p.seen, p.lastRead = e.Offset+1, time.Now()
		if p.terms.Counts(e) {
			p.fold(e)
		}
		p.keep(1)
	}
}

func (p *partition) fold(e journal.Entry) {
	if p.Analyzer.queues[e.Queue] == nil {
		p.Logger.Debug("a fact of a queue that is not configured", "queue", e.Queue, "offset", e.Offset)
		return
	}
	f := p.queues[e.Queue]
	if f == nil {
		f = &folded{name: e.Queue, agenda: agenda.New(), jobs: map[string]*job{}, traces: map[string]string{}}
		p.queues[e.Queue] = f
	}
	f.agenda.Apply(e.Message, e.Offset)
	f.dirty = true
	switch e.Message.(type) {
	case *eventsv1.ChangeAdmitted, *eventsv1.ChangeRevised:
		f.traces[e.Subject] = e.Trace
	}
}

// startJobs starts what is wanted and gives the time after which to look again.
func (p *partition) startJobs(ctx context.Context, now time.Time) time.Duration {
	if p.seen < p.end && now.Sub(p.lastRead) < quietBeforeStart {
		return quietBeforeStart
	}
	if !p.live {
		p.live = true
		p.keeper.CaughtUp()
		p.keep(0)
		p.Logger.Debug(stage.SaysLive, "service", events.ServiceAnalyzer, "partition", p.number)
	}
	again := time.Hour
	for _, name := range slices.Sorted(maps.Keys(p.queues)) {
		f := p.queues[name]
		if f.dirty || f.isDue(now) {
			f.dirty = false
			p.startJobsOf(ctx, f, now)
		}
		for _, j := range f.jobs {
			if j.state == waiting {
				again = min(again, max(0, j.notBefore.Sub(now)))
			}
		}
	}
	return again
}

func (f *folded) isDue(now time.Time) bool {
	for _, j := range f.jobs {
		if j.state == waiting && !j.notBefore.After(now) {
			return true
		}
	}
	return false
}

func (p *partition) startJobsOf(ctx context.Context, f *folded, now time.Time) {
	for key, j := range f.jobs {
		switch {
		case j.state == written && j.offset < p.seen, j.state == waiting && !f.agenda.Answers(j.task):
			delete(f.jobs, key)
		case j.state == running && !f.agenda.Answers(j.task):
			j.cancel()
		}
	}
	busy := 0
	for _, j := range f.jobs {
		if j.state == running {
			busy++
		}
	}
	f.forgetGone(p.Analyzer.queues[f.name].paths)
	wanted := f.agenda.Wanted()
	if len(wanted) == 0 {
		return
	}
	peers := peersOf(f.agenda.Lineup)
	for _, task := range wanted {
		if busy >= cap(p.slots) {
			return
		}
		key := subjectOf(task)
		j := f.jobs[key]
		if j != nil && (j.state != waiting || j.notBefore.After(now)) {
			continue
		}
		if j == nil {
			j = &job{key: key, queue: f.name, first: now}
			f.jobs[key] = j
		}
		if j.task.Base != task.Base || j.task.Sequence != task.Sequence {
			j.fact = nil
		}
		j.task = task
		p.startJob(ctx, j, peers)
		busy++
	}
}

// forgetGone drops what is remembered of changes that are no longer pending, once that is most of it.
func (f *folded) forgetGone(paths *pathMemory) {
	if max(len(f.traces), paths.size()) <= 2*len(f.agenda.Lineup.Order())+64 {
		return
	}
	pending := map[agenda.Key]bool{}
	for _, c := range f.agenda.Lineup.Order() {
		pending[agenda.KeyOf(c.Ref())] = true
	}
	paths.keepOnly(pending)
	for change := range f.traces {
		if f.agenda.Lineup.Pending(change) == nil {
			delete(f.traces, change)
		}
	}
}
