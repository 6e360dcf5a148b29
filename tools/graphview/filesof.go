package graphview

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// TargetFiles is what `landfall targets --files-of TARGET --json` prints.
type TargetFiles struct {
	Rev    string `json:"rev"`
	Tree   string `json:"tree"`
	Target string `json:"target"`
	// Files are those that the target depends on, and those that its tool needs to find.
	Files []string `json:"files"`
	// Empty lists the files that a workspace holds as empty files.
	Empty []string `json:"empty"`
}

// filesOf lists the files that a closed workspace of a target holds, whatever the queue's workspaces are.
func (v *view) filesOf(ctx context.Context, name, rev, target string) (*TargetFiles, error) {
	tree, err := v.TreeOf(ctx, rev)
	if err != nil {
		return nil, err
	}
	settings := v.settings
	settings.Steps.Workspace = configuration.WorkspaceClosed
	closing := &view{source: v.source, loader: buildgraph.NewLoader(settings, nil), settings: settings, progress: v.progress}
	defer closing.loader.Close()
	graph, err := closing.graph(ctx, name, tree)
	if err != nil {
		return nil, err
	}
	if _, found := graph.Target(target); !found {
		return nil, fmt.Errorf("%s has no target %s; landfall targets lists those it has", name, target)
	}
	space := graph.Workspace(target)
	switch {
	case target == targets.Repository:
		return nil, fmt.Errorf("%s depends on every file", target)
	case space == nil:
		return nil, fmt.Errorf("%s has no closed workspace: it has no steps, or it is Bazel's, which sees to it itself", target)
	}
	found := &TargetFiles{Rev: rev, Tree: tree, Target: target, Files: []string{}, Empty: []string{}}
	for _, file := range slices.Sorted(maps.Keys(space.Files)) {
		if space.Files[file] {
			found.Files = append(found.Files, file)
		} else {
			found.Empty = append(found.Empty, file)
		}
	}
	return found, nil
}

func (t *TargetFiles) write(out io.Writer) error {
	for _, file := range t.Files {
		fmt.Fprintln(out, file)
	}
	for _, file := range t.Empty {
		fmt.Fprintln(out, file, "(empty)")
	}
	return nil
}
