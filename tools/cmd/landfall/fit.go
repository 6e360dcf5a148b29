package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

// fitAdapters has each queue use the adapters for what its mainline holds, as `landfall targets` does without a configuration, and
// says which: for queues that no configuration speaks of. A mainline that cannot be read leaves its queue as it is.
func fitAdapters(ctx context.Context, config *configuration.Configuration, logger *slog.Logger, out io.Writer) {
	for _, name := range config.QueueNames() {
		queue := config.Queues[name]
		found, err := sightings(ctx, config, queue, logger)
		if err != nil {
			fmt.Fprintf(out, "  queue %s: %s cannot be read, so targets are those of landfall.yaml: %v\n", name, queue.Branch, err)
			continue
		}
		uses := buildgraph.Fitting(found)
		queue.Analysis.Uncovered.Ignore = buildgraph.DocumentPatterns
		if len(uses) == 0 {
			config.Queues[name] = queue
			fmt.Fprintf(out, "  queue %s: nothing can be proven, and no change will land but of documents alone: %s has no landfall.yaml and no build system that is known.\n"+
				"    Write a landfall.yaml, or name commands in analysis.whole_repository_steps of a configuration: landfall init makes both.\n", name, queue.Branch)
			continue
		}
		buildgraph.SetAdapters(&queue.Analysis, uses)
		config.Queues[name] = queue
		var words []string
		for _, use := range uses {
			words = append(words, string(use.Adapter))
		}
		fmt.Fprintf(out, "  queue %s: targets are found by %s (landfall targets shows them); documents alone are not verified\n", name, strings.Join(words, ", "))
	}
}

// sightings returns the build systems of a queue's mainline. The mirror is the one that the services use.
func sightings(ctx context.Context, config *configuration.Configuration, queue configuration.Queue, logger *slog.Logger) ([]buildgraph.Sighting, error) {
	mirror, err := gitrepo.Open(ctx, gitrepo.Options{
		Remote: config.RepositoryOf(queue).URL, Dir: filepath.Join(config.Data, "mirrors", queue.Repository+".git"), Log: logger,
	})
	if err != nil {
		return nil, err
	}
	defer mirror.Close()
	head, err := mirror.RemoteHead(ctx, queue.Branch)
	if err != nil {
		return nil, err
	}
	if err := mirror.Fetch(ctx, gitrepo.Wanted{Branches: []string{queue.Branch}}); err != nil {
		return nil, err
	}
	return buildgraph.DetectIn(ctx, mirror, head)
}
