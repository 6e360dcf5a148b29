package decisive

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	// builtFrom is what uv says of a package that it cannot build, with the folder that it is in.
	builtFrom = regexp.MustCompile("Failed to build `[^`]* @ ([^`]+)`")
	// printedBy comes before what the build of a package printed, which is indented below it: uv's, and pip's.
	printedBy = regexp.MustCompile(`^\s+(?:╰─> )?\[(?:stdout|stderr|\d+ lines? of output)\]$`)
	runsSetup = regexp.MustCompile(`File "[^"]*setuptools/build_meta\.py", line`)
	setupFile = regexp.MustCompile(`^(\s*File )"<string>"(, line \d+)`)
	// ofTool is a place in what is installed to build packages.
	ofTool = regexp.MustCompile(`^[/<]\S*:\d+: `)
)

// poetryLock matches what newer and older versions of Poetry print about a lock file that does not fit pyproject.toml.
var poetryLock = regexp.MustCompile(`^(?:Error: )?(?:pyproject\.toml changed significantly since poetry\.lock|poetry\.lock is not consistent with pyproject\.toml)`)

// poetry finds lock files that are stale.
func poetry(lines []string, _ Tree) (found []finding) {
	if i := slices.IndexFunc(lines, poetryLock.MatchString); i >= 0 {
		found = append(found, finding{report, i, lines[i]})
	}
	return found
}

// pythonBuilds finds why a Python package could not be built: what compilers and setup.py print below the installer's own complaint.
func pythonBuilds(lines []string, tree Tree) (found []finding) {
	for i := 0; i < len(lines) && len(found) < enough; i++ {
		if m := match(builtFrom, lines[i]); m != nil {
			tree.Dir = strings.TrimPrefix(tree.withoutRoot(m[1]), "./")
		}
		if !printedBy.MatchString(lines[i]) || i+1 == len(lines) {
			continue
		}
		first, indent := i+1, strings.Repeat(" ", utf8.RuneCountInString(lines[i][:strings.IndexByte(lines[i], '[')]))
		end := first
		for end < len(lines) && (lines[end] == "" || strings.HasPrefix(lines[end], indent)) && !printedBy.MatchString(lines[end]) {
			end++
		}
		inner := make([]string, end-first)
		for n := range inner {
			inner[n] = strings.TrimPrefix(lines[first+n], indent)
			if n > 3 && (runsSetup.MatchString(inner[n-2]) || runsSetup.MatchString(inner[n-3])) { // it gives setup.py no name
				inner[n] = setupFile.ReplaceAllString(inner[n], `$1"setup.py"$2`)
			}
		}
		for _, recognise := range []func([]string, Tree) []finding{compilers, rustc, tracebacks} {
			for _, f := range recognise(inner, tree) {
				f.at += first
				if f.class == report { // It says more than the installer.
					f.class, f.text = crash, joined(tree.Dir, f.text)
				} else if place := ofTool.FindString(f.text); place != "" {
					f.text = joined(tree.Dir, f.text[len(place):])
				}
				found = append(found, f)
			}
		}
		i = end - 1
	}
	return found
}
