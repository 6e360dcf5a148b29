// Package pipeline runs services of a configuration on a log: each alone in a process of its own, or all of
// them together in one. It is wiring; the services are in landfall.build/services.
package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/certificate"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/health"
	"landfall.build/platform/identity"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/landing"
	"landfall.build/platform/listening"
	"landfall.build/platform/retention"
	"landfall.build/platform/runner"
	"landfall.build/platform/secretplace"
	"landfall.build/platform/snapshot"
	"landfall.build/platform/telemetry"
	"landfall.build/services/analyzer"
	"landfall.build/services/builder"
	"landfall.build/services/enumerator"
	"landfall.build/services/gateway"
	"landfall.build/services/gateway/analytics"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/refusals"
	"landfall.build/services/gateway/signin"
	asked "landfall.build/services/gateway/whatif"
	"landfall.build/services/historian"
	"landfall.build/services/historian/warehouse"
	"landfall.build/services/hosts"
	"landfall.build/services/hosts/gitea"
	"landfall.build/services/hosts/github"
	"landfall.build/services/hosts/gitlab"
	"landfall.build/services/lander"
	"landfall.build/services/outcomes"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
	"landfall.build/services/tracer"
	"landfall.build/services/trainer"
	"landfall.build/services/trainer/dataset"
	"landfall.build/services/webhooks"
	"landfall.build/tools/whatif"
)

// Process is what the services of one process share.
type Process struct {
	Configuration *configuration.Configuration
	Log           journal.Log
	Owner         ownership.Owner
	// Instance names this process among those of its services, and is the same after a restart.
	Instance string
	Version  string
	Logger   *slog.Logger
	// Listening, if set, is called with the gateway's address once it listens.
	Listening func(address net.Addr)
	// History is the DSN of the historian's and the trainer's ClickHouse; empty is the configuration's.
	History string
	// TrainEvery is the time between two trainings; a week if 0.
	TrainEvery time.Duration
	// Metrics is the address at which the process shows its metrics and its health; empty is nowhere.
	Metrics string
	// Board, if set, is where the process shows its health to others, and where the gateway finds theirs.
	Board health.Board
	// Program runs as landfall, for what a gateway simulates; empty simulates nothing.
	Program string

	mu          sync.Mutex
	kept        retention.Account
	measureKept sync.Once
	// retaining is set while a service of the process sees to its mirrors.
	retaining bool
	mirrors   map[string]*gitrepo.Repo
	graphs    *buildgraph.Loaders
	// store is that of snapshots, once it is open; noStore is set if it could not be opened.
	store   *snapshot.Store
	noStore bool
	health  *health.Process
	// address is that of Metrics, once it is served.
	address net.Addr
	// ownGateway is where a gateway of this process listens, "" if there is none; backend is what it serves.
	ownGateway string
	backend    api.Backend
	// analyst is the DSN by which a gateway of this process asks the history; "" is the configuration's.
	analyst string
	// telemetry is nil if nothing is measured.
	telemetry *telemetry.Telemetry
	logs      map[string]journal.Log
}

// Services returns the names of the services that land changes, in the order of the flow, and of the one that tells others. Run takes the historian's
// and the trainer's too; they need a ClickHouse, and changes land without them.
func Services() []string {
	return []string{
		events.ServiceGateway, events.ServiceAnalyzer, events.ServiceEnumerator, events.ServiceProfiler,
		events.ServicePrioritizer, events.ServiceSelector, events.ServiceBuilder, events.ServiceLander,
		events.ServiceOutcomes,
	}
}

