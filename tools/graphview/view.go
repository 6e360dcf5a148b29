package graphview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/buildgraph/manifest"
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

// fitting is the adapter for what a tree holds: manifests or Go modules, whichever begin nearer to the root
// (samples and fixtures lie deeper), manifests where both do; Bazel where the root is a workspace of it and has
// neither of these; or nothing to tell targets by.
func fitting(ctx context.Context, s *source, tree string) (configuration.Adapter, error) {
	entries, err := s.Tree(ctx, tree)
	if err != nil {
		return "", err
	}
	manifests, modules, workspace := math.MaxInt, math.MaxInt, false
	for _, e := range entries {
		if slices.ContainsFunc(strings.Split(path.Dir(e.Path), "/"), isForeign) {
			continue
		}
		switch depth := strings.Count(e.Path, "/"); path.Base(e.Path) {
		case manifest.FileName:
			manifests = min(manifests, depth)
		case "go.mod", "go.work":
			modules = min(modules, depth)
		case "MODULE.bazel", "WORKSPACE", "WORKSPACE.bazel":
			workspace = workspace || depth == 0
		}
	}
	switch {
	case workspace && manifests > 0 && modules > 0:
		return configuration.AdapterBazel, nil
	case manifests == math.MaxInt && modules == math.MaxInt:
		return configuration.AdapterWholeRepository, nil
	case modules < manifests:
		return configuration.AdapterGo, nil
	}
	return configuration.AdapterManifest, nil
}

// isForeign reports whether a folder of that name holds something else.
func isForeign(folder string) bool {
	return folder == "testdata" || folder == "vendor" || folder == "node_modules"
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
