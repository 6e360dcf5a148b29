package simulate

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/tools/simulate/policy"
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
	for _, part := range []string{"P95 turnaround over the oracle", "Builds begun", "P95 wait", "Changes pending over time: 5 workers", "single-queue", "landfall τ 0.05", "predictor calibrated", "seed 1", "changes 40"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not on the page", part)
		}
	}
	for _, outside := range []string{"http:", "https:", "src=", "@import", "<script", "NaN", "Inf", "%!"} {
		if strings.Contains(text, outside) {
			t.Errorf("%q is on the page", outside)
		}
	}
	if n := strings.Count(text, `role="img"`); n != 2 {
		t.Errorf("%d timelines, should be one for each number of workers", n)
	}
	if n := strings.Count(text, `class="bar"`); n != 6*len(plots) {
		t.Errorf("%d bars, should be %d for each of six rows", n, len(plots))
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

// Whoever compares sees the same policy in the same colour on every page, and its thresholds as different lines.
func TestNoTwoLinesLookTheSame(t *testing.T) {
	var rows []Row
	for _, name := range policy.PoolNames() {
		rows = append(rows, Row{Policy: name}, Row{Policy: name}, Row{Policy: name})
	}
	seen := map[string]bool{}
	for i, r := range rows {
		look := hue(r.Policy) + dash(i, rows)
		if seen[look] {
			t.Errorf("%s looks like another: %s", r.Policy, look)
		}
		seen[look] = true
	}
	if len(hues) != len(policy.PoolNames()) {
		t.Errorf("%d hues for %d policies", len(hues), len(policy.PoolNames()))
	}
	luminance := func(hex string) (l float64) {
		var c [3]int
		if _, err := fmt.Sscanf(hex, "#%2x%2x%2x", &c[0], &c[1], &c[2]); err != nil {
			t.Fatal(err)
		}
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			if v := float64(c[i]) / 255; v <= 0.04045 {
				l += weight * v / 12.92
			} else {
				l += weight * math.Pow((v+0.055)/1.055, 2.4)
			}
		}
		return l
	}
	for _, h := range hues {
		for _, page := range []string{"#ffffff", "#161616"} {
			a, b := luminance(h)+0.05, luminance(page)+0.05
			if contrast := max(a, b) / min(a, b); contrast < 3 {
				t.Errorf("%s on %s has a contrast of %.1f, less than 3", h, page, contrast)
			}
		}
	}
}

// A bar is as long as its figure, unless the page says that it is not.
func TestBarsBeginAtZeroUnlessTheyAreLogarithmic(t *testing.T) {
	rows := []Row{{Policy: "oracle"}, {Policy: "landfall"}, {Policy: "optimistic"}}
	figures := map[string]float64{"oracle": 1, "landfall": 1.25, "optimistic": 0}
	p := plot{"t", "n", func(r Row) float64 { return figures[r.Policy] }, true}
	if got := bars(p, rows); !strings.Contains(got, "width:80.0%") || !strings.Contains(got, "width:0.0%") || strings.Contains(got, "logarithmic") {
		t.Error(got)
	}
	figures["optimistic"] = 100
	if got := bars(p, rows); !strings.Contains(got, "logarithmic") || !strings.Contains(got, "width:100.0%") || strings.Contains(got, "width:1.") {
		t.Error(got)
	}
}
