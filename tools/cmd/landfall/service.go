package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/engine/prediction"
	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/archive"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/services/tracer"
	"landfall.build/services/trainer"
	"landfall.build/tools/doctor"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/outbox"
	"landfall.build/tools/pipeline"
)

var serviceAbout = map[string]string{
	events.ServiceGateway:     "Run the gateway alone: land requests, the API, what people see",
	events.ServiceAnalyzer:    "Run the analyzer alone: what each change does to the target graph",
	events.ServiceEnumerator:  "Run the enumerator alone: every fact in one order, the speculation graph",
	events.ServiceProfiler:    "Run the profiler alone: predictions",
	events.ServicePrioritizer: "Run the prioritizer alone: the builds that are worth most",
	events.ServiceSelector:    "Run the selector alone: schedules, aborts, decisions",
	events.ServiceBuilder:     "Run a builder alone: worktrees, steps, workers",
	events.ServiceLander:      "Run the lander alone: the land guard and the push",
	events.ServiceOutcomes:    "Run outcomes alone: what became of each change, for programs of others",
	events.ServiceWebhooks:    "Run webhooks alone: outcomes to the endpoints of the configuration; list what failed, send it again",
	events.ServiceHosts:       "Run hosts alone: what people ask for at a code host, and the answers there",
	events.ServiceTracer:      "Run the tracer alone: traces of changes to where OTEL_EXPORTER_OTLP_ENDPOINT says",
	events.ServiceHistorian:   "Run the historian alone: the history in ClickHouse",
	events.ServiceTrainer:     "Run the trainer alone: models from the history, once a week or --now",
}

func serviceCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, name := range append(pipeline.Services(), events.ServiceWebhooks, events.ServiceHosts, events.ServiceTracer, events.ServiceHistorian, events.ServiceTrainer) {
		c := serviceCommand(name)
		if name == events.ServiceWebhooks {
			c.AddCommand(outbox.Commands(loadConfiguration)...)
		}
		if name == events.ServiceHosts {
			c.AddCommand(doctor.HostsCommand(defaultConfig))
		}
		out = append(out, c)
	}
	return out
}

func serviceCommand(name string) *cobra.Command {
	learns := name == events.ServiceHistorian || name == events.ServiceTrainer
	asks := learns || name == events.ServiceGateway
	var file, instance, history, metrics string
	var logs logging
	var brokers []string
	var every time.Duration
	var now bool
	c := &cobra.Command{
		Use:   name,
		Short: serviceAbout[name],
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := logs.logger()
			if err != nil {
				return err
			}
			config, err := loadConfiguration(file)
			if err != nil {
				return err
			}
			for _, queue := range config.QueueNames() {
				if config.Queues[queue].Shadow == configuration.On {
					return fmt.Errorf("queue %s is a shadow (queues.%s.shadow in %s), which landfall up runs, with all services in one process", queue, queue, file)
				}
			}
			if len(brokers) == 0 {
				brokers = config.Broker.Brokers
			}
			if len(brokers) == 0 {
				return fmt.Errorf("no broker: give --brokers host:port, or broker.brokers in %s (landfall up runs one of its own)", file)
			}
			if name == events.ServiceTracer && !tracer.Wanted() {
				return errors.New("nobody takes traces: set OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, to the address of a collector")
			}
			if name == events.ServiceTrainer && every < time.Minute {
				return fmt.Errorf("--every is %v; it is at least a minute", every)
			}
			if asks {
				history = cmp.Or(history, config.ClickHouse.DSN, os.Getenv(historyDSN))
			}
			if instance == "" {
				host, err := os.Hostname()
				if err != nil {
					return fmt.Errorf("this machine has no name; give --instance: %w", err)
				}
				instance = host
			}
			old, err := archive.Open(cmd.Context(), config.Broker.Archive)
			if err != nil {
				return err
			}
			log, err := kafka.Open(cmd.Context(), kafka.Options{
				Brokers: brokers, ClientID: "landfall-" + name, Log: logger,
				Partitions: int32(config.Broker.Partitions), Replication: int16(config.Broker.Replication),
				Client: broker.Access(config, brokers, name), Archive: old,
			})
			if err != nil {
				return err
			}
			defer log.Close()
			p := &pipeline.Process{
				Configuration: config, Log: log, Instance: instance, Version: version, Logger: logger, History: history, TrainEvery: every, Metrics: metrics,
				Board: health.NewBoard(log.Admin()), Program: program(),
				Owner: ownership.Group{Brokers: brokers, ClientID: "landfall-" + name + "-" + instance, Log: logger, Client: broker.Access(config, brokers, name)()},
			}
			defer p.Close()
			p.SetAnalyst(history)
			if now {
				return trainNow(cmd, p)
			}
			if err := p.Begin(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s is up\n", name)
			err = p.Run(cmd.Context(), name)
			if cmd.Context().Err() != nil {
				return nil
			}
			return err
		},
	}
	c.Flags().StringVar(&file, "config", defaultConfig, "configuration file")
	c.Flags().StringSliceVar(&brokers, "brokers", nil, "host:port of the log's brokers (default: the configuration's)")
	c.Flags().StringVar(&instance, "instance", "", "name of this process among those of the service, the same after a restart (default: the host's)")
	logs.flags(c, "info")
	if name == events.ServiceTrainer {
		c.Flags().DurationVar(&every, "every", trainer.Weekly, "time between two trainings of a kind for a queue")
		c.Flags().BoolVar(&now, "now", false, "train everything once, whenever that was done last, and end")
	}
	metricsFlag(c, &metrics)
	if asks {
		c.Flags().StringVar(&history, "clickhouse", "", "DSN of the server, clickhouse://user:password@host:9000/database (default: the configuration's, else $"+historyDSN+")")
	}
	return c
}

// metricsFlag adds --metrics.
func metricsFlag(c *cobra.Command, metrics *string) {
	c.Flags().StringVar(metrics, "metrics", "", "host:port to serve /metrics, /livez, /readyz and /healthz at (default: nowhere)")
}

// trainNow trains all kinds of all queues, and prints the results.
func trainNow(cmd *cobra.Command, p *pipeline.Process) error {
	t, err := p.Trainer()
	if err != nil {
		return err
	}
	outcomes, err := t.Once(cmd.Context(), prediction.Kinds(), true)
	for _, o := range outcomes {
		what := "nothing was trained: "
		switch {
		case o.Report == nil:
			what += o.Why.Error()
		case o.Report.Better:
			what = prediction.Name(o.Kind, o.Report.Model.Version) + " predicts from now on"
		default:
			what = "no better than what there is: " + o.Report.Model.Card.Verdict
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s: %s\n", o.Queue, prediction.KindName(o.Kind), what)
	}
	return err
}

// historyDSN is the variable of the environment that names a ClickHouse, for a password that is in no file.
const historyDSN = "LANDFALL_CLICKHOUSE_DSN"

// program returns the path of this program, "" if it is not known.
func program() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
