package stack

import (
	"context"
	"log/slog"
	"maps"

	"landfall.build/services/analyzer/repograph"
	"landfall.build/services/configuration"
)

// withToolchains is a configuration in which every queue of Go modules says what its code is built with: where the
// file does not, what the go command that steps see says now. All who make hashes of this log are in this process,
// so they agree.
func withToolchains(ctx context.Context, c *configuration.Configuration, logger *slog.Logger) *configuration.Configuration {
	filled := *c
	filled.Queues = maps.Clone(c.Queues)
	for _, name := range c.QueueNames() {
		queue := c.Queues[name]
		if queue.Analysis.Adapter != configuration.AdapterGo || queue.Analysis.Toolchain != "" {
			continue
		}
		version, err := repograph.Toolchain(ctx, queue.Steps.Environment)
		if err != nil {
			logger.Warn("another go command will not make other target versions; write analysis.toolchain down", "queue", name, "err", err)
			continue
		}
		logger.Info("the toolchain is part of every target version", "queue", name, "toolchain", version)
		queue.Analysis.Toolchain = version
		filled.Queues[name] = queue
	}
	return &filled
}
