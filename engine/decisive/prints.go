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
	// npmRuns is the line that npm prints before it runs a script.
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

// withoutPrints returns a copy of the lines in which those that tests may have printed are empty: a test can print a compiler's message.
// A run of tests without a first line of its own counts if it names a failed test. It begins at the end of the run before.
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

// emptyPrints empties the lines of a run of tests, but for those that no test prints: go test's messages about packages that do not
// compile, pytest's failures without the captured output, and, if node runs the tests, its report of a file that it cannot parse.
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
