// Package analyzer is the service that finds what each pending change does to the target graph, which
// pending changes touch the same paths, and what direct pushes to the mainline changed.
//
// The loops here do the git work that package agenda asks for. Whatever is wrong with one change,
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

	"go.opentelemetry.io/otel/metric"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/snapshot"
)

// Options configure the service. Several instances may run on one log: what they find is the
// same, and of each (change, revision, base) the first record counts.
type Options struct {
	Log           journal.Log
	Configuration *configuration.Configuration
	// Repo returns the mirror of a repository by its name in the configuration. The service does not
	// close it.
	Repo func(ctx context.Context, repository string) (*gitrepo.Repo, error)
	// Graphs returns the loader of a queue's target graphs, which the services of a process share. The service does not
	// close it.
	Graphs func(queue string) *buildgraph.Loader
	// Instance identifies the process among those of the service; for people only.
	Instance string
	Logger   *slog.Logger
	// Patience is how long an analysis is tried again while the repository cannot be reached, before its
	// change conflicts with everything (M4); 0 means 5 minutes.
	Patience time.Duration
	// MostNames bounds the targets and files that the pending changes of a queue affect together, which services keep; 0 means 2 Mi. A
	// change that would exceed it conflicts with everything.
	MostNames int
	// Snapshots, if there is a store, keep a start from folding the log from its beginning.
	Snapshots *snapshot.Store
	// Health, if set, is told how far the service has read.
	Health *health.Service
	// Meter, if set, measures.
	Meter metric.Meter
}

const (
	defaultPatience  = 5 * time.Minute
	defaultMostNames = 2 << 20
)

// Analyzer is the service.
type Analyzer struct {
	Options
	queues map[string]*queue
	// slots bounds the analyses that run at the same time: one for each core.
	slots   chan struct{}
	metrics metrics
}

// queue is what the analyses of one queue share.
type queue struct {
	settings configuration.Queue
	loader   *buildgraph.Loader
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
	if o.MostNames == 0 {
		o.MostNames = defaultMostNames
	}
	a := &Analyzer{Options: o, queues: map[string]*queue{}, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), metrics: newMetrics(o.Meter)}
	for _, name := range o.Configuration.QueueNames() {
		a.queues[name] = &queue{settings: o.Configuration.Queues[name], loader: o.Graphs(name), paths: newPathMemory()}
	}
	return a
}

// Run serves every partition until the context ends, which it then returns nil for, or the log fails.
func (a *Analyzer) Run(ctx context.Context) error {
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
