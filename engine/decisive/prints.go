package decisive

import (
	"regexp"
	"slices"
	"strings"
)

// The lines that bound runs of tests are compared by their beginnings, since every line is: expressions would take as long as all
// others together.
var (
	// runBegins is the first line of a run of tests, of frameworks that print one: go test -v and vitest.
	runBegins = []string{"=== RUN ", " RUN  v"}
	// runFails is a line that names a failed test, or the heading of such lines: of go test, vitest and node.
	runFails = []string{"--- FAIL: ", " FAIL  ", nodeFailing}
	// runEnds is the last line of a run of tests, or a line before the next run: of go test, jest, vitest, node and Bazel.
	runEnds = []string{"ok  \t", "FAIL\t", "?   \t", "Test Suites: ", " Test Files  ", nodeFailing, bazelBar + " Test output for ", bazelBar + bazelBar + bazelBar + bazelBar}
	// npmRuns is what npm prints above what a script does.
	npmRuns = regexp.MustCompile(`^> \S+@\S* \S+$`)
)

const (
	nodeFailing = "✖ failing tests:"
	bazelBar    = "===================="
)

// beginsWith reports whether a line begins with one of several texts.
func beginsWith(line string, with []string) bool {
	return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(line, w) })
}

// withoutPrints returns lines with those empty that tests may have printed, since a test can print what a compiler says. A run whose
// framework does not print where it begins counts if it names a failed test, and then from the end of the run before it.
func withoutPrints(lines []string) []string {
	outside := slices.Clone(lines)
	start, begin, fails := 0, -1, false
	end := func(at int) {
		if begin < 0 && fails {
			begin = start
		}
		if begin >= 0 {
			emptyPrints(outside[begin:at], at < len(lines) && strings.HasPrefix(lines[at], "✖ "))
		}
		start, begin, fails = at+1, -1, false
	}
	for i, line := range lines {
		if begin < 0 && (beginsWith(line, runBegins) || pytestSectionOf(line) == "test session starts") {
			begin = i
		}
		fails = fails || namesFailed(lines, i)
		if endsRun(line) {
			end(i)
		}
	}
	end(len(lines))
	return outside
}

func namesFailed(lines []string, at int) bool {
	title, isJest := strings.CutPrefix(lines[at], "  ● ")
	section := pytestSectionOf(lines[at])
	return beginsWith(lines[at], runFails) || isJest && title != jestConsole || section == "FAILURES" || section == "ERRORS" ||
		strings.HasSuffix(lines[at], " failing") && mochaCount.MatchString(lines[at]) || headsUnittest(lines, at)
}

func endsRun(line string) bool {
	return beginsWith(line, runEnds) || strings.HasSuffix(line, " failing") && mochaCount.MatchString(line) ||
		strings.HasPrefix(line, "> ") && npmRuns.MatchString(line) || strings.Contains(line, "Entering directory") && enters.MatchString(line) ||
		strings.Contains(line, " in ") && (pytestSummary.MatchString(line) || unittestSummary.MatchString(line))
}

// emptyPrints empties the lines of a run of tests, except for what tests do not print: what go test says of packages that do not
// compile, the failures of pytest without what it captured, and if node runs the tests, what it says of a file that it cannot read.
func emptyPrints(run []string, node bool) {
	compiles, section, captured, crash := false, "", false, 0
	verbose := len(run) > 0 && strings.HasPrefix(run[0], "=== RUN ")
	for i, line := range run {
		compiles = (compiles || strings.HasPrefix(line, "# ") && goHead.MatchString(line)) && !verbose && !strings.HasPrefix(line, "--- ")
		switch next := pytestSectionOf(line); {
		case next != "":
			section, captured = next, false
		case strings.HasPrefix(line, "___"):
			captured = captured && !pytestBlock.MatchString(line)
		default:
			captured = captured || pytestCaptured(line)
		}
		if node && i >= crash && nodeSource.MatchString(line) {
			if stack := blockEnd(run, i, func(l string) bool { return strings.HasPrefix(l, "Node.js v") }); stack < len(run) && strings.HasPrefix(run[stack], "Node.js v") {
				crash = stack
			}
		}
		if !compiles && i >= crash && (captured || section != "FAILURES" && section != "ERRORS") {
			run[i] = ""
		}
	}
}
