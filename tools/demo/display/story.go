package display

import (
	"fmt"
	"io"
	"strings"
	"time"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/plainmerge"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/demo/tally"
)

// widest is how long a reason may be; explain has all of it.
const widest = 160

// Story prints what happened and why, group by group.
func Story(w io.Writer, ends []expectation.End) {
	group := ""
	for _, e := range ends {
		if e.Change.Group != group {
			group = e.Change.Group
			fmt.Fprintf(w, "\n%s\n", group)
		}
		mark := "ok"
		if !e.AsExpected {
			mark = "!!"
		}
		fmt.Fprintf(w, "  %s %-30s %-9s %6s  %s\n", mark, e.Change.Name, e.Got.State, turnaround(e.View), cut(reason(e), widest))
	}
}

func turnaround(v view.Change) string {
	if v.FinishedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf("%.1fs", v.FinishedAt.Sub(v.AdmittedAt).Seconds())
}

// reason returns why it ended so, in a line.
func reason(e expectation.End) string {
	v := e.View
	if v.Landing != nil {
		text := fmt.Sprintf("%d steps prove it", proofs(v.Landing))
		if proofs(v.Landing) == 1 {
			text = "1 step proves it"
		}
		if n := len(v.Landing.Commits); n > 1 {
			text += fmt.Sprintf(", as %d commits", n)
		}
		if v.Revision > 1 {
			text += fmt.Sprintf(", as revision %d", v.Revision)
		}
		if len(v.Landing.Bypassed) > 0 {
			text += ", past " + strings.Join(v.Landing.Bypassed, ", ")
		}
		return text
	}
	if v.Rejection == nil {
		return clean(v.Why)
	}
	if v.Failure != nil {
		return clean(v.Failure.Sentence)
	}
	text := v.Rejection.Class
	if v.Rejection.Conflicting != "" {
		text += " with " + v.Rejection.Conflicting
	}
	return text + ": " + clean(v.Rejection.Message)
}

func proofs(l *view.Landing) int {
	n := 0
	for _, p := range l.Proof {
		if p.State != view.StepTrivial {
			n++
		}
	}
	return n
}

// Costs prints how much time and work it took.
func Costs(w io.Writer, t tally.Tally, p50, p95 time.Duration) {
	fmt.Fprintf(w, "\n%d builds (%d given up), %d steps run (%d ended early), %d times a step of another change was enough; the check before landing refused %d times.\n",
		t.Builds, t.BuildsAborted, t.StepsRun, t.StepsAborted, t.StepsReused, t.Refusals)
	fmt.Fprintf(w, "Turnaround from admission to landing: half within %.1fs, 95 %% within %.1fs.\n", p50.Seconds(), p95.Seconds())
}

// Damage prints what plain merging would have done.
func Damage(w io.Writer, d *plainmerge.Damage, chain *plainmerge.Chain, r *sample.Repository) {
	fmt.Fprintf(w, "\nPlain merging of the same changes, in the order in which they were asked for, would have broken the mainline %d times, and left it red after %d of %d merges:\n",
		len(d.Breaking), d.RedHeads, d.Heads)
	for _, b := range d.Breaking {
		title := ""
		if c := r.Find(b.Name); c != nil {
			title = " (" + c.Title() + ")"
		}
		fmt.Fprintf(w, "  %s%s broke %s\n", b.Name, title, cut(strings.Join(b.Targets, " "), 100))
	}
	if len(chain.Refused) > 0 {
		fmt.Fprintf(w, "  %d could not be merged at all: %s\n", len(chain.Refused), strings.Join(chain.Refused, ", "))
	}
}
