package analyzer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"landfall.build/engine/agenda"
	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
	"landfall.build/services/analyzer/agendas"
)

// quietBeforeStart is how long nothing has to arrive before a partition counts as read up to its end
// although its last record is none (a torn one).
const quietBeforeStart = 2 * time.Second

// partition is the work on a partition of landfall.changes. One goroutine owns it: it reads the log, starts jobs, and
// writes what they found.
type partition struct {
	*Analyzer
	number int32
	cursor journal.Cursor
	state  *agendas.Partition
	// end is where the log ended at the start. Before it is reached no job is started, since its answer may be there.
	end      int64
	lastRead time.Time
	live     bool // the log has been read up to end

	queues  map[string]*queueWork
	results chan result
	stopped <-chan struct{} // closed when nobody receives results any more
	jobs    sync.WaitGroup
	keeper  *snapshot.Keeper
	health  *health.Partition
}

// queueWork is the work on one queue of a partition.
type queueWork struct {
	name   string
	agenda *agenda.Queue
	jobs   map[string]*job
	// changed is set when a record or a result may have changed what is wanted.
	changed bool
	// told is set once the log has had a survey with this instance's reading. Each instance has one made at most: those of
	// several configurations would not come to an end.
	told bool
}

func (a *Analyzer) runPartition(ctx context.Context, number int32) error {
	end, err := a.Log.End(ctx, events.TopicChanges, number)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &partition{
		Analyzer: a, number: number, state: agendas.NewPartition(a.configured()), end: end,
		lastRead: time.Now(), queues: map[string]*queueWork{}, results: make(chan result),
		stopped: ctx.Done(),
		keeper:  snapshot.NewKeeper(a.Snapshots, snapshot.Key{Log: a.Log.ID(), Service: events.ServiceAnalyzer, Partition: number}, a.Logger),
	}
	p.openSnapshot()
	if p.cursor, err = a.Log.Follow(ctx, events.TopicChanges, number, p.state.Next()); err != nil {
		cancel()
		return unlessEnded(ctx, err)
	}
	p.health = a.Health.Begin(number, health.NoTerm)
	p.health.Read(events.TopicChanges, p.state.Next())
	defer p.health.End()
	defer p.cursor.Close()
	defer p.jobs.Wait()
	defer cancel()
	return unlessEnded(ctx, p.loop(ctx))
}

func (a *Analyzer) configured() []string { return slices.Sorted(maps.Keys(a.queues)) }

// openSnapshot starts from the last snapshot, if there is one that fits.
func (p *partition) openSnapshot() {
	saved, ok := p.keeper.Load()
	if !ok {
		return
	}
	state, err := agendas.Unmarshal(saved, p.configured(), p.end)
	if err != nil {
		p.keeper.Drop(err)
		return
	}
	p.state = state
	for _, name := range p.configured() {
		if state.Queue(name) != nil {
			p.markChanged(name)
		}
	}
}

// markChanged notes that what is wanted of a queue may have changed.
func (p *partition) markChanged(queue string) {
	w := p.queues[queue]
	if w == nil {
		w = &queueWork{name: queue, agenda: p.state.Queue(queue), jobs: map[string]*job{}}
		p.queues[queue] = w
	}
	w.changed = true
}

// saveIfDue counts records, and saves a snapshot when one is due.
func (p *partition) saveIfDue(records int) {
	if !p.keeper.Count(records) {
		return
	}
	if state, ok := p.keeper.Freeze(p.state.Marshal); ok {
		p.keeper.Save(state)
	}
}

// unlessEnded returns an error, or nil if the context has ended: the service was asked to stop.
func unlessEnded(ctx context.Context, err error) error {
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
			// A record that was written meanwhile may have made the result worthless.
			if err := p.drain(); err != nil {
				return err
			}
			p.finish(ctx, r)
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain reads what has arrived.
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
		if p.state.Read(e) {
			p.markChanged(e.Queue)
		}
		p.health.Read(events.TopicChanges, p.state.Next())
		p.saveIfDue(1)
	}
}

// startJobs starts what is wanted, and returns the time after which a failed job is due again.
func (p *partition) startJobs(ctx context.Context, now time.Time) time.Duration {
	if p.state.Next() < p.end && now.Sub(p.lastRead) < quietBeforeStart {
		return quietBeforeStart
	}
	if !p.live {
		p.live = true
		p.health.Read(events.TopicChanges, p.state.Next())
		p.health.CaughtUp()
		p.keeper.MakeDue()
		p.saveIfDue(0)
		p.Logger.Debug(runner.SaysLive, "service", events.ServiceAnalyzer, "partition", p.number)
	}
	again := time.Hour
	for _, name := range slices.Sorted(maps.Keys(p.queues)) {
		w := p.queues[name]
		if w.changed || w.isDue(now) {
			w.changed = false
			p.startJobsOf(ctx, w, now)
		}
		for _, j := range w.jobs {
			if j.state == waiting {
				again = min(again, max(0, j.notBefore.Sub(now)))
			}
		}
	}
	return again
}

func (w *queueWork) isDue(now time.Time) bool {
	for _, j := range w.jobs {
		if j.state == waiting && !j.notBefore.After(now) {
			return true
		}
	}
	return false
}

// dropAnswered drops jobs whose answer the log has, and cancels those that run. next is the offset that is read next. It
// returns the number of jobs that run.
func (w *queueWork) dropAnswered(next int64) (busy int) {
	for key, j := range w.jobs {
		answered := !w.agenda.Answers(j.task)
		switch {
		case j.state == written && j.offset < next, j.state == waiting && answered:
			delete(w.jobs, key)
		case j.state == running:
			busy++
			if answered {
				j.cancel()
			}
		}
	}
	return busy
}

func (p *partition) startJobsOf(ctx context.Context, w *queueWork, now time.Time) {
	busy := w.dropAnswered(p.state.Next())
	w.forgetGone(p.Analyzer.queues[w.name].paths, p.state.Traces(w.name))
	reading := p.Analyzer.queues[w.name].loader.Reading()
	if w.told = w.told || w.agenda.Reading() == reading; w.told {
		reading = w.agenda.Reading()
	}
	wanted := w.agenda.Wanted(reading)
	if len(wanted) == 0 {
		return
	}
	peers := peersOf(w.agenda.Lineup)
	for _, task := range wanted {
		if busy >= cap(p.slots) {
			return
		}
		key := subjectOf(task)
		j := w.jobs[key]
		if j != nil && (j.state != waiting || j.notBefore.After(now)) {
			continue
		}
		if j == nil {
			j = &job{key: key, queue: w.name, first: now}
			w.jobs[key] = j
		}
		if j.task.Base != task.Base || j.task.Sequence != task.Sequence {
			j.fact = nil
		}
		j.task = task
		p.startJob(ctx, j, peers)
		busy++
	}
}

// forgetGone drops the paths and traces of changes that are no longer pending, once those are most of them.
func (w *queueWork) forgetGone(paths *pathMemory, traces map[string]string) {
	if max(len(traces), paths.size()) <= 2*len(w.agenda.Lineup.Order())+64 {
		return
	}
	pending := map[agenda.Key]bool{}
	for _, c := range w.agenda.Lineup.Order() {
		pending[agenda.KeyOf(c.Ref())] = true
	}
	paths.keepOnly(pending)
	for change := range traces {
		if w.agenda.Lineup.Pending(change) == nil {
			delete(traces, change)
		}
	}
}
