package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The picture, in pixels.
const (
	width, height         = 760, 460
	left, top             = 80, 50
	plotWidth, plotHeight = 460, 340
)

var colours = []string{"#1f5f8b", "#c8553d", "#4a7c59", "#8e6c8a", "#b8860b", "#333333"}

// scale is a logarithmic axis over whole powers of ten.
type scale struct{ from, to float64 }

func (s *scale) hold(x float64) {
	s.from, s.to = min(s.from, math.Floor(math.Log10(x))), max(s.to, math.Ceil(math.Log10(x)))
}

// at is where x lies on the axis, from 0 to 1.
func (s scale) at(x float64) float64 {
	if s.from == s.to {
		return 0.5
	}
	return (math.Log10(x) - s.from) / (s.to - s.from)
}

// draw makes the picture.
func draw(title, note string, lines []line) string {
	x, y := scale{math.Inf(1), math.Inf(-1)}, scale{math.Inf(1), math.Inf(-1)}
	for _, l := range lines {
		for _, p := range l.points {
			x.hold(p.n)
			y.hold(p.ns)
		}
	}
	px := func(n float64) float64 { return left + plotWidth*x.at(n) }
	py := func(ns float64) float64 { return top + plotHeight*(1-y.at(ns)) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#222">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	text := func(x, y float64, anchor, size, s string) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%s">%s</text>`+"\n", x, y, anchor, size, html.EscapeString(s))
	}
	text(left, 28, "start", "15", title)
	for e := x.from; e <= x.to; e++ {
		at := px(math.Pow(10, e))
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n", at, top, at, top+plotHeight)
		text(at, top+plotHeight+18, "middle", "12", fmt.Sprintf("%.0f", math.Pow(10, e)))
	}
	for e := y.from; e <= y.to; e++ {
		at := py(math.Pow(10, e))
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", left, at, left+plotWidth, at)
		text(left-8, at+4, "end", "12", duration(math.Pow(10, e)))
	}
	text(left+plotWidth/2, top+plotHeight+38, "middle", "12", "n")
	for i, l := range lines {
		colour := colours[i%len(colours)]
		dash := ""
		if i/len(colours)%2 == 1 {
			dash = ` stroke-dasharray="5 3"`
		}
		var path []string
		for _, p := range l.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", px(p.n), py(p.ns)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(path, " "), colour, dash)
		for _, p := range l.points {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s</title></circle>`+"\n", px(p.n), py(p.ns), colour,
				html.EscapeString(fmt.Sprintf("%s, n=%.0f: %s", l.name, p.n, duration(p.ns))))
		}
		at := top + 14 + 20*float64(i)
		fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="14" height="4" fill="%s"/>`+"\n", left+plotWidth+16, at-6, colour)
		text(left+plotWidth+36, at, "start", "11", l.name)
	}
	text(16, height-12, "start", "11", note)
	b.WriteString("</svg>\n")
	return b.String()
}

// duration tells nanoseconds in the unit that is next below.
func duration(ns float64) string {
	for _, u := range []struct {
		ns   float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= u.ns {
			return fmt.Sprintf("%.3g %s", ns/u.ns, u.name)
		}
	}
	return fmt.Sprintf("%.3g ns", ns)
}
