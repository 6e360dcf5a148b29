// Package builder is the service that makes the trees of builds and runs their steps: it reads landfall.decisions and writes
// landfall.builds (M24, M27).
//
// No instance owns a partition. Each follows all of them and may take any step. Leases in the log keep two workers from
// running the same step, and what is done is what the log says. Package engine/steps folds the log and lists what is to be
// done, package execution runs the commands; here are the loops between.
package builder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/retention"
	"landfall.build/platform/sandbox"
	"landfall.build/platform/snapshot"
	"landfall.build/services/builder/caches"
	"landfall.build/services/builder/execution"
)

// Options are all that the service needs.
type Options struct {
	Log           journal.Log
	Configuration *configuration.Configuration
	// Repo returns the mirror of a repository by its name in the configuration. The service does not close it.
	Repo func(ctx context.Context, repository string) (*gitrepo.Repo, error)
	// Graphs returns the loader of a queue's target graphs, for processes in which several services share them; the service
	// does not close it. If it is nil the service makes its own, and closes them when Run ends.
	Graphs func(queue string) *buildgraph.Loader
	// Dir holds logs (Dir/logs, see LogDir), and worktrees and scratch directories by instance. Instances
	// on one machine may share it.
	Dir string
	// Workers is how many steps run at the same time; 0 means the configuration's builder.workers.
	Workers int
	// Instance names this process among those of the service. It has to be unique and should be the
	// same after a restart: worktrees are found again, and steps that the former process left behind
	// are ended at once instead of when their leases lapse.
	Instance string
	Logger   *slog.Logger
	// Kept, if set, is told how much is kept below Dir, and what is deleted of it.
	Kept *retention.Account
	// Snapshots, if there is a store, keep a start from folding the log from its beginning.
	Snapshots *snapshot.Store
	// Health, if set, is told how far the service has read, and how many workers work.
	Health *health.Service
	// Meter, if set, measures.
	Meter metric.Meter

	// pauses between the tries of a preparation that fails for no fault of the change.
	pauses []time.Duration
	// serverIdle is how long a build server waits for a further step.
	serverIdle time.Duration
	// endingLimit is defaultEndingLimit but in tests.
	endingLimit time.Duration
	// othersPatience is for tests.
	othersPatience time.Duration
}

// LogDir returns the directory below dir in which complete logs of steps are kept, under the names that StepFinished.log has.
func LogDir(dir string) string { return filepath.Join(dir, "logs") }

// Builder is the service.
type Builder struct {
	Options
	graphs  map[string]*buildgraph.Loader
	quotas  map[string]*eventsv1.Quotas
	lease   time.Duration
	metrics *metrics
}

// defaultServerIdle is enough for the groups of a build, which follow each other at once.
const defaultServerIdle = 30 * time.Second

// defaultPauses keep a remote that is away for a moment from costing a retry of the queue's.
var defaultPauses = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond, 1600 * time.Millisecond}

// New returns the service. It reads nothing before Run.
func New(o Options) *Builder {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Workers <= 0 {
		o.Workers = o.Configuration.Builder.Workers
	}
	if o.serverIdle == 0 {
		o.serverIdle = defaultServerIdle
	}
	if o.endingLimit == 0 {
		o.endingLimit = defaultEndingLimit
	}
	if o.pauses == nil {
		o.pauses = defaultPauses
	}
	if o.othersPatience == 0 {
		o.othersPatience = othersPatience
	}
	b := &Builder{Options: o, graphs: map[string]*buildgraph.Loader{}, quotas: map[string]*eventsv1.Quotas{}, lease: o.Configuration.Builder.Lease, metrics: newMetrics(o.Meter, o.Configuration.Builder.Pool)}
	manifests := map[string]*manifest.Loader{}
	for _, name := range o.Configuration.QueueNames() {
		settings := o.Configuration.Queues[name]
		b.quotas[name] = settings.Quotas.Fact()
		if o.Graphs != nil {
			b.graphs[name] = o.Graphs(name)
			continue
		}
		if manifests[settings.Repository] == nil {
			manifests[settings.Repository] = manifest.NewLoader(manifest.Memory{})
		}
		b.graphs[name] = buildgraph.NewLoader(settings, manifests[settings.Repository])
	}
	return b
}

// defaultEndingLimit bounds how long the end of a running step takes to be written when the service stops.
const defaultEndingLimit = 3 * time.Second

