package decisive

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// MostTests is how many tests are counted at most.
const MostTests = 1_000_000_000

var (
	pytestSummary   = regexp.MustCompile(`^(?:=+ )?(no tests ran|\d+ [a-z]+(?:, \d+ [a-z ]+)*) in \d+\.\d+s(?: \([\d:, day]+\))?(?: =+)?$`)
	pytestRan       = regexp.MustCompile(`^(\d+) (?:passed|failed|xfailed|xpassed)$`)
	unittestSummary = regexp.MustCompile(`^Ran (\d+) tests? in \d+\.\d+s$`)
)

// Tests returns how many tests the summaries of pytest and unittest in an output count as run, and whether one of them counts none.
func Tests(output []byte) (tests int, untested bool) {
	for line := range bytes.Lines(output) {
		if len(line) > maxLine || !bytes.Contains(line, []byte(" in ")) {
			continue
		}
		var counts []string
		text := visible(string(line))
		if m := pytestSummary.FindStringSubmatch(text); m != nil {
			counts = strings.Split(m[1], ", ")
		} else if m := unittestSummary.FindStringSubmatch(text); m != nil {
			counts = []string{m[1] + " passed"}
		} else {
			continue
		}
		ran := 0
		for _, c := range counts {
			if m := pytestRan.FindStringSubmatch(c); m != nil {
				n, err := strconv.Atoi(m[1])
				if err != nil {
					return tests, untested // nothing that ran
				}
				ran = min(MostTests, ran+min(MostTests, n))
			}
		}
		tests, untested = min(MostTests, tests+ran), untested || ran == 0
	}
	return tests, untested
}
