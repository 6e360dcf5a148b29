package stack

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
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

// ToolsChangedError is the error for a tool that has another version than at the start. The version at the start is part of every target
// version, so what steps do from now on proves nothing about them: the stack has to be started again.
type ToolsChangedError struct{ Queue, Was, Is string }

func (e ToolsChangedError) Error() string {
	return fmt.Sprintf("queue %s: steps see %s, which was %s when the services started: every target has another version now", e.Queue, e.Is, e.Was)
}

// toolsEvery is how often the tools are asked for their versions, unless told otherwise.
const toolsEvery = 30 * time.Second

// watchTools asks the tools of all queues for their versions, and returns once one of them has another version than at the start.
// A tool that does not answer may be being replaced, and is asked again.
func watchTools(ctx context.Context, asked, started *configuration.Configuration, every time.Duration) (ToolsChangedError, bool) {
	for {
		select {
		case <-ctx.Done():
			return ToolsChangedError{}, false
		case <-time.After(every):
		}
		for _, name := range asked.QueueNames() {
			now, _ := buildgraph.WithToolchains(ctx, asked.Queues[name]) // a tool that does not answer has no version
			if was, is := changedTools(started.Queues[name].Analysis, now); len(is) > 0 {
				return ToolsChangedError{name, strings.Join(was, ", "), strings.Join(is, ", ")}, true
			}
		}
	}
}

// changedTools returns the tools of a queue that have another version now, as they were and as they are.
func changedTools(started, now configuration.Analysis) (was, is []string) {
	before := started.Uses()
	for i, use := range now.Uses() {
		if use.Toolchain != "" && use.Toolchain != before[i].Toolchain {
			was, is = append(was, nameOf(before[i])), append(is, nameOf(use))
		}
	}
	return was, is
}

// nameOf returns an adapter with the version of its tool.
func nameOf(use configuration.AdapterUse) string {
	return strings.TrimSpace(string(use.Adapter) + " " + use.Toolchain)
}
