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
	err := root().ExecuteContext(ctx)
	code, silent := exitCode(err)
	if err != nil && !silent && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "landfall:", err)
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
	c.AddCommand(toolCommands()...)
	c.AddCommand(graphview.Commands(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))...)
	return c
}

// newLogger writes to standard error, which standard output never mixes with.
func newLogger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is %q; it is one of debug, info, warn, error", level)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}
