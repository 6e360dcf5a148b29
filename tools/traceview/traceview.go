// Package traceview makes the trace of a change from the log, at any time: the one that the tracer sends. It shows it as a picture, or
// as OTLP.
package traceview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/services/tracer/spans"
	"landfall.build/tools/client"
	"landfall.build/tools/replay"
)

// Wanted names the change whose trace is made.
type Wanted struct {
	// Queue is the change's, "" if it is not known.
	Queue, Change string
	// Revision is 0 for the newest one.
	Revision uint64
}

func (w Wanted) has(t spans.Trace) bool {
	return t.Change == w.Change && (w.Queue == "" || t.Queue == w.Queue) && (w.Revision == 0 || t.Revision == w.Revision)
}

// settling is by how much the records of a change may be later than its end, by the clocks of several machines.
const settling = time.Minute

// Find returns the trace of a change that a log holds. That of a pending change ends now.
func Find(ctx context.Context, log journal.Log, w Wanted, now time.Time) (*spans.Trace, error) {
	var found []spans.Trace
	for partition := range log.Partitions() {
		if w.Queue != "" && partition != events.PartitionOf(w.Queue, log.Partitions()) {
			continue
		}
		some, err := findIn(ctx, log, partition, w, now)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return choose(found, w)
}

// findIn returns the traces of all revisions that are wanted in one partition.
func findIn(ctx context.Context, log journal.Log, partition int32, w Wanted, now time.Time) (found []spans.Trace, err error) {
	keep := func(list []spans.Trace) {
		for _, t := range list {
			if w.has(t) {
				found = append(found, t)
			}
		}
	}
	f := spans.New(log.ID(), false, func(h spans.Head) bool { return w.Queue == "" || h.Queue == w.Queue })
	merged, err := spans.Open(ctx, log, partition, 0)
	if err != nil {
		return nil, err
	}
	defer merged.Close()
	for {
		e, err := merged.Take(ctx)
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		f.Apply(*e)
		if n := f.EndedBefore(e.Time.Add(-settling)); n > 0 {
			keep(f.Take(n))
		}
	}
	keep(f.Take(f.Ended()))
	keep(f.Pending(now))
	return found, nil
}

// choose returns the newest of the revisions that were found.
func choose(found []spans.Trace, w Wanted) (*spans.Trace, error) {
	if len(found) == 0 {
		what := "change " + w.Change
		if w.Revision > 0 {
			what += fmt.Sprintf(" at revision %d", w.Revision)
		}
		return nil, fmt.Errorf("the log has no %s; landfall log --type ChangeAdmitted lists what was admitted", what)
	}
	newest := &found[0]
	for i := range found {
		if found[i].Queue != newest.Queue {
			return nil, fmt.Errorf("queues %s and %s have a change %s; give --queue", newest.Queue, found[i].Queue, w.Change)
		}
		if found[i].Revision > newest.Revision {
			newest = &found[i]
		}
	}
	return newest, nil
}

// Command is `landfall trace`. load reads a configuration file.
func Command(version string, load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	source := replay.Source{Load: load}
	var w Wanted
	var asJSON bool
	var otlp, svg string
	c := &cobra.Command{
		Use:   "trace CHANGE",
		Short: "Show where the time of a change went, from the log: a picture, or OTLP",
		Long: "Make the trace of a change from the log: from its request, through analyses, builds, steps and decisions, to its push. It has the ids " +
			"under which the tracer sends it, whether that runs or not.\n\nThe whole log of the change's partition is read.",
		Example: "  landfall trace feature/x --data ~/.landfall\n  landfall trace feature/x --svg trace.svg\n  landfall trace feature/x --otlp - --brokers kafka-1:9092",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Change = args[0]
			cmd.SilenceUsage = true
			log, done, err := source.Open(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
			if err != nil {
				return err
			}
			defer done()
			t, err := Find(cmd.Context(), log, w, time.Now())
			if err != nil {
				return errors.New(client.Plain(err.Error()))
			}
			out := cmd.OutOrStdout()
			if asJSON {
				otlp = "-"
			}
			if otlp != "" {
				body, err := spans.JSON(spans.OTLP(version, *t))
				if err == nil {
					err = write(otlp, string(body)+"\n", out)
				}
				if err != nil {
					return err
				}
			}
			if svg != "" {
				if err := write(svg, SVG(*t), out); err != nil {
					return err
				}
			}
			if otlp == "" && svg == "" {
				_, err = io.WriteString(out, Text(*t))
			}
			return err
		},
	}
	s := c.Flags()
	source.Flags(s)
	s.StringVarP(&w.Queue, "queue", "q", os.Getenv("LANDFALL_QUEUE"), "the change's queue; needed only if several have one of that name (LANDFALL_QUEUE)")
	s.Uint64Var(&w.Revision, "revision", 0, "the change's revision (default: the newest)")
	s.BoolVar(&asJSON, "json", false, "print the trace as OTLP's JSON, as --otlp - does")
	s.StringVar(&otlp, "otlp", "", "write the trace as OTLP's JSON to a file, - for standard output")
	s.StringVar(&svg, "svg", "", "write a picture to a file, - for standard output")
	c.MarkFlagsMutuallyExclusive("json", "otlp")
	return c
}

func write(file, text string, out io.Writer) error {
	if file == "-" {
		_, err := io.WriteString(out, text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// row is a span as people see it.
type row struct {
	label, result, remark string
	failed                bool
	depth                 int
	// from and to are where it begins and ends in the time of the trace, which is from 0 to 1.
	from, to float64
	took     time.Duration
}

// headline returns what the trace is of, in two lines.
func headline(t spans.Trace) (string, string) {
	root := t.Spans[0]
	outcome := t.Outcome
	if outcome == "" {
		outcome = "pending"
	}
	first := fmt.Sprintf("%s, revision %d, of queue %s: %s after %s", t.Change, t.Revision, t.Queue, outcome, duration(root.End.Sub(root.Start)))
	second := fmt.Sprintf("trace %s, from %s on", t.TraceID, root.Start.UTC().Format("2006-01-02 15:04:05.000 MST"))
	if root.Parent.IsValid() {
		second += fmt.Sprintf(", below span %s of who asked", root.Parent)
	}
	return client.Plain(first), second
}

func rows(t spans.Trace) (list []row) {
	began, end := t.Spans[0].Start, t.Spans[0].End
	for _, s := range t.Spans {
		if s.Start.Before(began) {
			began = s.Start
		}
		if s.End.After(end) {
			end = s.End
		}
	}
	whole := max(end.Sub(began), time.Microsecond)
	for _, s := range t.Spans {
		r := row{label: client.Plain(label(s)), result: s.Result, failed: s.Failed, depth: s.Depth, took: s.End.Sub(s.Start),
			from: float64(s.Start.Sub(began)) / float64(whole), to: float64(s.End.Sub(began)) / float64(whole)}
		if r.result == "" {
			r.result = "…"
		}
		var remarks []string
		if s.Message != "" {
			remarks = append(remarks, s.Message)
		}
		for _, l := range s.Links {
			if s.Name == "build" {
				remarks = append(remarks, "with "+l.Change)
			} else {
				remarks = append(remarks, "ran for "+l.Change)
			}
		}
		for _, e := range s.Events {
			remarks = append(remarks, fmt.Sprintf("%s after %s", e.Name, duration(e.Time.Sub(began))))
		}
		r.remark = client.Plain(strings.Join(remarks, "; "))
		list = append(list, r)
	}
	return list
}

// label names a span; analyses, builds and pushes with their commit.
func label(s spans.Span) string {
	var key, preposition string
	switch s.Name {
	case "build", "analyze":
		key, preposition = "vcs.ref.base.revision", " on "
	case "push":
		key, preposition = "vcs.ref.head.revision", " of "
	}
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return s.Name + preposition + events.ShortID(a.Value.AsString())
		}
	}
	return s.Name
}

func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
}
