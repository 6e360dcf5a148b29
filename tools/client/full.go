package client

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"landfall.build/engine/explanation"
	"landfall.build/events"
	"landfall.build/services/gateway/view"
)

// writeFull prints the numbers behind what a change waits for, and behind each build and decision.
func writeFull(out io.Writer, f *view.Full) {
	if f == nil {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "\nnumbers as of offset %d of landfall.speculations (%s)\n", f.Position, f.At.Local().Format(time.DateTime))
	if p := f.Prediction; p != nil {
		fmt.Fprintf(w, "predicted\tpasses alone with probability %.6g [%s]; its builds take %.0f ± %.0f s [%s]; lands with probability %.6g [marginal]\n",
			p.Success, Plain(p.SuccessFrom), p.DurationMean, p.DurationStd, Plain(p.DurationFrom), p.Lands)
	}
	writeVerdict(w, "decision", f.Verdict)
	for _, r := range f.Ranked {
		title := fmt.Sprintf("rank %d", r.Rank)
		if r.Build != "" {
			title += ", build " + events.ShortID(r.Build)
		}
		if r.Worth == nil {
			fmt.Fprintf(w, "%s\tno longer a path; needed %.6g, value %.6g\n", title, r.Needed, r.Value)
			continue
		}
		writeWorth(w, title, "", r.Worth)
	}
	for _, b := range f.Builds {
		fmt.Fprintf(w, "build %s\t%s; scheduled at offset %d, needed %.6g, worth %.6g to the workers", events.ShortID(b.Build), b.State, b.Position, b.Needed, b.Value)
		if b.Why != "" {
			fmt.Fprintf(w, ": %s", Plain(b.Why))
		}
		if b.Message != "" {
			fmt.Fprintf(w, "; ended: %s", Plain(b.Message))
		}
		fmt.Fprintln(w)
		writeWorth(w, "  then", "  ", b.Then)
		writeWorth(w, "  now", "  ", b.Now)
	}
	for _, d := range f.Decisions {
		fmt.Fprintf(w, "%s\tdecided at offset %d (%s)\n", d.Decision, d.Position, d.At.Local().Format(time.DateTime))
		writeVerdict(w, "  then", d.Then)
	}
	if f.Omitted != "" {
		fmt.Fprintf(w, "left out\t%s\n", Plain(f.Omitted))
	}
}

// writeWaiting prints the factors of the step that waits, and of the one that comes first.
func writeWaiting(out io.Writer, s *view.WaitingStep) {
	if s == nil {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "\nsteps that wait for a worker: %d of the change, %d before its first\n", s.Open, s.Before)
	for _, x := range []struct {
		title string
		step  *view.RankedStep
	}{{"comes first", s.First}, {"this one", s.Step}} {
		if x.step == nil {
			continue
		}
		fmt.Fprintf(w, "%s\t%s attempt %d", x.title, Plain(x.step.Target), x.step.Attempt)
		if x.step.Urgent {
			fmt.Fprint(w, ", urgent")
		}
		if !x.step.Ready {
			fmt.Fprint(w, ", what it depends on has not passed")
		}
		if x.step.Late {
			fmt.Fprint(w, ", more than twice as long as with a fair share")
		}
		fmt.Fprintf(w, ": index %.6g\n", x.step.Index)
		for _, b := range x.step.Builds {
			of := "the mainline"
			if b.Change != "" {
				of = Plain(b.Change)
			}
			fmt.Fprintf(w, "\t%.6g = %.6g value · (%.6g s + %.6g s waited) / %.6g s of work left, build %s of %s\n",
				b.Index, b.Value, s.PatienceS, b.WaitedS, b.WorkLeftS, events.ShortID(b.Build), of)
		}
	}
}

func writeVerdict(w io.Writer, title string, v *explanation.Verdict) {
	if v == nil {
		return
	}
	fmt.Fprintf(w, "%s\t%s: %s\n", title, v.Decision, Plain(v.Why))
	if len(v.Ahead) > 0 {
		fmt.Fprintf(w, "\tahead of it, pending: %s\n", Plain(listed(v.Ahead)))
	}
	for _, p := range v.Paths {
		line := fmt.Sprintf("\t%s on top of %s", p.State, Plain(explanation.OnTopOf(p.Assumed)))
		if len(p.Outstanding) > 0 {
			line += "; outstanding: " + Plain(strings.Join(p.Outstanding, ", "))
			if p.More > 0 {
				line += fmt.Sprintf(" and %d more", p.More)
			}
		}
		switch {
		case p.Covered:
			line += "; being verified by build " + builds(p.Builds)
		case len(p.Builds) > 0:
			line += "; being verified in part by build " + builds(p.Builds)
		case p.State == "unknown":
			line += "; no build verifies it"
		}
		if p.Message != "" {
			line += ": " + Plain(p.Message)
		}
		if len(p.Proof) > 0 {
			line += " [" + Plain(proofs(p.Proof)) + "]"
		}
		fmt.Fprintln(w, line)
	}
}

// writeWorth prints a product with its factors below each other.
func writeWorth(w io.Writer, title, indent string, x *explanation.Worth) {
	if x == nil {
		return
	}
	fmt.Fprintf(w, "%s\ton top of %s: needed %.6g", title, Plain(explanation.OnTopOf(x.Assumed)), x.Needed)
	if len(x.Assumed)+len(x.Rejected) > 0 {
		fmt.Fprintf(w, " (at least %.6g to be built)", x.Threshold)
	}
	if x.Rule != "" {
		fmt.Fprintf(w, ", value %.6g%s: %s\n", x.Value, inPool(x), Plain(x.Rule))
		return
	}
	fmt.Fprintf(w, ", value %.6g = %.6g benefit · %.6g soon · %.6g likely%s\n", x.Value, x.Benefit, x.Soon, x.Likely, inPool(x))
	for _, f := range x.Factors {
		fmt.Fprintf(w, "%s  %.6g\t%s\n", indent, f.Factor, Plain(strings.TrimSpace(f.Change+" "+f.Assumed+": "+f.String())))
	}
}

// inPool says what a build is worth to the workers of a pool.
func inPool(x *explanation.Worth) string {
	if x.InPool == 0 {
		return ""
	}
	return fmt.Sprintf(", %.6g to the workers", x.InPool)
}

func proofs(list []explanation.Proof) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.String()
	}
	return strings.Join(names, "; ")
}

func builds(ids []string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = events.ShortID(id)
	}
	return strings.Join(names, ", ")
}
