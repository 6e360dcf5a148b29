// Command landfall is everything: the services, each alone or all together, and the commands of developers
// and operators.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"landfall.build/platform/telemetry"
	"landfall.build/services/builder/execution"
	"landfall.build/tools/client"
	"landfall.build/tools/graphview"
	"landfall.build/tools/lifeline"
)

// version is set by the build.
var version = "development"

func main() {
	// The builder starts this very program again to supervise a step; that must come before anything else.
	execution.MaybeSupervise()
	ctx, stop := signal.NotifyContext(context.Background(), lifeline.Signals()...)
	defer stop()
	// A second Ctrl-C ends the process at once. A terminal that is closed may send its signal twice by itself.
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	err := root().ExecuteContext(ctx)
	code, silent := exitCode(err)
	if err != nil && !silent && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(client.Harmless(os.Stderr), "landfall:", err)
	}
	os.Exit(code)
}

func root() *cobra.Command {
	c := &cobra.Command{
		Use:           "landfall",
		Short:         "Land changes on a mainline that is green at every commit",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.ErrOrStderr(), cmd.UsageString())
			return errors.New("a command is missing; to begin with, landfall up REPOSITORY, or landfall demo")
		},
	}
	c.AddCommand(upCommand(), validateCommand(), brokerCommand(), versionCommand(), completionCommand())
	c.AddCommand(serviceCommands()...)
	c.AddCommand(client.Commands()...)
	c.AddCommand(client.TokenCommand(logFlags))
	c.AddCommand(toolCommands()...)
	c.AddCommand(graphview.Commands(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))...)
	return c
}

// logging are the flags of a command that logs.
type logging struct{ level, format string }

// flags adds --log-level and --log-format.
func (l *logging) flags(c *cobra.Command, level string) {
	c.Flags().StringVar(&l.level, "log-level", level, "debug, info, warn or error")
	c.Flags().StringVar(&l.format, "log-format", telemetry.FormatText, "text or json")
}

// logger writes to standard error, which standard output never mixes with.
func (l *logging) logger() (*slog.Logger, error) {
	return telemetry.NewLogger(os.Stderr, l.level, l.format)
}
