// Package analyzer is the service that says what each pending change does to the target graph, which
// pending changes touch the same paths, and what came onto the mainline past the queue.
//
// The loops here do the git work that package agenda says is wanted. Whatever is wrong with one change,
// its analysis ends in a fact: a queue never waits for an analysis that cannot be made (M4).
package analyzer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"landfall.build/services/analyzer/manifest"
	"landfall.build/services/analyzer/repograph"
	"landfall.build/services/configuration"
	"landfall.build/services/gitrepo"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// Options are all that the service needs. Several instances may run on one log: what they find is the
// same, and of each (change, revision, base) the first record stands.
type Options struct {
	Log           journal.Log
	Configuration *configuration.Configuration
	// Repo gives the mirror of a repository by its name in the configuration. The service does not
	// close it.
	Repo func(ctx context.Context, repository string) (*gitrepo.Repo, error)
	// Graphs gives the loader of a queue's target graphs, for processes in which several services share
	// them; the service does not close it. Nil: the service makes its own, and closes them when Run ends.
	Graphs func(queue string) *repograph.Loader
	// Instance tells apart the processes of the service; for people only.
	Instance string
	Logger   *slog.Logger
	// Patience is how long an analysis is tried again while the repository cannot be reached, before its
	// change conflicts with everything (M4); 0 means 5 minutes.
	Patience time.Duration
	// Snapshots, if there is a store, keep a start from folding the log from its beginning.
	Snapshots *snapshot.Store
}

const defaultPatience = 5 * time.Minute

// Analyzer is the service.
type Analyzer struct {
	Options
	queues    map[string]*queue
	manifests map[string]*manifest.Loader // by repository
	own       []*repograph.Loader         // to be closed
	// slots bounds the analyses that run at the same time: one for each core.
	slots chan struct{}
}

// queue is what the analyses of one queue share.
type queue struct {
	settings configuration.Queue
	loader   *repograph.Loader
	paths    *pathMemory
}

// New makes the service. It reads nothing before Run.
func New(o Options) *Analyzer {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	a := &Analyzer{Options: o, queues: map[string]*queue{}, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	graphs := o.Graphs
	if graphs == nil {
		graphs = a.ownGraphs
	}
	for _, name := range o.Configuration.QueueNames() {
		a.queues[name] = &queue{settings: o.Configuration.Queues[name], loader: graphs(name), paths: newPathMemory()}
	}
	return a
}

// ownGraphs makes a loader for a queue. Queues of one repository share what its manifests say.
func (a *Analyzer) ownGraphs(name string) *repograph.Loader {
	settings := a.Configuration.Queues[name]
	if a.manifests == nil {
		a.manifests = map[string]*manifest.Loader{}
	}
	if a.manifests[settings.Repository] == nil {
		a.manifests[settings.Repository] = manifest.NewLoader(manifest.Memory{})
	}
	l := repograph.NewQueueLoader(settings, a.manifests[settings.Repository])
	a.own = append(a.own, l)
	return l
}

// Run serves every partition until the context ends, which it then returns nil for, or the log fails.
func (a *Analyzer) Run(ctx context.Context) error {
	defer func() {
		for _, l := range a.own {
			l.Close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make(chan error, a.Log.Partitions())
	var running sync.WaitGroup
	for number := range a.Log.Partitions() {
		running.Go(func() {
			if err := a.runPartition(ctx, number); err != nil {
				failures <- fmt.Errorf("analyzer, partition %d: %w", number, err)
				cancel()
			}
		})
	}
	running.Wait()
	close(failures)
	var all []error
	for err := range failures {
		all = append(all, err)
	}
	return errors.Join(all...)
}
