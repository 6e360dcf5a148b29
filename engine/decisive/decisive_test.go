package decisive_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"landfall.build/engine/decisive"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/decisive.txt")

// shop has the files of the programs of testdata/record, with what they hold if the script has it line by line. Each output is of one
// of the folders.
func shop(t testing.TB) (has map[string]string) {
	script, err := os.ReadFile("testdata/record")
	if err != nil {
		t.Fatal(err)
	}
	has = map[string]string{}
	rest := string(script)
	for rest != "" {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if file, is := strings.CutPrefix(line, "file "); is {
			name, from, _ := strings.Cut(file, " ")
			if has[name] = ""; from == "<<'X'" {
				has[name], rest, _ = strings.Cut(rest, "X\n")
			}
		}
	}
	return has
}

// folders returns in which folder each output was made, and by which words.
func folders(t testing.TB) (of map[string]string, commands map[string][]string) {
	script, err := os.ReadFile("testdata/record")
	if err != nil {
		t.Fatal(err)
	}
	of, commands = map[string]string{}, map[string][]string{}
	for line := range strings.Lines(string(script)) {
		if f := strings.Fields(line); len(f) > 3 && (f[0] == "run" || f[0] == "report") {
			of[f[1]], commands[f[1]] = f[2], f[3:]
		}
	}
	return of, commands
}

func TestTheDecisiveLinesOfRealToolsAreFound(t *testing.T) {
	compareGolden(t, "testdata/outputs/*.txt", "testdata/decisive.txt", 50, func(output []byte, tree decisive.Tree) []string {
		return decisive.Lines(output, tree)
	})
}

// TestTheDecisiveLinesOfReportsAreFound: the steps that left them printed nothing that says why they failed.
func TestTheDecisiveLinesOfReportsAreFound(t *testing.T) {
	compareGolden(t, "testdata/reports/*", "testdata/reports.txt", 10, func(report []byte, tree decisive.Tree) []string {
		return decisive.Lines([]byte("3 tests failed\n"), tree, report)
	})
}

func compareGolden(t *testing.T, glob, golden string, least int, linesOf func([]byte, decisive.Tree) []string) {
	files, err := filepath.Glob(glob)
	if err != nil || len(files) < least {
		t.Fatalf("%d outputs, %v", len(files), err)
	}
	has := shop(t)
	in, commands := folders(t)
	var got strings.Builder
	for _, file := range files {
		output, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		fmt.Fprintf(&got, "== %s\n", name)
		tree := decisive.Tree{Root: "/tree", Dir: in[name], Command: commands[name], Read: func(name string) []byte { return []byte(has[name]) }}
		tree.Has = func(name string) bool { _, is := has[name]; return is }
		if name == "ld-cgo" { // others have files of one name in many folders
			tree.Ending = func(file string) []string { return []string{in[name] + "/sum/" + file} }
		} else if !strings.HasPrefix(name, "ld-") {
			tree.Ending = treeOf(has, "").Ending
		}
		for _, line := range linesOf(output, tree) {
			fmt.Fprintln(&got, line)
		}
	}
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s differs; with -rewrite it is written again:\n%s", golden, got.String())
	}
}

func TestAReportIsReadWhereTheOutputNamesNoTest(t *testing.T) {
	const report = `<testsuite><testcase name="b"><failure message="from the report"/></testcase></testsuite>`
	for _, c := range []struct{ output, want string }{
		{"3 tests failed\n", "b: from the report"},
		{"", "b: from the report"},
		{"--- FAIL: TestA (0.00s)\n    a_test.go:3: want 1\n", "a_test.go:3: TestA: want 1"},
		{"a.go:1:2: undefined: x\n", "a.go:1: undefined: x"},
	} {
		if got := decisive.Lines([]byte(c.output), decisive.Tree{}, []byte("<testsuite/>"), []byte(report)); len(got) != 1 || got[0] != c.want {
			t.Errorf("%q: %q, want %q", c.output, got, c.want)
		}
	}
}

func TestAReportDoesNotSteerATerminal(t *testing.T) {
	report := "<testsuite><testcase name=\"a\x7fb&#x9b;\"><failure>x\u0085y</failure></testcase></testsuite>"
	if got := decisive.Lines(nil, decisive.Tree{}, []byte(report)); len(got) != 1 || got[0] != "ab: x y" {
		t.Errorf("%q", got)
	}
}

// TestAHostileReportIsBounded: entities that multiply, a name without end, elements without end.
func TestAHostileReportIsBounded(t *testing.T) {
	laughs := `<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">`
	for c := 'b'; c <= 'z'; c++ {
		laughs += fmt.Sprintf("<!ENTITY %c %q>", c, strings.Repeat(fmt.Sprintf("&%c;", c-1), 10))
	}
	for what, report := range map[string]string{
		"entities":    laughs + `]><testsuite><testcase name="t"><failure message="&z;">&z;</failure></testcase></testsuite>`,
		"depth":       "<testsuite>" + strings.Repeat("<a>", 2<<20),
		"failures":    "<testsuite>" + strings.Repeat(`<testcase name="t"><failure>x</failure></testcase>`, 200_000),
		"unclosed":    "<testsuite>" + strings.Repeat(`<testcase name="t"><failure>`, 200_000),
		"a long text": `<testsuite><testcase name="t"><failure message="` + strings.Repeat("ü", 4<<20) + `">` + strings.Repeat("x:1 ", 2<<20) + `</failure>`,
		"no report":   strings.Repeat("x", 64<<20),
		"outputs":     "<testsuite>" + strings.Repeat(`<testcase name="t"><error message="exited with error code 1"/></testcase><system-out>`+strings.Repeat("  ● x\n", 9000)+`</system-out>`, 80),
	} {
		lines := decisive.Lines(nil, decisive.Tree{}, []byte(report), []byte(report))
		if len(lines) > decisive.Most {
			t.Errorf("%s: %d lines", what, len(lines))
		}
		for _, line := range lines {
			if len(line) > decisive.MaxBytes || !utf8.ValidString(line) {
				t.Errorf("%s: %q", what, line)
			}
		}
	}
}

