// Package gateway admits changes and answers people's questions: it decides land requests, appends what people ask
// for, and folds the log into what they see. See README.md.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/deadletters"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/snapshot"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/profilelog"
	"landfall.build/services/gateway/refusals"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/view"
	"landfall.build/services/gateway/whatif"
)

// Options of a gateway.
type Options struct {
	Log    journal.Log
	Config *configuration.Configuration
	// Mirrors returns the mirror of a repository of the configuration, by its name there. It is called once
	// for each queue.
	Mirrors func(ctx context.Context, repository string) (*gitrepo.Repo, error)
	// LogStore is the directory in which builders keep complete logs; "" if they are elsewhere.
	LogStore string
	// Hosts are names by which clients reach the gateway, besides localhost and IP addresses.
	Hosts []string
	// Proxies are the networks of the proxies before it, whose word about their clients is believed.
	Proxies []netip.Prefix
	// SignIn signs people in and knows who sends a request; nil: there is no issuer.
	SignIn *signin.Service
	// Refusals gets who was refused what; nil: Logger does.
	Refusals *refusals.Log
	// Analyst, if set, asks the history.
	Analyst api.Analyst
	// Simulate, if set, simulates a queue's past under another setting.
	Simulate whatif.Simulate
	// Instance names this process among the gateways, for people.
	Instance string
	Logger   *slog.Logger
	// View bounds what is kept for people; the zero value stands for view.DefaultLimits.
	View view.Limits
	// Snapshots, if set, saves a start from folding the log from its beginning.
	Snapshots *snapshot.Store
	// Health, if set, is told how far the gateway has read. Board, if set, shows which services are at work.
	Health *health.Service
	Board  health.Board
	// Meter, if set, measures.
	Meter metric.Meter
}

// Gateway is one process's gateway, for every queue of the configuration.
type Gateway struct {
	Options
	queues  map[string]*queue
	handler http.Handler

	// folded is how far each partition of landfall.changes is folded.
	folded []*progress
	// partitions have what is folded, and kept in snapshots, together.
	partitions []*partition
	// access is what is folded of landfall.access, and accessFolded how far each partition of it is.
	access       grants
	accessFolded []*progress
	// buried are the positions that are in landfall.dead-letters already.
	buried deadLetters
	// letters has the newest of landfall.dead-letters for people, and lettersFolded how far each partition of it is folded.
	lettersMu     sync.Mutex
	letters       deadletters.List
	lettersFolded []*progress

	ready atomic.Bool
	// answering limits how many full explanations are worked out at a time.
	answering chan struct{}
	// whatIf runs simulations; nil if nothing simulates.
	whatIf *whatif.Runner
	// differing limits how many revisions are compared at a time.
	differing chan struct{}
	// looking limits how many pasts are folded at a time.
	looking chan struct{}
	// readingModels limits how many registries of models are in memory.
	readingModels chan struct{}
	// lists counts the changes of what people watch and no queue's view has.
	lists   api.Lists
	fleet   *health.Fleet
	metrics metrics
	// shownServices is what those who watch the services were told of last.
	shownServices []byte
}

// maxAnswering is how many full explanations are worked out at a time.
const maxAnswering = 2

