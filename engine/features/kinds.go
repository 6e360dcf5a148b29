package features

import (
	"strings"

	"landfall.build/engine/pathkind"
	eventsv1 "landfall.build/events/v1"
)

// fileKinds counts the files of a change by the kinds that their paths suggest. A file has one kind; a generated one is counted as
// generated too.
type fileKinds struct {
	files                                                          int
	source, tests, docs, build, ci, lock, configuration, generated int
	root                                                           bool // a build file in the root folder is among them
	folders                                                        map[string]int
}

// filesOf returns the paths of the files among the leaves.
func filesOf(a *eventsv1.Affected) []string {
	var out []string
	for _, l := range a.GetLeaves() {
		if path, is := strings.CutPrefix(l, "file:"); is {
			out = append(out, path)
		}
	}
	return out
}

// folderOf returns the folder of a path, "" for the root.
func folderOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

func kindsOf(files []string) fileKinds {
	k := fileKinds{files: len(files), folders: map[string]int{}}
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

// isBot guesses from an author's name whether it is a program.
func isBot(author string) bool {
	lower := strings.ToLower(author)
	return strings.Contains(lower, "[bot]") || strings.HasSuffix(lower, "-bot") || strings.Contains(lower, "renovate") || strings.Contains(lower, "dependabot")
}

// isRevert guesses from a title whether the change reverts another one.
func isRevert(title string) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(title)), "revert")
}

// isBump guesses whether a change updates dependencies and nothing else.
func isBump(k *fileKinds, title string) bool {
	lower := strings.ToLower(title)
	return k.lock > 0 && k.lock+k.build == k.files || strings.HasPrefix(lower, "bump ") || strings.Contains(lower, "update dependency")
}
