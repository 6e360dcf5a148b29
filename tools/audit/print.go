package audit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"landfall.build/events"
)

// shownTail is how many lines of a failing step's output are shown.
const shownTail = 15

// Write prints what was found: the commits that are not green with their targets, those that are red in quarantined ones, then the
// sum.
func (r *Report) Write(w io.Writer) {
	for _, c := range r.Commits {
		if c.Green() {
			continue
		}
		fmt.Fprintf(w, "%s  %s (%s)\n", events.ShortID(c.ID), clean(c.Title), clean(c.Author))
		for _, f := range c.Bad {
			f.write(w, c.ID)
		}
	}
	tolerated := 0
	for _, c := range r.Commits {
		if len(c.Quarantined) == 0 {
			continue
		}
		tolerated++
		var names []string
		for _, f := range c.Quarantined {
			names = append(names, f.Target)
		}
		fmt.Fprintf(w, "%s  %s (%s)\n  %s in quarantined targets: %s\n", events.ShortID(c.ID), clean(c.Title), clean(c.Author), worst(c.Quarantined), strings.Join(names, ", "))
	}
	for _, f := range r.Flaky {
		fmt.Fprintf(w, "flaky: %s at %s passed only when it was run again: with the same files it fails and passes\n", f.Target, events.ShortID(f.Hash))
	}
	apart := ""
	if tolerated > 0 {
		apart = fmt.Sprintf(" but for quarantined targets in %d", tolerated)
	}
	fmt.Fprintf(w, "%d of %d commits are green%s: %d target versions, %d steps run in %s\n",
		r.Green(), len(r.Commits), apart, r.Versions, r.Steps, r.Took.Round(100*time.Millisecond))
}

// worst returns red if a finding is, else unproven.
func worst(findings []*Finding) Verdict {
	for _, f := range findings {
		if f.Verdict == Red {
			return Red
		}
	}
	return Unproven
}

// write prints a finding of a commit: whole where the version is new, else the commit that it is inherited from.
func (f *Finding) write(w io.Writer, commit string) {
	fmt.Fprintf(w, "  %-8s %s", f.Verdict, f.Target)
	if f.Hash != "" {
		fmt.Fprintf(w, " (version %s)", events.ShortID(f.Hash))
	}
	if f.First != commit {
		fmt.Fprintf(w, ": inherited from %s\n", events.ShortID(f.First))
		return
	}
	if f.Command != "" && !strings.Contains(f.Reason, f.Command) {
		fmt.Fprintf(w, ", command %s", f.Command)
	}
	fmt.Fprintf(w, ": %s\n", clean(f.Reason))
	if f.PassedAt != "" {
		fmt.Fprintf(w, "    not before: the same version passes at %s, so something has changed that its hash does not cover\n", events.ShortID(f.PassedAt))
	}
	for _, line := range f.Lines {
		fmt.Fprintf(w, "    %s\n", clean(line))
	}
	lines := strings.Split(strings.TrimRight(f.Tail, "\n"), "\n")
	for _, line := range lines[max(0, len(lines)-shownTail):] {
		if line != "" {
			fmt.Fprintf(w, "    | %s\n", clean(line))
		}
	}
}

// clean keeps what commits and steps print from steering a terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, text)
}

// Meter shows an audit's progress: on a terminal a line drawn again in place, otherwise a line for each tenth.
type Meter struct {
	// What is being done, and to what; an audit of target versions unless set.
	What, Of string

	out    io.Writer
	width  func() int
	drawn  bool
	tenths int
}

// NewMeter shows progress on a writer, which may be a terminal.
func NewMeter(out io.Writer) *Meter {
	m := &Meter{What: "audit", Of: "target versions", out: out}
	if f, is := out.(*os.File); is && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		m.width = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 80
			}
			return width
		}
	}
	return m
}

// Show is for Options.Progress.
func (m *Meter) Show(p Progress) {
	line := fmt.Sprintf("%s: %d of %d %s", m.What, p.Done, p.Total, m.Of)
	if p.Bad > 0 {
		line += fmt.Sprintf(", %d NOT GREEN", p.Bad)
	}
	if p.Done > 0 && p.Done < p.Total {
		line += fmt.Sprintf(", about %s left", p.Remaining.Round(time.Second))
	}
	if m.width == nil {
		if tenths := 10 * p.Done / max(1, p.Total); tenths > m.tenths {
			m.tenths = tenths
			fmt.Fprintln(m.out, line)
		}
		return
	}
	if len(p.Running) > 0 {
		line += ", running " + strings.Join(p.Running, " ")
	}
	if runes := []rune(line); len(runes) >= m.width() {
		line = string(runes[:max(0, m.width()-1)])
	}
	m.drawn = true
	fmt.Fprintf(m.out, "\r\x1b[K%s", line)
}

// End removes the line from the terminal. The meter can be used again.
func (m *Meter) End() {
	if m.drawn {
		fmt.Fprint(m.out, "\r\x1b[K")
	}
	m.drawn, m.tenths = false, 0
}
