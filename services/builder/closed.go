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
	// files are its files; the value is false where one is there by its name alone. nil: it holds all.
	files map[string]bool
	// missing is what steps could look for there and not find.
	missing lookups.Missing
	// all are the paths of the tree's files, sorted.
	all []string
}

// lacks returns those lookups that are of what the tree has. What is in no file of the tree can be looked for by any tool.
func (s space) lacks(found []lookups.Lookup) []lookups.Lookup {
	return slices.DeleteFunc(found, func(l lookups.Lookup) bool {
		if l.Listed {
			return false
		}
		for end := range len(l.Path) + 1 {
			if end < len(l.Path) && l.Path[end] != '/' {
				continue
			}
			if _, is := slices.BinarySearch(s.all, l.Path[:end]); is {
				return false // A part of it can be a link.
			}
		}
		below, _ := slices.BinarySearch(s.all, l.Path+"/")
		return below == len(s.all) || !strings.HasPrefix(s.all[below], l.Path+"/")
	})
}

// spaceFor returns what the workspace of a target holds: the files that the target depends on, and names.
func spaceFor(ctx context.Context, repo *gitrepo.Repo, part buildgraph.Part, target targets.Target) (space, error) {
	closed := part.Graph.Workspace(target.Name)
	if closed == nil {
		return space{}, nil
	}
	entries, err := repo.Tree(ctx, part.Tree)
	if err != nil {
		return space{}, err
	}
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Path
	}
	// Of targets that people define nobody knows what their tools do.
	defined := strings.HasPrefix(target.Name, "//")
	shown := func(folder string) (names, alone bool) {
		alone, names = closed.Shown[folder]
		return names || defined, alone
	}
	missing := lookups.Of(all, closed.Files, shown, func(name string) bool {
		return name == manifest.FileName // Who defines targets of a folder leaves alone what lists it for others.
	})
	missing.Believe = !defined
	return space{files: closed.Files, missing: missing, all: all}, nil
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
	const declare = "Declare it, or open the workspace (steps.workspace)."
	if len(names) > 0 {
		return fmt.Sprintf("The repository has %s, but the step does not: %s does not depend on it. %s", few(names), target, declare)
	}
	if len(folders) > 0 {
		return fmt.Sprintf("The step lists %s and finds only a part of what the repository has there: %s does not depend on the rest. %s", few(folders), target, declare)
	}
	return ""
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
