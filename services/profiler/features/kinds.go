package features

import (
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/pathkind"
)

// kinds are the files of a change by what they are, as far as their paths say. A file is of one kind but for generated
// ones, which are of two.
type kinds struct {
	files                                                          int
	source, tests, docs, build, ci, lock, configuration, generated int
	root                                                           bool // the build of the root folder
	folders                                                        map[string]int
}

// filesOf are the paths among the changed nodes that are no targets.
func filesOf(a *eventsv1.Affected) []string {
	var out []string
	for _, l := range a.GetLeaves() {
		if path, is := strings.CutPrefix(l, "file:"); is {
			out = append(out, path)
		}
	}
	return out
}

// folderOf is the folder of a path, "" for the root.
func folderOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

func kindsOf(files []string) kinds {
	k := kinds{files: len(files), folders: map[string]int{}}
	for _, path := range files {
		folder := folderOf(path)
		k.folders[folder]++
		if pathkind.Generated(path) {
			k.generated++
		}
		switch pathkind.Of(path) {
		case pathkind.CI:
			k.ci++
		case pathkind.Lock:
			k.lock++
		case pathkind.Build:
			k.build++
			k.root = k.root || folder == ""
		case pathkind.Test:
			k.tests++
		case pathkind.Doc:
			k.docs++
		case pathkind.Source:
			k.source++
		case pathkind.Configuration:
			k.configuration++
		}
	}
	return k
}

// isBot says that no person wrote a change, as far as the author's name says.
func isBot(author string) bool {
	lower := strings.ToLower(author)
	return strings.Contains(lower, "[bot]") || strings.HasSuffix(lower, "-bot") || strings.Contains(lower, "renovate") || strings.Contains(lower, "dependabot")
}

// isRevert says that a change takes one back, as far as its title says.
func isRevert(title string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(title)), "revert")
}

// isBump says that a change moves dependencies alone.
func isBump(k *kinds, title string) bool {
	lower := strings.ToLower(title)
	return k.lock > 0 && k.lock+k.build == k.files || strings.HasPrefix(lower, "bump ") || strings.Contains(lower, "update dependency")
}
