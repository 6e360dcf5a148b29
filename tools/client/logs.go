package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/view"
)

func logsCommand() *cobra.Command {
	var target string
	var attempt int
	var follow bool
	cmd, _ := command("logs CHANGE", "Print the output of a step of a change",
		`Print the output of a step of a change: by default of one that did not pass, else of the last one.
With --follow, of each step as it finishes, until the change has landed or left the queue.`,
		Exactly("CHANGE"), func(ctx context.Context, s *session, args []string) error {
			if follow && s.asJSON {
				return errors.New("--follow prints more than one value; leave --json out")
			}
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			if follow {
				return s.followLogs(ctx, args[0], target)
			}
			log, err := s.client.Logs(ctx, s.queue, args[0], target, "", attempt)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(log)
			}
			s.printLog(log)
			return nil
		})
	cmd.Flags().StringVar(&target, "target", "", "target of the step")
	cmd.Flags().IntVar(&attempt, "attempt", 0, "number of the attempt")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print each step as it finishes")
	return cmd
}

func (s *session) printLog(log Log) {
	note := ""
	if !log.Complete {
		note = " (only its end is kept here)"
	}
	fmt.Fprintf(s.progress, "==> %s, attempt %d: %s%s\n", Plain(log.Target), log.Attempt, log.Outcome, note)
	fmt.Fprint(s.out, harmless(log.Output))
	if !strings.HasSuffix(log.Output, "\n") && log.Output != "" {
		fmt.Fprintln(s.out)
	}
}

// followLogs prints each run of a step of the change once, as they finish.
func (s *session) followLogs(ctx context.Context, change, target string) error {
	type run struct {
		target, hash string
		attempt      uint32
	}
	printed := map[run]bool{}
	for {
		c, err := s.client.Change(ctx, s.queue, change)
		if err != nil {
			return err
		}
		for _, b := range c.Builds {
			for _, step := range b.Steps {
				of := run{step.Target, step.Hash, step.Attempt}
				if step.FinishedAt.IsZero() || printed[of] || (target != "" && target != step.Target) {
					continue
				}
				log, err := s.client.Logs(ctx, s.queue, change, step.Target, step.Hash, int(step.Attempt))
				var failure *Failure
				switch is := errors.As(err, &failure); {
				case is && failure.Status >= 500:
					continue // the gateway cannot say now
				case is:
					printed[of] = true // forgotten in the meantime
					continue
				case err != nil:
					return err
				}
				printed[of] = true
				s.printLog(log)
			}
		}
		if view.Final(c.State) {
			return nil
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
