package pythongraph

import (
	"regexp"
	"strings"
)

// walks matches commands that go through the folder where they run: linters, and what searches or lists files.
var walks = regexp.MustCompile(`(?:^|[|;&(\n]|\s-m\s|\brun\s|\bxargs\s)\s*(?:[^\s|;&(]*/)?(?:ruff|black|mypy|flake8|isort|pylint|[ef]?grep|rg|find|ls-files)(?:\s|$)|` +
	`\bgit\s(?:.*\s)?(?:ls-files|grep)(?:\s|$)`)

// installs matches commands that read the manifests and lock files of projects.
var installs = regexp.MustCompile(`(?:^|[|;&(\n]|\s-m\s|\brun\s)\s*(?:[^\s|;&(]*/)?(?:uvx?|pip3?|poetry)(?:\s|$)`)

// noArguments are methods of strings, and functions that make paths: what they are given is no argument of a program.
var noArguments = map[string]bool{
	"split": true, "rsplit": true, "partition": true, "rpartition": true, "replace": true, "strip": true, "lstrip": true, "rstrip": true, "count": true, "find": true, "rfind": true,
	"index": true, "rindex": true, "startswith": true, "endswith": true, "removeprefix": true, "removesuffix": true, "join": true, "joinpath": true,
}

// programs notes what the strings of a file that starts programs say of what these read.
func (f *facts) programs(tokens []token) {
	for i, t := range tokens {
		if t.kind != stringToken && t.kind != formatToken {
			continue
		}
		f.here = f.here || walks.MatchString(t.text)
		f.manifests = f.manifests || installs.MatchString(t.text)
		for word := range strings.FieldsSeq(t.text) {
			if strings.Trim(word, "./") != "" || word[0] != '.' || word == t.text && !isArgument(tokens, i) {
				continue
			}
			if above := outsidePath(word); above != "" {
				f.reads = append(f.reads, above)
			} else if knownPart(word) == "." {
				f.here = true
			}
		}
	}
}

// isArgument reports whether a string can be an argument of a program: it is no separator, no part of a path, and compared with
// nothing.
func isArgument(tokens []token, i int) bool {
	before, after := at(tokens, i-1), at(tokens, i+1)
	if isByte(after, ".") || isByte(after, "/") || isByte(before, "/") || isByte(before, "=") && at(tokens, i-2).kind != nameToken {
		return false
	}
	function, _ := calledWith(tokens, i)
	return !noArguments[function]
}
