package train

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/trainer/fitting"
)

// drawn reads a plot: how many of each element there are, and whether all that has a place is within the picture.
func drawn(t *testing.T, svg []byte) map[string]int {
	t.Helper()
	count := map[string]int{}
	within := func(text string, most float64) {
		if x, err := strconv.ParseFloat(text, 64); err != nil || !(x >= 0 && x <= most) {
			t.Errorf("%q is not within the picture:\n%s", text, svg)
		}
	}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		e, is := token.(xml.StartElement)
		if !is {
			continue
		}
		count[e.Name.Local]++
		for _, a := range e.Attr {
			switch a.Name.Local {
			case "cx", "x":
				within(a.Value, plotWidth)
			case "cy", "y":
				within(a.Value, plotHeight)
			case "points":
				for _, at := range strings.Fields(a.Value) {
					x, y, _ := strings.Cut(at, ",")
					within(x, plotWidth)
					within(y, plotHeight)
				}
			}
		}
	}
}

// TestPlotsShowWhatTheReportSays, whatever it says: nothing at all, and numbers that are none, too.
func TestPlotsShowWhatTheReportSays(t *testing.T) {
	r := seedtest.Random(t)
	for round := range 200 {
		report := &fitting.Report{Queue: `a<b>&"c"`, Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS}
		for range r.IntN(11) {
			report.Calibration = append(report.Calibration, fitting.Bin{Predicted: r.Float64(), Observed: r.Float64(), Rows: r.IntN(1000)})
		}
		for k := range r.IntN(13) {
			report.LossOverTime = append(report.LossOverTime, fitting.Interval{From: int64(k) * 3_600_000_000, Rows: 5, Loss: map[string]float64{
				fitting.OfCandidate: r.ExpFloat64(), fitting.OfRolling: r.ExpFloat64(), fitting.OfLog: []float64{r.Float64(), math.NaN(), math.Inf(1)}[r.IntN(3)],
			}})
		}
		for k := range r.IntN(60) {
			report.Weights = append(report.Weights, &eventsv1.ModelWeight{Feature: "f" + strconv.Itoa(k), Weight: r.NormFloat64()})
		}
		if round == 0 {
			*report = fitting.Report{Queue: "empty", Kind: eventsv1.ModelKind_MODEL_KIND_DURATION}
		}
		if n := drawn(t, plotCalibration(report)); n["circle"] != len(report.Calibration) {
			t.Errorf("%d circles of %d bins", n["circle"], len(report.Calibration))
		}
		drawn(t, plotLoss(report))
		// Ground and frame are rectangles too.
		if n := drawn(t, plotWeights(report)); n["rect"] != 2+min(len(report.Weights), mostBars) {
			t.Errorf("%d bars of %d weights", n["rect"]-2, len(report.Weights))
		}
	}
	folder := filepath.Join(t.TempDir(), "new", "folder")
	written, err := writePlots(folder, &fitting.Report{Queue: "q", Kind: eventsv1.ModelKind_MODEL_KIND_CONFLICT})
	if err != nil || len(written) != 3 || written[0] != filepath.Join(folder, "conflict-calibration.svg") {
		t.Errorf("%v, %v", written, err)
	}
	for _, path := range written {
		if svg, err := os.ReadFile(path); err != nil || drawn(t, svg)["svg"] != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
}
