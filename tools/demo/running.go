package demo

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/tools/demo/processes"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/embedded/stack"
)

// running is a queue at work, in this process or in processes of its own.
type running interface {
	URL() string
	Brokers() []string
	// Secret is the file with what they ask for, "" for nothing.
	Secret() string
	// Disturb ends services in the middle and starts them again; it does nothing where they are one process.
	Disturb(ctx context.Context, note func(string)) error
	// Failed yields the error of a service that ended by itself.
	Failed() <-chan error
	Close() error
}

// together is everything in this process.
type together struct{ *stack.Stack }

func (together) Disturb(context.Context, func(string)) error { return nil }

func startTogether(ctx context.Context, config *configuration.Configuration, logger *slog.Logger, version string) (running, error) {
	s, err := stack.Start(ctx, stack.Options{Configuration: config, Logger: logger, Version: version})
	if err != nil {
		return nil, err
	}
	return together{s}, nil
}

// start starts the queue of a place.
func (d *demo) start(ctx context.Context, cache string) (running, error) {
	if !d.processes {
		config, err := d.place.configure(cache, strings.Join(d.brokers, ","), "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		return startTogether(ctx, config, d.logger, d.version)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config, err := d.place.configure(cache, address, listen)
	if err != nil {
		return nil, err
	}
	return processes.Start(ctx, processes.Options{Configuration: config, File: d.place.configFile(), Logs: d.place.dir, Binary: d.binary})
}

// openLog connects to the log of a running queue, to read it.
func (d *demo) openLog(ctx context.Context, r running) (*kafka.Log, error) {
	log, err := kafka.Open(ctx, kafka.Options{
		Brokers: r.Brokers(), ClientID: "landfall-demo", Log: d.logger,
		Client: func() []kgo.Opt { return broker.WithSecret(r.Secret()) },
	})
	if err != nil {
		return nil, fmt.Errorf("the log cannot be counted: %w", err)
	}
	return log, nil
}