// Begin posts the health of the process, and serves that and its metrics if an address is given, until the context ends. It is called
// before Run.
func (p *Process) Begin(ctx context.Context) error {
	p.health = health.New(p.Instance, p.Version, p.Board, p.Logger)
	go p.health.Run(ctx)
	if p.Metrics == "" && !telemetry.PushWanted() {
		return nil
	}
	p.telemetry = telemetry.New(telemetry.Options{Instance: p.Instance, Version: p.Version, Logger: p.Logger, Push: telemetry.PushWanted()})
	if p.Metrics == "" {
		return nil
	}
	address, err := p.telemetry.Serve(ctx, p.Metrics, p.health, p.Logger)
	if err != nil {
		return err
	}
	p.address = address
	p.Logger.Info("metrics and health are served", "url", p.MetricsURL())
	return nil
}

// healthOf returns the health of a service, nil if Begin was not called.
func (p *Process) healthOf(service string) *health.Service {
	if p.health == nil {
		return nil
	}
	return p.health.Service(service)
}

// MetricsURL returns where metrics and health are served, "" if nowhere.
func (p *Process) MetricsURL() string {
	if p.address == nil {
		return ""
	}
	return "http://" + p.address.String()
}

// meter returns the meter of a service, nil if nothing is measured.
func (p *Process) meter(service string) metric.Meter {
	if p.telemetry == nil {
		return nil
	}
	return p.telemetry.Meter(service)
}

// log returns the log as a service uses it.
func (p *Process) log(service string) journal.Log {
	if p.telemetry == nil {
		return p.Log
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.logs[service]
	if l == nil {
		l = telemetry.Measure(p.meter(service), p.Log, p.healthOf(service), func(partition int32) time.Time { return p.savedSnapshot(service, partition) })
		if p.logs == nil {
			p.logs = map[string]journal.Log{}
		}
		p.logs[service] = l
	}
	return l
}

// savedSnapshot returns when a service last saved a snapshot of a partition, zero if never.
func (p *Process) savedSnapshot(service string, partition int32) time.Time {
	p.mu.Lock()
	store := p.store
	p.mu.Unlock()
	return store.Saved(service, partition)
}

// own runs the work of a service on the partitions of a topic that the process is given.
func (p *Process) own(ctx context.Context, service, topic string, work ownership.Work) error {
	return p.owner(service).Run(ctx, service, topic, work)
}

// owner returns the process's owner, which reports to the health of a service whether it may be given partitions.
func (p *Process) owner(service string) ownership.Owner {
	if group, is := p.Owner.(ownership.Group); is {
		group.Joined = func(_ string, joined bool) { p.healthOf(service).SetJoined(joined) }
		return group
	}
	p.healthOf(service).SetJoined(true)
	return p.Owner
}

// Run runs one service until the context ends.
func (p *Process) Run(ctx context.Context, service string) error {
	p.healthOf(service)
	switch service {
	case events.ServiceGateway, events.ServiceAnalyzer, events.ServiceBuilder, events.ServiceLander:
		ctx, cancel := context.WithCancel(ctx)
		retained := p.retainMirrors(ctx)
		defer func() { cancel(); <-retained }()
		p.measureKept.Do(func() { p.kept.Measure(p.meter(service), p.Configuration.Data) })
		return p.run(ctx, service)
	}
	return p.run(ctx, service)
}

func (p *Process) run(ctx context.Context, service string) error {
	switch service {
	case events.ServiceGateway:
		return p.gateway(ctx)
	case events.ServiceAnalyzer:
		return analyzer.New(analyzer.Options{
			Log: p.log(service), Configuration: p.Configuration, Repo: p.Mirror, Graphs: p.graphsOf,
			Instance: p.Instance, Logger: p.logger(service),
			Snapshots: p.snapshots(), Health: p.healthOf(service), Meter: p.meter(service),
		}).Run(ctx)
	case events.ServiceBuilder:
		p.logStore() // makes the folder, closed to others, before the builder would make it
		return builder.New(builder.Options{
			Log: p.log(service), Configuration: p.Configuration, Repo: p.Mirror, Graphs: p.graphsOf,
			Dir: p.Configuration.Data, Instance: p.Instance, Logger: p.logger(service), Snapshots: p.snapshots(),
			Health: p.healthOf(service), Kept: &p.kept, Meter: p.meter(service),
		}).Run(ctx)
	case events.ServiceEnumerator:
		settings := map[string]*eventsv1.QueueSettings{}
		for name, q := range p.Configuration.Queues {
			settings[name] = enumerator.SettingsOf(q)
		}
		return p.own(ctx, service, events.TopicChanges, func(ctx context.Context, partition int32) error {
			return enumerator.Run(ctx, enumerator.Options{Options: p.stageOptions(service), Settings: settings, TickEvery: time.Second}, partition)
		})
	case events.ServiceProfiler:
		return p.stage(ctx, profiler.Stage())
	case events.ServicePrioritizer:
		return p.stage(ctx, prioritizer.Stage())
	case events.ServiceSelector:
		return p.stage(ctx, selector.Stage(p.Log.ID()))
	case events.ServiceLander:
		return p.lander(ctx)
	case events.ServiceOutcomes:
		return p.own(ctx, service, events.TopicChanges, func(ctx context.Context, partition int32) error {
			return outcomes.Run(ctx, outcomes.Options{
				Options: p.stageOptions(service), Gateway: p.Configuration.Gateway.URL, JSON: p.Configuration.Outcomes.Format == configuration.OutcomesJSON,
			}, partition)
		})
	case events.ServiceWebhooks:
		return p.webhooks(ctx)
	case events.ServiceHosts:
		return p.hosts(ctx)
	case events.ServiceTracer:
		return p.tracer(ctx)
	case events.ServiceHistorian:
		return p.historian(ctx)
	case events.ServiceTrainer:
		return p.trainer(ctx)
	}
	return fmt.Errorf("there is no service %q", service)
}

func (p *Process) logger(service string) *slog.Logger { return p.Logger.With("service", service) }

func (p *Process) stageOptions(service string) runner.Options {
	o := runner.Options{Log: p.log(service), Instance: p.Instance, Version: p.Version, Logger: p.logger(service), Snapshots: p.snapshots(), Health: p.healthOf(service)}
	if p.telemetry != nil {
		o.Metrics = runner.NewMetrics(p.meter(service))
	}
	return o
}

// snapshots returns the store of the services' snapshots. Without it they start from the beginning
// of the log.
func (p *Process) snapshots() *snapshot.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil && !p.noStore {
		c := p.Configuration.Snapshots
		kept, err := snapshot.Open(closed(filepath.Join(p.Configuration.Data, "snapshots")), snapshot.Pace{After: c.After, Every: c.Every})
		if err != nil {
			p.Logger.Warn("no snapshots are kept; the next start reads the whole log", "error", err)
			p.noStore = true
			return nil
		}
		p.store = kept
	}
	return p.store
}

