package builder

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
)

// filesFor returns the files that the workspace of a target holds; nil for all.
func filesFor(part buildgraph.Part, target targets.Target) map[string]bool {
	files, _ := part.Graph.Workspace(target.Name)
	return files
}

// mostUnseen bounds how many paths the line about them names.
const mostUnseen = 3

// unseen returns a line about files of the repository that the output of a step names and that are not in its workspace, "" if it
// names none. dir is where the command ran, relative to the root.
func unseen(ctx context.Context, place *workplace, dir string, output []byte) (string, error) {
	if place.files == nil {
		return "", nil
	}
	entries, err := place.assembly.repo.Tree(ctx, place.part.Tree)
	if err != nil {
		return "", err
	}
	absent, present, endings := map[string]bool{}, map[string]bool{}, map[string][]string{}
	for _, e := range entries {
		in := absent
		if place.files[e.Path] {
			in = present
		}
		for name := e.Path; name != "." && !in[name]; name = path.Dir(name) {
			in[name] = true
			endings[path.Base(name)] = append(endings[path.Base(name)], name)
		}
	}
	isAbsent := func(name string) bool { return absent[name] && !present[name] }
	var names []string
	for _, word := range bytes.FieldsFunc(output, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`()[]{}<>,;=", r) }) {
		if len(names) == mostUnseen {
			break
		}
		for _, meant := range pathsMeant(string(word), place.request.Worktree, dir) {
			name := meant
			if !isAbsent(name) && strings.HasPrefix(meant, "../") {
				// Tools go to folders of their own, such as that of a package, and do not say so.
				end := meant
				for strings.HasPrefix(end, "../") {
					end = end[len("../"):]
				}
				name = onlyEnding(endings[path.Base(end)], end)
			}
			if isAbsent(name) && !slices.Contains(names, name) {
				names = append(names, name)
				break
			}
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("The repository has %s, but the step does not: %s does not depend on it. Declare it, or open the workspace (steps.workspace).", strings.Join(names, ", "), place.step.Target.Name), nil
}

// onlyEnding returns the one of some paths that is a path or ends with it, "" if there are none or several.
func onlyEnding(paths []string, end string) (only string) {
	for _, name := range paths {
		if name != end && !strings.HasSuffix(name, "/"+end) {
			continue
		}
		if only != "" {
			return ""
		}
		only = name
	}
	return only
}

// pathsMeant returns the paths, relative to the root of a tree, that a word of a step's output can stand for: as it is, and without
// a line number behind it.
func pathsMeant(word, root, dir string) (paths []string) {
	word = strings.TrimRight(word, ".:")
	for _, name := range []string{word, word[:max(0, strings.IndexByte(word, ':'))]} {
		switch {
		case name == "" || len(name) > 4096:
		case filepath.IsAbs(name):
			if relative, err := filepath.Rel(root, name); err == nil {
				paths = append(paths, filepath.ToSlash(relative))
			}
		default:
			paths = append(paths, path.Join(dir, name), path.Clean(name))
		}
	}
	return paths
}
