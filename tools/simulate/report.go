package simulate

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report writes the rows into a folder that is there, as one page with plots: the turnaround over the oracle's and the throughput, by
// workers and rate as in figures 11 and 12 of the 2019 paper, builds and P95 wait as in figures 5 and 7 of the
// 2025 paper, and what was pending and running in passing.
func Report(folder string, rows []Row) error {
	var b strings.Builder
	b.WriteString(pageHead)
	fmt.Fprintf(&b, "<h1>Policies of merge queues on the same changes</h1>\n<p>Every policy took the same changes through the same cores; they differ in what they propose to build. "+
		"The oracle knows every outcome and keeps to the queue's order. %d rows.</p>\n", len(rows))
	for _, of := range plots {
		b.WriteString(bars(of, rows))
	}
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r Row) bool { return heading(r) != heading(rows[0]) })
		if n < 0 {
			n = len(rows)
		}
		b.WriteString(passing(rows[:n]))
		rows = rows[n:]
	}
	b.WriteString("</main></body></html>\n")
	return os.WriteFile(filepath.Join(folder, "index.html"), []byte(b.String()), 0o644)
}

const pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>landfall simulate</title>
<style>
:root { color-scheme: light dark; --ink: light-dark(#1c1c1c, #e8e8e8); --faint: light-dark(#ddd, #444); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: light-dark(#fff, #161616); margin: 0; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.grid { stroke: var(--faint); } h2 { margin: 2rem 0 .2rem; font-size: 1.1rem; }
</style></head><body><main>
`

// plot is a figure of each row.
type plot struct {
	title, note string
	value       func(Row) float64
	// logarithmic axes are for ratios that span orders of magnitude.
	logarithmic bool
}

var plots = []plot{
	{"P50 turnaround over the oracle's", "1 is the oracle; logarithmic", func(r Row) float64 { return r.OverOracle.P50 }, true},
	{"P95 turnaround over the oracle's", "1 is the oracle; logarithmic", func(r Row) float64 { return r.OverOracle.P95 }, true},
	{"P99 turnaround over the oracle's", "1 is the oracle; logarithmic", func(r Row) float64 { return r.OverOracle.P99 }, true},
	{"Throughput over the oracle's", "changes decided in an hour", func(r Row) float64 { return r.OverOracle.Throughput }, false},
	{"Builds begun for each change", "", func(r Row) float64 { return r.BuildsPerChange }, false},
	{"P95 wait, minutes", "turnaround less the change's own build; logarithmic", func(r Row) float64 { return r.Wait.P95 / 60 }, true},
}

// Sizes of a plot, in its own units.
const (
	plotWidth = 900
	labelWide = 330
	rowHigh   = 18
)

// hues tell policies apart, everywhere the same.
var hues = []string{"#7a7a7a", "#b07d2b", "#8c564b", "#5b8c5a", "#a05195", "#3b75af", "#2a9d8f", "#6a51a3", "#d1495b"}

func hue(policy string, rows []Row) string {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Policy) {
			names = append(names, r.Policy)
		}
	}
	return hues[max(0, slices.Index(names, policy))%len(hues)]
}

// bars draws a bar for each row, those of a setting together.
func bars(p plot, rows []Row) string {
	most, least := 0.0, math.Inf(1)
	for _, r := range rows {
		if v := p.value(r); v > 0 {
			most, least = max(most, v), min(least, v)
		}
	}
	if most == 0 {
		return ""
	}
	if p.logarithmic {
		least = min(1, least) / 1.2
	}
	long := func(v float64) float64 {
		if v <= 0 || math.IsNaN(v) {
			return 0
		}
		share := v / most
		if p.logarithmic {
			share = math.Log(v/least) / math.Log(most/least)
		}
		return share * (plotWidth - labelWide - 70)
	}
	var b strings.Builder
	y := 0
	for i, r := range rows {
		if i == 0 || heading(r) != heading(rows[i-1]) {
			y += rowHigh + 6
			fmt.Fprintf(&b, `<text x="0" y="%d" font-weight="bold">%s</text>`, y, html.EscapeString(short(r)))
			y += 6
		}
		y += rowHigh
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="12" fill="%s"/><text x="%.1f" y="%d">%.2f</text>`+"\n",
			labelWide-8, y, html.EscapeString(r.name()), labelWide, y-11, long(p.value(r)), hue(r.Policy, rows), labelWide+long(p.value(r))+5, y, p.value(r))
	}
	return fmt.Sprintf("<h2>%s</h2>\n<p>%s</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n%s</svg>\n",
		html.EscapeString(p.title), html.EscapeString(p.note), plotWidth, y+10, html.EscapeString(p.title), b.String())
}

// short is a setting without what all share.
func short(r Row) string {
	s := fmt.Sprintf("%d workers", r.Workers)
	for _, name := range []string{"rate_per_h", "potential_conflicts", "true_conflicts"} {
		if v, has := r.Workload[name]; has {
			s += fmt.Sprintf(", %s %v", strings.ReplaceAll(name, "_", " "), v)
		}
	}
	return s
}

// passing draws what was pending under each policy of a setting, over time.
func passing(rows []Row) string {
	var last float64
	most := 1
	for _, r := range rows {
		for _, m := range r.timeline {
			last, most = max(last, m.At), max(most, m.Pending)
		}
	}
	if last == 0 {
		return ""
	}
	const high, left = 260, 50
	x := func(at float64) float64 { return left + at/last*(plotWidth-left-10) }
	y := func(n int) float64 { return high - 30 - float64(n)/float64(most)*(high-50) }
	var b strings.Builder
	for i := range 5 {
		n := most * i / 4
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`, left, plotWidth-10, y(n), y(n), left-6, y(n)+4, n)
		at := last * float64(i) / 4
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.1f h</text>`+"\n", x(at), high-10, at/3600)
	}
	var legend strings.Builder
	for _, r := range rows {
		var points []string
		for _, m := range r.timeline {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(m.At), y(m.Pending)))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.6" points="%s"/>`+"\n", hue(r.Policy, rows), strings.Join(points, " "))
		fmt.Fprintf(&legend, `<span style="color:%s">▬</span> %s &nbsp; `, hue(r.Policy, rows), html.EscapeString(r.name()))
	}
	return fmt.Sprintf("<h2>Changes pending over time: %s</h2>\n<p>%s</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"changes pending over time\">\n%s</svg>\n",
		html.EscapeString(short(rows[0])), legend.String(), plotWidth, high, b.String())
}
