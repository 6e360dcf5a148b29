package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/analytics"
	"landfall.build/services/gateway/view"
)

// Analytics returns how a queue did in the last weeks.
func (c *Client) Analytics(ctx context.Context, queue string, weeks int) (analytics.Analytics, error) {
	var out analytics.Analytics
	err := c.call(ctx, http.MethodGet, c.then(queuePath(queue, "analytics"), url.Values{"weeks": {strconv.Itoa(weeks)}}), nil, &out)
	return out, err
}

func analyticsCommand() *cobra.Command {
	weeks := analytics.DefaultWeeks
	cmd, s := command("analytics", "Show how the queue did by week",
		`Show by week how many changes landed and were rejected, how long they waited, and what they cost, and the newest that were rejected. Of a
shadow it is what the queue would have done. --json has all that the web page shows.

  WAIT           from the request to the landing: half of the changes waited less than P50, 95 of 100 less than P95
  BUILDS         builds for each change
  WORKER HOURS   of the changes that left the queue in the week
  REJECTED       changes that failed or did not merge
  FAILED AGAIN   of these, those of which all that failed has failed again since
  PASSED SINCE   those of which all that failed has passed since, with nothing changed: they may have been rejected wrongly`, cobra.NoArgs,
		func(ctx context.Context, s *session, _ []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			found, err := s.client.Analytics(ctx, s.queue, weeks)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(found)
			}
			queues, err := s.client.Queues(ctx)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(queues, func(q view.Overview) bool { return q.Queue == s.queue })
			s.writeMoment()
			writeAnalytics(s.out, found, i >= 0 && queues[i].Shadow)
			return nil
		})
	s.addAt(cmd)
	var all []string
	for _, n := range analytics.Weeks() {
		all = append(all, strconv.Itoa(n))
	}
	cmd.Flags().IntVar(&weeks, "weeks", weeks, "how many weeks: "+strings.Join(all, ", "))
	return cmd
}

// writeAnalytics prints a line a week, the newest first.
func writeAnalytics(w io.Writer, a analytics.Analytics, shadow bool) {
	if a.Missing != nil {
		fmt.Fprintf(w, "%s\n%s\n", a.Missing.Message, a.Missing.Advice)
		return
	}
	if len(a.Verdicts) == 0 {
		fmt.Fprintf(w, "queue %s: no change has left it in the last %d weeks\n", Plain(a.Queue), a.Weeks)
		return
	}
	landed := "LANDED"
	if shadow {
		landed = "WOULD LAND"
		fmt.Fprintf(w, "queue %s is a shadow: this is what it would have done; it pushed nothing\n", Plain(a.Queue))
	}
	waits, builds, work := byWeek(a.Waits, func(x analytics.WeekOfWaits) string { return x.Week }), byWeek(a.Builds, func(x analytics.WeekOfBuilds) string { return x.Week }),
		byWeek(a.Work, func(x analytics.WeekOfWork) string { return x.Week })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "WEEK OF\t%s\tWAIT P50\tP95\tBUILDS\tWORKER HOURS\tREJECTED\tFAILED AGAIN\tPASSED SINCE\tEJECTED\n", landed)
	for _, v := range slices.Backward(a.Verdicts) {
		wait50, wait95 := "-", "-"
		if x, is := waits[v.Week]; is {
			wait50, wait95 = short(seconds(x.P50)), short(seconds(x.P95))
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%.1f\t%.1f\t%d\t%d\t%d\t%d\n", v.Week, v.Landed, wait50, wait95, builds[v.Week].PerChange, work[v.Week].Hours,
			v.Rejected, v.Confirmed, v.Contradicted, v.Ejected)
	}
	table.Flush()
	if len(a.Rejected) == 0 {
		return
	}
	fmt.Fprintln(w)
	fmt.Fprintln(table, "REJECTED\tAT\tWHY\tSINCE\tTITLE")
	for _, r := range a.Rejected {
		why := strings.ReplaceAll(r.Class, "_", " ")
		if len(r.Targets) > 0 {
			why = "failed: " + someTargets(r.Targets)
		}
		since := map[string]string{"failed": "failed again", "passed": "passed", "": "-"}[r.Since]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s (%s)\n", Plain(r.Change), r.At.Local().Format(time.DateTime), why, since, Plain(r.Title), Plain(r.Author))
	}
	table.Flush()
}

func byWeek[T any](list []T, week func(T) string) map[string]T {
	out := map[string]T{}
	for _, x := range list {
		out[week(x)] = x
	}
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
