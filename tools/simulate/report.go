package simulate

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/tools/simulate/policy"
)

// Report writes the rows into a folder that is there, as one page with plots: the turnaround over the oracle's and the throughput, by
// workers and rate as in figures 11 and 12 of the 2019 paper, builds and P95 wait as in figures 5 and 7 of the
// 2025 paper, and what was pending and running over time.
// common is what all rows share.
func Report(folder string, common map[string]any, rows []Row) error {
	var b strings.Builder
	b.WriteString(pageHead)
	fmt.Fprintf(&b, "<h1>Policies of merge queues on the same changes</h1>\n<p>Every policy took the same changes through the same cores; they differ in what they propose to build. "+
		"The oracle knows every outcome and keeps to the queue's order.</p>\n<p>%s.</p>\n", html.EscapeString(strings.Join(named(common), ", ")))
	for _, of := range plots {
		b.WriteString(bars(of, rows))
	}
	if rows[0].Slowdown != nil {
		for _, of := range poolPlots {
			b.WriteString(bars(of, rows))
		}
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
svg.key { width: 2.2em; height: .7em; }
.grid { stroke: var(--faint); } h2 { margin: 2rem 0 .2rem; font-size: 1.1rem; } h3 { margin: .8rem 0 .2rem; font-size: .85rem; }
.row { display: grid; grid-template-columns: 15rem 1fr; gap: .6rem; font-size: .85rem; line-height: 1.35; align-items: center; }
.row > :first-child { text-align: right; } .track { display: flex; align-items: center; gap: .4rem; margin-right: 4rem; }
.bar { height: .8rem; flex: none; } .keys span { display: inline-block; margin-right: 1rem; white-space: nowrap; }
@media (max-width: 40rem) {
	.row { grid-template-columns: 1fr; gap: 0; margin-bottom: .3rem; } .row > :first-child { text-align: left; }
	svg text { font-size: 26px; }
}
</style></head><body><main>
`

// plot is a figure of each row.
type plot struct {
	title, note string
	value       func(Row) float64
	// wide figures may span orders of magnitude, and are on a logarithmic axis where they do.
	wide bool
}

var plots = []plot{
	{"P50 turnaround over the oracle's", "1 is the oracle", func(r Row) float64 { return r.OverOracle.P50 }, true},
	{"P95 turnaround over the oracle's", "1 is the oracle", func(r Row) float64 { return r.OverOracle.P95 }, true},
	{"P99 turnaround over the oracle's", "1 is the oracle", func(r Row) float64 { return r.OverOracle.P99 }, true},
	{"Throughput over the oracle's", "changes decided in an hour", func(r Row) float64 { return r.OverOracle.Throughput }, false},
	{"Builds begun for each change", "", func(r Row) float64 { return r.BuildsPerChange }, false},
	{"P95 wait, minutes", "turnaround less the change's own build", func(r Row) float64 { return r.Wait.P95 / 60 }, true},
}

// poolPlots are drawn beside those where the workers run steps.
var poolPlots = []plot{
	{"Mean slowdown", "turnaround over that of the change alone on the pool", func(r Row) float64 { return r.Slowdown.Mean }, true},
	{"Longest turnaround, minutes", "", func(r Row) float64 { return r.Turnaround.Max / 60 }, true},
	{"Utilisation", "share of the workers that were busy while a step could be started", func(r Row) float64 { return *r.Utilisation }, false},
}

// plotWidth is the width of a plot, in its own units.
const plotWidth = 900

// hues tell policies apart, in the order of policy.PoolNames, on a light page and on a dark one.
var hues = []string{"#7a7a7a", "#b07d2b", "#7f8a1d", "#3f8f4f", "#b8529f", "#3b75af", "#2a938f", "#7d66c9", "#d1495b", "#8c5a3c"}

func hue(name string) string { return hues[max(0, slices.Index(policy.PoolNames(), name))%len(hues)] }

// dashes tell the lines of one policy apart, by its thresholds.
var dashes = []string{"none", "9 4", "2 4", "12 4 2 4", "5 3", "16 8"}

func dash(i int, rows []Row) string {
	before := 0
	for _, r := range rows[:i] {
		if r.Policy == rows[i].Policy {
			before++
		}
	}
	return dashes[before%len(dashes)]
}

// logarithmically is from which ratio between the longest bar and the shortest an axis is logarithmic. Below, it begins at 0: bars
// that begin elsewhere make a difference look larger than it is.
const logarithmically = 20

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
	logarithmic, note := p.wide && most/least >= logarithmically, p.note
	if logarithmic {
		least /= 1.2
		note += "; logarithmic"
	}
	share := func(v float64) float64 {
		switch {
		case !(v > 0):
			return 0
		case logarithmic:
			return math.Log(v/least) / math.Log(most/least)
		}
		return v / most
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<h2>%s</h2>\n<p>%s</p>\n", html.EscapeString(p.title), html.EscapeString(note))
	for i, r := range rows {
		if i == 0 || heading(r) != heading(rows[i-1]) {
			fmt.Fprintf(&b, "<h3>%s</h3>\n", html.EscapeString(short(r)))
		}
		fmt.Fprintf(&b, `<div class="row"><span>%s</span><span class="track"><span class="bar" style="width:%.1f%%;background:%s"></span>%.2f</span></div>`+"\n",
			html.EscapeString(r.name()), 100*share(p.value(r)), hue(r.Policy), p.value(r))
	}
	return b.String()
}

// short is a setting without what all share.
func short(r Row) string {
	s := fmt.Sprintf("%d workers", r.Workers)
	for _, name := range []string{"rate_per_h", "load", "potential_conflicts", "true_conflicts"} {
		if v, has := r.Workload[name]; has {
			s += fmt.Sprintf(", %s %v", strings.ReplaceAll(name, "_", " "), v)
		}
	}
	return s
}

// passing draws the number of pending changes under each policy of a setting, over time.
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
	const high, left = 260, 66
	x := func(at float64) float64 { return left + at/last*(plotWidth-left-10) }
	y := func(n int) float64 { return high - 30 - float64(n)/float64(most)*(high-50) }
	var b strings.Builder
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		at := last * float64(i) / 4
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="%s">%.1f h</text>`+"\n", x(at), high-6, anchor, at/3600)
		n := most * i / 4
		if i > 0 && n == most*(i-1)/4 {
			continue // so few are pending that two lines would have the same number
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`, left, plotWidth-10, y(n), y(n), left-6, y(n)+4, n)
	}
	var legend strings.Builder
	for i, r := range rows {
		var points []string
		for _, m := range r.timeline {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(m.At), y(m.Pending)))
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.6" stroke-dasharray="%s" points="%s"/>`+"\n", hue(r.Policy), dash(i, rows), strings.Join(points, " "))
		fmt.Fprintf(&legend, `<span><svg class="key" viewBox="0 0 32 10" aria-hidden="true"><line x1="0" x2="32" y1="5" y2="5" stroke="%s" stroke-width="3" stroke-dasharray="%s"/></svg> %s</span>`+"\n",
			hue(r.Policy), dash(i, rows), html.EscapeString(r.name()))
	}
	said := heading(rows[0])
	if rows[0].Seeds > 1 {
		said += "; the lines are of the first seed"
	}
	return fmt.Sprintf("<h2>Changes pending over time: %s</h2>\n<p>%s</p>\n<p class=\"keys\">%s</p>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"changes pending over time\">\n%s</svg>\n",
		html.EscapeString(short(rows[0])), html.EscapeString(said), legend.String(), plotWidth, high, b.String())
}
