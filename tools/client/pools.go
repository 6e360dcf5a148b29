package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/services/gateway/view"
)

// pools is what `landfall pools --json` prints.
type pools struct {
	// Builders live, or did within the last hour.
	Builders []health.Instance `json:"builders"`
	Queues   []queuePool       `json:"queues"`
}

// queuePool is what a queue has for its pool.
type queuePool struct {
	Queue string `json:"queue"`
	view.Pool
}

func poolsCommand() *cobra.Command {
	cmd, _ := command("pools", "Show the builders of each pool, their labels, and what waits for them",
		"Show the builders of each pool, how many of their workers are busy, what their machines are and have (builder.labels,\nbuilder.resources), and how many steps of each queue run and wait.",
		cobra.NoArgs, func(ctx context.Context, s *session, _ []string) error {
			report, err := s.client.Services(ctx)
			if err != nil {
				return err
			}
			queues, err := s.client.Queues(ctx)
			if err != nil {
				return err
			}
			p := pools{Builders: []health.Instance{}, Queues: []queuePool{}}
			for _, i := range report.Instances {
				if i.Service == events.ServiceBuilder {
					p.Builders = append(p.Builders, i)
				}
			}
			for _, q := range queues {
				if q.Pool != nil {
					p.Queues = append(p.Queues, queuePool{q.Queue, *q.Pool})
				}
			}
			if s.asJSON {
				return s.print(p)
			}
			p.write(s.out)
			return nil
		})
	return cmd
}

func (p pools) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POOL\tBUILDER\tWORKERS\tLABELS\tRESOURCES")
	slices.SortStableFunc(p.Builders, func(a, b health.Instance) int { return strings.Compare(a.Pool, b.Pool) })
	for _, b := range p.Builders {
		workers := "gone"
		if b.Alive {
			workers = fmt.Sprintf("%d of %d busy", b.Busy, b.Workers)
		}
		var resources []string
		for _, name := range slices.Sorted(maps.Keys(b.Resources)) {
			resources = append(resources, fmt.Sprintf("%s %d", name, b.Resources[name]))
		}
		labels := strings.Join(b.Labels, ", ")
		if b.Untold {
			labels = "too many to tell"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", dash(Plain(b.Pool)), Plain(b.Instance), workers, dash(Plain(labels)), dash(Plain(strings.Join(resources, ", "))))
	}
	w.Flush()
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "QUEUE\tPOOL\tWORKERS\tSTEPS RUNNING\tSTEPS OPEN")
	for _, q := range p.Queues {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", Plain(q.Queue), Plain(q.Name), q.Workers, q.Running, q.Open)
	}
	w.Flush()
}
