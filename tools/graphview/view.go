package graphview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/tools/progress"
)

// ErrUnknownTargets is wrapped by the error about a tree whose targets cannot be determined. In a queue such a
// change conflicts with everything (M4).
var ErrUnknownTargets = errors.New("the targets are not known")

// view is a repository seen with the settings of a queue.
type view struct {
	*source
	loader   *buildgraph.Loader
	settings configuration.Queue
	progress *progress.Progress
}

// fitting returns the adapters for what trees hold: those that fit the first, and those that fit another besides, such as that of the
// first landfall.yaml. Bazel has no other beside it.
func fitting(ctx context.Context, s *source, trees []string) (uses []configuration.AdapterUse, err error) {
	adapters := func(a configuration.Adapter) func(configuration.AdapterUse) bool {
		return func(use configuration.AdapterUse) bool { return use.Adapter == a }
	}
	for _, tree := range trees {
		found, err := buildgraph.DetectIn(ctx, s.Repo, tree)
		if err != nil {
			return nil, err
		}
		for _, use := range buildgraph.Fitting(found) {
			bazel := len(uses) > 0 && (use.Adapter == configuration.AdapterBazel || slices.ContainsFunc(uses, adapters(configuration.AdapterBazel)))
			if !bazel && !slices.ContainsFunc(uses, adapters(use.Adapter)) {
				uses = append(uses, use)
			}
		}
	}
	return uses, nil
}

// graph loads the graph of a tree whose targets must be known.
func (v *view) graph(ctx context.Context, name, tree string) (*targets.Graph, error) {
	graph, err := v.loader.Graph(ctx, v.Repo, tree)
	if invalid, is := errors.AsType[*buildgraph.Invalid](err); is && invalid.Absent {
		return nil, fmt.Errorf("%s has no targets:\n%s", name, invalid.Message)
	} else if is {
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
