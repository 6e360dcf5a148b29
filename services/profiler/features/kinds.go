package features

import (
	"strings"

	eventsv1 "landfall.build/events/v1"
)

// kinds are the files of a change by what they are, as far as their paths say. A file is of one kind but for generated
// ones, which are of two.
type kinds struct {
	files                                                          int
	source, tests, docs, build, ci, lock, configuration, generated int
	root                                                           bool // the build of the root folder
	folders                                                        map[string]int
}

var (
	sourceSuffixes = []string{".go", ".py", ".java", ".kt", ".scala", ".c", ".cc", ".cpp", ".h", ".hpp", ".rs", ".ts", ".tsx", ".js", ".jsx", ".swift", ".m", ".mm", ".rb", ".php", ".cs", ".sql", ".proto", ".sh", ".bzl"}
	docSuffixes    = []string{".md", ".rst", ".txt", ".adoc", ".svg", ".png", ".jpg", ".gif", ".pdf"}
	configSuffixes = []string{".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".properties", ".xml", ".env"}
	buildNames     = []string{"landfall.yaml", "build", "build.bazel", "workspace", "module.bazel", "go.mod", "makefile", "cmakelists.txt", "pom.xml", "build.gradle", "build.gradle.kts", "package.json", "cargo.toml", "dockerfile", "setup.py", "pyproject.toml"}
	lockNames      = []string{"go.sum", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "cargo.lock", "poetry.lock", "gemfile.lock", "podfile.lock", "module.bazel.lock"}
	ciParts        = []string{".github/", ".gitlab", ".circleci/", "jenkinsfile", ".buildkite/", ".ci/"}
	testParts      = []string{"_test.", ".test.", ".spec.", "/test/", "/tests/", "/testdata/", "/test_"}
	generatedParts = []string{".pb.", "_generated.", ".gen.", "/generated/", "/vendor/", "/node_modules/", ".min.js"}
)

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
		lower := "/" + strings.ToLower(path)
		name := lower[strings.LastIndexByte(lower, '/')+1:]
		if containsAny(lower, generatedParts) {
			k.generated++
		}
		switch {
		case containsAny(lower, ciParts):
			k.ci++
		case is(name, lockNames):
			k.lock++
		case is(name, buildNames):
			k.build++
			k.root = k.root || folder == ""
		case containsAny(lower, testParts), strings.Contains(path, "Test."), strings.Contains(path, "Tests."):
			k.tests++
		case endsInAny(name, docSuffixes):
			k.docs++
		case endsInAny(name, sourceSuffixes):
			k.source++
		case endsInAny(name, configSuffixes):
			k.configuration++
		}
	}
	return k
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

func endsInAny(text string, suffixes []string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(text, s) {
			return true
		}
	}
	return false
}

func is(name string, names []string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
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
