package decisive

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// noise is a line that says nothing of a failure: of TAP, the head of pytest, and counts of what package managers have done.
	noise = regexp.MustCompile(`^\s*(?:---|\.\.\.|TAP version \d+|1\.\.\d+|# Subtest: .*|duration_ms: [\d.]+|type: '(?:test|suite)'|` +
		`[#ℹ] (?:tests|suites|pass|cancelled|skipped|todo|duration_ms) [\d.]+|` +
		`=+ test session starts =+|platform \w+ -- Python .*|(?:cachedir|rootdir|configfile|testpaths|plugins): .*|(?:collecting \.\.\. )?collected \d+ items?|` +
		`(?:(?:added|removed|changed|audited) \d+ packages?\b.*|up to date\b.*) in [\d.]+m?s|\d+ packages? (?:is|are) looking for funding|found 0 vulnerabilities|` +
		`(?:Resolved|Prepared|Downloaded|Installed|Uninstalled|Audited|Checked) \d+ packages? in [\d.]+m?s)$`)
	// goRuns and goRan are of Go's tests, lastRuns is the last line of what pytest and unittest print while a test runs, or of pytest
	// while those of a file do.
	goRuns   = regexp.MustCompile(`^=== (?:RUN|CONT) +(\S+)$`)
	goRan    = regexp.MustCompile(`^(?:=== PAUSE|\s*--- \w+:) +(\S+)`)
	lastRuns = regexp.MustCompile(`^(?:(\S+\.py(?:::\S.*)?)(?: [.sxX]+)?|(\w+ \([\w.]+\)) \.\.\.)$`)
)

// running finds the test that an output ends in.
func running(lines []string) []finding {
	var runs []finding
	last, ofPytest := -1, false
	for i, line := range lines {
		ofPytest = ofPytest || pytestSectionOf(line) == "test session starts"
		if strings.TrimSpace(line) != "" {
			last = i
		}
		if m := match(goRuns, line); m != nil {
			runs = append(runs[max(0, len(runs)-enough):], finding{end, i, m[1]})
		} else if m := match(goRan, line); m != nil {
			runs = slices.DeleteFunc(runs, func(f finding) bool { return f.text == m[1] })
		}
	}
	if last >= 0 {
		if m := match(lastRuns, lines[last]); m != nil && (ofPytest || m[1] == "") { // a linter may list files
			runs = append(runs, finding{end, last, m[1] + m[2]})
		}
	}
	if len(runs) == 0 {
		return nil
	}
	f := runs[len(runs)-1]
	f.text += " was still running"
	return []finding{f}
}
