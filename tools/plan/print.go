package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"landfall.build/engine/explanation"
)

// write prints a plan as tables.
func (p *Plan) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHANGE\tDECISION\tBYPASSES\t")
	for _, d := range p.Decisions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", d.Change, d.Decision, strings.Join(d.Bypasses, " "), d.Why)
		for _, s := range d.WaitsFor {
			fmt.Fprintf(t, "\t\t\t  no result yet: on top of %s\n", explanation.OnTopOf(s))
		}
	}
	fmt.Fprintln(t, "\t\t\t")
	fmt.Fprintln(t, "BUILD OF\tON TOP OF\tNEEDED\tVALUE\tACTION\t")
	for _, b := range p.Builds {
		fmt.Fprintf(t, "%s\t%s\t%.6g\t%.6g\t%s\t%s\n", b.Change, explanation.OnTopOf(b.Assumed), b.Needed, b.Value, b.Action, b.Why)
		if b.Benefit > 0 { // with --explain
			fmt.Fprintf(t, "\t\t\t\t\t  %s\n", b.worth())
		}
		for _, f := range b.Factors {
			fmt.Fprintf(t, "\t  %s %s\t%.6g\t\t\t%s\n", f.Change, f.Assumed, f.Factor, f.String())
		}
	}
	if len(p.Builds) == 0 {
		fmt.Fprintln(t, "none\t\t\t\t\t")
	}
	if len(p.Abort) > 0 {
		fmt.Fprintln(t, "\t\t\t\t\t")
		fmt.Fprintln(t, "ABORT\tON TOP OF\t")
		for _, a := range p.Abort {
			fmt.Fprintf(t, "%s\t%s\t%s\n", a.Change, explanation.OnTopOf(a.Assumed), a.Why)
		}
	}
	if !p.Exact {
		fmt.Fprintln(t, "\nThe search ran out of its budget: there may be better builds than these.")
	}
	return t.Flush()
}

// worth returns what the value of an explained build is the product of.
func (b *Build) worth() string {
	if b.Value == b.Benefit*b.Needed {
		return fmt.Sprintf("value %.6g = benefit %.6g × needed %.6g", b.Value, b.Benefit, b.Needed)
	}
	return fmt.Sprintf("value %.6g = benefit %.6g × soon %.6g × likely %.6g", b.Value, b.Benefit, b.Soon, b.Value/(b.Benefit*b.Soon))
}