func (p *Process) stage(ctx context.Context, s runner.Stage) error {
	return p.own(ctx, s.Name, s.Input, func(ctx context.Context, partition int32) error {
		return runner.Run(ctx, p.stageOptions(s.Name), s.Service(), partition)
	})
}

// Mirror returns the mirror of a configured repository; all services of the process share it, and processes
// with one data directory share its folder.
func (p *Process) Mirror(ctx context.Context, repository string) (*gitrepo.Repo, error) {
	r, ok := p.Configuration.Repositories[repository]
	if !ok {
		return nil, fmt.Errorf("there is no repository %q in the configuration", repository)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.mirrors[repository]; m != nil {
		return m, nil
	}
	m, err := gitrepo.Open(ctx, gitrepo.Options{
		Remote: r.URL, Dir: filepath.Join(closed(filepath.Join(p.Configuration.Data, "mirrors")), repository+".git"), Log: p.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("mirror of repository %s: %w", repository, err)
	}
	if p.mirrors == nil {
		p.mirrors = map[string]*gitrepo.Repo{}
	}
	p.mirrors[repository] = m
	return m, nil
}

// shutdownPatience bounds how long the last metrics are pushed.
const shutdownPatience = 3 * time.Second

// Backend returns what a gateway of this process serves, once it listens.
func (p *Process) Backend() api.Backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backend
}

// Close closes the mirrors and the loaders of target graphs. No service may run any more.
func (p *Process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownPatience)
	defer cancel()
	errs := []error{p.telemetry.Shutdown(ctx)}
	if p.graphs != nil {
		p.graphs.Close()
		p.graphs = nil
	}
	for _, m := range p.mirrors {
		errs = append(errs, m.Close())
	}
	p.mirrors = nil
	return errors.Join(errs...)
}

