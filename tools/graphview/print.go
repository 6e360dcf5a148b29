package graphview

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"landfall.build/events"
)

func (l *Listing) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range l.Targets {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", events.ShortID(t.Hash), t.Kind, t.Name, counted(len(t.Deps), "dep"))
		if len(t.Owners) > 0 {
			fmt.Fprintf(w, "\t%s", indented(strings.Join(t.Owners, " ")))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s at %s\n", counted(len(l.Targets), "target"), events.ShortID(l.Rev))
	return w.Flush()
}

func (a *Affected) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range a.Affected {
		fmt.Fprintf(w, "%s\t%s\n", t.Change, t.Name)
	}
	fmt.Fprintf(w, "%s affected", counted(len(a.Affected), "target"))
	if a.Structural {
		fmt.Fprint(w, ", and the graph is another")
	}
	fmt.Fprintln(w)
	if a.All {
		fmt.Fprintf(w, "the change conflicts with everything: %s\n", strings.Join(a.Reasons, "; "))
	}
	writeUncovered(w, a.Uncovered)
	return w.Flush()
}

// maxNames bounds what a line lists.
const maxNames = 5

func (m *Matrix) write(out io.Writer) error {
	w := &strings.Builder{}
	for _, r := range m.Refused {
		fmt.Fprintf(w, "refused      %s: %s\n", r.Change, indented(r.Why))
	}
	for _, p := range m.Conflicts {
		fmt.Fprintf(w, "conflict     %s × %s: %s\n", p.A, p.B, indented(p.Why))
		if len(p.Targets) > 1 {
			fmt.Fprintf(w, "             shared: %s\n", list(p.Targets))
		}
	}
	met := map[[2]string][]string{}
	for _, p := range m.Hubs {
		met[[2]string{p.A, p.B}] = p.Targets
	}
	for _, p := range m.Independent {
		fmt.Fprintf(w, "independent  %s × %s", p[0], p[1])
		if hubs := met[[2]string{p[0], p[1]}]; len(hubs) > 0 {
			fmt.Fprintf(w, ": they meet in hubs alone: %s", list(hubs))
		}
		fmt.Fprintln(w)
	}
	verb, are := "conflict", "are"
	if len(m.Conflicts) == 1 {
		verb = "conflicts"
	}
	if len(m.Independent) == 1 {
		are = "is"
	}
	fmt.Fprintf(w, "%s %s, %d %s independent", counted(len(m.Conflicts), "pair"), verb, len(m.Independent), are)
	if len(m.Hubs) > 0 {
		fmt.Fprintf(w, " (%d of them meet in hubs)", len(m.Hubs))
	}
	if len(m.Refused) > 0 {
		are = "are"
		if len(m.Refused) == 1 {
			are = "is"
		}
		fmt.Fprintf(w, ", %s %s refused", counted(len(m.Refused), "change"), are)
	}
	fmt.Fprintln(w)
	_, err := io.WriteString(out, w.String())
	return err
}

// counted returns a number with a noun: "1 pair", "2 pairs".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// list is the first names.
func list(names []string) string {
	text := strings.Join(names[:min(len(names), maxNames)], ", ")
	if n := len(names); n > maxNames {
		text += fmt.Sprintf(" and %d more", n-maxNames)
	}
	return text
}

// indented puts a text of several lines below each other, without what would steer a terminal: paths in it
// are anybody's.
func indented(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, strings.TrimSpace(text))
	return strings.ReplaceAll(text, "\n", "\n             ")
}
