package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/prediction"
	"landfall.build/services/trainer/fitting"
)

// Size of a plot, and the position of its frame.
const (
	plotWidth, plotHeight             = 640.0, 400.0
	frameLeft, frameTop               = 70.0, 40.0
	frameRight, frameBottom           = plotWidth - 20, plotHeight - 50
	mostBars                          = 20
	inkOfCandidate, inkOfOthers, grey = "#0b61a4", "#d1495b", "#888"
)

// plot draws in SVG, which is text: reports can be compared.
type plot struct{ b strings.Builder }

func newPlot(title, across, up string) *plot {
	p := &plot{}
	fmt.Fprintf(&p.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&p.b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	p.text(frameLeft, 24, "start", title)
	p.text((frameLeft+frameRight)/2, plotHeight-12, "middle", across)
	fmt.Fprintf(&p.b, `<text transform="translate(16 %g) rotate(-90)" text-anchor="middle">%s</text>`+"\n", (frameTop+frameBottom)/2, escaped(up))
	fmt.Fprintf(&p.b, `<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="%s"/>`+"\n", frameLeft, frameTop, frameRight-frameLeft, frameBottom-frameTop, grey)
	return p
}

func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(text)
}

func (p *plot) text(x, y float64, anchor, text string) {
	fmt.Fprintf(&p.b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, escaped(text))
}

func (p *plot) line(points [][2]float64, ink, dashes string) {
	var at []string
	for _, q := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", q[0], q[1]))
	}
	fmt.Fprintf(&p.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.Join(at, " "), ink, dashes)
}

func (p *plot) done() []byte {
	p.b.WriteString("</svg>\n")
	return []byte(p.b.String())
}

// across and up return the position of a share of the frame.
func across(share float64) float64 { return frameLeft + share*(frameRight-frameLeft) }
func up(share float64) float64     { return frameBottom - share*(frameBottom-frameTop) }

// writePlots writes the report's plots into a folder, and returns their names.
func writePlots(folder string, r *fitting.Report) (written []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	kind := prediction.KindName(r.Kind)
	for name, draw := range map[string]func(*fitting.Report) []byte{"calibration": plotCalibration, "course": plotLoss, "weights": plotWeights} {
		path := filepath.Join(folder, kind+"-"+name+".svg")
		if err := os.WriteFile(path, draw(r), 0o644); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	slices.Sort(written)
	return written, nil
}

// plotCalibration plots observed shares over predicted ones; a calibrated model is on the diagonal.
func plotCalibration(r *fitting.Report) []byte {
	p := newPlot(fmt.Sprintf("%s of queue %s: calibration on the newest rows", prediction.KindName(r.Kind), r.Queue), "said", "came true")
	p.line([][2]float64{{across(0), up(0)}, {across(1), up(1)}}, grey, "4 4")
	var points [][2]float64
	most := 1
	for _, b := range r.Calibration {
		most = max(most, b.Rows)
	}
	for _, b := range r.Calibration {
		x, y := across(b.Predicted), up(b.Observed)
		points = append(points, [2]float64{x, y})
		fmt.Fprintf(&p.b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" fill-opacity="0.6"><title>%.3f said, %.3f came true, %d rows</title></circle>`+"\n",
			x, y, 3+7*math.Sqrt(float64(b.Rows)/float64(most)), inkOfCandidate, b.Predicted, b.Observed, b.Rows)
	}
	p.line(points, inkOfCandidate, "")
	for _, at := range []float64{0, 0.25, 0.5, 0.75, 1} {
		p.text(across(at), frameBottom+16, "middle", fmt.Sprint(at))
		p.text(frameLeft-6, up(at)+4, "end", fmt.Sprint(at))
	}
	return p.done()
}

// plotLoss plots the mean losses of what was compared over the test rows.
func plotLoss(r *fitting.Report) []byte {
	p := newPlot(fmt.Sprintf("%s of queue %s: loss over the newest rows", prediction.KindName(r.Kind), r.Queue), "time", "mean loss")
	low, high := math.Inf(1), math.Inf(-1)
	names := map[string]bool{}
	for _, s := range r.LossOverTime {
		for of, loss := range s.Loss {
			if finite(loss) != nil { // what the log predicted may have been no number
				low, high, names[of] = math.Min(low, loss), math.Max(high, loss), true
			}
		}
	}
	switch {
	case math.IsInf(low, 0):
		low, high = 0, 1
	case high == low:
		high = low + 1
	}
	place := func(k int) float64 { return across((float64(k) + 0.5) / float64(len(r.LossOverTime))) }
	for i, of := range []string{fitting.OfCandidate, fitting.OfInUse, fitting.OfRolling, fitting.OfLog} {
		if !names[of] {
			continue
		}
		ink, dashes := inkOfOthers, []string{"", "", "6 3", "2 3"}[i]
		if of == fitting.OfCandidate {
			ink = inkOfCandidate
		}
		var points [][2]float64
		for k, s := range r.LossOverTime {
			if finite(s.Loss[of]) == nil {
				continue
			}
			points = append(points, [2]float64{place(k), up((s.Loss[of] - low) / (high - low))})
		}
		p.line(points, ink, dashes)
		p.line([][2]float64{{frameRight - 130, frameTop + 16*float64(i+1)}, {frameRight - 105, frameTop + 16*float64(i+1)}}, ink, dashes)
		p.text(frameRight-100, frameTop+16*float64(i+1)+4, "start", of)
	}
	for k, s := range r.LossOverTime {
		if k%3 == 0 {
			p.text(place(k), frameBottom+16, "middle", time.UnixMicro(s.From).UTC().Format("01-02 15:04"))
		}
	}
	p.text(frameLeft-6, up(0)+4, "end", fmt.Sprintf("%.3g", low))
	p.text(frameLeft-6, up(1)+4, "end", fmt.Sprintf("%.3g", high))
	return p.done()
}

// plotWeights plots the features with the largest weights.
func plotWeights(r *fitting.Report) []byte {
	p := newPlot(fmt.Sprintf("%s of queue %s: weights of features", prediction.KindName(r.Kind), r.Queue), "", "")
	weights := r.Weights[:min(len(r.Weights), mostBars)]
	most := 0.0
	for _, w := range weights {
		most = math.Max(most, math.Abs(w.Weight))
	}
	for k, w := range weights {
		y := frameTop + (float64(k)+0.5)*(frameBottom-frameTop)/float64(len(weights))
		length, ink := math.Abs(w.Weight)/most*(frameRight-frameLeft)*0.55, inkOfCandidate
		if w.Weight < 0 {
			ink = inkOfOthers
		}
		fmt.Fprintf(&p.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="8" fill="%s"/>`+"\n", frameLeft+4, y-4, length, ink)
		p.text(frameLeft+length+10, y+4, "start", fmt.Sprintf("%s %+.3f", w.Feature, w.Weight))
	}
	return p.done()
}
