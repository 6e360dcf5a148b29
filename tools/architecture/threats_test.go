package architecture_test

import (
	"fmt"
	"slices"
	"strings"
)

// threatDocument says who may harm what, and which test shows what holds them.
const threatDocument = "docs/guides/security.md"

// threatTests: each row of the threat model names a test, and each test that it names is there.
func threatTests(p *project) (complaints []string) {
	text, there := p.documents[threatDocument]
	if !there {
		return []string{threatDocument + " is missing: it says who may harm what, and what holds them"}
	}
	tests := testNames(p)
	tested := false // whether the last column of the present table is that of tests
	for i, line := range strings.Split(text, "\n") {
		for _, q := range quoted.FindAllStringSubmatch(line, -1) {
			if testName.MatchString(q[1]) && !slices.Contains(tests, q[1]) {
				complaints = append(complaints, fmt.Sprintf("%s:%d: %s is no test", threatDocument, i+1, q[1]))
			}
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		last := cells[len(cells)-1]
		switch {
		case !strings.HasPrefix(line, "|"):
			tested = false
		case last == "test":
			tested = true
		case tested && !strings.HasPrefix(line, "|--") && !strings.HasPrefix(last, "the same") &&
			!slices.ContainsFunc(quoted.FindAllStringSubmatch(last, -1), func(q []string) bool { return testName.MatchString(q[1]) }):
			complaints = append(complaints, fmt.Sprintf("%s:%d: no test shows what holds %s", threatDocument, i+1, cells[0]))
		}
	}
	return complaints
}
