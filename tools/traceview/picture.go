package traceview

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"

	"landfall.build/services/tracer/spans"
)

const (
	// barWidth is the width of the time in a terminal, labelWidth that of names, in characters.
	barWidth   = 40
	labelWidth = 40
)

// Text returns a trace as lines: what happened, when, and for how long.
func Text(t spans.Trace) string {
	first, second := headline(t)
	list := rows(t)
	width := 0
	for _, r := range list {
		width = max(width, 2*r.depth+utf8.RuneCountInString(r.label))
	}
	width = min(width, labelWidth)
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n%s\n\n", first, second)
	for _, r := range list {
		name := cut(strings.Repeat("  ", r.depth)+r.label, width)
		line := fmt.Sprintf("%s%s  %s  %9s  %-12s  %s", name, strings.Repeat(" ", width-utf8.RuneCountInString(name)), bar(r), duration(r.took), r.result, r.remark)
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	if t.Left > 0 {
		fmt.Fprintf(&out, "\n%d more are left out.\n", t.Left)
	}
	return out.String()
}

func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// bar returns the time of a row within that of the trace.
func bar(r row) string {
	from := min(int(r.from*barWidth), barWidth-1)
	to := max(from+1, int(math.Round(r.to*barWidth)))
	mark := "█"
	if (r.to-r.from)*barWidth < .5 {
		mark = "▏"
	}
	return strings.Repeat("·", from) + strings.Repeat(mark, to-from) + strings.Repeat("·", barWidth-to)
}

// Sizes of the picture, in pixels.
const (
	rowHeight  = 20
	textWidth  = 330
	timeWidth  = 560
	rightWidth = 420
	topHeight  = 54
)

// SVG returns a trace as a picture.
func SVG(t spans.Trace) string {
	first, second := headline(t)
	list := rows(t)
	width, height := textWidth+timeWidth+rightWidth, topHeight+rowHeight*len(list)+10
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<text x="10" y="20" font-weight="bold">%s</text>`+"\n"+`<text x="10" y="38" fill="#555555">%s</text>`+"\n", html.EscapeString(first), html.EscapeString(second))
	for i, r := range list {
		y := topHeight + rowHeight*i
		colour := "#4878a8"
		switch {
		case r.failed:
			colour = "#c0392b"
		case r.result == "cancellation":
			colour = "#999999"
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d">%s</text>`+"\n", 10+14*r.depth, y+14, html.EscapeString(cut(r.label, 46-2*r.depth)))
		fmt.Fprintf(&out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`+"\n", textWidth+r.from*timeWidth, y+3, max(1.5, (r.to-r.from)*timeWidth), rowHeight-6, colour)
		fmt.Fprintf(&out, `<text x="%d" y="%d" fill="#333333">%s</text>`+"\n", textWidth+timeWidth+10, y+14,
			html.EscapeString(cut(strings.TrimSpace(duration(r.took)+"  "+r.result+"  "+r.remark), 64)))
	}
	out.WriteString("</svg>\n")
	return out.String()
}
