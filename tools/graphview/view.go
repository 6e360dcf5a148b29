package graphview

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// ErrUnknownTargets is wrapped by the error about a tree whose targets cannot be determined. In a queue such a
// change conflicts with everything (M4).
var ErrUnknownTargets = errors.New("the targets are not known")

// view is a repository seen with the settings of a queue.
type view struct {
	*source
	loader   *buildgraph.Loader
	settings configuration.Queue
	progress *progress
}

// fitting returns the adapters for what a tree holds.
func fitting(ctx context.Context, s *source, tree string) ([]configuration.AdapterUse, error) {
	found, err := buildgraph.DetectIn(ctx, s.Repo, tree)
	return buildgraph.Fitting(found), err
}

// graph loads the graph of a tree whose targets must be known.
func (v *view) graph(ctx context.Context, name, tree string) (*targets.Graph, error) {
	graph, err := v.loader.Graph(ctx, v.Repo, tree)
	if invalid, is := errors.AsType[*buildgraph.Invalid](err); is {
		return nil, fmt.Errorf("%s has target definitions that are not valid:\n%s", name, invalid.Message)
	}
	if err != nil {
		return nil, err
	}
	if reasons := graph.Unknown(); len(reasons) > 0 {
		return nil, fmt.Errorf("%w at %s: %s", ErrUnknownTargets, name, strings.Join(reasons, "; "))
	}
	return graph, nil
}
