package simulate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Write prints the rows as tables for people, one for each workload and number of workers.
func Write(w io.Writer, rows []Row) error {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r Row) bool { return heading(r) != heading(rows[0]) })
		if n < 0 {
			n = len(rows)
		}
		if err := writeTable(w, rows[:n]); err != nil {
			return err
		}
		if rows = rows[n:]; len(rows) > 0 {
			fmt.Fprintln(w)
		}
	}
	return nil
}

func heading(r Row) string {
	parts := named(r.Workload)
	parts = append(parts, fmt.Sprintf("%d workers", r.Workers))
	if r.Seeds > 1 {
		parts = append(parts, fmt.Sprintf("means of %d seeds (± half a 95 %% interval)", r.Seeds))
	}
	return strings.Join(parts, ", ")
}

// named writes values with their names, in the order of these.
func named(values map[string]any) (parts []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value := values[name]
		if x, is := value.(float64); is {
			value = fmt.Sprintf("%.4g", x)
		}
		parts = append(parts, fmt.Sprintf("%s %v", strings.ReplaceAll(name, "_", " "), value))
	}
	return parts
}

func writeTable(w io.Writer, rows []Row) error {
	fmt.Fprintln(w, heading(rows[0]))
	if rows[0].Slowdown != nil {
		return writePoolTable(w, rows)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tturnaround P50\tP95\tP99\tof the oracle's\tP95\tP99\twait P95\tper hour\tof the oracle's\tbuilds\taborted\tbypass\tworker h\tlanded\tred\tETA 50 %\t90 %\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%s\t%s\t%.2f\t%.2f\t%.0f %%\t%.0f %%\t%s\t%.0f\t%.0f\t%s\t\n",
			r.name(), minutes(r.Turnaround.P50), minutes(r.Turnaround.P95), minutes(r.Turnaround.P99),
			r.ratio(), r.OverOracle.P95, r.OverOracle.P99, minutes(r.Wait.P95),
			figure(r.Throughput), r.OverOracle.Throughput, r.BuildsPerChange, 100*r.AbortedShare, 100*r.BypassRate, figure(r.WorkerHours), r.Landed, r.RedCommits, r.ETA.held())
	}
	return t.Flush()
}

// writePoolTable prints what matters where steps wait for workers, and the same by size of change.
func writePoolTable(w io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tturnaround P50\tP95\tP99\tlongest\tof the oracle's\tP95\tP99\twait P95\tslowdown\tP95\tlargest\tutilisation\tworker h\tbuilds\taborted\tbypass\tlanded\tred\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f\t%s\t%.2f\t%.1f\t%.0f\t%.3f\t%s\t%.2f\t%.0f %%\t%.0f %%\t%.0f\t%.0f\t\n",
			r.name(), minutes(r.Turnaround.P50), minutes(r.Turnaround.P95), minutes(r.Turnaround.P99), minutes(r.Turnaround.Max),
			r.ratio(), r.OverOracle.P95, r.OverOracle.P99, minutes(max(0, r.Wait.P95)), r.Slowdown.Mean, r.Slowdown.P95, r.Slowdown.Max, *r.Utilisation,
			figure(r.WorkerHours), r.BuildsPerChange, 100*r.AbortedShare, 100*r.BypassRate, r.Landed, r.RedCommits)
	}
	if err := t.Flush(); err != nil || len(rows[0].Sizes) == 0 {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "turnaround P50, P95; slowdown\t")
	for _, s := range rows[0].Sizes {
		fmt.Fprintf(t, "%s (%.0f)\t", s.name(), s.Changes)
	}
	fmt.Fprintln(t)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t", r.name())
		for _, s := range r.Sizes {
			if s.Slowdown == nil {
				fmt.Fprint(t, "\t")
				continue
			}
			fmt.Fprintf(t, "%s, %s; %.1f\t", minutes(s.Turnaround.P50), minutes(s.Turnaround.P95), s.Slowdown.Mean)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// name is the range in words.
func (s Size) name() string {
	if s.To == 0 {
		return fmt.Sprintf("%d targets or more", s.From)
	}
	return fmt.Sprintf("%d–%d targets", s.From, s.To)
}

func (r Row) name() string {
	if r.Threshold == nil {
		return r.Policy
	}
	if *r.Bypass > 1 {
		return fmt.Sprintf("%s τ %g, no bypass", r.Policy, *r.Threshold)
	}
	return fmt.Sprintf("%s τ %g θ %g", r.Policy, *r.Threshold, *r.Bypass)
}

func (r Row) ratio() string {
	if r.Margin == nil {
		return fmt.Sprintf("%.2f", r.OverOracle.P50)
	}
	return fmt.Sprintf("%.2f ± %.2f", r.OverOracle.P50, r.Margin.OverOracle.P50)
}

// figure writes a number with two digits at least: some queues land one change an hour.
func figure(x float64) string {
	if x < 10 {
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// minutes writes a time for people; short ones are seconds.
func minutes(seconds float64) string {
	if seconds < 120 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%.1f min", seconds/60)
}
