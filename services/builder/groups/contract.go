package groups

import (
	"bytes"
	"io"
)

// ResultLines returns a writer for the lines that a tool of one's own writes: "passed", "failed" or "skipped", a blank, and the label.
// Other lines are left alone.
func ResultLines(t *Tally) io.Writer {
	return &lines{each: func(line []byte) {
		word, label, _ := bytes.Cut(bytes.TrimRight(line, "\r"), []byte(" "))
		if o := map[string]Outcome{"passed": Passed, "failed": Failed, "skipped": Skipped}[string(word)]; o != Nothing {
			t.Report(string(label), o)
		}
	}}
}
