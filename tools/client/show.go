package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/services/gateway/view"
)

func queueCommand() *cobra.Command {
	var states []string
	var limit int
	cmd, s := command("queue", "Show the changes of the queue, in order, and why each waits",
		`Show the changes of a queue in order. With --state also those that have left it.

  POS         place in the queue; a change ahead lands first unless it is passed
  CHANGE      id, with @N for revision N; ! marks one that was moved to the front
  STATE       waiting: nothing is built for it; testing: a build runs or waits for a worker; passed: all its steps have passed
  STEPS       steps of its running build that have ended, of all of them
  DECIDED IN  until it lands or is rejected: the median, and an interval with a probability of 90 %
  WHY         what it waits for, or how it ended`, none,
		func(ctx context.Context, s *session, _ []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			list, err := s.client.Changes(ctx, s.queue, limit, states...)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(list)
			}
			s.writeMoment()
			WriteQueue(s.out, s.now(), list.Queue, list.Changes)
			return nil
		})
	cmd.Flags().StringSliceVar(&states, "state", []string{"pending"}, "states to list: pending, waiting, testing, passed, landed, dropped, rejected, ejected, cancelled")
	cmd.Flags().IntVar(&limit, "limit", 200, "most changes to list")
	s.addAt(cmd)
	s.addTimeout(cmd)
	return cmd
}

// WriteQueue prints a queue and changes of it as `landfall queue` does at that time.
func WriteQueue(w io.Writer, now time.Time, q view.Overview, changes []view.Summary) {
	writeOverview(w, now, q)
	for _, row := range table(changes, now) {
		fmt.Fprintln(w, row)
	}
}

func statusCommand() *cobra.Command {
	var services bool
	cmd, s := command("status [CHANGE]", "Show a change, all queues, or with --services who is at work",
		"Show everything about a change; without one, a line for each queue.\n\n"+
			"With --services: which instance of which service lives, who works on which partition, at which term, since when,\nand how many records it is behind. Exit code 1 if a service is missing. With --at: who had claimed which partition\nthen; the log does not have who lived.",
		func(cmd *cobra.Command, args []string) error {
			if services && len(args) > 0 {
				return errors.New("status --services takes no CHANGE")
			}
			return atMostOne("CHANGE")(cmd, args)
		}, func(ctx context.Context, s *session, args []string) error {
			if services {
				return s.showServices(ctx)
			}
			if len(args) == 0 {
				return s.showQueues(ctx)
			}
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			change, err := s.client.Change(ctx, s.queue, args[0])
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(change)
			}
			s.writeMoment()
			writeChange(s.out, s.now(), change)
			return nil
		})
	cmd.Flags().BoolVar(&services, "services", false, "show which services are at work, and who works on which partition")
	s.addAt(cmd)
	s.addTimeout(cmd)
	return cmd
}

func (s *session) showQueues(ctx context.Context) error {
	queues, err := s.client.QueuesThen(ctx)
	if err != nil {
		return err
	}
	if s.asJSON {
		return s.print(queues)
	}
	s.writeMoment()
	for _, q := range queues {
		if s.queue == "" || s.queue == q.Queue {
			writeOverview(s.out, s.now(), q)
		}
	}
	return nil
}

func explainCommand() *cobra.Command {
	var full bool
	cmd, s := command("explain CHANGE", "Say why a change waits, why it was rejected, or which steps verified it",
		"Say why a change is where it is: which changes it waits for and in which targets they conflict, which step failed, or which build verified each target version that landed.\n\nOf a change that failed the first three lines say what failed, why, and whose fault it is; --full shows its builds, the end of the output and the timeline too.\n\nOf its steps that wait for a worker it says how many come before the first, and why.\n\nWith --full also the numbers: the value of each build, now and when it was scheduled, factor by factor, each with what predicted it; what was known at each decision; what is missing to decide now; and the index of the step that waits. What was known earlier is read from the log.",
		Exactly("CHANGE"), func(ctx context.Context, s *session, args []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			e, err := s.client.Explain(ctx, s.queue, args[0], full)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(e)
			}
			s.writeMoment()
			WriteExplanation(s.out, s.now(), e)
			return nil
		})
	cmd.Flags().BoolVar(&full, "full", false, "also builds, outputs and the timeline of a failure, every factor, what predicted it, and what is missing to decide")
	s.addAt(cmd)
	s.addTimeout(cmd)
	return cmd
}

