package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/services/journal/kafka"
	"landfall.build/services/journal/ownership"
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
	events.ServiceHistorian:   "Run the historian alone: the history in ClickHouse",
}

func serviceCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, name := range append(pipeline.Services(), events.ServiceHistorian) {
		out = append(out, serviceCommand(name))
	}
	return out
}

func serviceCommand(name string) *cobra.Command {
	var file, instance, level, history string
	var brokers []string
	c := &cobra.Command{
		Use:   name,
		Short: serviceAbout[name],
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := newLogger(level)
			if err != nil {
				return err
			}
			config, err := loadConfiguration(file)
			if err != nil {
				return err
			}
			if len(brokers) == 0 {
				brokers = config.Broker.Brokers
			}
			if len(brokers) == 0 {
				return fmt.Errorf("no broker: give --brokers host:port, or broker.brokers in %s (landfall up runs one of its own)", file)
			}
			if name == events.ServiceHistorian {
				history = cmp.Or(history, config.ClickHouse.DSN, os.Getenv(historyDSN))
			}
			if instance == "" {
				host, err := os.Hostname()
				if err != nil {
					return fmt.Errorf("this machine has no name; give --instance: %w", err)
				}
				instance = host
			}
			log, err := kafka.Open(cmd.Context(), kafka.Options{
				Brokers: brokers, ClientID: "landfall-" + name, Log: logger,
				Partitions: int32(config.Broker.Partitions), Replication: int16(config.Broker.Replication),
			})
			if err != nil {
				return err
			}
			defer log.Close()
			p := &pipeline.Process{
				Configuration: config, Log: log, Instance: instance, Version: version, Logger: logger, History: history,
				Owner: ownership.Group{Brokers: brokers, ClientID: "landfall-" + name + "-" + instance, Log: logger},
			}
			defer p.Close()
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
	c.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	if name == events.ServiceHistorian {
		c.Flags().StringVar(&history, "clickhouse", "", "DSN of the server, clickhouse://user:password@host:9000/database (default: the configuration's, else $"+historyDSN+")")
	}
	return c
}

// historyDSN is the variable of the environment that names a ClickHouse, for a password that is in no file.
const historyDSN = "LANDFALL_CLICKHOUSE_DSN"
