package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/buildgraph/glob"
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
	// folder is the target's own.
	folder string
}

// known returns those lookups that are of files or folders of the tree. Tools look for many that no tree has. What lies below a file, or
// a link, is it.
func (s space) known(found []lookups.Lookup) (known []lookups.Lookup) {
	named := map[string]bool{}
	for _, l := range found {
		if !l.Listed {
			if l.Path = s.entry(l.Path); l.Path == "" || named[l.Path] {
				continue
			}
			named[l.Path] = true
		}
		known = append(known, l)
	}
	return known
}

// entry returns the file or link of the tree that a path is, or lies below, or the path if it is that of a folder; else "".
func (s space) entry(name string) string {
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		if _, is := slices.BinarySearch(s.all, name[:end]); is {
			return name[:end]
		}
	}
	if s.hasFolder(name) {
		return name
	}
	return ""
}

// hasFolder reports whether the tree has a folder of a path.
func (s space) hasFolder(name string) bool {
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
		s = spaceOf(entries, part.Graph, closed, target)
		s.folder = buildgraph.Folder(part.Graph, target)
		return s.files
	})
	return s, err
}

// spaceOf returns what a closed workspace holds of a tree: its files, and names.
func spaceOf(entries []gitrepo.Entry, graph *targets.Graph, closed *targets.Workspace, target string) space {
	s := space{files: closed.Files, all: make([]string, len(entries))}
	for i, e := range entries {
		s.all[i] = e.Path
	}
	written := isWritten(target)
	shown := func(folder string) (names, alone bool) {
		if written && slices.ContainsFunc(closed.Names, func(above string) bool { return above == "" || strings.HasPrefix(folder+"/", above+"/") }) {
			return true, true
		}
		alone, names = closed.Shown[folder]
		return names || written, alone
	}
	s.missing = lookups.Of(s.all, s.files, shown, func(name string) bool {
		return name == manifest.FileName // A new one does not alter the targets of others, which may list its folder.
	})
	s.missing.Believe, s.missing.Tools = !written, closed.Tools
	if written {
		s.missing.Names = closed.Names
	}
	for _, name := range s.all {
		if path.Base(name) != "Cargo.toml" {
			continue
		}
		if _, is := graph.Target("cargo://" + path.Dir(name)); is {
			s.missing.Crates = append(s.missing.Crates, path.Dir(name))
		}
	}
	return s
}

// lookedElsewhere is why a step has failed whose commands passed: by nothing that they have printed.
const lookedElsewhere = "All commands passed, but the step looked for files of the repository that its target does not depend on."

// judgeLookups has a step that has passed fail if it looked for files of the repository that its workspace does not hold: they can
// change without the target being verified again.
func judgeLookups(result *execution.Result) {
	if result.Outcome != execution.Passed || len(result.Lookups) == 0 {
		return
	}
	last := &result.Commands[len(result.Commands)-1]
	last.Outcome, result.Outcome, result.FailedCommand = execution.Failed, execution.Failed, last.Name
	result.Reason = lookedElsewhere
}

// lookedFor returns a line about lookups of the steps of a target, "" if there are none.
func (s space) lookedFor(found []lookups.Lookup, target string) string {
	var names, read, folders, files []string
	alike := map[string]int{}
	for _, l := range found {
		if l.Read {
			alike[beside(l.Path)]++
		}
	}
	for _, l := range found {
		if l.Path == "." {
			folders, files = append(folders, "the root folder"), append(files, "**")
			continue
		}
		switch {
		case l.Listed:
			folders = append(folders, l.Path)
		case l.Read:
			read = append(read, l.Path)
		default:
			names = append(names, l.Path)
		}
		pattern := glob.Quote(l.Path)
		switch {
		case s.hasFolder(l.Path):
			pattern += "/**"
		case l.Read && alike[beside(l.Path)] > 1:
			pattern = beside(l.Path)
		}
		if !slices.Contains(files, pattern) {
			files = append(files, pattern)
		}
	}
	var parts []string
	if len(names) > 0 {
		parts = append(parts, fmt.Sprintf("The repository has %s, but the step does not", few(names)))
	}
	if len(read) > 0 {
		are := "are"
		if len(read) == 1 {
			are = "is"
		}
		parts = append(parts, fmt.Sprintf("The step reads %s, which %s there for package managers", few(read), are))
	}
	if len(folders) > 0 {
		parts = append(parts, fmt.Sprintf("The step lists %s and finds only a part of what the repository has there", few(folders)))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s does not depend on it. Declare it (%s), or open the workspace (steps.workspace).", strings.Join(parts, ". "), target, declaration(files, target, s.folder))
}

// beside returns the pattern of a file and of those of its name in the folders beside its own: manifests of packages, to which others may
// be added.
func beside(file string) string {
	folder, name := path.Split(file)
	if folder == "" {
		return glob.Quote(name)
	}
	return path.Join(glob.Quote(path.Dir(path.Clean(folder))), "*", glob.Quote(name))
}

// declaration returns the settings by which a target in a folder depends on files.
func declaration(files []string, target, folder string) string {
	files = slices.Clone(files[:min(len(files), mostDeclared)])
	for i, f := range files {
		if isWritten(target) { // patterns of a landfall.yaml begin in its folder
			relative, err := filepath.Rel(filepath.FromSlash(folder), filepath.FromSlash(f))
			if err != nil {
				continue // never: both begin at the root
			}
			files[i] = filepath.ToSlash(relative)
		}
	}
	if isWritten(target) {
		return "sources: " + jsonOf(files)
	}
	if folder == "" {
		return fmt.Sprintf("analysis.inputs: [{files: %s}]", jsonOf(files))
	}
	return fmt.Sprintf("analysis.inputs: [{folders: %s, files: %s}]", jsonOf([]string{glob.Quote(folder)}), jsonOf(files))
}

// jsonOf returns a list of strings as JSON, which is YAML too.
func jsonOf(list []string) string {
	text, _ := json.Marshal(list) // strings always can be
	return string(text)
}

// isWritten reports whether a target is one of a landfall.yaml, //folder:name, which runs whatever somebody has written there.
func isWritten(target string) bool { return strings.HasPrefix(target, "//") }

// few returns the first of some names.
func few(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// The line about what a step looked for names so many paths, and declares so many patterns.
const (
	mostNamed    = 3
	mostDeclared = 8
)
