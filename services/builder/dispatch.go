package builder

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/caches"
	"landfall.build/services/builder/outputs"
)

// maxPreparing bounds the trees that are made at the same time; the rest of a preparation is cheap.
const maxPreparing = 4

// session is one Run.
type session struct {
	*Builder
	dir     string
	shared  *shared
	fitness fitness
	caches  *caches.Store
	outputs *outputs.Keeper
	// isolated is set if this system has a sandbox for steps.
	isolated bool
	// watched is set if this system can watch what steps look for.
	watched bool
	// limits bound each step; cgroups keeps them, if the system has any.
	limits  bounds.Limits
	cgroups *bounds.Tree
	// networks has what isolated steps reach, by queue.
	networks map[string]sandbox.Network

	mu         sync.Mutex
	assemblies map[string]*assembly // by build
	fillings   map[string]*filling  // by queue

	// Only the dispatcher uses what follows. Tasks send on ended what it has to do when they end. idle holds the workers
	// that can take a step now.
	workers   []*worker
	idle      []*worker
	jobs      map[stepKey]*job
	preparing map[string]context.CancelFunc
	// forgetting is by queue.
	forgetting map[string]*forgetting
	// unfit has what is known of steps that this builder can never run, by what they take.
	unfit map[string]*unfit
	// retaining is set while retention runs; it runs again at retainAt.
	retaining bool
	retainAt  time.Time
	// settling is set while what landed changes left in caches is laid out for other steps.
	settling bool
	// strange are the queues of the log that the configuration does not have.
	strange map[string]bool
	// urgentSince has, by queue, since when its urgent steps wait for a worker.
	urgentSince map[string]time.Time
	ended       chan func()
	tasks       sync.WaitGroup
}

type stepKey struct {
	queue string
	steps.Version
}

// job is one attempt that a worker of this process makes, or tries to get the right to make; or one at each version of a group.
type job struct {
	queue string
	// step is what the worker was given, and companions are what it verifies by the same invocation.
	step       steps.Step
	companions []steps.Step
	lease      string
	cancel     context.CancelCauseFunc
	ending     *ending
	// began is when the worker took it; preempted is set once it was ended for an urgent step.
	began     time.Time
	preempted bool
	// held is set once the lease was read back as the one that counts, for a version at least. shared.mu guards it.
	held bool

	mu sync.Mutex
	// open are the steps that the lease holds for and that have no result yet.
	open []steps.Step
	// filling is the cache that has to be filled before the step runs, "" if none; said is sent to when it changes.
	filling string
	said    chan struct{}
	// filled is for how long the step waited for that. It is set before the step runs.
	filled time.Duration
}

// waitForCache has the lease say that a cache is filled before the step runs, until done is called.
func (j *job) waitForCache(cache string) (done func()) {
	began := time.Now()
	j.say(cache)
	return func() {
		j.filled += time.Since(began)
		j.say("")
	}
}

func (j *job) say(filling string) {
	j.mu.Lock()
	j.filling = filling
	j.mu.Unlock()
	select {
	case j.said <- struct{}{}:
	default: // what was sent before is not read yet
	}
}

func (j *job) waitsFor() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.filling
}

// all returns the steps that the job is for.
func (j *job) all() []steps.Step { return append([]steps.Step{j.step}, j.companions...) }

// stillOpen returns the steps that the lease is to be extended for.
func (j *job) stillOpen() []steps.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.open)
}

func (j *job) setOpen(list []steps.Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open = list
}

// wanted returns the versions of the job that some build needs, and whether the lease holds for one of them.
func (j *job) wanted(q *steps.Queue) (list []steps.Version, holds bool) {
	for _, s := range j.all() {
		if q.Wants(s.Version) {
			list = append(list, s.Version)
			holds = holds || q.Holder(s.Version, s.Attempt) == j.lease
		}
	}
	return list, holds
}

func (s *session) partitionOf(queue string) int32 {
	return events.PartitionOf(queue, s.Log.Partitions())
}