// graphsOf returns the loader of a queue's target graphs. All services of the process share it, so that each
// tree is loaded once.
func (p *Process) graphsOf(queue string) *buildgraph.Loader {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.graphs == nil {
		p.graphs = buildgraph.NewLoaders(p.Configuration)
	}
	return p.graphs.Of(queue)
}

func (p *Process) gateway(ctx context.Context) error {
	if err := p.Configuration.CheckOpen(); err != nil {
		return err
	}
	if p.Configuration.Access.Mode == configuration.AccessOpen && !configuration.IsLoopback(p.Configuration.Gateway.Listen) {
		p.logger("gateway").Warn("access is open: whoever reaches the gateway may land and steer, under any name", "listen", p.Configuration.Gateway.Listen)
	}
	issuers, err := identity.NewIssuers(p.Configuration.Access, p.logger("gateway"))
	if err != nil {
		return err
	}
	hosts := p.Configuration.Gateway.Hosts
	if at, err := url.Parse(p.Configuration.Gateway.URL); err == nil && at.Hostname() != "" {
		hosts = append(slices.Clone(hosts), at.Hostname())
	}
	refused, err := refusals.Open(filepath.Join(p.Configuration.Data, "refusals"), p.logger("gateway"))
	if err != nil {
		p.logger("gateway").Warn("who is refused what is in this log", "error", err)
	}
	history := analytics.New(p.analystDSN, time.Now)
	defer history.Close()
	var simulate asked.Simulate
	if p.Program != "" {
		simulate = whatif.New(whatif.Options{Log: p.log(events.ServiceGateway), Program: p.Program})
	}
	g, err := gateway.New(gateway.Options{
		Log: p.log(events.ServiceGateway), Config: p.Configuration, Mirrors: p.Mirror, LogStore: p.logStore(),
		Instance: p.Instance, Logger: p.Logger, Snapshots: p.snapshots(), Hosts: hosts, Proxies: p.Configuration.Gateway.ProxyNetworks(),
		SignIn:   signin.New(signin.Options{Issuers: issuers, Sessions: p.Configuration.Access.Sessions, URL: p.Configuration.Gateway.URL}),
		Refusals: refused, Analyst: history, Simulate: simulate, Health: p.healthOf(events.ServiceGateway), Board: p.Board, Meter: p.meter(events.ServiceGateway),
	})
	if err != nil {
		return err
	}
	serve := (*http.Server).Serve
	own := "http://"
	if t := p.Configuration.Gateway.TLS; t.On() {
		c, err := certificate.Load(t.Certificate, t.Key, p.logger("gateway"))
		if err != nil {
			return fmt.Errorf("the gateway cannot serve with TLS (gateway.tls in the configuration): %w", err)
		}
		serve = func(s *http.Server, l net.Listener) error {
			s.TLSConfig = c.Config()
			return s.ServeTLS(l, "", "")
		}
		own = "https://"
	}
	listener, err := net.Listen("tcp", p.Configuration.Gateway.Listen)
	if err != nil {
		return fmt.Errorf("the gateway cannot listen on %s (gateway.listen in the configuration): %w", p.Configuration.Gateway.Listen, err)
	}
	server := api.NewServer(ctx, g.Handler(), p.logger("gateway"))
	served := make(chan error, 1)
	go func() {
		served <- serve(server, listening.Bounded(listening.Patient(listener, p.logger("gateway")), listening.Usual(p.Configuration.Gateway.ProxyNetworks()), p.logger("gateway")))
	}()
	p.mu.Lock()
	p.ownGateway, p.backend = own+listener.Addr().String(), g
	p.mu.Unlock()
	if p.Listening != nil {
		p.Listening(listener.Addr())
	}
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	keys, stop := context.WithCancel(ctx)
	var fresh sync.WaitGroup
	fresh.Go(func() { issuers.Run(keys) })
	defer fresh.Wait()
	defer stop()
	select {
	case err = <-served:
	case err = <-ran:
	}
	down, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if server.Shutdown(down) != nil {
		server.Close()
	}
	return err
}

