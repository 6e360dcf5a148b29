package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"landfall.build/platform/journal"
	"landfall.build/tools/access"
	"landfall.build/tools/adopt"
	"landfall.build/tools/archive"
	"landfall.build/tools/audit"
	"landfall.build/tools/client"
	"landfall.build/tools/demo"
	"landfall.build/tools/doctor"
	"landfall.build/tools/history"
	"landfall.build/tools/logview"
	"landfall.build/tools/plan"
	"landfall.build/tools/proof/kills"
	"landfall.build/tools/replay"
	"landfall.build/tools/simulate"
	"landfall.build/tools/traceview"
	"landfall.build/tools/train"
	"landfall.build/tools/trained"
)

// toolCommands are the commands that are no part of the running queue.
func toolCommands() []*cobra.Command {
	warnings := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return []*cobra.Command{access.Command(loadConfiguration), adopt.Command(warnings), archive.Command(loadConfiguration, warnings), audit.Command(warnings), demo.Command(version), doctor.Command(defaultConfig, warnings), history.Command(loadConfiguration), kills.Command(version), logview.Command(loadConfiguration), logview.DeadLettersCommand(loadConfiguration), plan.Command(), replay.Command(version, loadConfiguration, warnings), simulate.Command(loadConfiguration, warnings), traceview.Command(version, loadConfiguration), train.Command(loadConfiguration, version, warnings), trained.Command(loadConfiguration, warnings)}
}

// logFlags adds the flags that say where the log is, and returns what opens it.
func logFlags(c *cobra.Command) client.OpenLog {
	source := &replay.Source{Load: loadConfiguration}
	source.Flags(c.Flags())
	return func(ctx context.Context, logger *slog.Logger) (journal.Log, func(), error) {
		log, done, err := source.Open(ctx, logger)
		if err != nil {
			return nil, nil, err
		}
		return log, done, nil
	}
}

// exitCode returns the exit code of an error, and whether the error was printed already.
func exitCode(err error) (code int, printed bool) {
	if lacking := (adopt.Lacking{}); errors.As(err, &lacking) {
		return lacking.ExitCode(), true
	}
	if no := (access.NotAllowed{}); errors.As(err, &no) {
		return no.ExitCode(), true
	}
	if unwell := (doctor.Unwell{}); errors.As(err, &unwell) {
		return unwell.ExitCode(), true
	}
	if red := (audit.NotGreen{}); errors.As(err, &red) {
		return red.ExitCode(), true
	}
	if unexpected := (demo.Unexpected{}); errors.As(err, &unexpected) {
		return unexpected.ExitCode(), true
	}
	if differs := (replay.Differs{}); errors.As(err, &differs) {
		return differs.ExitCode(), true
	}
	if broken := (kills.Broken{}); errors.As(err, &broken) {
		return broken.ExitCode(), true
	}
	return client.ExitCode(err)
}