// dispatch hands out work until the context ends, and returns once all of it has ended.
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
		case leave := <-s.ended:
			leave()
		}
	}
	done := make(chan struct{})
	go func() { s.tasks.Wait(); close(done) }()
	for {
		select {
		case leave := <-s.ended:
			leave()
		case <-done:
			return
		}
	}
}

// leaveToOthers says once that a queue of the log is not in this builder's configuration.
func (s *session) leaveToOthers(queue string) {
	if !s.strange[queue] {
		s.strange[queue] = true
		s.Logger.Warn("a queue of the log is not in this builder's configuration; its builds are left to other builders", "queue", queue)
	}
}

// assign ends steps that no build needs, and starts what should run. The caller calls it again when changed is closed, and
// at the latest after wait.
func (s *session) assign(ctx context.Context) (changed <-chan struct{}, wait time.Duration) {
	now := time.Now()
	wait = s.listIdle(now)
	var preparations []preparation
	var runnable [][]runnableStep
	changed = s.shared.read(func() {
		s.endUnwanted()
		for _, name := range s.shared.names {
			q := s.shared.queues[name]
			if !s.shared.live[s.partitionOf(name)] {
				continue
			}
			if s.graphs[name] == nil {
				s.leaveToOthers(name)
				continue
			}
			s.forgetEvidence(ctx, name, q)
			settings := s.Configuration.Queues[name]
			if q.Idle() || settings.Pool != s.Configuration.Builder.Pool {
				continue
			}
			q.Workers = settings.PoolWorkers
			q.SetQuotas(s.quotas[name])
			for place, p := range q.Preparations(now.UnixMicro()) {
				preparations = append(preparations, preparation{name, place, p})
			}
			next := q.Next(now.UnixMicro(), len(s.idle), s.taken(name), func(claims *eventsv1.StepClaims) bool {
				fits, later := s.fits(ctx, claims, now)
				wait = min(wait, later)
				return fits
			})
			if len(s.idle) == 0 && q.HasUrgent() {
				wait = min(wait, s.makeRoom(ctx, name, q, now))
			}
			var ofQueue []runnableStep
			for _, step := range next {
				step.Rank.Bid *= settings.Weight
				ofQueue = append(ofQueue, runnableStep{name, step})
			}
			runnable = append(runnable, ofQueue)
			if until, ok := q.NextLapse(now.UnixMicro()); ok {
				// A moment later, so that clocks that are nearly the same agree.
				wait = min(wait, time.UnixMicro(until).Sub(now)+time.Millisecond)
			}
		}
		s.forgetAssemblies()
		s.settleCaches()
	})
	// Trees are made for all queues in turn, in the order in which the queues were first seen.
	slices.SortStableFunc(preparations, func(a, b preparation) int { return cmp.Compare(a.place, b.place) })
	for _, p := range preparations {
		s.startPreparing(ctx, p.queue, p.Preparation)
	}
	for _, step := range merge(runnable) {
		if len(s.idle) == 0 {
			break
		}
		if s.jobs[stepKey{step.queue, step.Version}] != nil {
			wait = 0 // it went with another one; a further step may be there for the worker
			continue
		}
		if fits, _ := s.fits(ctx, step.Claims, now); !fits {
			wait = 0 // what was started took it; another step may fit
			continue
		}
		s.startStep(ctx, step.queue, step.Step)
	}
	return changed, min(wait, s.startRetaining(ctx, now))
}

// preparation is one of a queue, with its place there.
type preparation struct {
	queue string
	place int
	steps.Preparation
}

type runnableStep struct {
	queue string
	steps.Step
}

// merge returns the steps of all queues by their ranks. Those of one queue keep their order.
func merge(queues [][]runnableStep) (all []runnableStep) {
	for {
		best := -1
		for i, of := range queues {
			if len(of) > 0 && (best < 0 || of[0].Rank.Compare(queues[best][0].Rank) < 0) {
				best = i
			}
		}
		if best < 0 {
			return all
		}
		all, queues[best] = append(all, queues[best][0]), queues[best][1:]
	}
}

