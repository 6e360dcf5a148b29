package kills

import (
	"context"
	"log/slog"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/pipeline"
)

// intruderCommand is one more instance of a service that does not ask the group: it claims every partition at
// once, whoever has it. The run of kills starts it, as a process of its own.
func intruderCommand(version string) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "intruder SERVICE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Run an instance of a service that believes it owns everything",
		RunE: func(cmd *cobra.Command, args []string) error {
			return intrude(cmd.Context(), args[0], file, version)
		},
	}
	c.Flags().StringVar(&file, "config", "", "configuration file")
	return c
}

func intrude(ctx context.Context, service, file, version string) error {
	config, err := configuration.Load(file, configuration.Defaults{Workers: runtime.NumCPU(), Path: stepPath()})
	if err != nil {
		return err
	}
	config.Gateway.Listen = "127.0.0.1:0"
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	log, err := kafka.Open(ctx, kafka.Options{
		Brokers: config.Broker.Brokers, ClientID: "landfall-intruder-" + service, Log: logger,
		Partitions: int32(config.Broker.Partitions), Replication: int16(config.Broker.Replication),
		Client: broker.Access(config, config.Broker.Brokers, service),
	})
	if err != nil {
		return err
	}
	defer log.Close()
	p := &pipeline.Process{
		Configuration: config, Log: log, Instance: "intruder", Version: version, Logger: logger,
		Owner: ownership.Static{Log: logger, Partitions: log.Partitions()},
	}
	defer p.Close()
	return p.Run(ctx, service)
}
