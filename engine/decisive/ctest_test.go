package decisive_test

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/decisive"
)

// TestATestOfCThatFailsIsNamedByItsAssertion, whatever runs it: ctest ends with a list of the tests that failed, and make with the command.
func TestATestOfCThatFailsIsNamedByItsAssertion(t *testing.T) {
	files := []string{"tests/sum.c", "tests/report.c", "src/sum.c"}
	tree := decisive.Tree{Root: "/tree", Has: func(name string) bool { return slices.Contains(files, name) }}
	const (
		starts    = "[100%] Built target report\nInternal ctest changing into directory: /tree/build\nTest project /tree/build\n    Start 1: sum\n"
		passes    = "1/2 Test #1: sum ..............................   Passed    0.00 sec\n"
		goesOn    = "    Start 2: report\n"
		aborts    = "1/2 Test #1: sum ..............................Subprocess aborted***Exception:   0.05 sec\n"
		fails     = "2/2 Test #2: report ...........................***Failed    0.00 sec\n"
		ends      = "\n\n50% tests passed, 1 tests failed out of 2\n\nTotal Test time (real) =   0.02 sec\n\nThe following tests FAILED:\n\t  1 - sum (Failed)\nErrors while running CTest\n"
		assertion = "sum: /tree/tests/sum.c:7: main: Assertion `sum(v, 3) == 6' failed.\n"
	)
	for _, c := range []struct{ name, output, want string }{
		{"assert", starts + aborts + assertion + "\n" + goesOn + "2/2 Test #2: report ...........................   Passed    0.00 sec\n" + ends, "tests/sum.c:7: main: Assertion `sum(v, 3) == 6' failed."},
		{"a line of its own", starts + passes + goesOn + fails + "reading\n/tree/tests/report.c:10: sum is \"7\", want \"6\"\n" + ends, "tests/report.c:10: report: sum is \"7\", want \"6\""},
		{"after what it logs", starts + passes + goesOn + fails + "src/sum.c:3: starting suite\n/tree/tests/report.c:9: check failed: 1 != 2\ntests/report.c:20: done\n" + ends, "tests/report.c:9: report: check failed: 1 != 2"},
		{"both", starts + aborts + assertion + "\n" + goesOn + fails + "/tree/tests/report.c:10: sum is 7\n" + ends, "tests/sum.c:7: main: Assertion `sum(v, 3) == 6' failed.|tests/report.c:10: report: sum is 7"},
		{"without a place", starts + passes + goesOn + fails + "reading\nsum is 7, want 6\n" + ends, "report: sum is 7, want 6"},
		{"without a word", starts + passes + goesOn + "2/2 Test #2: report ...........................***Exception: SegFault  0.00 sec\n" + ends, "report: Exception: SegFault"},
		{"a file of others", starts + passes + goesOn + fails + "/usr/include/x.h:3: no\nsum is 7, want 6\n" + ends, "report: sum is 7, want 6"},
		{"what looks like a compiler's", starts + passes + goesOn + fails + "src/sum.c:3:1: error: expected ‘;’\n/tree/tests/report.c:10: not printed\n" + ends, "src/sum.c:3: report: error: expected ‘;’"},
		{"GoogleTest", starts + passes + goesOn + fails + "[ RUN      ] Sum.Two\n/tree/tests/report.c:12: Failure\nExpected equality of these values:\n  sum(v, 2)\n    Which is: 2\n  3\n\n[  FAILED  ] Sum.Two (0 ms)\n" + ends, "tests/report.c:12: Expected equality of these values: sum(v, 2) Which is: 2 3"},
		{"GoogleTest without ctest", "[ RUN      ] Sum.Two\ntests/report.c:12: Failure\nValue of: ok(v)\n  Actual: false\nExpected: true\n\n[  FAILED  ] Sum.Two (0 ms)\n[==========] 1 test from 1 test suite ran. (0 ms total)\n\n 1 FAILED TEST\nmake: *** [Makefile:3: test] Error 1\n", "tests/report.c:12: Value of: ok(v) Actual: false Expected: true"},
		{"make", "./sum\n" + assertion + "make: *** [Makefile:3: test] Aborted (core dumped)\n", "tests/sum.c:7: main: Assertion `sum(v, 3) == 6' failed."},
		{"what does not compile", "/tree/src/sum.c:3:1: error: expected ‘;’\n" + starts + aborts + assertion + ends, "src/sum.c:3: expected ‘;’"},
	} {
		if got := strings.Join(decisive.Lines([]byte(c.output), tree), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
