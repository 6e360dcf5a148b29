package stack

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

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

// ToolsChangedError says that steps see another version of a tool than the one which is part of every target version. What is
// built from now on proves nothing about the versions that the services name: whoever runs the stack starts it again.
type ToolsChangedError struct{ Queue, Was, Is string }

func (e ToolsChangedError) Error() string {
	return fmt.Sprintf("queue %s: steps see %s, which was %s when the services started: every target has another version now", e.Queue, e.Is, e.Was)
}

// toolsEvery is how often the tools are asked for their versions, unless told otherwise.
const toolsEvery = 30 * time.Second

// watchTools asks the tools of all queues for their versions and returns once one differs from what the services started with.
// One that does not answer, since it is being replaced, is asked again.
func watchTools(ctx context.Context, asked, started *configuration.Configuration, every time.Duration) (ToolsChangedError, bool) {
	for {
		select {
		case <-ctx.Done():
			return ToolsChangedError{}, false
		case <-time.After(every):
		}
		for _, name := range asked.QueueNames() {
			analysis, err := buildgraph.WithToolchains(ctx, asked.Queues[name])
			if was, is := toolchainsOf(started.Queues[name].Analysis), toolchainsOf(analysis); err == nil && !slices.Equal(was, is) {
				return ToolsChangedError{name, strings.Join(was, ", "), strings.Join(is, ", ")}, true
			}
		}
	}
}

func toolchainsOf(analysis configuration.Analysis) []string {
	var list []string
	for _, use := range analysis.Uses() {
		list = append(list, strings.TrimSpace(string(use.Adapter)+" "+use.Toolchain))
	}
	return list
}
