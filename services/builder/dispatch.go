package builder

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/builder/work"
)

// maxPreparing bounds the trees that are made at the same time; the rest of a preparation is cheap.
const maxPreparing = 4

// session is one Run: what it knows ends with it.
type session struct {
	*Builder
	dir    string
	floor  *floor
	health health

	mu         sync.Mutex
	assemblies map[string]*assembly // by build

	// Only the dispatcher touches these; ended gives back what it handed out. idle are those of workers
	// that can take a step now.
	workers   []*worker
	idle      []*worker
	jobs      map[stepKey]*job
	preparing map[string]context.CancelFunc
	// forgetting is by queue.
	forgetting map[string]*forgetting
	ended      chan func()
	tasks      sync.WaitGroup
}

type stepKey struct {
	queue string
	work.Version
}

// job is one attempt that a worker of this process makes, or tries to get the right to make.
type job struct {
	queue  string
	step   work.Step
	lease  string
	cancel context.CancelCauseFunc
	// held: the lease was read back as the one that counts. Guarded by the floor's lock.
	held bool
}

func (s *session) partitionOf(queue string) int32 {
	return events.PartitionOf(queue, s.Log.Partitions())
}

// dispatch hands out work until the context ends, and returns once everything has been given back.
func (s *session) dispatch(ctx context.Context) {
	s.ended = make(chan func())
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		changed, wait := s.assign(ctx)
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		case giveBack := <-s.ended:
			giveBack()
		}
	}
	done := make(chan struct{})
	go func() { s.tasks.Wait(); close(done) }()
	for {
		select {
		case giveBack := <-s.ended:
			giveBack()
		case <-done:
			return
		}
	}
}

// assign looks at the state once: it ends what nobody needs, and starts what should run. wait is when it
// has to look again even if nothing is written.
func (s *session) assign(ctx context.Context) (changed <-chan struct{}, wait time.Duration) {
	now := time.Now()
	wait = s.wakeWorkers(now)
	var preparations []queued[work.Preparation]
	var steps []queued[work.Step]
	changed = s.floor.look(func() {
		s.endUnwanted()
		for _, name := range s.floor.names {
			q := s.floor.queues[name]
			if !s.floor.live[s.partitionOf(name)] {
				continue
			}
			s.forgetEvidence(ctx, name, q)
			if q.Idle() {
				continue
			}
			for rank, p := range q.Preparations() {
				preparations = append(preparations, queued[work.Preparation]{name, rank, p})
			}
			next := q.Next(now.UnixMicro(), len(s.idle), func(v work.Version) bool { return s.jobs[stepKey{name, v}] != nil })
			for rank, step := range next {
				steps = append(steps, queued[work.Step]{name, rank, step})
			}
			if until, ok := q.NextLapse(now.UnixMicro()); ok {
				// A moment later, so that clocks that are nearly the same agree.
				wait = min(wait, time.UnixMicro(until).Sub(now)+time.Millisecond)
			}
		}
		s.forgetAssemblies()
	})
	byRank(preparations)
	for _, p := range preparations {
		s.startPreparing(ctx, p.queue, p.what)
	}
	byRank(steps)
	for _, step := range steps {
		if len(s.idle) == 0 {
			break
		}
		s.startStep(ctx, step.queue, step.what)
	}
	return changed, wait
}

// queued is something to do for a queue, with its place there.
type queued[T any] struct {
	queue string
	rank  int
	what  T
}

// byRank takes from all queues in turn, in the order in which the queues were first seen.
func byRank[T any](list []queued[T]) {
	slices.SortStableFunc(list, func(a, b queued[T]) int { return cmp.Compare(a.rank, b.rank) })
}

// endUnwanted cancels the steps that no build needs, and those that another worker has taken over. The
// floor's lock is held.
func (s *session) endUnwanted() {
	for _, j := range s.jobs {
		if !j.held {
			continue
		}
		q := s.floor.queues[j.queue]
		switch {
		case !q.Wants(j.step.Version):
			j.cancel(errUnwanted)
		case q.Holder(j.step.Version, j.step.Attempt) != j.lease:
			j.cancel(errLost)
		}
	}
	for build, cancel := range s.preparing {
		if !s.anyLive(build) {
			cancel()
		}
	}
}

// anyLive: build ids are unique among queues. The floor's lock is held.
func (s *session) anyLive(build string) bool {
	for _, q := range s.floor.queues {
		if q.Live(build) {
			return true
		}
	}
	return false
}

func (s *session) startPreparing(ctx context.Context, queue string, p work.Preparation) {
	id := p.Build.GetBuild()
	if s.preparing[id] != nil || len(s.preparing) >= maxPreparing {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.preparing[id] = cancel
	s.task(func() func() {
		s.prepare(ctx, queue, p)
		cancel()
		return func() { delete(s.preparing, id) }
	})
}

func (s *session) startStep(ctx context.Context, queue string, step work.Step) {
	w := s.takeWorker(step)
	now := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	j := &job{queue: queue, step: step, cancel: cancel, lease: s.leaseID(queue, step, w.name, now)}
	key := stepKey{queue, step.Version}
	s.jobs[key] = j
	s.task(func() func() {
		w.work(ctx, j, now)
		cancel(nil)
		return func() {
			delete(s.jobs, key)
			w.busy = false
		}
	})
}

// wakeWorkers lists the workers that can take a step now, and says when they can that rest.
func (s *session) wakeWorkers(now time.Time) (wait time.Duration) {
	s.idle = s.idle[:0]
	if rest := s.health.rest(now); rest > 0 {
		return rest
	}
	for _, w := range s.workers {
		if !w.busy {
			s.idle = append(s.idle, w)
		}
	}
	return time.Hour
}

// task runs something beside the dispatcher, which then takes over what it leaves.
func (s *session) task(do func() (leave func())) {
	s.tasks.Go(func() {
		leave := do()
		s.ended <- leave
	})
}

// takeWorker prefers the one whose worktree is likely to hold nearly the same files.
func (s *session) takeWorker(step work.Step) *worker {
	at := max(0, slices.IndexFunc(s.idle, func(w *worker) bool { return w.lastBuild == step.Build.GetBuild() }))
	w := s.idle[at]
	s.idle = slices.Delete(s.idle, at, at+1)
	w.busy = true
	w.lastBuild = step.Build.GetBuild()
	return w
}

// leaseID is new at every try, also after a restart: two leases are one only if one extends the other.
func (s *session) leaseID(queue string, step work.Step, worker string, now time.Time) string {
	return events.DeriveID(s.Log.ID(), "lease", queue, step.Target, step.Hash, worker, now.Format(time.RFC3339Nano), attemptName(step.Attempt))
}

func (s *session) release() {
	for _, w := range s.workers {
		w.release()
	}
}

func changeOf(b *eventsv1.BuildScheduled) string { return b.GetChange().GetChange().GetChange() }