// What a Bazel without a network cannot make, and cases of two packages.
func TestTheDecisiveLinesOfWhatIsWrittenByHand(t *testing.T) {
	tree := decisive.Tree{Root: "/tree", Has: func(name string) bool {
		return name == "a/a_test.go" || name == "b/a_test.go" || name == "Main.java" || name == "b/src/x.ts" || name == "a/x.c" || name == "src/a.py"
	}}
	for _, c := range []struct{ name, output, want string }{
		{"two packages with a file of one name", "--- FAIL: TestA (0.00s)\n    a_test.go:3: want 1\nFAIL\nFAIL\texample.com/m/b\t0.1s\n--- FAIL: TestA (0.00s)\n    a_test.go:4: want 2\nFAIL\nFAIL\texample.com/m/a\t0.1s\n",
			"b/a_test.go:3: TestA: want 1|a/a_test.go:4: TestA: want 2"},
		{"a test of Bazel's", "FAIL: //a:test (see /x/test.log)\nINFO: From Testing //a:test:\n==================== Test output for //a:test:\nwant 3, got 4\n================================================================================\n",
			"//a:test failed|//a:test: want 3, got 4"},
		{"a compiler that names no column", "Main.java:3: error: ';' expected\n  int a\n       ^\n1 error\n", "Main.java:3: ';' expected"},
		{"a compiler in a folder below", "Entering directory 'a'\nEntering directory 'b'\nsrc/x.ts(4,3): error TS2322: not assignable\n", "b/src/x.ts:4: TS2322: not assignable"},
		{"quotes in what TAP quotes", "TAP version 13\nnot ok 1 - a bill\n  ---\n  failureType: 'testCodeFailure'\n  error: \"'tea' == 'tea: 250'\"\n  ...\n1..1\n", "a bill: 'tea' == 'tea: 250'"},
		{"make below make", "make[1]: Entering directory '/tree/a'\nx.c:3:1: error: expected ';'\nmake[1]: Leaving directory '/tree/a'\n", "a/x.c:3: expected ';'"},
		{"a program that make does not find", "go build -o app ./cmd/app\nmake: go: No such file or directory\nmake: *** [Makefile:2: build] Error 127\n", "make: go: No such file or directory|make: *** [Makefile:2: build] Error 127"},
		{"a program that a make below does not find", "make[1]: Entering directory '/tree/a'\nlint .\nmake[1]: lint: Permission denied\nmake[1]: *** [Makefile:2: lint] Error 127\nmake[1]: Leaving directory '/tree/a'\nmake: *** [Makefile:1: all] Error 2\n",
			"make[1]: lint: Permission denied|make[1]: *** [Makefile:2: lint] Error 127|make: *** [Makefile:1: all] Error 2"},
		{"a folder that make goes to", "no such rate\nmake[1]: Entering directory '/tree/a'\nmake[1]: Nothing to be done for 'x'.\nmake: *** [Makefile:1: all] Error 2\n", "no such rate|make: *** [Makefile:1: all] Error 2"},
		{"a terminal's progress", "10%\r20%\rall failed\r\n", "all failed"},
		{"no output", "", ""},
		{"nothing but noise", "npm error code 1\n0 errors\n\n", "npm error code 1"},
		{"npm's lock file that does not fit", "npm error code EUSAGE\nnpm error\nnpm error `npm ci` can only install packages when in sync.\nnpm error\nnpm error Missing: @shop/tax@1.0.0 from lock file\nnpm error Missing: @shop/tax@1.0.0 from lock file\nnpm error\nnpm error Clean install a project\nnpm error\nnpm error Usage:\nnpm error npm ci\nnpm error\nnpm error Run \"npm help ci\" for more info\nnpm error A complete log of this run can be found in: /x/y.log\n",
			"Missing: @shop/tax@1.0.0 from lock file|`npm ci` can only install packages when in sync."},
		{"npm's dependencies that do not fit", "npm error code ERESOLVE\nnpm error ERESOLVE could not resolve\nnpm error\nnpm error While resolving: a@1.0.0\nnpm error Found: b@2.0.0\n", "ERESOLVE could not resolve|While resolving: a@1.0.0|Found: b@2.0.0"},
		{"npm after a script that says why", "error: the bundle is too large\nnpm error Lifecycle script `build` failed with error:\nnpm error code 1\n", "error: the bundle is too large"},
		{"JUnit's report with a place", `<testsuite><testcase classname="A" name="b" file="src/a.py" line="7"><failure>x &lt; y</failure></testcase></testsuite> done`, "src/a.py:7: A.b: x < y"},
	} {
		if got := strings.Join(decisive.Lines([]byte(c.output), tree), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWhatTestsPrintDoesNotHideAFailure: a test can print what a compiler says, of a file of the tree too. What a compiler itself says
// before or after the tests, or in place of them, still comes first.
func TestWhatTestsPrintDoesNotHideAFailure(t *testing.T) {
	tree := decisive.Tree{Root: "/tree", Has: func(name string) bool {
		return slices.Contains([]string{"a/a.go", "a/a_test.go", "src/x.ts", "x.test.js", "a.py", "test_a.py"}, name)
	}}
	const (
		goFails  = "--- FAIL: TestA (0.00s)\n    a_test.go:3: want 1\nFAIL\nFAIL\texample.com/m/a\t0.1s\n"
		goWants  = "a/a_test.go:3: TestA: want 1"
		jest     = "FAIL x.test.js\n  ● adds\n\n    want 1\n\n      at x.test.js:3:5\n\nTest Suites: 1 failed, 1 total\n"
		pyStarts = "============================= test session starts ==============================\n"
		pyFails  = "=================================== FAILURES ===================================\n____________________________________ test_a ____________________________________\n"
	)
	for _, c := range []struct{ name, output, want string }{
		{"of a file that is not in the tree", "input.go:3:7: unused variable x\n" + goFails, goWants},
		{"of a file of the tree", "a/a.go:3:7: unused variable x\n" + goFails, goWants},
		{"in an earlier package that passes", "=== RUN   TestB\na/a.go:3:7: unused\n--- PASS: TestB (0.00s)\na/a.go:4:7: unused\nPASS\nok  \texample.com/m/b\t0.1s\n" + goFails, goWants},
		{"a linter before tests that pass", "a/a.go:3:7: unused variable x\nok  \texample.com/m/a\t0.1s\n", "a/a.go:3: unused variable x"},
		{"a linter before the verbose tests", "a/a.go:3:7: unused variable x\n=== RUN   TestA\na/a.go:4:7: unused\n" + goFails, "a/a.go:3: unused variable x"},
		{"a linter after the tests", goFails + "a/a.go:3:7: unused variable x\n", "a/a.go:3: unused variable x"},
		{"a package that does not compile", "# example.com/m/a\na/a.go:3:7: undefined: x\n" + goFails, "a/a.go:3: undefined: x"},
		{"generated code beside the tree's", "gen/x.go:3:7: undefined: x\na/a.go:3:7: undefined: y\n", "gen/x.go:3: undefined: x|a/a.go:3: undefined: y"},
		{"a compiler beside a test of Bazel's", "==================== Test output for //a:test:\na/a.go:4:7: unused\n" + goFails + strings.Repeat("=", 80) + "\na/a.go:3:7: undefined: x\n", "a/a.go:3: undefined: x"},
		{"jest's test that writes to the terminal", "src/x.ts(4,3): error TS2322: not assignable\n" + jest, "x.test.js:3: adds: want 1"},
		{"a compiler in another workspace of npm's", "> a@1.0.0 build\n> tsc\n\nsrc/x.ts(4,3): error TS2322: not assignable\n> b@1.0.0 test\n> jest\n\n" + jest, "src/x.ts:4: TS2322: not assignable"},
		{"a compiler after jest passed, with what tests printed", "src/x.ts(4,3): error TS2322: not assignable\nPASS x.test.js\n  ● Console\n\n    console.error\n      no\n\nTest Suites: 1 passed, 1 total\n", "src/x.ts:4: TS2322: not assignable"},
		{"pytest's captured log", pyStarts + pyFails + "E   assert 1 == 2\n\ntest_a.py:3: AssertionError\n------------------------------ Captured log call -------------------------------\na.py:1:1: F401 unused import\n", "test_a.py:3: test_a: assert 1 == 2"},
		{"a fixture that is not there", pyStarts + "==================================== ERRORS ====================================\n___________________________ ERROR at setup of test_a ___________________________\nfile /tree/test_a.py, line 9\n  def test_a(cart):\nfile /tree/a.py, line 4\n  @pytest.fixture\n  def cart(missing):\nE       fixture 'missing' not found\n>       available fixtures: cache, cart\n>       use 'pytest --fixtures [testpath]' for help on them.\n\n/tree/a.py:4\n=========================== short test summary info ============================\nERROR test_a.py::test_a\n", "a.py:4: ERROR at setup of test_a: fixture 'missing' not found"},
		{"a plugin of pytest's that checks files", pyStarts + strings.Replace(pyFails, "test_a", "FLAKE8", 1) + "a.py:1:1: F401 unused import\n", "a.py:1: F401 unused import"},
		{"what ended pytest", pyStarts + "Traceback (most recent call last):\n  File \"/tree/a.py\", line 3, in stop\n    stop()\nRuntimeError: no database\n", "a.py:3: RuntimeError: no database"},
		{"the exception that followed from another", pyFails + "a.py:6: in load\n    x\nE   KeyError: 'a'\n\nThe above exception was the direct cause of the following exception:\ntest_a.py:3: in test_a\n    load()\na.py:8: in load\n    raise\nE   ValueError: no a\n", "a.py:8: test_a: ValueError: no a"},
		{"a file that does not compile behind another exception", "==================================== ERRORS ====================================\n_________________________ ERROR collecting test_a.py __________________________\nE   KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\nE     File \"/tree/a.py\", line 2\nE       def f(\nE            ^\nE   SyntaxError: '(' was never closed\n", "a.py:2: SyntaxError: '(' was never closed"},
		{"a module of unittest's that does not load", "======================================================================\nFAIL: test_b (test_b.B.test_b)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/tree/test_a.py\", line 3, in test_b\n    self.fail()\nAssertionError: None\n\n======================================================================\nERROR: test_a (unittest.loader._FailedTest.test_a)\n----------------------------------------------------------------------\nImportError: Failed to import test module: test_a\nTraceback (most recent call last):\n  File \"/tree/a.py\", line 2\n    def f(\n         ^\nSyntaxError: '(' was never closed\n\n\n----------------------------------------------------------------------\nRan 2 tests in 0.000s\n", "a.py:2: test_a: SyntaxError: '(' was never closed"},
	} {
		if got := strings.Join(decisive.Lines([]byte(c.output), tree), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestASummaryThatCountsNoFailureIsNotDecisive: what a tool says that has found nothing wrong, before another command fails.
func TestASummaryThatCountsNoFailureIsNotDecisive(t *testing.T) {
	for _, summary := range []string{
		"# fail 0", "ℹ fail 0", "0 failing", "Tests:       0 failed, 5 passed, 5 total", "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
		"test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured", "# FAIL:  0", "# ERROR: 0", "FAIL: 0", "5 examples, 0 failures", "5 tests, 0 failures",
		"100% tests passed, 0 tests failed out of 5", "Passed!  - Failed:     0, Passed:     5, Skipped:     0", "Total tests: 5. Passed: 5. Failed: 0. Skipped: 0.",
		"errors=0", "0 errors", "No errors found.", "✖ 0 problems (0 errors, 0 warnings)", "Found 0 errors. Watching for file changes.", "5 passed (0 failed)",
	} {
		for before, want := range map[string]string{"error: no note for blue\n": "error: no note for blue", "say no\n": "say no"} {
			for _, output := range []string{before + summary + "\n", summary + "\n" + before} {
				if got := strings.Join(decisive.Lines([]byte(output), decisive.Tree{}), "|"); got != want {
					t.Errorf("%q: %q, want %q", output, got, want)
				}
			}
		}
	}
	for _, line := range []string{
		"Tests run: 5, Failures: 1, Errors: 0, Skipped: 0", "3 failed, 0 errors", "# fail 10", "# fail 05", "error: 0 is not a size", "10 errors", "failed 0.5 s after it began",
		"error 0x80004005", "FAIL: 0 ERROR: 1", "failures=0.1", "error: 0-length file", "1.0 failed",
	} {
		if got := strings.Join(decisive.Lines([]byte(line+"\nbye\n"), decisive.Tree{}), "|"); got != line {
			t.Errorf("%q: %q", line, got)
		}
	}
}

// TestHowACommandEndedComesBeforeAnyLine: the last line of an output alone says little.
func TestHowACommandEndedComesBeforeAnyLine(t *testing.T) {
	for _, c := range []struct{ name, output, ended, want string }{
		{"a last line", "tick 1\n", "ended with exit code 3", "ended with exit code 3: tick 1"},
		{"several", "tick 1\ntick 2\n", "ended with exit code 3", "ended with exit code 3: tick 1|tick 2"},
		{"a long one", strings.Repeat("x", 400), "ended with exit code 3", "ended with exit code 3: " + strings.Repeat("x", decisive.MaxBytes-24-3) + "…"},
		{"a line with a place", "check.sh:4: flag blue has no note\n", "ended with exit code 3", "check.sh:4: flag blue has no note"},
		{"a line that speaks of an error", "tick 1\nerror: no note\ntick 2\n", "ended with exit code 3", "error: no note"},
		{"what does not compile", "x.c:3:1: error: expected ';'\n", "ended with exit code 3", "x.c:3: expected ';'"},
		{"no output", "", "ended with exit code 3", ""},
		{"nobody knows how it ended", "tick 1\n", "", "tick 1"},
		{"the builder's own lines about services", "\n[output of service web]\n\n[output of service db-2]\n[70 bytes left out]\n", "did not start", ""},
		{"what a service printed", "\n[output of service web]\nlistening\n", "did not start", "did not start: web | listening"},
		{"what several services printed", "\n[output of service web]\nlistening\n\n[output of service db]\nGET / 200\n", "ended with exit code 1", "ended with exit code 1: web | listening|db | GET / 200"},
		{"a command beside services", "total 3\n\n[output of service web]\nGET / 200\nGET /x 200\n", "ended with exit code 1", "ended with exit code 1: total 3"},
		{"a command with a warning beside services", "warning: old\n\n[output of service web]\nGET / 200\n", "ended with exit code 1", "ended with exit code 1: warning: old"},
		{"a service that speaks of an error", "total 3\n\n[output of service web]\nconnection failed\nbye\n", "ended with exit code 1", "connection failed"},
		{"what npm runs", "\n> web@1.0.0 test\n> node test.js\n\ntotal 3\nnpm error code 1\n", "ended with exit code 1", "ended with exit code 1: total 3|npm error code 1"},
		{"what says nothing of a failure", "added 7 packages in 4s\n\nTAP version 13\n# Subtest: adds\nok 1 - adds\n  ---\n  duration_ms: 4.865137\n  ...\n", "ended with exit code 1", "ended with exit code 1: ok 1 - adds"},
		{"nothing else", "Resolved 11 packages in 604ms\nadded 7 packages, and audited 8 packages in 4s\n\nfound 0 vulnerabilities\n", "ended with exit code 1", ""},
		{"a test of Go's that ended the run", "=== RUN   TestA\n=== PAUSE TestA\n=== RUN   TestB\n=== PAUSE TestB\n=== CONT  TestA\n=== CONT  TestB\n--- PASS: TestB (0.00s)\nbye\n", "ended with exit code 3", "ended with exit code 3: TestA was still running"},
		{"a list of files", "src/a.py\n", "ended with exit code 1", "ended with exit code 1: src/a.py"},
		{"what npm runs, of a package without a version", "\n> test\n> node test.js\n\ntotal 3\n", "ended with exit code 1", "ended with exit code 1: total 3"},
		{"a difference of lines that are new", "1a2,3\n> price\n> name\n", "ended with exit code 1", "ended with exit code 1: 1a2,3|> price|> name"},
		{"an option that a program does not know", "\n> test\n> node --strip src/a.ts\n\nnode: bad option: --strip\nnpm error code 9\n", "ended with exit code 9", "node: bad option: --strip"},
	} {
		if got := strings.Join(decisive.Lines([]byte(c.output), decisive.Tree{Ended: c.ended}), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPathsAreShownFromTheRootOfTheTree: what a command prints is relative to its own folder, or to that of a workspace's member.
func TestPathsAreShownFromTheRootOfTheTree(t *testing.T) {
	files := []string{"web/packages/core/main.c", "web/packages/core/main.go", "web/packages/core/src/index.ts", "web/packages/a/src/main.ts", "web/packages/b/src/main.ts", "web/check.sh", "check.sh", "web/uv.lock", "web/test", "web/Makefile", "src/index.ts.bak"}
	tree := decisive.Tree{Root: "/tree", Dir: "web", Has: func(name string) bool { return slices.Contains(files, name) },
		Ending: func(name string) (of []string) {
			for _, f := range files {
				if strings.HasSuffix(f, "/"+name) {
					of = append(of, f)
				}
			}
			return of
		}}
	for _, c := range []struct{ name, output, want string }{
		{"a member's file that one file of the tree fits", "> @shop/core@1.0.0 build\n> tsc\n\nsrc/index.ts(1,8): error TS2307: Cannot find module 'x'.\n", "web/packages/core/src/index.ts:1: TS2307: Cannot find module 'x'."},
		{"a member's file that two fit", "> tsc\n\nsrc/main.ts(1,8): error TS2307: Cannot find module 'x'.\n", "src/main.ts:1: TS2307: Cannot find module 'x'."},
		{"a type that does not fit, found by ts-jest", "Entering directory 'packages/a'\n\n> a@1.0.0 test\n> jest\n\nFAIL test/main.test.ts\n  ● Test suite failed to run\n\n    src/main.ts:2:3 - error TS2322: Type 'string' is not assignable to type 'number'.\n\n    2   return \"\";\n        ~~~~~~\n\nTest Suites: 1 failed, 1 total\n", "web/packages/a/src/main.ts:2: TS2322: Type 'string' is not assignable to type 'number'."},
		{"C of a Go package", "# example.com/m/packages/core\nmain.c: In function ‘f’:\nmain.c:4:28: error: ‘c’ undeclared\n    4 | int f(int b) { return c; }\n", "web/packages/core/main.c:4: ‘c’ undeclared"},
		{"C in a Go file", "# example.com/m/packages/core\npackages/core/main.go: In function 'add':\npackages/core/main.go:5:43: error: 'c' undeclared\n    5 | int add() { return c; }\npackages/core/main.go:5:43: note: each undeclared identifier is reported only once\n", "web/packages/core/main.go:5: 'c' undeclared"},
		{"a warning of C in a Go file, and a test", "# example.com/m/packages/core\npackages/core/main.go: In function 'add':\npackages/core/main.go:5:43: warning: unused variable 'c' [-Wunused-variable]\n--- FAIL: TestAdd (0.00s)\n    main_test.go:8: got 3\nFAIL\nFAIL\texample.com/m/packages/core\t0.002s\nFAIL\n", "main_test.go:8: TestAdd: got 3"},
		{"a name that the linker of cgo does not find", "# example.com/m/packages/core.test\n/usr/local/go/pkg/tool/linux_amd64/link: running gcc failed: exit status 1\n/usr/bin/gcc -m64 -o $WORK/b001/core.test /tmp/go-link-1/go.o\n/usr/bin/ld: /tmp/go-link-1/000001.o: in function `_cgo_2_Cfunc_twice':\n/tmp/go-build/cgo-gcc-prolog:76: undefined reference to `twice'\ncollect2: error: ld returned 1 exit status\n\nFAIL\texample.com/m/packages/core [build failed]\nFAIL\n", "/tmp/go-build/cgo-gcc-prolog:76: undefined reference to `twice'"},
		{"a vendor folder that does not fit", "go: inconsistent vendoring in /tree/web:\n\tgithub.com/google/uuid@v1.5.0: is explicitly required in go.mod, but not marked as explicit in vendor/modules.txt\n\tgithub.com/google/uuid@v1.6.0: is marked as explicit in vendor/modules.txt, but not explicitly required in a go.mod\n\n\tTo ignore the vendor directory, use -mod=readonly or -mod=mod.\n\tTo sync the vendor directory, run:\n\t\tgo work vendor\n", "go: inconsistent vendoring: github.com/google/uuid@v1.5.0: is explicitly required in go.mod, but not marked as explicit in vendor/modules.txt|To sync the vendor directory, run: go work vendor"},
		{"a name that Go's linker does not find", "# example.com/m/packages/core\nexample.com/m/packages/core.f: relocation target example.com/m/x.g not defined\n", "example.com/m/packages/core.f: relocation target example.com/m/x.g not defined"},
		{"a documentation test", "running 1 test\ntest src/lib.rs - text (line 16) ... FAILED\n\nfailures:\n\n---- src/lib.rs - text (line 16) stdout ----\nTest executable failed (exit status: 101).\n\nstderr:\n\nthread 'main' (309) panicked at src/lib.rs:5:1:\nassertion `left == right` failed\n  left: \"4\"\n right: \"5\"\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\n\nfailures:\n    src/lib.rs - text (line 16)\n", "src/lib.rs:16: text: assertion `left == right` failed; left: \"4\"; right: \"5\""},
		{"a function that a documentation test calls", "---- src/lib.rs - text (line 16) stdout ----\nTest executable failed (exit status: 101).\n\nstderr:\n\nthread 'main' (309) panicked at src/other.rs:5:1:\nno text\n\nfailures:\n    src/lib.rs - text (line 16)\n", "src/other.rs:5: text: no text"},
		{"a line of a script", "check.sh:4: flag blue has no note\n", "web/check.sh:4: flag blue has no note"},
		{"a script that bash cannot read", "./check.sh: line 6: syntax error: unexpected end of file\n", "web/check.sh:6: syntax error: unexpected end of file"},
		{"a script that dash cannot read", "./check.sh: 6: Syntax error: end of file unexpected (expecting \"fi\")\n", "web/check.sh:6: Syntax error: end of file unexpected (expecting \"fi\")"},
		{"a path from the root", "/tree/check.sh:4: flag blue has no note\n", "check.sh:4: flag blue has no note"},
		{"a path that has the folder", "web/check.sh:4: flag blue has no note\n", "web/check.sh:4: flag blue has no note"},
		{"a path in a sentence", "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.\n", "error: The lockfile at `web/uv.lock` needs to be updated, but `--locked` was provided."},
		{"and the command that mends it", "Resolved 11 packages in 604ms\nerror: The lockfile at `uv.lock` needs to be updated, but `--check` was provided.\n\nhint: To update the lockfile, run `uv lock`.\n", "error: The lockfile at `web/uv.lock` needs to be updated, but `--check` was provided. hint: To update the lockfile, run `uv lock`."},
		{"a word that is a file too", "the test failed\n", "the test failed"},
		{"a file without an ending", "Makefile:3: *** missing separator. Stop.\n", "web/Makefile:3: *** missing separator. Stop."},
		{"the panic of a build script", "error: failed to run custom build command for `app v0.1.0 (/tree/web/app)`\n\nCaused by:\n  process didn't exit successfully: `/tree/web/target/debug/build/app-1/build-script-build` (exit status: 101)\n  --- stderr\n\n  thread 'main' (77) panicked at app/build.rs:3:5:\n  no note for blue\n  note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n", "app/build.rs:3: no note for blue"},
	} {
		if got := strings.Join(decisive.Lines([]byte(c.output), tree), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestAFileThatIsCompiledIsNamedByItsSource: tests of TypeScript run from a folder that the repository does not have.
func TestAFileThatIsCompiledIsNamedByItsSource(t *testing.T) {
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{"web/out/shelf.test.js", "web/src/shelf.test.ts"}, "web/src/shelf.test.ts"},
		{[]string{"web/out/shelf.test.js", "web/shelf.test.ts"}, "web/shelf.test.ts"},
		{[]string{"web/out/shelf.test.js", "web/src/shelf.test.tsx"}, "web/src/shelf.test.tsx"},
		{[]string{"web/out/shelf.test.js", "web/shelf.test.ts", "web/src/shelf.test.ts"}, "web/out/shelf.test.js:5"},
		{[]string{"web/out/shelf.test.js", "web/src/other.test.ts"}, "web/out/shelf.test.js:5"},
		{[]string{"web/test/shelf.js", "web/src/shelf.ts"}, "web/test/shelf.js:5"},
		{[]string{"web/dist-test/src/shelf.test.js", "web/src/shelf.test.ts"}, "web/src/shelf.test.ts"},
		{[]string{"web/layout/shelf.js", "web/src/shelf.ts"}, "web/layout/shelf.js:5"},
	} {
		tree := decisive.Tree{Root: "/tree", Has: func(name string) bool { return slices.Contains(c.files, name) }}
		output := "TypeError: no shelf\n    at open (/tree/" + c.files[0] + ":5:3)\n"
		if got, want := strings.Join(decisive.Lines([]byte(output), tree), "|"), c.want+": TypeError: no shelf"; got != want {
			t.Errorf("%q: %q, want %q", c.files, got, want)
		}
	}
}

// TestAModuleThatIsNotThereIsAskedForByTheTree: the first file of the tree that led to it is named.
func TestAModuleThatIsNotThereIsAskedForByTheTree(t *testing.T) {
	tree := treeOf(map[string]string{"a.mjs": "import 'unix';\n\nimport \"x/far\";\n", "b.js": "require('lib');\n"}, "")
	for output, want := range map[string]string{
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x' imported from /tree/a.mjs\n    at packageResolve (node:internal/modules/esm/resolve:873:9)\n":                                                                                                                          "a.mjs:3: Cannot find package 'x'",
		"Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'y' imported from /tree/a.mjs\n    at packageResolve (node:internal/modules/esm/resolve:873:9)\n":                                                                                                                          "a.mjs: Cannot find package 'y'",
		"Error: Cannot find module 'x'\nRequire stack:\n- /tree/node_modules/lib/index.js\n- /tree/b.js\n    at Object.<anonymous> (/tree/node_modules/lib/index.js:2:9)\n    at Module.require (node:internal/modules/cjs/loader:1:2)\n    at Object.<anonymous> (/tree/b.js:1:1)\n": "b.js:1: Cannot find module 'x'",
		"Error: Cannot find module '/tree/gone.js'\n    at Module._load (node:internal/modules/cjs/loader:1:2)\n":                                                                                                                                                                     "Error: Cannot find module 'gone.js'",
	} {
		if got := strings.Join(decisive.Lines([]byte(output), tree), "|"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTheRequirementThatUvCannotMeetIsNamed, also as older versions print it.
func TestTheRequirementThatUvCannotMeetIsNamed(t *testing.T) {
	files := map[string]string{
		"web/pyproject.toml":     "[project]\nname = \"shop\"\ndependencies = [\"cart\"]\n",
		"web/lib/pyproject.toml": "[project]\nname = \"cart\"\ndependencies = [\n  'Zope_Thing >= 9',\n]\n",
	}
	const output = "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of zope-thing>=9 and cart depends on\n      zope-thing>=9, we can conclude that cart's requirements are unsatisfiable.\n      And because shop depends on cart, none fit.\n\n      hint: none\n"
	want := "web/lib/pyproject.toml:4: Because there is no version of zope-thing>=9 and cart depends on zope-thing>=9, we can conclude that cart's requirements are unsatisfiable. And because shop depends on cart, none fit."
	tree := treeOf(files, "web")
	if got := strings.Join(decisive.Lines([]byte(output), tree), "|"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWhyAPackageOfPythonIsNotBuiltNamesTheFile: installers indent what the build printed.
func TestWhyAPackageOfPythonIsNotBuiltNamesTheFile(t *testing.T) {
	files := []string{"setup.py", "packages/fast/setup.py", "packages/fast/src/other.c", "packages/rs/src/lib.rs", "packages/fast/hatch_build.py"}
	tree := decisive.Tree{Root: "/tree", Has: func(name string) bool { return slices.Contains(files, name) }}
	uv := "   Building fast @ file:///tree/packages/fast\nerror: Failed to build `fast @ file:///tree/packages/fast`\n  cause: The build backend returned an error\n  cause: Call to `setuptools.build_meta.build_editable` failed (exit status: 1)\n\n"
	older := "  × Failed to build `fast @ file:///tree/packages/fast`\n  ├─▶ The build backend returned an error\n  ╰─▶ Call to `setuptools.build_meta.build_editable` failed (exit status: 1)\n\n"
	hint := "\nhint: Build failures usually indicate a problem with the package or the build environment\n"
	indented := func(text, by string) string {
		return strings.ReplaceAll(by+strings.ReplaceAll(text, "\n", "\n"+by)+"\n", "\n"+by+"\n", "\n\n")
	}
	gcc := "src/other.c: In function ‘other’:\nsrc/other.c:2:27: error: expected ‘;’ before ‘}’ token\n    2 | int other(void) { return 1 }\n      |                           ^~\nerror: command '/usr/bin/gcc' failed with exit code 1"
	setup := "Traceback (most recent call last):\n  File \"<string>\", line 14, in <module>\n  File \"/c/lib/python3.11/site-packages/setuptools/build_meta.py\", line 317, in run_setup\n    exec(code, locals())  # noqa: S102 # exec is intentional here\n    ^^^^^^^^^^^^^^^^^^^^\n  File \"<string>\", line 11, in <module>\nFileNotFoundError: [Errno 2] No such file or directory: '/tree/packages/fast/README.md'"
	for _, c := range []struct{ name, output, want string }{
		{"a compiler that setuptools starts", uv + indented("[stdout]\nrunning build_ext\ngcc -c src/other.c\n\n[stderr]\n"+gcc, "         ") + hint, "packages/fast/src/other.c:2: expected ‘;’ before ‘}’ token"},
		{"setup.py", uv + indented("[stderr]\n"+setup, "         ") + hint, "packages/fast/setup.py:11: FileNotFoundError: [Errno 2] No such file or directory: 'packages/fast/README.md'"},
		{"setup.py, of an older uv", older + indented("[stderr]\n"+setup, "      ") + "\n      hint: This usually indicates a problem\n", "packages/fast/setup.py:11: FileNotFoundError: [Errno 2] No such file or directory: 'packages/fast/README.md'"},
		{"a hook", uv + indented("[stderr]\n"+strings.Replace(setup, "<string>\", line 11", "/tree/packages/fast/hatch_build.py\", line 3", 1), "         ") + hint, "packages/fast/hatch_build.py:3: FileNotFoundError: [Errno 2] No such file or directory: 'packages/fast/README.md'"},
		{"maturin", strings.ReplaceAll(uv, "fast", "rs") + indented("[stderr]\n   Compiling rs v0.1.0 (/tree/packages/rs)\nerror[E0425]: cannot find value `n` in this scope\n --> src/lib.rs:3:5\n  |\n💥 maturin failed", "         ") + hint, "packages/rs/src/lib.rs:3: error[E0425]: cannot find value `n` in this scope"},
		{"pip", "  × Getting requirements to build editable did not run successfully.\n  │ exit code: 1\n  ╰─> [9 lines of output]\n" + indented(strings.ReplaceAll(setup, "packages/fast/", ""), "      ") + "      [end of output]\n\n  note: This error originates from a subprocess\n", "setup.py:11: FileNotFoundError: [Errno 2] No such file or directory: 'README.md'"},
		{"a setting", uv + indented("[stderr]\nerror: package directory 'lib' does not exist", "         ") + hint, "packages/fast: error: package directory 'lib' does not exist"},
		{"a complaint of the backend", uv + indented("[stderr]\n"+strings.ReplaceAll(setup, "<string>", "/c/site-packages/hatchling/build.py"), "         ") + hint, "packages/fast: FileNotFoundError: [Errno 2] No such file or directory: 'packages/fast/README.md'"},
		{"nothing that the build printed", uv + hint, "error: Failed to build `fast @ packages/fast`"},
	} {
		if got := strings.Join(decisive.Lines([]byte(c.output), tree), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWhereRustFailsIsOfTheErrorItself and not of the next one; of a macro that panicked, what it said is told.
func TestWhereRustFailsIsOfTheErrorItself(t *testing.T) {
	const output = "error: proc-macro derive panicked\n --> core/src/lib.rs:3:10\n  |\n3 | #[derive(Named)]\n  |          ^^^^^\n  |\n  = help: message: called `Option::unwrap()` on a `None` value\n\n" +
		"error: could not compile `core-x` (lib) due to 1 previous error\nerror[E0599]: no function `name` found\n  --> core/src/lib.rs:16:26\n"
	want := []string{"core/src/lib.rs:3: error: proc-macro derive panicked: called `Option::unwrap()` on a `None` value", "core/src/lib.rs:16: error[E0599]: no function `name` found"}
	tree := decisive.Tree{Has: func(name string) bool { return name == "core/src/lib.rs" }}
	if got := decisive.Lines([]byte(output), tree); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheFolderOfAScriptIsNotWhyItFailed: the steps of JavaScript print where they go.
func TestTheFolderOfAScriptIsNotWhyItFailed(t *testing.T) {
	for output, want := range map[string]string{
		"Entering directory '.'\n\n> client@1.0.0 test\n> node generate.mjs --check\n\nclient/src/generated.ts is stale: run npm run generate\n": "ended with exit code 1: client/src/generated.ts is stale: run npm run generate",
		"Entering directory 'a'\n": "",
	} {
		if got := strings.Join(decisive.Lines([]byte(output), decisive.Tree{Ended: "ended with exit code 1"}), "|"); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// TestALineThatAnnouncesIsToldWithWhatFollows, as pnpm says what of a lock file does not fit.
func TestALineThatAnnouncesIsToldWithWhatFollows(t *testing.T) {
	for output, want := range map[string]string{
		" ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with \"frozen-lockfile\"\n\n    Failure reason:\n    specifiers in the lockfile don't match specs in package.json:\n* 1 dependencies are mismatched:\n  - prettier (lockfile: ^3.3.0, manifest: 3.0.0)\n\n": `ERR_PNPM_OUTDATED_LOCKFILE Cannot install with "frozen-lockfile"|Failure reason: specifiers in the lockfile don't match specs in package.json: * 1 dependencies are mismatched: - prettier (lockfile: ^3.3.0, manifest: 3.0.0)`,
		"the check failed:\n":               "the check failed:",
		"the check failed\nsee above:\nx\n": "the check failed",
	} {
		if got := strings.Join(decisive.Lines([]byte(output), decisive.Tree{}), "|"); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// A step may print a gigabyte on one line.
func TestALongLineIsShortened(t *testing.T) {
	lines := decisive.Lines([]byte("a.c:1:2: error: "+strings.Repeat("ü", 1<<20)), decisive.Tree{})
	if len(lines) != 1 || len(lines[0]) > decisive.MaxBytes || !strings.HasPrefix(lines[0], "a.c:1: ü") || !strings.HasSuffix(lines[0], "ü…") {
		t.Errorf("%q", lines)
	}
}

func BenchmarkLines(b *testing.B) {
	output, err := os.ReadFile("testdata/outputs/go-test-v.txt")
	if err != nil {
		b.Fatal(err)
	}
	output = []byte(strings.Repeat(strings.ReplaceAll(string(output), "FAIL:", "PASS:"), (8<<20)/len(output)))
	b.SetBytes(int64(len(output)))
	for b.Loop() {
		decisive.Lines(output, decisive.Tree{})
	}
}

// BenchmarkHostileOutputs is of outputs that begin something on every line.
func BenchmarkHostileOutputs(b *testing.B) {
	for _, line := range []string{"  ● x", "not ok 1", "panic: x", "Traceback (most recent call last):", "WARNING: DATA RACE", " FAIL  a > b", "  1) x", "  1 failing\n  1) x", "error: x", "thread 'x' panicked at a:1:2:", "Error: x\n    at y", "test at a:1:2\n✖ x", "--- FAIL: T/x\n", "=== RUN T", "======\nFAIL: x", "make: *** x", "1/2 Test #1: x ...***Failed 0.00 sec", "a.c:1: Failure", "go: inconsistent vendoring in a:", "a: b.c:1: Assertion `x' failed.", "# a", "<testsuite><testcase><failure>", "===== FAILURES =====\n____ x ____\nE x", "  File \"x\", line 1", "npm error Missing: x@1 from lock file", "go: x/y@v1: z", "a.go:1:2: x/y@v1: z", "Parse error near line 1: x\n  y", "{\"Action\":\"output\",\"Output\":\"x\\n\"}", "ERROR: a:1:2: b failed: (", "=== Test output for //x:", strings.Repeat("a:", 1000), "\x1b[", "x\r"} {
		output := []byte(strings.Repeat(line+"\n", (8<<20)/(len(line)+1)))
		b.Run(fmt.Sprintf("%.20q", line), func(b *testing.B) {
			for b.Loop() {
				decisive.Lines(output, decisive.Tree{})
			}
		})
	}
}

func FuzzLines(f *testing.F) {
	files, _ := filepath.Glob("testdata/outputs/*.txt")
	for _, file := range files {
		output, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(output)
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		lines := decisive.Lines(output, decisive.Tree{Root: "/tree", Dir: "web", Has: func(name string) bool { return len(name)%2 == 0 },
			Read: func(string) []byte { return output },
			Ending: func(name string) []string {
				return []string{"web/a/" + strings.TrimPrefix(name, "*"), "web/b/" + strings.TrimPrefix(name, "*")}
			}})
		if len(lines) > decisive.Most {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines {
			if line == "" || len(line) > decisive.MaxBytes || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("line %q", line)
			}
		}
		decisive.Lines(output, decisive.Tree{})
	})
}

func FuzzReports(f *testing.F) {
	files, _ := filepath.Glob("testdata/reports/*")
	for _, file := range files {
		report, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(report)
	}
	f.Fuzz(func(t *testing.T, report []byte) {
		lines := decisive.Lines(nil, decisive.Tree{Root: "/tree", Has: func(name string) bool { return len(name)%2 == 0 }}, report)
		if len(lines) > decisive.Most {
			t.Errorf("%d lines", len(lines))
		}
		for _, line := range lines {
			if line == "" || len(line) > decisive.MaxBytes || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("line %q", line)
			}
		}
	})
}

// TestTheLoaderOfYarnIsNoPlaceOfTheTree, though it is a file of it: it throws what a file of the tree has asked for.
func TestTheLoaderOfYarnIsNoPlaceOfTheTree(t *testing.T) {
	const output = "/tree/.pnp.cjs:9505\n    throw firstError;\n    ^\n\nError: Your application tried to access ms, but it isn't declared in your dependencies\n" +
		"    at require$$0.Module._resolveFilename (/tree/.pnp.cjs:9504:13)\n    at Object.<anonymous> (/tree/packages/words/words.js:1:12)\n"
	tree := decisive.Tree{Root: "/tree", Has: func(name string) bool { return name == ".pnp.cjs" || name == "packages/words/words.js" }}
	if got := strings.Join(decisive.Lines([]byte(output), tree), "\n"); !strings.Contains(got, "packages/words/words.js:1") || strings.Contains(got, ".pnp.cjs:") {
		t.Error(got)
	}
}

// TestWhatAsksForWhatIsNotThereIsNamed, of the files of a tree in which several ask for much the same.
func TestWhatAsksForWhatIsNotThereIsNamed(t *testing.T) {
	tree := treeOf(map[string]string{
		"package.json":                "{\n  \"devDependencies\": {\"words\": \"^9.0.0\"}\n}\n",
		"web/package.json":            "{\n  \"name\": \"web\",\n  \"scripts\": {\"lint\": \"words\"}\n}\n",
		"web/packages/a/package.json": "{\n  \"dependencies\": {\n    \"words\": \"^1.2.0\",\n    \"verbs\": \"*\"\n  }\n}\n",
		"web/packages/b/package.json": "{\n  \"dependencies\": {\n    \"nouns\": \"1.0.0\",\n    \"words\": \"^3.0.0\", \"verbs\": \"latest\"\n  }\n}\n",
		"web/package-lock.json":       "{\n  \"packages\": {\n    \"node_modules/nouns\": {\n      \"dependencies\": {\n        \"deep\": \"^4.0.0\"\n}}}}\n",
		"go.mod":                      "module example.com/m\n\ngo 1.24\n\nrequire example.com/b v1.0.0\n",
		"go.sum":                      "example.com/b v1.0.0 h1:x=\nexample.com/b v1.0.0/go.mod h1:y=\n",
		"a/a.go":                      "package a\n\nimport _ \"example.com/b\"\n",
		"other/go.mod":                "module example.com/other\n\nrequire (\n\texample.com/c v1.1.0 // indirect\n)\n",
		"web/db/1.sql":                "create table a (id int);\n",
		"web/db/2.sql":                "create table b (\n  id int\n);\ncreate tabel c (id int);\n",
		"web/db/3.sql":                "create table b (\n  id int\n);\ninsert into nobody values (1);\n",
	}, "web")
	inRoot := tree
	inRoot.Dir = ""
	loop := "sh -c for f in db/*.sql; do sqlite3 :memory: <$f || exit; done"
	for _, c := range []struct {
		name, command, output, want string
		tree                        decisive.Tree
	}{
		{"a version that the lock file lacks", "", "npm error code EUSAGE\nnpm error Missing: words@3.0.4 from lock file\n", "web/packages/b/package.json:4: Missing: words@3.0.4 from lock file", tree},
		{"another version than the lock file's", "", "npm error Invalid: lock file's words@1.1.0 does not satisfy words@1.2.9\n", "web/packages/a/package.json:3: Invalid: lock file's words@1.1.0 does not satisfy words@1.2.9", tree},
		{"what two ask for", "", "npm error Missing: verbs@2.0.0 from lock file\n", "web/package.json: Missing: verbs@2.0.0 from lock file", tree},
		{"what a package asks for", "", "npm error code ETARGET\nnpm error notarget No matching version found for deep@^4.0.0.\n", "web/package-lock.json:5: No matching version found for deep@^4.0.0.", tree},
		{"what nobody asks for", "", "npm error code ETARGET\nnpm error notarget No matching version found for none@1.\n", "web/package.json: No matching version found for none@1.", tree},
		{"an older npm", "", "npm ERR! code E404\nnpm ERR! 404  'nouns@1.0.0' is not in this registry.\n", "web/packages/b/package.json:3: 'nouns@1.0.0' is not in this registry.", tree},
		{"and make", "", "npm error code E404\nnpm error 404  'nouns@1.0.0' is not in this registry.\nnpm error A complete log of this run can be found in: /x\nmake: *** [Makefile:3: check] Error 1\n", "web/packages/b/package.json:3: 'nouns@1.0.0' is not in this registry.", tree},
		{"a checksum", "", "verifying example.com/b@v1.0.0: checksum mismatch\n\tdownloaded: h1:z=\n\tgo.sum:     h1:x=\n\nSECURITY ERROR\n", "go.sum:1: verifying example.com/b@v1.0.0: checksum mismatch downloaded: h1:z= go.sum: h1:x=", inRoot},
		{"a requirement of a requirement", "", "go: example.com/b@v1.0.0 requires\n\texample.com/d@v0.1.0: reading x: 404 Not Found\n", "go.mod:5: example.com/b@v1.0.0 requires example.com/d@v0.1.0: reading x: 404 Not Found", inRoot},
		{"another module of a workspace", "", "a/a.go:3:8: example.com/c@v1.1.0: reading x: 404 Not Found\n", "other/go.mod:4: example.com/c@v1.1.0: reading x: 404 Not Found", inRoot},
		{"a module that no go.mod asks for", "", "a/a.go:3:8: no required module provides package example.com/none; to add it:\n\tgo get example.com/none\n", "a/a.go:3: no required module provides package example.com/none; to add it: go get example.com/none", inRoot},
		{"a file in a loop", loop, "Parse error near line 4: near \"tabel\": syntax error\n  create tabel c (id int);\n         ^--- error here\n", "web/db/2.sql:4: near \"tabel\": syntax error", tree},
		{"a table in a loop", loop, "Parse error near line 4: no such table: nobody\n", "web/db/3.sql:4: no such table: nobody", tree},
		{"what two files of a loop have", loop, "Parse error near line 1: near \"b\": syntax error\n  create table b ( id int );\n         ^--- error here\n", "near \"b\": syntax error", tree},
		{"psql", "", "psql:db/2.sql:4: ERROR:  syntax error at or near \"tabel\"\nLINE 1: create tabel c (id int);\n               ^\n", "web/db/2.sql:4: syntax error at or near \"tabel\"", tree},
		{"psql that reads", "sh -c cat db/*.sql | psql", "ERROR:  syntax error at or near \"tabel\"\nLINE 1: create tabel c (id int);\n               ^\n", "web/db/2.sql:4: syntax error at or near \"tabel\"", tree},
		{"mysql", "sh -c mysql <db/2.sql", "ERROR 1064 (42000) at line 4: You have an error in your SQL syntax\n", "web/db/2.sql:4: You have an error in your SQL syntax", tree},
	} {
		c.tree.Command = strings.Fields(c.command)
		if got := strings.Join(decisive.Lines([]byte(c.output), c.tree), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestNoLineIsNamedThatAFileLacks: tools that miss something at the end of a file count one line more.
func TestNoLineIsNamedThatAFileLacks(t *testing.T) {
	tree := treeOf(map[string]string{"check.sh": "if true; then\n  echo\n", "one.js": "function a() {", "empty.py": "", "made.ts": "a\n"}, "")
	for output, want := range map[string]string{
		"./check.sh: line 3: syntax error: unexpected end of file\n":    "check.sh:2: syntax error: unexpected end of file",
		"./check.sh: line 2: syntax error near unexpected token `fi'\n": "check.sh:2: syntax error near unexpected token `fi'",
		"made.ts(900,3): error TS2307: no such thing\n":                 "made.ts: TS2307: no such thing",
		"one.js:1:3: error: unclosed\n":                                 "one.js:1: unclosed",
		"one.js:2:1: error: unclosed\n":                                 "one.js: unclosed",
		"empty.py:1:1: error: nothing in it\n":                          "empty.py:1: nothing in it",
		"other.c:9:1: error: not of the tree\n":                         "other.c:9: not of the tree",
	} {
		if got := strings.Join(decisive.Lines([]byte(output), tree), "|"); got != want {
			t.Errorf("%q: %q, want %q", output, got, want)
		}
	}
}

// treeOf is a tree of files in one of whose folders a command ran.
func treeOf(files map[string]string, dir string) decisive.Tree {
	return decisive.Tree{Root: "/tree", Dir: dir,
		Has:  func(name string) bool { _, is := files[name]; return is },
		Read: func(name string) []byte { return []byte(files[name]) },
		Ending: func(end string) (of []string) {
			for file := range files {
				if strings.HasSuffix(file, "/"+end) || end[0] == '*' && strings.HasSuffix(file, end[1:]) {
					of = append(of, file)
				}
			}
			return of
		},
	}
}
