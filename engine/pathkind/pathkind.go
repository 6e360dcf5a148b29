// Package pathkind tells what a file is by its path: source, test, documentation, configuration and the like. It is for models
// and people; no decision rests on it.
package pathkind

import (
	"slices"
	"strings"
)

// Kind is what a file is.
type Kind uint8

// The kinds. A path that tells nothing is Other.
const (
	Other Kind = iota
	Source
	Test
	Doc
	Build
	CI
	Lock
	Configuration
)

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

// Of returns the kind of the file at a path from the root of its repository, with / between folders.
func Of(path string) Kind {
	lower := "/" + strings.ToLower(path)
	name := lower[strings.LastIndexByte(lower, '/')+1:]
	switch {
	case containsAny(lower, ciParts):
		return CI
	case slices.Contains(lockNames, name):
		return Lock
	case slices.Contains(buildNames, name):
		return Build
	case containsAny(lower, testParts), strings.Contains(path, "Test."), strings.Contains(path, "Tests."):
		return Test
	case endsInAny(name, docSuffixes):
		return Doc
	case endsInAny(name, sourceSuffixes):
		return Source
	case endsInAny(name, configSuffixes):
		return Configuration
	}
	return Other
}

// Generated reports whether a program wrote the file at a path, whatever its kind.
func Generated(path string) bool { return containsAny("/"+strings.ToLower(path), generatedParts) }

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

func endsInAny(text string, suffixes []string) bool {
	return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(text, s) })
}