func (p *Process) lander(ctx context.Context) error {
	mainlines, flaky := map[string]lander.Mainline{}, map[string]lander.FlakyPolicy{}
	poll := time.Hour
	names := p.Configuration.QueueNames()
	sort.Strings(names)
	var branches []string
	for _, name := range names {
		branches = append(branches, p.Configuration.Queues[name].Branch)
	}
	for _, name := range names {
		q := p.Configuration.Queues[name]
		m, err := p.mirrorPatiently(ctx, q.Repository)
		if err != nil {
			return err
		}
		mainlines[name] = &lander.Branch{Queue: name, Name: q.Branch, Repo: m, Graphs: p.graphsOf(name), Timeout: q.Analysis.Timeout, Mainlines: branches}
		flaky[name] = flakyPolicy(q.Flaky)
		poll = min(poll, p.Configuration.RepositoryOf(q).Poll)
	}
	var measured *lander.Metrics
	if p.telemetry != nil {
		measured = lander.NewMetrics(p.meter(events.ServiceLander))
	}
	return p.own(ctx, events.ServiceLander, events.TopicDecisions, func(ctx context.Context, partition int32) error {
		return lander.Run(ctx, lander.Options{Options: p.stageOptions(events.ServiceLander), Mainlines: mainlines, Flaky: flaky, Measured: measured}, partition, poll)
	})
}

// flakyPolicy returns what a queue's settings of flaky targets ask of the lander.
func flakyPolicy(f configuration.Flaky) lander.FlakyPolicy {
	policy := lander.FlakyPolicy{Above: f.Above, Versions: int64(f.Versions), For: f.For}
	for _, q := range f.Quarantine {
		policy.Named = append(policy.Named, lander.Quarantine{Target: q.Target, Why: q.Why, Until: q.End()})
	}
	return policy
}

func (p *Process) webhooks(ctx context.Context) error {
	endpoints := map[string]webhooks.Endpoint{}
	for name, w := range p.Configuration.Webhooks {
		endpoints[name] = webhooks.Endpoint{
			URL: w.URL, Wants: webhooks.Wants{Queues: w.Queues, States: w.States}, AllowPrivate: w.AllowPrivate == configuration.On,
			Secret: func(ctx context.Context) ([]byte, error) { return secretplace.Read(ctx, w.Secret, webhooks.MaxSecret) },
		}
	}
	return p.own(ctx, events.ServiceWebhooks, events.TopicOutcomes, func(ctx context.Context, partition int32) error {
		return webhooks.Run(ctx, webhooks.Options{Options: p.stageOptions(events.ServiceWebhooks), Endpoints: endpoints}, partition)
	})
}

// MaxHostSecret is the greatest number of bytes of a token or a secret of a code host.
const MaxHostSecret = 4 << 10

