package groups

import (
	"encoding/json"
	"io"
	"net/url"
	"strings"
)

// bazelEvent is what is read of a line of Bazel's build event protocol, as --build_event_json_file writes it.
type bazelEvent struct {
	ID struct {
		TargetCompleted *bazelTarget
		TestResult      *bazelTarget
		TestSummary     *bazelTarget
		ActionCompleted *bazelTarget
	}
	Completed   *struct{ Success bool }
	TestSummary *struct{ OverallStatus string }
	TestResult  *struct {
		Status           string
		TestActionOutput []bazelFile
	}
	Action *struct{ Stdout, Stderr bazelFile }
}

type bazelTarget struct{ Label, Aspect string }

type bazelFile struct{ Name, URI string }

// BazelEvents returns a writer for the events of a bazel build, or of a bazel test where tests is set. Labels are those of
// targets. open gives the content of a file that Bazel names, cut to what is worth showing.
func BazelEvents(t *Tally, tests bool, out Output, open func(path string) []byte) io.Writer {
	b := &bazelEvents{tally: t, tests: tests, out: out, open: open, shown: map[string]int{}}
	return &lines{each: b.line}
}

type bazelEvents struct {
	tally *Tally
	tests bool
	out   Output
	open  func(string) []byte
	// shown is how many files were opened of a target.
	shown map[string]int
}

// mostFiles bounds how many files are shown of a target: an event of a hundred bytes can name one of any size.
const mostFiles = 100

func (b *bazelEvents) line(line []byte) {
	var e bazelEvent
	if len(line) == 0 || json.Unmarshal(line, &e) != nil {
		return
	}
	switch {
	case e.ID.ActionCompleted != nil && e.Action != nil: // written of those that failed
		b.show(e.ID.ActionCompleted, e.Action.Stdout, e.Action.Stderr)
	case e.ID.TestResult != nil && e.TestResult != nil && e.TestResult.Status != "PASSED":
		for _, f := range e.TestResult.TestActionOutput {
			if f.Name == "test.log" {
				b.show(e.ID.TestResult, f)
			}
		}
	case e.ID.TargetCompleted != nil && e.Completed != nil:
		switch {
		case !e.Completed.Success:
			b.tally.Report(mainLabel(e.ID.TargetCompleted.Label), Failed)
		case !b.tests && e.ID.TargetCompleted.Aspect == "":
			b.tally.Report(mainLabel(e.ID.TargetCompleted.Label), Passed)
		}
	case b.tests && e.ID.TestSummary != nil && e.TestSummary != nil:
		switch e.TestSummary.OverallStatus {
		case "PASSED", "FLAKY": // bazel test alone passes both
			b.tally.Report(mainLabel(e.ID.TestSummary.Label), Passed)
		case "FAILED", "TIMEOUT", "FAILED_TO_BUILD":
			b.tally.Report(mainLabel(e.ID.TestSummary.Label), Failed)
		}
	}
}

// show puts files of a target that did not pass into its output.
func (b *bazelEvents) show(of *bazelTarget, files ...bazelFile) {
	label := mainLabel(of.Label)
	if !b.tally.Asked(label) {
		return
	}
	for _, f := range files {
		if b.shown[label] == mostFiles {
			return
		}
		if u, err := url.Parse(f.URI); err == nil && u.Scheme == "file" {
			b.shown[label]++
			if content := b.open(u.Path); len(content) > 0 {
				b.out(label, append(content, '\n'))
			}
		}
	}
}

// mainLabel returns a label of the main repository without the repository's name, which newer versions write.
func mainLabel(label string) string {
	if rest := strings.TrimLeft(label, "@"); strings.HasPrefix(rest, "//") {
		return rest
	}
	return label
}