// taken returns the versions of a queue that workers of this process run, or try to get the right to run.
func (s *session) taken(queue string) []steps.Version {
	var list []steps.Version
	for key := range s.jobs {
		if key.queue == queue {
			list = append(list, key.Version)
		}
	}
	return list
}

// endUnwanted cancels the steps that no build needs, and those that another worker has taken over. shared.mu is held.
func (s *session) endUnwanted() {
	for _, j := range s.jobs {
		if !j.held {
			continue
		}
		switch list, holds := j.wanted(s.shared.queues[j.queue]); {
		case len(list) == 0:
			j.cancel(errUnwanted)
		case !holds:
			j.cancel(errLost)
		}
	}
	for build, cancel := range s.preparing {
		if !s.anyLive(build) {
			cancel()
		}
	}
}

// anyLive reports whether a build is live in any queue; ids of builds are unique among queues. shared.mu is held.
func (s *session) anyLive(build string) bool {
	for _, q := range s.shared.queues {
		if q.Live(build) {
			return true
		}
	}
	return false
}

func (s *session) startPreparing(ctx context.Context, queue string, p steps.Preparation) {
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

func (s *session) startStep(ctx context.Context, queue string, step steps.Step) {
	w := s.takeWorker(step)
	now := time.Now()
	j := &job{began: now, queue: queue, step: step, lease: s.leaseID(queue, step, w.name, now), ending: newEnding(ctx, s.endingLimit), said: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancelCause(ctx)
	j.cancel = cancel
	s.shared.read(func() {
		j.companions = s.shared.queue(queue).Companions(step, now.UnixMicro(), s.taken(queue))
	})
	for _, one := range j.all() {
		s.jobs[stepKey{queue, one.Version}] = j
	}
	s.task(func() func() {
		w.work(ctx, j, now)
		cancel(nil)
		return func() {
			for _, one := range j.all() {
				delete(s.jobs, stepKey{queue, one.Version})
			}
			w.busy = false
			s.addBusy(-1)
		}
	})
}

// listIdle sets idle, and returns how long nobody takes a step because all workers rest, else an hour.
func (s *session) listIdle(now time.Time) (wait time.Duration) {
	s.idle = s.idle[:0]
	if rest := s.fitness.rest(now); rest > 0 {
		return rest
	}
	for _, w := range s.workers {
		if !w.busy {
			s.idle = append(s.idle, w)
		}
	}
	return time.Hour
}

// task runs something beside the dispatcher, which runs leave afterwards.
func (s *session) task(do func() (leave func())) {
	s.tasks.Go(func() {
		leave := do()
		s.ended <- leave
	})
}

// takeWorker takes an idle worker, if possible the one whose worktree is likely to hold nearly the same files.
func (s *session) takeWorker(step steps.Step) *worker {
	at := max(0, slices.IndexFunc(s.idle, func(w *worker) bool { return w.lastBuild == step.Build.GetBuild() }))
	w := s.idle[at]
	s.idle = slices.Delete(s.idle, at, at+1)
	w.busy = true
	s.addBusy(1)
	w.lastBuild = step.Build.GetBuild()
	return w
}

// addBusy changes the number of workers that work.
func (s *session) addBusy(n int) {
	s.Health.AddBusy(n)
	s.metrics.addBusy(n)
}

// leaseID returns another id at every try, also after a restart: only who extends a lease repeats its id.
func (s *session) leaseID(queue string, step steps.Step, worker string, now time.Time) string {
	return events.DeriveID(s.Log.ID(), "lease", queue, step.Target, step.Hash, worker, now.Format(time.RFC3339Nano), attemptName(step.Attempt))
}

func (s *session) release() {
	for _, w := range s.workers {
		w.release()
	}
}

func changeOf(b *eventsv1.BuildScheduled) string { return b.GetChange().GetChange().GetChange() }
