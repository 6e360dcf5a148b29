package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/whatif"
)

// WhatIf returns the last simulation of a queue under another setting, and the present setting.
func (c *Client) WhatIf(ctx context.Context, queue string) (api.WhatIf, error) {
	var out api.WhatIf
	err := c.call(ctx, http.MethodGet, queuePath(queue, "what-if"), nil, &out)
	return out, err
}

// StartWhatIf begins a simulation.
func (c *Client) StartWhatIf(ctx context.Context, queue string, body api.WhatIfBody) (api.WhatIf, error) {
	var out api.WhatIf
	err := c.call(ctx, http.MethodPost, queuePath(queue, "what-if"), body, &out)
	return out, err
}

// CancelWhatIf ends the simulation of a queue that runs.
func (c *Client) CancelWhatIf(ctx context.Context, queue string) (api.WhatIf, error) {
	var out api.WhatIf
	err := c.call(ctx, http.MethodPost, queuePath(queue, "what-if", "cancel"), struct{}{}, &out)
	return out, err
}

// whatIfEvery is how often a simulation is looked at.
const whatIfEvery = time.Second

func whatIfCommand() *cobra.Command {
	var body api.WhatIfBody
	var workers int
	var threshold, bypass float64
	var cancel bool
	cmd, _ := command("what-if", "Simulate the queue's own past with other workers or thresholds",
		`Simulate the newest changes of the queue's own past twice, with the present setting and with another, and show both side by side. The gateway
simulates one setting at a time, for ten minutes at most, in a process that gives way to others; interrupted, the command cancels it. Without a
setting the last simulation is shown. landfall simulate log has more policies and figures, where the log can be read.

  landfall what-if --workers 8
  landfall what-if --threshold 0.05 --bypass-threshold 2 --changes 2000

  WAIT       time until a change is decided, less what it takes with all workers to itself
  SLOWDOWN   time until a change is decided over what it takes with all workers to itself
  WORKERS    for how long they are busy, together`,
		cobra.NoArgs, func(ctx context.Context, s *session, _ []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			is, err := s.client.WhatIf(ctx, s.queue)
			switch {
			case err != nil:
				return err
			case cancel:
				is, err = s.client.CancelWhatIf(ctx, s.queue)
			case body.Workers != nil || body.Threshold != nil || body.BypassThreshold != nil || body.Changes != 0:
				if is, err = s.client.StartWhatIf(ctx, s.queue, body); err == nil {
					is, err = s.awaitWhatIf(ctx, is)
				}
			}
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(is)
			}
			return writeWhatIf(s.out, is)
		})
	cmd.Flags().IntVar(&workers, "workers", 0, "workers of the pool (default: as at present)")
	cmd.Flags().Float64Var(&threshold, "threshold", 0, "least probability of being needed for a build to start (default: as at present)")
	cmd.Flags().Float64Var(&bypass, "bypass-threshold", 0, "least probability of finishing first for which a bypass gets builds; 2 for no bypasses (default: as at present)")
	cmd.Flags().IntVar(&body.Changes, "changes", 0, fmt.Sprintf("how many changes are simulated at most, the newest; %d by default", whatif.DefaultChanges))
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the simulation that runs")
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		if cmd.Flags().Changed("workers") {
			body.Workers = &workers
		}
		if cmd.Flags().Changed("threshold") {
			body.Threshold = &threshold
		}
		if cmd.Flags().Changed("bypass-threshold") {
			body.BypassThreshold = &bypass
		}
	}
	return cmd
}

// awaitWhatIf waits until a simulation has ended, and cancels it if the context ends before. Its progress goes to standard error.
func (s *session) awaitWhatIf(ctx context.Context, is api.WhatIf) (api.WhatIf, error) {
	for is.Run != nil && is.Run.State == whatif.Running {
		if !s.asJSON && s.progress != nil {
			fmt.Fprintf(s.progress, "\rsimulating: %.0f %%", 100*is.Run.Done)
		}
		select {
		case <-ctx.Done():
			late, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer stop()
			_, _ = s.client.CancelWhatIf(late, s.queue) // it may have ended
			return is, context.Cause(ctx)
		case <-time.After(whatIfEvery):
		}
		var err error
		if is, err = s.client.WhatIf(ctx, s.queue); err != nil {
			return is, err
		}
	}
	if !s.asJSON && s.progress != nil {
		fmt.Fprint(s.progress, "\r                    \r")
	}
	return is, nil
}

func writeWhatIf(out io.Writer, is api.WhatIf) error {
	r := is.Run
	switch {
	case is.Missing != "":
		_, err := fmt.Fprintln(out, Plain(is.Missing))
		return err
	case r == nil:
		_, err := fmt.Fprintf(out, "Nothing was simulated since the gateway began. At present: %s. Try `landfall what-if --workers %d`.\n", settingText(is.Present), 2*is.Present.Workers)
		return err
	case r.State == whatif.Failed:
		return fmt.Errorf("the simulation failed: %s", Plain(r.Message))
	case r.Result == nil:
		_, err := fmt.Fprintf(out, "%s: %s, begun %s.\n", r.State, settingText(r.Chosen), r.StartedAt.Local().Format(time.DateTime))
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tWAIT P50\tWAIT P95\tSLOWDOWN\tWORKERS")
	for _, x := range []struct {
		name    string
		setting whatif.Setting
		figures whatif.SettingFigures
	}{{"present", r.Present, r.Result.Present}, {"chosen", r.Chosen, r.Result.Chosen}} {
		f := x.figures
		fmt.Fprintf(w, "%s: %s\t%s\t%s\t%.3g\t%s\n", x.name, settingText(x.setting), whatif.Duration(f.WaitP50), whatif.Duration(f.WaitP95), f.Slowdown, whatif.Hours(f.WorkerHours))
	}
	fmt.Fprintf(w, "\n%s\nThey arrived from %s to %s.\n", Plain(r.Result.Sentence), r.Result.From.Local().Format(time.DateTime), r.Result.To.Local().Format(time.DateTime))
	return w.Flush()
}

func settingText(s whatif.Setting) string {
	bypass := fmt.Sprintf("bypass threshold %g", s.BypassThreshold)
	if s.BypassThreshold > 1 {
		bypass = "no bypasses"
	}
	workers := "workers"
	if s.Workers == 1 {
		workers = "worker"
	}
	return fmt.Sprintf("%d %s, threshold %g, %s", s.Workers, workers, s.Threshold, bypass)
}
