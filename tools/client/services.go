package client

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"landfall.build/platform/health"
)

// showServices prints who is at work; the outcome is 1 if a service is missing.
func (s *session) showServices(ctx context.Context) error {
	r, err := s.client.Services(ctx)
	if err != nil {
		return err
	}
	if s.asJSON {
		err = s.print(r)
	} else {
		s.writeMoment()
		writeServices(s.out, s.now(), r)
	}
	if err == nil && len(r.Missing) > 0 {
		return outcome{ExitRejected}
	}
	return err
}

// writeServices prints what is missing, then the instances, then the partitions.
func writeServices(out io.Writer, now time.Time, r health.Report) {
	said := map[string]bool{}
	for _, m := range r.Missing {
		if !said[m.Sentence] {
			fmt.Fprintln(out, "MISSING: "+Plain(m.Sentence))
		}
		said[m.Sentence] = true
	}
	if len(r.Instances) > 0 {
		writeInstances(out, now, r.Instances)
		fmt.Fprintln(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tPARTITION\tQUEUES\tOWNER\tTERM\tFOR\tSTATE\tBEHIND")
	for _, o := range r.Partitions {
		term, since, behind := "-", "-", fmt.Sprint(o.BehindRecords)
		if o.State == health.StateClaimed {
			behind = "-"
		}
		if o.Term >= 0 {
			term = fmt.Sprint(o.Term)
		}
		if !o.Since.IsZero() {
			since = briefAge(now.Sub(o.Since))
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", o.Service, o.Partition, Plain(strings.Join(o.Queues, ",")), dash(Plain(o.Instance)), term, since, o.State, behind)
	}
	w.Flush()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// briefAge returns a duration in its largest unit of which it has at least two.
func briefAge(d time.Duration) string {
	d = max(0, d)
	u := unitFor(d)
	return fmt.Sprintf("%d %s", int(d/u.of), u.name)
}

func writeInstances(out io.Writer, now time.Time, of []health.Instance) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tINSTANCE\tVERSION\tSTATE\tHEARD\tWORKERS\tTROUBLE")
	for _, i := range of {
		state, workers := "gone", "-"
		if i.Alive {
			state = "alive"
		}
		if i.Workers > 0 {
			workers = fmt.Sprintf("%d of %d busy", i.Busy, i.Workers)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s ago\t%s\t%s\n", Plain(i.Service), Plain(i.Instance), Plain(i.Version), state, briefAge(now.Sub(i.Heard)), workers, dash(Plain(i.Trouble)))
	}
	w.Flush()
}
