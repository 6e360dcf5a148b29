package groups

import (
	"io"
	"strings"
	"testing"
)

func TestABazelTargetHasPassedIfBazelSaysSoOfThatTarget(t *testing.T) {
	const events = `{"id":{"started":{}},"started":{"command":"test"}}
{"id":{"actionCompleted":{"label":"//a:b","primaryOutput":"x"}},"action":{"exitCode":1,"stderr":{"name":"stderr","uri":"file:///out/stderr-1"}}}
{"id":{"targetCompleted":{"label":"//a:b","configuration":{"id":"c"}}},"completed":{}}
{"id":{"targetCompleted":{"label":"//a:t","configuration":{"id":"c"}}},"completed":{"success":true}}
{"id":{"testResult":{"label":"//a:t","run":1}},"testResult":{"status":"PASSED","testActionOutput":[{"name":"test.log","uri":"file:///out/t"}]}}
{"id":{"testSummary":{"label":"//a:t"}},"testSummary":{"overallStatus":"PASSED"}}
{"id":{"targetCompleted":{"label":"@@//a:u","configuration":{"id":"c"}}},"completed":{"success":true}}
{"id":{"testResult":{"label":"@@//a:u","run":1}},"testResult":{"status":"FAILED","testActionOutput":[{"name":"test.xml","uri":"file:///out/x"},{"name":"test.log","uri":"file:///out/u"}]}}
{"id":{"testSummary":{"label":"@@//a:u"}},"testSummary":{"overallStatus":"FAILED"}}
{"id":{"targetCompleted":{"label":"//a:v","configuration":{"id":"c"}}},"completed":{"success":true}}
{"id":{"testSummary":{"label":"//a:v"}},"testSummary":{"overallStatus":"INCOMPLETE"}}
{"id":{"targetCompleted":{"label":"//a:w"}},"aborted":{"reason":"ANALYSIS_FAILURE"}}
{"id":{"targetCompleted":{"label":"//a:x","aspect":"y"}},"completed":{"success":true}}
{"id":{"testSummary":{"label":"//a:y"}},"testSummary":{"overallStatus":"FLAKY"}}
{"id":{"buildFinished":{}},"finished":{"exitCode":{"name":"TESTS_FAILED","code":3}}}
not JSON
`
	labels := []string{"//a:b", "//a:t", "//a:u", "//a:v", "//a:w", "//a:x", "//a:y"}
	for tests, want := range map[bool][2]string{
		true:  {"//a:b:failed //a:t:passed //a:u:failed //a:y:passed", "//a:v:nothing //a:w:nothing //a:x:nothing"},
		false: {"//a:b:failed //a:t:passed //a:u:passed //a:v:passed", "//a:w:nothing //a:x:nothing //a:y:nothing"},
	} {
		tally, out := NewTally(labels, Trust{Streams: true}), map[string]string{}
		w := BazelEvents(tally, tests, func(label string, text []byte) { out[label] += string(text) }, func(path string) []byte { return []byte(path) })
		if _, err := w.Write([]byte(events)); err != nil {
			t.Fatal(err)
		}
		if early, end := shown(tally.Take()), shown(tally.End(true, 3)); early != want[0] || end != want[1] {
			t.Errorf("tests %v: %q, then %q", tests, early, end)
		}
		if out["//a:b"] != "/out/stderr-1\n" || out["//a:u"] != "/out/u\n" || len(out) != 2 {
			t.Errorf("output %q", out)
		}
	}
}

// TestFewFilesAreShownOfATarget reads events that code of a change can write: each of a hundred bytes had a file read.
func TestFewFilesAreShownOfATarget(t *testing.T) {
	opened := 0
	w := BazelEvents(NewTally([]string{"//a:t", "//b:t"}, Trust{}), true, func(string, []byte) {}, func(string) []byte { opened++; return []byte("x") })
	for _, label := range []string{"//a:t", "//b:t", "//c:t"} {
		line := `{"id":{"testResult":{"label":"` + label + `"}},"testResult":{"status":"FAILED","testActionOutput":[{"name":"test.log","uri":"file:///x"},{"name":"test.log","uri":"file:///x"}]}}` + "\n"
		if _, err := io.WriteString(w, strings.Repeat(line, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if opened != 2*mostFiles {
		t.Errorf("%d files were opened of two targets, want %d", opened, 2*mostFiles)
	}
}