// writeOverview prints a queue in one line, and why its mainline is red, or could not be verified.
func writeOverview(w io.Writer, now time.Time, q view.Overview) {
	fmt.Fprintln(w, queueLine(q, now))
	for _, f := range q.MainlineFailures {
		label := "red"
		if f.State != view.StepFailed {
			label = "unproven"
		}
		fmt.Fprintf(w, "  %-9s %s\n", label, Plain(f.Cause()))
	}
	if len(q.MainlineFailures) > 0 {
		fmt.Fprintf(w, "  more      landfall logs --target '%s'\n", Plain(q.MainlineFailures[0].Target))
	}
}

func queueLine(q view.Overview, now time.Time) string {
	line := fmt.Sprintf("queue %s: %d pending (%d waiting, %d testing, %d passed)", q.Queue, q.Pending, q.Waiting, q.Testing, q.Passed)
	what := counted(q.Running, "build")
	if q.Pending == 0 && q.Running > 0 {
		what += " of the mainline itself"
	}
	if p := q.Pool; p != nil {
		line += fmt.Sprintf(", %s with %d of %d workers busy and %s open", what, p.Busy, p.Workers, counted(p.Open, "step"))
	} else if q.Workers > 0 {
		line += fmt.Sprintf(", %d of %d builds running", q.Running, q.Workers)
	}
	if q.Head != "" {
		line += ", mainline at " + events.ShortID(q.Head)
	}
	if q.Shadow {
		line += "; a shadow: it decides what others land, and pushes nothing"
	}
	if p := q.Paused; p != nil {
		line += "; PAUSED by " + whoAndWhy(p.Who, p.Why)
		if !p.Since.IsZero() {
			line += " (since " + p.Since.Local().Format(time.DateTime) + ")"
		}
	}
	if p := q.LastPause; p != nil && q.Paused == nil && now.Sub(p.Until) < 24*time.Hour {
		when := "until " + p.Until.Local().Format(time.DateTime)
		if !p.Since.IsZero() {
			when = "from " + p.Since.Local().Format(time.DateTime) + " to " + p.Until.Local().Format(time.DateTime)
		}
		line += "; last paused " + when + " by " + whoAndWhy(p.Who, p.Why) + "; resumed by " + whoAndWhy(p.ResumedBy, p.ResumedWhy)
	}
	if p := q.PausedByRemote; p != nil {
		line += "; PAUSED by the remote: " + Plain(p.Sentence)
	}
	if n := q.QuarantinedTotal; n > 0 {
		line += "; quarantined: " + Plain(listed(q.Quarantined[:min(n, 3, len(q.Quarantined))]))
		if n > 3 {
			line += fmt.Sprintf(" and %d more", n-3)
		}
	}
	if len(q.UnseenQuarantines) > 0 {
		line += "; quarantined, but no target that was seen has the name: " + someTargets(q.UnseenQuarantines)
	}
	for _, t := range q.ServiceTroubles {
		if line += "; "; t.Service != health.Starting {
			line += "MISSING: "
		}
		line += Plain(t.Sentence)
	}
	if t := q.Unreachable; t != nil && t.Kind == view.ReasonPushRefused {
		line += "; PUSH REFUSED: " + Plain(t.Sentence)
	} else if t != nil {
		line += "; NOTHING LANDS: " + Plain(t.Sentence)
	}
	if pushed := slices.DeleteFunc(slices.Clone(q.MainlineRed), func(t string) bool { return slices.Contains(q.RedBeforeQueue, t) }); len(pushed) > 0 {
		line += "; mainline RED in " + someTargets(pushed) + redSince(q.RedSince, len(pushed))
	}
	if before := q.RedBeforeQueue; len(before) > 0 {
		line += "; mainline RED since before the queue in " + someTargets(before)
	}
	if n := q.Unproven; n > 0 {
		line += fmt.Sprintf("; %s of the mainline not proven yet", counted(n, "target"))
	}
	for _, m := range q.Models {
		if m.Trouble != "" {
			line += fmt.Sprintf("; the %s model %.12s is NOT USED, priors predict in its place: %s", Plain(m.Kind), Plain(m.Version), Plain(m.Trouble))
		}
	}
	return strings.ReplaceAll(line, ".; ", "; ") // sentences have no full stop where something follows
}