// Run follows every partition and works until the context ends, and then returns nil, or until the log fails. Running steps end
// with it. Each gets its StepFinished, ABORTED, if the log can still be reached, so that another worker need not wait for
// the lease to lapse.
func (b *Builder) Run(ctx context.Context) error {
	dir, err := filepath.Abs(b.Dir)
	if err != nil {
		return fmt.Errorf("builder's directory: %w", err)
	}
	if b.Graphs == nil {
		defer func() {
			for _, name := range b.Configuration.QueueNames() {
				b.graphs[name].Close()
			}
		}()
	}
	unlock, err := lockInstance(ctx, filepath.Join(dir, "instances"), b.Instance)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer unlock()
	closeToOthers(dir, b.Logger)
	if err := b.clearScratch(ctx, filepath.Join(dir, "scratch", fileName(b.Instance))); err != nil {
		return fmt.Errorf("scratch directories: %w", err)
	}
	if err := os.MkdirAll(LogDir(dir), 0o755); err != nil {
		return fmt.Errorf("log store: %w", err)
	}
	kept := &caches.Store{Dir: filepath.Join(dir, "caches", fileName(b.Instance)), Logger: b.Logger}
	s := &session{Builder: b, dir: dir, caches: kept, shared: newShared(), assemblies: map[string]*assembly{}, fillings: map[string]*filling{}, networks: map[string]sandbox.Network{}, jobs: map[stepKey]*job{}, preparing: map[string]context.CancelFunc{},
		unfit: map[string]*unfit{}, forgetting: map[string]*forgetting{}, strange: map[string]bool{}, urgentSince: map[string]time.Time{}}
	if s.outputs, err = s.newKeeper(ctx, filepath.Join(dir, "outputs")); err != nil {
		return err
	}
	if err := s.isolate(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	b.Health.SetWorkers(b.Workers)
	b.Health.SetCapacity(health.Capacity{Pool: b.Configuration.Builder.Pool, Labels: b.Configuration.Builder.Labels, Resources: b.Configuration.Builder.Resources})
	s.retainAt = time.Now().Add(b.Configuration.Retention.Every / 10) // not among all that a start does
	b.metrics.begin(b.Workers)
	for n := range b.Workers {
		s.workers = append(s.workers, newWorker(s, n+1))
	}
	// Followers outlive the work: its last records are read back through them.
	following, stopFollowing := context.WithCancelCause(context.WithoutCancel(ctx))
	working, stopWorking := context.WithCancelCause(ctx)
	defer stopWorking(nil)
	var followers sync.WaitGroup
	for p := range b.Log.Partitions() {
		followers.Go(func() {
			if err := s.follow(following, p); err != nil && following.Err() == nil {
				stopWorking(fmt.Errorf("partition %d: %w", p, err))
			}
		})
	}
	s.dispatch(working)
	stopFollowing(errStopped)
	followers.Wait()
	s.release()
	if cause := context.Cause(working); ctx.Err() == nil && cause != nil {
		return cause
	}
	return nil
}

// clearScratch removes the containers of steps that a former process was running when it was killed, and then what it had given the steps,
// secrets among it. Each step has a directory in scratch.
func (b *Builder) clearScratch(ctx context.Context, scratch string) error {
	steps, err := os.ReadDir(scratch)
	noSteps := errors.Is(err, fs.ErrNotExist) || err == nil && len(steps) == 0
	none := noSteps || b.removeContainers(ctx, scratch)
	if err := execution.RemoveAll(scratch); err != nil || none {
		return err
	}
	return os.MkdirAll(filepath.Join(scratch, "containers"), 0o700) // the next start looks again
}

// removeContainers removes the containers of steps that a former process was running, and reports whether none is left.
func (b *Builder) removeContainers(ctx context.Context, scratch string) bool {
	var runtimes []string
	for _, name := range b.Configuration.QueueNames() {
		runtime := b.Configuration.Builder.ContainerRuntime
		if runtime == "" {
			runtime = execution.FindContainerRuntime(b.Configuration.Queues[name].Steps.Environment.Path)
		}
		if runtime != "" && !slices.Contains(runtimes, runtime) {
			runtimes = append(runtimes, runtime)
		}
	}
	none := true
	for _, runtime := range runtimes {
		if err := execution.RemoveContainers(ctx, runtime, scratch); err != nil {
			none = false
			b.Logger.Warn("containers of a former process could not be looked for; any that are left write to the workspaces of later steps", "runtime", runtime, "error", err)
		}
	}
	return none
}

// closeToOthers lets nobody but the service's user into the folders in which steps write. A step can leave a program there with the
// bit of its owner, and who started it would be that user, or root.
func closeToOthers(dir string, log *slog.Logger) {
	for _, name := range []string{"worktrees", "scratch", "caches"} {
		folder := filepath.Join(dir, name)
		err := os.MkdirAll(folder, 0o700)
		if err == nil {
			err = os.Chmod(folder, 0o700)
		}
		if err != nil {
			log.Warn("other users of this machine may reach what steps leave, programs that run as this user among it; let nobody else into the folder", "folder", folder, "error", err)
		}
	}
}

var (
	// errStopped ends the steps of a service that stops: they are reported as aborted.
	errStopped = errors.New("the worker is being shut down")
	// errUnwanted ends a step that no build needs any more: it is reported as aborted.
	errUnwanted = errors.New("no build needs its result any more")
	// errPreempted ends a step for one of a change that an operator has moved to the front: it is reported as aborted.
	errPreempted = errors.New(events.PreemptedReason)
	// errLost ends a step whose lease another worker has taken over: nothing is reported about it.
	errLost = errors.New("another worker has taken the step over")
)
