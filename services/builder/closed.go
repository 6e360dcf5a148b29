package builder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/sandbox/lookups"
	"landfall.build/services/builder/execution"
)

// space is what of a tree a workspace holds.
type space struct {
	// files are its files, nil for all. The value is false where an empty file stands for one.
	files map[string]bool
	// missing is what it lacks.
	missing lookups.Missing
	// all are the paths of the tree's files, sorted.
	all []string
}

// known returns those lookups that are of files or folders of the tree. Tools look for many that no tree has.
func (s space) known(found []lookups.Lookup) []lookups.Lookup {
	return slices.DeleteFunc(found, func(l lookups.Lookup) bool { return !l.Listed && !s.has(l.Path) })
}

// has reports whether the tree has a file or folder of a path, or a link on the way to it.
func (s space) has(name string) bool {
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		if _, is := slices.BinarySearch(s.all, name[:end]); is {
			return true
		}
	}
	below, _ := slices.BinarySearch(s.all, name+"/")
	return below < len(s.all) && strings.HasPrefix(s.all[below], name+"/")
}

// checkOutFor makes a worktree hold what the workspace of a target does of a tree, and returns that.
func checkOutFor(ctx context.Context, worktree *gitrepo.Worktree, tree string, part buildgraph.Part, target string) (s space, err error) {
	closed := part.Graph.Workspace(target)
	if closed == nil {
		return space{}, worktree.Checkout(ctx, tree)
	}
	err = worktree.CheckoutOnly(ctx, tree, func(entries []gitrepo.Entry) map[string]bool {
		s = spaceOf(entries, closed, target)
		return s.files
	})
	return s, err
}

// spaceOf returns what a closed workspace holds of a tree: its files, and names.
func spaceOf(entries []gitrepo.Entry, closed *targets.Workspace, target string) space {
	s := space{files: closed.Files, all: make([]string, len(entries))}
	for i, e := range entries {
		s.all[i] = e.Path
	}
	// Targets of a landfall.yaml, //folder:name, run whatever somebody has written there.
	written := strings.HasPrefix(target, "//")
	shown := func(folder string) (names, alone bool) {
		alone, names = closed.Shown[folder]
		return names || written, alone
	}
	s.missing = lookups.Of(s.all, s.files, shown, func(name string) bool {
		return name == manifest.FileName // A new one does not alter the targets of others, which may list its folder.
	})
	s.missing.Believe = !written
	return s
}

// judgeLookups has a step that has passed fail if it looked for files of the repository that its workspace does not hold: they can
// change without the target being verified again.
func judgeLookups(result *execution.Result) {
	if result.Outcome != execution.Passed || len(result.Lookups) == 0 {
		return
	}
	last := &result.Commands[len(result.Commands)-1]
	last.Outcome, result.Outcome, result.FailedCommand = execution.Failed, execution.Failed, last.Name
	result.Reason = "All commands passed, but the step looked for files of the repository that its target does not depend on."
}

// lookedFor returns a line about lookups, "" if there are none.
func lookedFor(found []lookups.Lookup, target string) string {
	var names, folders []string
	for _, l := range found {
		if !l.Listed {
			names = append(names, l.Path)
		} else if l.Path == "." {
			folders = append(folders, "the root folder")
		} else {
			folders = append(folders, l.Path)
		}
	}
	var parts []string
	if len(names) > 0 {
		parts = append(parts, fmt.Sprintf("The repository has %s, but the step does not", few(names)))
	}
	if len(folders) > 0 {
		parts = append(parts, fmt.Sprintf("The step lists %s and finds only a part of what the repository has there", few(folders)))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s does not depend on it. Declare it, or open the workspace (steps.workspace).", strings.Join(parts, ". "), target)
}

// few returns the first of some names.
func few(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// mostNamed bounds how many paths the line about them names.
const mostNamed = 3
