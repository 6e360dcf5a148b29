package stack

import (
	"context"
	"log/slog"
	"maps"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// withToolchains returns a configuration in which every queue of Go modules says what its code is built with: where the
// file does not, the version of the go command that steps see now. All who make hashes of this log are in this process,
// so they agree.
func withToolchains(ctx context.Context, c *configuration.Configuration, logger *slog.Logger) *configuration.Configuration {
	filled := *c
	filled.Queues = maps.Clone(c.Queues)
	for _, name := range c.QueueNames() {
		queue := c.Queues[name]
		if queue.Analysis.Adapter != configuration.AdapterGo || queue.Analysis.Toolchain != "" {
			continue
		}
		version, err := buildgraph.Toolchain(ctx, queue.Steps.Environment)
		if err != nil {
			logger.Warn("the version of the go command is unknown, so another one makes the same target versions; set analysis.toolchain", "queue", name, "error", err)
			continue
		}
		logger.Info("the toolchain is part of every target version", "queue", name, "toolchain", version)
		queue.Analysis.Toolchain = version
		filled.Queues[name] = queue
	}
	return &filled
}
