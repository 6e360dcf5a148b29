package stack

import (
	"context"
	"log/slog"
	"maps"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// withToolchains returns a configuration in which every queue says what its code is built with: where the
// file does not, the versions of the tools that steps see now. All who make hashes of this log are in this process,
// so they agree.
func withToolchains(ctx context.Context, c *configuration.Configuration, logger *slog.Logger) *configuration.Configuration {
	filled := *c
	filled.Queues = maps.Clone(c.Queues)
	for _, name := range c.QueueNames() {
		queue := c.Queues[name]
		analysis, err := buildgraph.WithToolchains(ctx, queue)
		if err != nil {
			logger.Warn("the version of a tool is unknown, so another one makes the same target versions; set its toolchain in analysis", "queue", name, "error", err)
		}
		for _, use := range analysis.Uses() {
			if use.Toolchain != "" {
				logger.Info("the toolchain is part of every target version", "queue", name, "adapter", use.Adapter, "toolchain", use.Toolchain)
			}
		}
		queue.Analysis = analysis
		filled.Queues[name] = queue
	}
	return &filled
}
