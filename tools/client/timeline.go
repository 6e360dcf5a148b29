package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/timeline"
)

// Timeline returns what the workers of a pool did from a time to another; of the zero time the gateway takes its own.
func (c *Client) Timeline(ctx context.Context, pool string, from, to time.Time) (timeline.Timeline, error) {
	query := url.Values{}
	if !from.IsZero() {
		query.Set("from", from.UTC().Format(time.RFC3339Nano))
	}
	if !to.IsZero() {
		query.Set("to", to.UTC().Format(time.RFC3339Nano))
	}
	var out timeline.Timeline
	err := c.call(ctx, http.MethodGet, "/v1/pools/"+url.PathEscape(pool)+"/timeline?"+query.Encode(), nil, &out)
	return out, err
}

func timelineCommand() *cobra.Command {
	var from, to string
	cmd, _ := command("timeline [POOL]", "Show what each worker of a pool did, and why it was idle",
		`Show for how long each worker of a pool ran steps, how many, how much of it was lost on steps that left no result, and for how long it was
idle for which cause, as far as the log tells. Without times it is the last hour. --json has each step and each idle time.

  landfall timeline default --from -10m
  landfall timeline --from 14:05 --to 14:06

  BUSY     share of the time in which it is known to have been there
  LOST     time on steps that were aborted, could not run, or whose worker was lost
  IDLE     the causes, most time first`, cobra.MaximumNArgs(1),
		func(ctx context.Context, s *session, args []string) error {
			times := make([]time.Time, 2)
			for i, text := range []string{from, to} {
				if text != "" {
					var err error
					if times[i], err = ParseTime(text, clock()); err != nil {
						return err
					}
				}
			}
			pool := ""
			if len(args) > 0 {
				pool = args[0]
			} else {
				var err error
				if pool, err = s.onlyPool(ctx); err != nil {
					return err
				}
			}
			made, err := s.client.Timeline(ctx, pool, times[0], times[1])
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(made)
			}
			return writePoolTimeline(s.out, made)
		})
	cmd.Flags().StringVar(&from, "from", "", `where it begins: 14:05, "2026-01-31 14:05:30", or -10m for ten minutes ago (default: an hour before its end)`)
	cmd.Flags().StringVar(&to, "to", "", "where it ends (default: now)")
	return cmd
}

// onlyPool returns the pool of the queues if there is one.
func (s *session) onlyPool(ctx context.Context) (string, error) {
	queues, err := s.client.Queues(ctx)
	if err != nil {
		return "", err
	}
	var pools []string
	for _, q := range queues {
		if q.Pool != nil && !slices.Contains(pools, q.Pool.Name) {
			pools = append(pools, q.Pool.Name)
		}
	}
	switch slices.Sort(pools); len(pools) {
	case 0:
		return "", errors.New("no queue has a pool yet: its settings are recorded with its first analysis")
	case 1:
		return pools[0], nil
	}
	return "", fmt.Errorf("there are several pools; name one: %s", Plain(strings.Join(pools, ", ")))
}

// idleCauses are the words for why a worker was idle.
var idleCauses = map[timeline.Cause]string{
	timeline.NotKnown: "not known", timeline.Limited: "the queue's quota", timeline.Needs: "open steps need", timeline.Exclusive: "exclusive steps",
	timeline.Dependencies: "open steps wait for others", timeline.Preparing: "a tree is made", timeline.NoStep: "no open step",
}

func writePoolTimeline(out io.Writer, t timeline.Timeline) error {
	fmt.Fprintf(out, "pool %s, %s to %s\n", Plain(t.Pool), t.From.Local().Format(time.DateTime), t.To.Local().Format(time.DateTime))
	if !t.Since.IsZero() {
		fmt.Fprintf(out, "shown from %s on: of before not everything is kept, or it is too much to show at once\n", t.Since.Local().Format(time.DateTime))
	}
	for _, q := range t.Queues {
		if q.Paused {
			fmt.Fprintf(out, "queue %s is paused: it lands nothing, its builds go on\n", Plain(q.Name))
		}
	}
	if len(t.Workers) == 0 {
		fmt.Fprintln(out, "no worker ran a step in this time, and no builder of the pool is at work")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSTEPS\tBUSY\tLOST\tIDLE")
	for _, x := range t.Workers {
		sums, idle := map[string]time.Duration{}, time.Duration(0)
		for _, i := range x.Idle {
			name := idleCauses[i.Cause]
			switch {
			case len(i.Needs) > 0:
				name += " " + Plain(strings.Join(i.Needs, ", "))
			case i.Cause == timeline.Needs: // they are of a queue that the caller may not read
				name += " labels or resources"
			}
			sums[name] += i.To.Sub(i.From)
			idle += i.To.Sub(i.From)
		}
		share := "-"
		busy := time.Duration(x.BusyMS) * time.Millisecond
		if busy+idle > 0 {
			share = fmt.Sprintf("%.0f %%", 100*busy.Seconds()/(busy+idle).Seconds())
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", Plain(x.Worker), len(x.Steps), share, short(time.Duration(x.LostMS)*time.Millisecond), dash(listCauses(sums)))
	}
	return w.Flush()
}

func listCauses(sums map[string]time.Duration) string {
	type cause struct {
		name string
		d    time.Duration
	}
	var list []cause
	for name, d := range sums {
		list = append(list, cause{name, d})
	}
	slices.SortFunc(list, func(a, b cause) int { return cmp.Or(cmp.Compare(b.d, a.d), cmp.Compare(a.name, b.name)) })
	var texts []string
	for _, c := range list {
		texts = append(texts, short(c.d)+" "+c.name)
	}
	return strings.Join(texts, ", ")
}

// short is a duration to the second, or to a tenth of one below ten.
func short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
