package explanation

import (
	"fmt"
	"strings"
)

// String is the factor with all that it is made of, in one line.
func (f Factor) String() string {
	if f.Others > 0 {
		return fmt.Sprintf("%d more changes ahead, each nearer to 1", f.Others)
	}
	terms := make([]string, len(f.Terms))
	for i, t := range f.Terms {
		terms[i] = t.String()
	}
	s := strings.Join(terms, " · ")
	if f.Assumed == Rejected {
		if s = "1 − " + s; len(terms) > 1 {
			s = "1 − (" + strings.TrimPrefix(s, "1 − ") + ")"
		}
	}
	if f.FinishesFirst > 0 {
		s = fmt.Sprintf("%.6g that it finishes first, else %s", f.FinishesFirst, s)
	}
	return s
}

// String is the term with where it comes from.
func (t Term) String() string {
	s := fmt.Sprintf("%.6g %s [%s", t.Value, t.Says, t.From)
	var parts []string
	for _, o := range t.Of {
		parts = append(parts, o.String())
	}
	for _, p := range t.Proof {
		parts = append(parts, p.String())
	}
	if len(parts) > 0 {
		s += ": " + strings.Join(parts, "; ")
	}
	return s + "]"
}

// String names the step.
func (p Proof) String() string {
	s := p.Target
	if p.Outcome != "" {
		s += " " + p.Outcome
	}
	if p.Build != "" {
		s += fmt.Sprintf(" by attempt %d of build %.12s", p.Attempt, p.Build)
	}
	return s
}
