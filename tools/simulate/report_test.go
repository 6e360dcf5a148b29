package simulate

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheReportIsOnePageThatNeedsNoNetwork(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new", "report")
	if _, err := execute(t, "--changes", "40", "--workers", "5,20", "--policies", "single-queue,landfall", "--report", folder); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(folder, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, part := range []string{"P95 turnaround over the oracle", "Builds begun", "P95 wait", "Changes pending over time: 5 workers", "single-queue", "landfall τ 0.05"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not on the page", part)
		}
	}
	for _, outside := range []string{"http:", "https:", "src=", "@import", "<script", "NaN", "Inf"} {
		if strings.Contains(text, outside) {
			t.Errorf("%q is on the page", outside)
		}
	}
	if n := strings.Count(text, "<svg"); n != len(plots)+2 {
		t.Errorf("%d pictures, should be %d and two timelines", n, len(plots))
	}
	// Each picture is well-formed.
	for _, svg := range strings.SplitAfter(text, "</svg>") {
		at := strings.Index(svg, "<svg")
		if at < 0 {
			continue
		}
		d := xml.NewDecoder(strings.NewReader(svg[at:]))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("a picture is broken: %v", err)
			}
		}
	}
}

// What took long to simulate is printed even if the page cannot be written.
func TestWhatCannotBeReportedIsPrintedAllTheSame(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "index.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, form := range [][]string{nil, {"--json"}} {
		out, err := execute(t, append(form, "--changes", "5", "--policies", "landfall", "--report", folder)...)
		if err == nil || !strings.Contains(err.Error(), "index.html") || !strings.Contains(out, "landfall") {
			t.Errorf("%v: %v, printed %q", form, err, out)
		}
	}
}
