// Package stack is everything in one process: the embedded broker (unless the configuration names a Kafka),
// and all services on it. It is what `landfall up`, the demo and the end-to-end tests run.
package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/archive"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/journal/rights"
	"landfall.build/services/gateway/api"
	"landfall.build/services/tracer"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/pipeline"
)

// Options of a stack.
type Options struct {
	Configuration *configuration.Configuration
	Logger        *slog.Logger
	Version       string
	// Services to run; nil is all of them, and then the history is kept too, where there is a ClickHouse.
	Services []string
	// History keeps the history in the embedded ClickHouse, where it is installed, unless the configuration names a
	// server. With a server named it is kept always.
	History bool
	// Metrics is the address at which metrics and health are shown; empty is nowhere.
	Metrics string
	// Program runs as landfall, for what the gateway simulates; empty simulates nothing.
	Program string
	// ToolsEvery is how often the tools of steps are asked whether they are still those of the start; 0 is every 30 s.
	ToolsEvery time.Duration
}

// Stack is a running stack.
type Stack struct {
	broker        *broker.Broker
	brokers       []string
	configuration *configuration.Configuration
	log           *kafka.Log
	process       *pipeline.Process
	address, url  string
	history       string
	cancel        context.CancelFunc
	wg            sync.WaitGroup
	failed        chan error
}

// Start starts the broker, then the services, and returns when the gateway listens.
func Start(ctx context.Context, o Options) (*Stack, error) {
	s := &Stack{configuration: o.Configuration, failed: make(chan error, 16)}
	c := o.Configuration
	s.brokers = c.Broker.Brokers
	access := broker.Access(c, s.brokers, rights.Up)
	if len(s.brokers) == 0 {
		b, err := broker.Start(ctx, broker.Options{Dir: filepath.Join(c.Data, "broker"), Log: o.Logger})
		if err != nil {
			return nil, err
		}
		s.broker, s.brokers = b, []string{b.Addr()}
		access = b.Client
		c = withToolchains(ctx, c, o.Logger)
	}
	old, err := archive.Open(ctx, c.Broker.Archive)
	if err != nil {
		s.Close()
		return nil, err
	}
	log, err := kafka.Open(ctx, kafka.Options{
		Brokers: s.brokers, ClientID: "landfall", Log: o.Logger, Partitions: int32(c.Broker.Partitions), Replication: int16(c.Broker.Replication),
		Client: access, Archive: old,
	})
	if err != nil {
		s.Close()
		return nil, err
	}
	s.log = log
	if s.broker != nil {
		s.broker.Remember()
	}
	ctx, s.cancel = context.WithCancel(ctx)
	listening := make(chan net.Addr, 1)
	s.process = &pipeline.Process{
		Configuration: c, Log: log, Instance: "up", Version: o.Version, Logger: o.Logger,
		Owner:     ownership.Static{Log: o.Logger, Partitions: log.Partitions()},
		Listening: func(a net.Addr) { listening <- a },
		Metrics:   o.Metrics, Program: o.Program, Board: health.NewBoard(log.Admin()),
	}
	if err := s.process.Begin(ctx); err != nil {
		s.Close()
		return nil, err
	}
	services := o.Services
	if services == nil {
		services = pipeline.Services()
		if len(c.Webhooks) > 0 {
			services = append(services, events.ServiceWebhooks)
		}
		if len(c.Hosts.Servers) > 0 {
			services = append(services, events.ServiceHosts)
		}
		if tracer.Wanted() {
			services = append(services, events.ServiceTracer)
		}
	}
	for _, name := range services {
		s.wg.Go(func() {
			err := s.process.Run(ctx, name)
			if err == nil {
				err = errors.New("it stopped without being asked to")
			}
			if ctx.Err() == nil {
				s.failed <- fmt.Errorf("%s: %w", name, err)
			}
		})
		if name != events.ServiceGateway {
			continue
		}
		select {
		case a := <-listening:
			s.address, s.url = a.String(), "http://"+a.String()
			if c.Gateway.TLS.On() {
				s.url = c.Gateway.URL // the name that its certificate is of
			}
		case err := <-s.failed:
			s.Close()
			return nil, err
		case <-ctx.Done():
			s.Close()
			return nil, ctx.Err()
		}
	}
	if s.broker != nil {
		s.wg.Go(func() {
			if changed, is := watchTools(ctx, o.Configuration, c, cmp.Or(o.ToolsEvery, toolsEvery)); is {
				s.failed <- changed
			}
		})
	}
	if o.Services == nil {
		s.history = s.keepHistory(ctx, o)
	}
	return s, nil
}

// Address returns where the gateway listens, host:port.
func (s *Stack) Address() string { return s.address }

// URL returns the gateway's address, "" if there is none.
func (s *Stack) URL() string { return s.url }

// MetricsURL returns where metrics and health are served, "" if nowhere.
func (s *Stack) MetricsURL() string { return s.process.MetricsURL() }

// Brokers returns the addresses of the log.
func (s *Stack) Brokers() []string { return s.brokers }

// Secret returns the file with the secret that the brokers ask for, "" for none.
func (s *Stack) Secret() string {
	if s.broker == nil {
		return broker.SecretOf(s.configuration, s.brokers)
	}
	return s.broker.SecretFile()
}

// Backend returns what the stack's gateway serves, nil if there is none.
func (s *Stack) Backend() api.Backend { return s.process.Backend() }

// Log returns the stack's log.
func (s *Stack) Log() *kafka.Log { return s.log }

// Failed yields the error of a service that stopped without being asked to, or a ToolsChangedError.
func (s *Stack) Failed() <-chan error { return s.failed }

// Close ends the services, then the broker. What was acknowledged is kept.
func (s *Stack) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.wg.Wait()
	var errs []error
	if s.process != nil {
		errs = append(errs, s.process.Close())
	}
	if s.log != nil {
		s.log.Close()
	}
	if s.broker != nil {
		s.broker.Close()
	}
	return errors.Join(errs...)
}