// New checks the options and makes the gateway; Run starts it.
func New(o Options) (*Gateway, error) {
	switch {
	case o.Log == nil, o.Config == nil, o.Mirrors == nil:
		return nil, errors.New("gateway: a log, a configuration and mirrors are needed")
	case o.Instance == "":
		return nil, errors.New("gateway: the instance needs a name")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.View == (view.Limits{}) {
		o.View = view.DefaultLimits()
	}
	g := &Gateway{Options: o, queues: map[string]*queue{}, buried: deadLetters{seen: map[position]bool{}}, letters: deadletters.List{Newest: shownLetters}, answering: make(chan struct{}, maxAnswering), differing: make(chan struct{}, maxDiffering), looking: make(chan struct{}, maxLooking), readingModels: make(chan struct{}, 1),
		fleet: health.NewFleet(o.Config.QueueNames(), o.Log.Partitions())}
	for _, name := range o.Config.QueueNames() {
		settings, err := o.Config.Queue(name)
		if err != nil {
			return nil, err
		}
		g.queues[name] = newQueue(g, settings)
	}
	for number := range o.Log.Partitions() {
		g.folded, g.accessFolded, g.lettersFolded = append(g.folded, newProgress()), append(g.accessFolded, newProgress()), append(g.lettersFolded, newProgress())
		g.partitions = append(g.partitions, g.newPartition(number))
	}
	g.metrics = newMetrics(o.Meter, g)
	g.access.init()
	if o.Simulate != nil {
		g.whatIf = whatif.New(o.Simulate, func(queue string) { g.lists.Changed(api.PartWhatIf, queue) })
	}
	handler, err := api.NewHandler(api.Options{
		Backend: g, LogStore: o.LogStore, LogID: o.Log.ID(), Hosts: o.Hosts, Proxies: o.Proxies, Log: o.Logger, Access: o.Config.Access, Tokens: g, DeadLetters: g, Models: g, WhatIf: g.whatIf, Differ: g, Lists: &g.lists, SignIn: o.SignIn, Refusals: o.Refusals, Analyst: o.Analyst,
	})
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	g.handler = handler
	return g, nil
}

// Handler serves the API. Until Run has read the log it answers that it is not ready.
func (g *Gateway) Handler() http.Handler { return g.handler }

// Ready is nil once everything that was in the log at the start is folded.
func (g *Gateway) Ready() error {
	if !g.ready.Load() {
		return api.ErrNotReady
	}
	return nil
}

// Run folds the log, answers land requests, and returns when the context ends (nil) or the log fails.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	defer running.Wait()
	defer g.ready.Store(false)
	if g.whatIf != nil {
		defer g.whatIf.Close()
	}
	start := func(f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		})
	}
	err := g.run(ctx, start)
	cancel(err)
	running.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("gateway: %w", cause)
	}
	return nil
}

// run starts the folds in the order in which they need each other, then the answering.
func (g *Gateway) run(ctx context.Context, start func(func(context.Context) error)) error {
	for _, p := range g.partitions {
		p.health = g.Health.Begin(p.number, health.NoTerm)
		defer p.health.End()
	}
	if g.Board != nil {
		start(func(ctx context.Context) error { g.fleet.Watch(ctx, g.Board, g.showServices); return nil })
	}
	for _, p := range g.partitions {
		if err := p.thaw(ctx); err != nil {
			return err
		}
	}
	if err := g.startFolding(ctx, start, events.TopicDeadLetters); err != nil {
		return err
	}
	if err := g.startFolding(ctx, start, events.TopicAccess); err != nil {
		return err
	}
	if err := g.announceKey(ctx); err != nil {
		return err
	}
	if err := g.startFolding(ctx, start, events.TopicChanges); err != nil {
		return err
	}
	for _, q := range g.queues {
		start(q.answerRequests)
		start(q.answerFar)
	}
	for partition := range g.Log.Partitions() {
		start(func(ctx context.Context) error { return g.takeRequests(ctx, partition) })
	}
	err := g.startFolding(ctx, start, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities)
	if err != nil {
		return err
	}
	if err := g.startNoticingModels(ctx, start); err != nil {
		return err
	}
	g.ready.Store(true)
	if g.Meter != nil {
		start(g.sampleWaits)
	}
	start(g.keepPast)
	g.Logger.Info("gateway is ready", "queues", len(g.queues), "partitions", g.Log.Partitions())
	<-ctx.Done()
	return context.Cause(ctx)
}

// Queues implements api.Backend.
func (g *Gateway) Queues() []string { return g.Config.QueueNames() }

// Read implements api.Backend.
func (g *Gateway) Read(name string, f func(*view.Queue)) bool {
	q := g.queues[name]
	if q == nil {
		return false
	}
	q.reading.do(func() { f(q.state.View) })
	return true
}

// Answer implements api.Backend.
func (g *Gateway) Answer(ctx context.Context, name string, i *view.Inquiry) error {
	select {
	case g.answering <- struct{}{}:
		defer func() { <-g.answering }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return profilelog.Reader{Log: g.Log}.Answer(ctx, name, i, func(f func(*view.Queue)) { g.Read(name, f) })
}

// Changed implements api.Backend.
func (g *Gateway) Changed(name string) <-chan struct{} {
	q := g.queues[name]
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.changed
}