// redSince says by which direct push the mainline is red, in the first at least of some targets.
func redSince(s *view.RedSince, targets int) string {
	if s == nil {
		return ""
	}
	text := " since the direct push "
	if targets > 1 {
		text = ", the first of them" + text
	}
	text += events.ShortID(s.Commit)
	if s.Author != "" {
		text += " by " + Plain(s.Author)
	}
	if s.Suspects > 1 {
		text += fmt.Sprintf(", or one after it (%d in all)", s.Suspects)
	}
	if !s.At.IsZero() {
		text += "; a step failed " + s.At.Local().Format(time.DateTime)
	}
	return text
}

// someTargets lists the first targets of what may be many.
func someTargets(list []string) string {
	const most = 5
	if n := len(list) - most; n > 0 {
		return Plain(strings.Join(list[:most], ", ")) + fmt.Sprintf(" and %d more", n)
	}
	return Plain(strings.Join(list, ", "))
}

// whoAndWhy names who did something, and why if a reason was given. Requests by HTTP need not say who asks.
func whoAndWhy(who, why string) string {
	text := Plain(cmp.Or(who, "somebody"))
	if why != "" {
		text += ": " + Plain(why)
	}
	return text
}

// table returns the changes as lines with aligned columns.
func table(changes []view.Summary, now time.Time) []string {
	if len(changes) == 0 {
		return nil
	}
	var b strings.Builder
	moved := false
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POS\tCHANGE\tSTATE\tSTEPS\tDECIDED IN\tWHY")
	for _, c := range changes {
		position, steps, name := "-", "-", Plain(c.Change)
		if c.Position > 0 {
			position = fmt.Sprint(c.Position)
		}
		if c.StepsTotal > 0 {
			steps = fmt.Sprintf("%d/%d", c.StepsDone, c.StepsTotal)
		}
		if c.Revision > 1 {
			name += fmt.Sprintf("@%d", c.Revision)
		}
		if c.Urgent {
			name, moved = "! "+name, true
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", position, name, c.State, steps, briefETA(c.ETA, now), Plain(c.Why))
	}
	w.Flush()
	if moved {
		fmt.Fprintln(&b, "!: moved to the front; landfall explain says by whom")
	}
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// writeFault prints what an author reads first, in at most three lines: what failed, why, and whose fault it is.
func writeFault(w io.Writer, s view.Summary) {
	f := s.Failure
	if f == nil {
		return
	}
	fmt.Fprintf(w, "%s: %s\n", Plain(s.Change), Plain(f.Sentence))
	for i, line := range f.Lines {
		if i > 0 && !strings.Contains(f.Sentence, line) { // the first is in the sentence
			fmt.Fprintf(w, "  %s\n", Plain(line))
		}
	}
}

// writeMore prints the rest of what writeFault began, and where the output is; rejection has what is printed already.
func writeMore(w io.Writer, s view.Summary, rejection *view.Rejection) {
	if s.Failure == nil {
		return
	}
	writeRest(w, s.Failure, rejection)
	fmt.Fprintf(w, "  more      landfall logs %s, landfall explain %s --full\n", Plain(s.Change), Plain(s.Change))
}

// writeRest is writeMore without where the output is.
func writeRest(w io.Writer, f *view.Fault, rejection *view.Rejection) {
	if len(f.Also) > 0 && rejection == nil {
		fmt.Fprintf(w, "  failed    also %s\n", Plain(listed(f.Also)))
	}
	if f.Whose == view.WhoseYours && len(f.With) > 0 {
		fmt.Fprintf(w, "  landed    since the commit that it is based on, and %s was not built without: %s\n", Plain(f.Target), Plain(listed(f.With)))
	}
	if len(f.Owners) > 0 {
		fmt.Fprintf(w, "  owners    %s\n", Plain(listed(f.Owners)))
	}
}

// writeFlaky prints which targets of a change passed only after a failure, and whose they are.
func writeFlaky(w io.Writer, s view.Summary) {
	for i, f := range s.Flaky {
		if i == maxFlaky {
			fmt.Fprintf(w, "  flaky     and %d more\n", len(s.Flaky)-i)
			return
		}
		fmt.Fprintf(w, "  flaky     %s passed only after it had failed, with nothing changed", Plain(f.Target))
		if len(f.Owners) > 0 {
			fmt.Fprintf(w, "; owned by %s", Plain(listed(f.Owners)))
		}
		fmt.Fprintln(w)
	}
}

// maxFlaky is how many flaky targets of a change are printed.
const maxFlaky = 8

func writeHeading(w io.Writer, s view.Summary) {
	fmt.Fprintf(w, "%s  revision %d  %s", Plain(s.Change), s.Revision, s.State)
	if s.Position > 0 {
		fmt.Fprintf(w, "  position %d", s.Position)
	}
	fmt.Fprintln(w)
	if s.Title != "" {
		fmt.Fprintf(w, "  %s", Plain(s.Title))
		if s.Author != "" {
			fmt.Fprintf(w, " (%s)", Plain(s.Author))
		}
		fmt.Fprintln(w)
	}
}

func writeChange(w io.Writer, now time.Time, c view.Change) {
	writeFault(w, c.Summary)
	writeHeading(w, c.Summary)
	if c.Failure == nil || c.Position > 0 {
		fmt.Fprintf(w, "  %s\n", Plain(c.Why))
	}
	writeETA(w, c.ETA, now)
	for _, e := range c.Entries {
		fmt.Fprintf(w, "  pinned    %s %s\n", events.ShortID(e.Commit), Plain(e.Ref))
	}
	for _, h := range c.Holds {
		fmt.Fprintf(w, "  hold      %s by %s\n", Plain(h.Name), whoAndWhy(h.Who, h.Why))
	}
	if a := c.Analysis; a != nil && a.Outcome == "analyzed" {
		switch {
		case a.Everything:
			fmt.Fprintf(w, "  affects   everything\n")
		case a.TargetsTotal == 0:
			fmt.Fprintf(w, "  affects   no target: nothing to build\n")
		default:
			fmt.Fprintf(w, "  affects   %s: %s\n", counted(a.TargetsTotal, "target"), Plain(listed(a.Targets)))
		}
		writeUncovered(w, a.Uncovered)
	}
	writeFlaky(w, c.Summary)
	writeRelations(w, c.Requires, c.Ahead)
	writeRefusal(w, c.Summary, c.LastRefusal)
	writeBuilds(w, c.Builds)
	writeEnd(w, c.Landing, c.Rejection, c.Failure == nil)
	writeMore(w, c.Summary, c.Rejection)
	writeTimeline(w, c.Timeline)
}

// writeUncovered prints which files of a change no target covers.
func writeUncovered(w io.Writer, u *view.Uncovered) {
	if u == nil {
		return
	}
	if u.FilesTotal > 0 {
		fmt.Fprintf(w, "  uncovered %s (analysis.uncovered: %s): %s\n", counted(u.FilesTotal, "file"), Plain(u.Policy), Plain(listed(u.Files)))
	}
	if u.IgnoredTotal > 0 {
		fmt.Fprintf(w, "  ignored   %s that no target covers: %s\n", counted(u.IgnoredTotal, "file"), Plain(listed(u.Ignored)))
	}
}

// WriteExplanation prints why a change is where it is, as `landfall explain` does at that time. Where a step of it failed, that
// comes first, and its builds, its output and its timeline only in a full explanation.
func WriteExplanation(w io.Writer, now time.Time, e view.Explanation) {
	writeFault(w, e.Summary)
	writeHeading(w, e.Summary)
	for _, r := range e.Reasons {
		if e.Failure == nil || e.Position > 0 {
			fmt.Fprintf(w, "  - %s\n", Plain(r.Sentence))
		}
	}
	if e.WaitingStep != nil {
		fmt.Fprintf(w, "  - %s\n", Plain(e.WaitingStep.Sentence))
	}
	writeETA(w, e.ETA, now)
	writeFlaky(w, e.Summary)
	writeRelations(w, e.Requires, e.Ahead)
	writeRefusal(w, e.Summary, e.LastRefusal)
	if e.Failure != nil && e.Full == nil {
		writeMore(w, e.Summary, nil)
		return
	}
	if e.Failure != nil {
		writeRest(w, e.Failure, nil)
	}
	writeBuilds(w, e.Builds)
	writeEnd(w, e.Landing, e.Rejection, true)
	writeTimeline(w, e.Timeline)
	writeFull(w, e.Full)
	if e.Full != nil {
		writeWaiting(w, e.WaitingStep)
	}
}

func writeETA(w io.Writer, e *view.ETA, now time.Time) {
	if e != nil {
		fmt.Fprintf(w, "  decided   %s\n", Plain(fullETA(e, now)))
	}
}

func writeRelations(w io.Writer, requires []view.Related, ahead []view.Ahead) {
	for _, r := range requires {
		fmt.Fprintf(w, "  requires  %s (%s)\n", Plain(r.Change), r.State)
	}
	for _, a := range ahead {
		state := a.State
		if a.Held {
			state += ", held"
		}
		fmt.Fprintf(w, "  ahead     %s (%s)", Plain(a.Change), state)
		if len(a.Targets) > 0 {
			fmt.Fprintf(w, " in %s", Plain(listed(a.Targets)))
		}
		if a.MergeConflict {
			fmt.Fprint(w, ", merge conflict")
		}
		fmt.Fprintln(w)
	}
}

// writeRefusal prints what the check before landing last found unproven of a pending change. The refusal itself is in the
// timeline.
func writeRefusal(w io.Writer, s view.Summary, r *view.Refusal) {
	if r != nil && len(r.Missing) > 0 && s.Position > 0 {
		fmt.Fprintf(w, "  unproven  %s on %s\n", Plain(listed(r.Missing)), events.ShortID(r.Base))
	}
}

func writeBuilds(w io.Writer, builds []view.Build) {
	for _, b := range builds {
		fmt.Fprintf(w, "  build     %s %s, %d of %s, on %s", events.ShortID(b.Build), b.State, b.StepsDone, counted(b.StepsTotal, "step"), events.ShortID(b.Base))
		if len(b.Assumed) > 0 {
			fmt.Fprintf(w, " with %s", Plain(listed(b.Assumed)))
		}
		if b.Message != "" {
			fmt.Fprintf(w, " (%s)", Plain(b.Message))
		}
		fmt.Fprintln(w)
	}
}

// writeEnd prints what a change became, with the end of the output of what failed if that is asked for.
func writeEnd(w io.Writer, landing *view.Landing, rejection *view.Rejection, output bool) {
	if landing != nil {
		for _, id := range landing.Commits {
			fmt.Fprintf(w, "  commit    %s\n", id)
		}
		for _, p := range landing.Proof {
			if p.State == view.StepTrivial {
				continue
			}
			if p.Quarantined {
				fmt.Fprintf(w, "  tolerated %s: attempt %d of build %s %s, and the target is quarantined (version %s)\n", Plain(p.Target), p.Attempt, events.ShortID(p.Build),
					strings.ReplaceAll(p.State, "_", " "), events.ShortID(p.Hash))
				continue
			}
			fmt.Fprintf(w, "  verified  %s by attempt %d of build %s (version %s)\n", Plain(p.Target), p.Attempt, events.ShortID(p.Build), events.ShortID(p.Hash))
		}
		if len(landing.Bypassed) > 0 {
			fmt.Fprintf(w, "  bypassed  %s\n", Plain(listed(landing.Bypassed)))
		}
	}
	if rejection == nil {
		return
	}
	fmt.Fprintf(w, "  class     %s\n", rejection.Class)
	if rejection.Conflicting != "" {
		fmt.Fprintf(w, "  with      %s\n", Plain(rejection.Conflicting))
	}
	for _, f := range rejection.Failed {
		fmt.Fprintf(w, "  failed    %s, attempt %d, version %s", Plain(f.Target), f.Attempt, events.ShortID(f.Hash))
		if f.FailedCommand != "" {
			fmt.Fprintf(w, ", command %s", Plain(f.FailedCommand))
		}
		fmt.Fprintln(w)
		if f.Log != "" {
			fmt.Fprintf(w, "  log       %s\n", Plain(f.Log))
		}
		if !output {
			continue
		}
		lines := strings.Split(strings.TrimRight(f.OutputTail, "\n"), "\n")
		for _, line := range lines[max(0, len(lines)-15):] {
			if line != "" {
				fmt.Fprintf(w, "    | %s\n", Plain(line))
			}
		}
	}
}

// writeTimeline prints what happened to the newest revision, and how much did before.
func writeTimeline(w io.Writer, events []view.Event) {
	events = slices.Clone(events)
	all := len(events)
	events = slices.DeleteFunc(events, func(e view.Event) bool { return e.Earlier })
	if earlier := all - len(events); earlier > 0 {
		fmt.Fprintf(w, "  %s of earlier revisions (--json lists them)\n", counted(earlier, "event"))
	}
	for _, e := range events {
		fmt.Fprintf(w, "  %s  %s\n", e.At.Local().Format(time.DateTime), Plain(e.Text))
		if e.By != "" {
			fmt.Fprintf(w, "                       (%s)\n", Plain(e.By))
		}
	}
}

// counted returns a number with its noun, in the plural unless the number is one.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func listed(of []string) string {
	if len(of) > 8 {
		return strings.Join(of[:8], ", ") + fmt.Sprintf(" and %d more", len(of)-8)
	}
	return strings.Join(of, ", ")
}
