package analyzer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"landfall.build/events"
	"landfall.build/services/analyzer/agenda"
	"landfall.build/services/analyzer/fold"
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
	cursor journal.Cursor
	read   *fold.Partition
	// end is where the log ended at the start. Before it is reached no job is started, since its answer may be there.
	end      int64
	lastRead time.Time
	live     bool

	queues  map[string]*underWay
	results chan result
	over    <-chan struct{} // closed when nobody reads results any more
	jobs    sync.WaitGroup
	keeper  *snapshot.Keeper
}

// underWay is what is done for one queue.
type underWay struct {
	name   string
	agenda *agenda.Queue
	jobs   map[string]*job
	dirty  bool
}

func (a *Analyzer) runPartition(ctx context.Context, number int32) error {
	end, err := a.Log.End(ctx, events.TopicChanges, number)
	if err != nil {
		return ended(ctx, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &partition{
		Analyzer: a, number: number, read: fold.NewPartition(a.configured()), end: end,
		lastRead: time.Now(), queues: map[string]*underWay{}, results: make(chan result),
		over:   ctx.Done(),
		keeper: snapshot.NewKeeper(a.Snapshots, snapshot.Key{Log: a.Log.ID(), Service: events.ServiceAnalyzer, Partition: number}, a.Logger),
	}
	p.thaw()
	if p.cursor, err = a.Log.Follow(ctx, events.TopicChanges, number, p.read.Next()); err != nil {
		cancel()
		return ended(ctx, err)
	}
	defer p.cursor.Close()
	defer p.jobs.Wait()
	defer cancel()
	return ended(ctx, p.loop(ctx))
}

func (a *Analyzer) configured() []string { return slices.Sorted(maps.Keys(a.queues)) }

// thaw takes over what was frozen, if it fits.
func (p *partition) thaw() {
	state, ok := p.keeper.Load()
	if !ok {
		return
	}
	read, err := fold.Thaw(state, p.configured(), p.end)
	if err != nil {
		p.keeper.Drop(err)
		return
	}
	p.read = read
	for _, name := range p.configured() {
		if read.Queue(name) != nil {
			p.of(name)
		}
	}
}

// of gives what is done for a queue of which something was read; it is looked at next.
func (p *partition) of(queue string) *underWay {
	u := p.queues[queue]
	if u == nil {
		u = &underWay{name: queue, agenda: p.read.Queue(queue), jobs: map[string]*job{}}
		p.queues[queue] = u
	}
	u.dirty = true
	return u
}

// keep counts records, and saves a snapshot when that is due.
func (p *partition) keep(records int) {
	if !p.keeper.Took(records) {
		return
	}
	if state, ok := p.keeper.Freeze(p.read.Freeze); ok {
		p.keeper.Save(state)
	}
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
		p.lastRead = time.Now()
		if p.read.Read(e) {
			p.of(e.Queue)
		}
		p.keep(1)
	}
}

// startJobs starts what is wanted and gives the time after which to look again.
func (p *partition) startJobs(ctx context.Context, now time.Time) time.Duration {
	if p.read.Next() < p.end && now.Sub(p.lastRead) < quietBeforeStart {
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

func (f *underWay) isDue(now time.Time) bool {
	for _, j := range f.jobs {
		if j.state == waiting && !j.notBefore.After(now) {
			return true
		}
	}
	return false
}

func (p *partition) startJobsOf(ctx context.Context, f *underWay, now time.Time) {
	for key, j := range f.jobs {
		switch {
		case j.state == written && j.offset < p.read.Next(), j.state == waiting && !f.agenda.Answers(j.task):
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
	f.forgetGone(p.Analyzer.queues[f.name].paths, p.read.Traces(f.name))
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
func (f *underWay) forgetGone(paths *pathMemory, traces map[string]string) {
	if max(len(traces), paths.size()) <= 2*len(f.agenda.Lineup.Order())+64 {
		return
	}
	pending := map[agenda.Key]bool{}
	for _, c := range f.agenda.Lineup.Order() {
		pending[agenda.KeyOf(c.Ref())] = true
	}
	paths.keepOnly(pending)
	for change := range traces {
		if f.agenda.Lineup.Pending(change) == nil {
			delete(traces, change)
		}
	}
}