// Repositories returns the repositories at a code host by queue.
func Repositories(c *configuration.Configuration, h configuration.Host) (map[string]hosts.Host, error) {
	token := func(ctx context.Context) ([]byte, error) { return secretplace.Read(ctx, h.Token, MaxHostSecret) }
	// The limits of a GitHub or a GitLab are for all its repositories.
	atGitHub := &github.Server{URL: h.URL, App: h.App, Secret: token}
	var atGitLab *gitlab.Server
	if h.Kind == configuration.HostGitLab {
		var err error
		if atGitLab, err = gitlab.NewServer(h.URL, token); err != nil {
			return nil, fmt.Errorf("the host at %s: %w", h.URL, err)
		}
	}
	all := map[string]hosts.Host{}
	for queue, repository := range h.Queues {
		q := c.Queues[queue]
		merges := q.Strategy == landing.Merge
		moves := !merges && h.Branches == configuration.BranchesMove
		switch h.Kind {
		case configuration.HostGitHub:
			owner, name, _ := strings.Cut(repository, "/")
			at, err := atGitHub.New(github.Options{Owner: owner, Name: name, Branch: q.Branch, Queue: queue, Label: h.Label, Merges: merges, Moves: moves})
			if err != nil {
				return nil, fmt.Errorf("the repository of the queue %s at %s: %w", queue, h.URL, err)
			}
			all[queue] = at
		case configuration.HostGitLab:
			all[queue] = atGitLab.New(gitlab.Options{Project: repository, Branch: q.Branch, Queue: queue, Label: h.Label, Checks: h.Checks, Merges: merges, Moves: moves})
		default:
			all[queue] = gitea.New(gitea.Options{URL: h.URL, Repository: repository, Branch: q.Branch, Queue: queue, Label: h.Label, Token: token})
		}
	}
	return all, nil
}

// hostClasses has the class of each kind of host.
var hostClasses = map[string]eventsv1.HostClass{
	configuration.HostGitea: eventsv1.HostClass_HOST_CLASS_GITEA, configuration.HostGitHub: eventsv1.HostClass_HOST_CLASS_GITHUB,
	configuration.HostGitLab: eventsv1.HostClass_HOST_CLASS_GITLAB,
}

// hosts runs the service, and takes webhooks beside it.
func (p *Process) hosts(ctx context.Context) error {
	c := p.Configuration.Hosts
	if len(c.Servers) == 0 {
		return errors.New("there is no code host: give hosts.servers in the configuration")
	}
	logger := p.logger(events.ServiceHosts)
	gateway := &hosts.Gateway{URL: p.gatewayURL, Client: &http.Client{}}
	if c.Token.Given() {
		gateway.Token = func(ctx context.Context) ([]byte, error) { return secretplace.Read(ctx, c.Token, MaxHostSecret) }
	}
	repositories, names := map[string]hosts.Repository{}, map[string]string{}
	for name, h := range c.Servers {
		at, err := Repositories(p.Configuration, h)
		if err != nil {
			return err
		}
		for queue, repository := range h.Queues {
			names[queue] = repository
			repositories[queue] = hosts.Repository{
				Settings: hosts.Settings{Host: name, URL: h.URL, Queue: queue, Label: h.Label, Withdraw: h.OnPush == configuration.OnPushWithdraw,
					Class: hostClasses[h.Kind], Page: gateway.Page},
				Host: at[queue],
			}
		}
	}
	receiver := &hosts.Receiver{
		Log: p.log(events.ServiceHosts), Instance: p.Instance, Logger: logger, Repositories: repositories, Names: names,
		Secrets: func(ctx context.Context, host string) ([]byte, error) {
			return secretplace.Read(ctx, c.Servers[host].Secret, MaxHostSecret)
		},
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("the hosts service cannot listen on %s (hosts.listen in the configuration): %w", c.Listen, err)
	}
	server := hosts.NewServer(ctx, receiver.Handler(), logger)
	go server.Serve(listening.Bounded(listening.Patient(listener, logger), listening.Usual(p.Configuration.Gateway.ProxyNetworks()), logger))
	defer server.Close()
	logger.Info("webhooks of code hosts are taken", "address", listener.Addr().String())
	return p.own(ctx, events.ServiceHosts, events.TopicHosts, func(ctx context.Context, partition int32) error {
		return hosts.Run(ctx, hosts.Options{
			Options: p.stageOptions(events.ServiceHosts), Repositories: repositories, Rules: access.NewRules(p.Configuration.Access), Poll: c.Poll, Places: gateway.Places,
		}, partition)
	})
}

