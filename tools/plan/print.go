package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// write prints a plan as tables.
func (p *Plan) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHANGE\tDECISION\tBYPASSES\t")
	for _, d := range p.Decisions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", d.Change, d.Decision, strings.Join(d.Bypasses, " "), d.Why)
		for _, s := range d.WaitsFor {
			fmt.Fprintf(t, "\t\t\t  not known: on top of %s\n", told(s))
		}
	}
	fmt.Fprintln(t, "\t\t\t")
	fmt.Fprintln(t, "BUILD OF\tON TOP OF\tNEEDED\tVALUE\tACTION\t")
	for _, b := range p.Builds {
		fmt.Fprintf(t, "%s\t%s\t%.6g\t%.6g\t%s\t%s\n", b.Change, told(b.Assumed), b.Needed, b.Value, b.Action, b.Why)
		for _, f := range b.Factors {
			fmt.Fprintf(t, "\t  %s %s\t%.6g\t\t\t%s\n", f.Change, f.Assumed, f.Factor, f.says())
		}
	}
	if len(p.Builds) == 0 {
		fmt.Fprintln(t, "none\t\t\t\t\t")
	}
	if len(p.Abort) > 0 {
		fmt.Fprintln(t, "\t\t\t\t\t")
		fmt.Fprintln(t, "ABORT\tON TOP OF\t")
		for _, a := range p.Abort {
			fmt.Fprintf(t, "%s\t%s\t%s\n", a.Change, told(a.Assumed), a.Why)
		}
	}
	if !p.Exact {
		fmt.Fprintln(t, "\nThe search ran out of its budget: there may be better builds than these.")
	}
	return t.Flush()
}

// says is a factor with all that it is made of.
func (f Factor) says() string {
	terms := make([]string, len(f.Terms))
	for i, t := range f.Terms {
		terms[i] = fmt.Sprintf("%.6g %s [%s]", t.Value, t.Says, t.From)
	}
	s := strings.Join(terms, " · ")
	if f.Assumed == "rejected" {
		s = "1 − " + s
		if len(terms) > 1 {
			s = "1 − (" + strings.TrimPrefix(s, "1 − ") + ")"
		}
	}
	if f.FinishesFirst > 0 {
		s = fmt.Sprintf("%.6g that it finishes first, else %s", f.FinishesFirst, s)
	}
	return s
}