// gatewayURL returns where the gateway is reached, "" if that is not known.
func (p *Process) gatewayURL() string {
	if at := cmp.Or(p.Configuration.Hosts.Gateway, p.Configuration.Gateway.URL); at != "" {
		return at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ownGateway
}

func (p *Process) tracer(ctx context.Context) error {
	sampled, err := tracer.Sampler()
	if err != nil {
		return err
	}
	return tracer.Run(ctx, tracer.Options{
		Log: p.log(events.ServiceTracer), Sampled: sampled, Client: otlptracehttp.NewClient(), Version: p.Version,
		Logger: p.logger(events.ServiceTracer), Health: p.healthOf(events.ServiceTracer), Meter: p.meter(events.ServiceTracer),
	}, p.owner(events.ServiceTracer))
}

// SetAnalyst has the gateway ask the history there, clickhouse://user:password@host:port/database, in place of clickhouse.dsn.
func (p *Process) SetAnalyst(dsn string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.analyst = dsn
}

// analystDSN is where the gateway asks the history, "" for nowhere.
func (p *Process) analystDSN() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.analyst, p.Configuration.ClickHouse.DSN)
}

func (p *Process) historian(ctx context.Context) error {
	dsn := cmp.Or(p.History, p.Configuration.ClickHouse.DSN)
	if dsn == "" {
		return errors.New("no ClickHouse to keep the history in: set clickhouse.dsn in the configuration, or give --clickhouse")
	}
	open := func(ctx context.Context) (historian.Store, error) {
		w, err := warehouse.Open(ctx, warehouse.Options{DSN: dsn, Cluster: p.Configuration.ClickHouse.Cluster, LogID: p.Log.ID()})
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	h := historian.New(historian.Options{Log: p.log(events.ServiceHistorian), Open: open, Meter: p.meter(events.ServiceHistorian), Logger: p.logger(events.ServiceHistorian), Health: p.healthOf(events.ServiceHistorian)})
	return h.Run(ctx, p.owner(events.ServiceHistorian))
}

func (p *Process) trainer(ctx context.Context) error {
	t, err := p.Trainer()
	if err != nil {
		return err
	}
	return t.Run(ctx, p.owner(events.ServiceTrainer))
}

// Trainer returns the trainer of all queues of the configuration.
func (p *Process) Trainer() (*trainer.Trainer, error) {
	dsn := cmp.Or(p.History, p.Configuration.ClickHouse.DSN)
	if dsn == "" {
		return nil, errors.New("no ClickHouse to learn from: set clickhouse.dsn in the configuration, or give --clickhouse")
	}
	names := p.Configuration.QueueNames()
	sort.Strings(names)
	return trainer.New(trainer.Options{
		Log: p.log(events.ServiceTrainer), Meter: p.meter(events.ServiceTrainer), Open: func() (trainer.Source, error) { return dataset.Open(dsn) }, Queues: names, Every: p.TrainEvery,
		Instance: p.Instance, Version: p.Version, Logger: p.logger(events.ServiceTrainer),
		Health: p.healthOf(events.ServiceTrainer),
	}), nil
}

// mirrorPatiently opens a mirror, and waits while the repository cannot be reached: the queue waits, nothing is lost.
func (p *Process) mirrorPatiently(ctx context.Context, repository string) (*gitrepo.Repo, error) {
	for {
		m, err := p.Mirror(ctx, repository)
		if err == nil || ctx.Err() != nil {
			return m, err
		}
		p.Logger.Error("a repository cannot be mirrored; trying again", "repository", repository, "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(2 * time.Second):
		}
	}
}
