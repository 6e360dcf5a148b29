package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/view"
)

func logsCommand() *cobra.Command {
	var run Run
	var follow bool
	cmd, _ := command("logs [CHANGE]", "Print the output of a step of a change, or of the mainline",
		`Print the output of a step of a change at its present revision: by default of what is at fault, or proved the landing,
else of one that did not pass, else of the last one. Of a run in a build with other changes these are named. With --follow, of each step as it finishes, until the change has landed or left
the queue, and with --target besides of the steps of that target while they run; a gateway that cannot answer is
asked again.

Without a CHANGE it is the output of a step of the mainline itself: by default of one that is red there.`,
		atMostOne("CHANGE"), func(ctx context.Context, s *session, args []string) error {
			change := ""
			if len(args) > 0 {
				change = args[0]
			}
			switch {
			case change == "" && (follow || run.Revision > 0):
				return errors.New("--follow and --revision are of a CHANGE; name one")
			case follow && s.asJSON:
				return errors.New("--follow prints more than one value; leave --json out")
			case follow && (run.Revision > 0 || run.Attempt > 0):
				return errors.New("--follow prints what is still to finish; leave --revision and --attempt out")
			}
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			if follow {
				return s.followLogs(ctx, change, run)
			}
			log, err := s.client.Logs(ctx, s.queue, change, run)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(log)
			}
			s.printLog(log)
			return nil
		})
	cmd.Flags().StringVar(&run.Target, "target", "", "target of the step")
	cmd.Flags().StringVar(&run.Step, "step", "", "name of the command that failed in it")
	cmd.Flags().IntVar(&run.Attempt, "attempt", 0, "number of the attempt")
	cmd.Flags().Uint64Var(&run.Revision, "revision", 0, "revision of the change (default: the present one)")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print each step as it finishes")
	return cmd
}

func (s *session) printLog(log Log) {
	note := ""
	switch {
	case log.Deleted != "":
		note = " (only its end; the complete log was " + Plain(log.Deleted) + ")"
	case !log.Complete:
		note = " (only its end is kept here)"
	}
	if log.With != "" {
		note = ", with " + Plain(log.With) + note
	}
	s.printRun(log.Target, log.Attempt, log.Outcome+note)
	fmt.Fprint(s.out, harmless(log.Output))
	if !strings.HasSuffix(log.Output, "\n") && log.Output != "" {
		fmt.Fprintln(s.out)
	}
}

// printRun prints which run it is, and how it has ended, or that it runs.
func (s *session) printRun(target string, attempt int, state string) {
	fmt.Fprintf(s.progress, "==> %s, attempt %d: %s\n", Plain(target), attempt, state)
}

// finishedRun is one that a build shows as finished.
type finishedRun struct {
	target, hash string
	attempt      uint32
}

// followLogs prints each run of a step of the change once, as they finish. A gateway that has answered
// once is asked again whatever keeps it from answering.
func (s *session) followLogs(ctx context.Context, change string, only Run) error {
	printed := map[finishedRun]bool{}
	read := map[finishedRun]int64{}
	var refused *Failure
	answered, told := false, false
	for pause := followPause; ; {
		final, err := s.printFinished(ctx, change, only, printed, read)
		switch {
		case err == nil && final:
			return nil
		case err == nil:
			answered, told, pause = true, false, followPause
		case !passes(err) || ctx.Err() != nil || !answered && !errors.As(err, &refused):
			return err
		default:
			if !told {
				fmt.Fprintf(s.progress, "%v; asking again\n", err)
				told = true
			}
			pause = min(2*pause, maxFollowPause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

const followPause, maxFollowPause = 300 * time.Millisecond, 5 * time.Second

// passes reports whether an error may go away: the gateway could not be reached, or could not answer.
func passes(err error) bool {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure.Status >= 500
	}
	return errors.Is(err, ErrUnreachable) || errors.Is(err, context.DeadlineExceeded)
}

// printFinished prints the runs that have finished since, and reports whether the change has left the queue. Of a target that is named it
// prints those that run, too; read has how much of each was printed.
func (s *session) printFinished(ctx context.Context, change string, only Run, printed map[finishedRun]bool, read map[finishedRun]int64) (final bool, err error) {
	c, err := s.client.Change(ctx, s.queue, change)
	if err != nil {
		return false, err
	}
	running := map[finishedRun]bool{}
	for _, b := range c.Builds {
		for _, step := range b.Steps {
			of := finishedRun{step.Target, step.Hash, step.Attempt}
			if only.Target == step.Target && only.Step == "" && !printed[of] && (step.State == view.StepRunning || read[of] > 0) {
				n, err := s.printRunning(ctx, change, step, read[of])
				if read[of] += n; err != nil {
					return false, err
				}
				if running[of] = step.FinishedAt.IsZero(); !running[of] {
					s.printRun(step.Target, int(step.Attempt), step.State)
					printed[of] = true
				}
				continue
			}
			if step.FinishedAt.IsZero() || printed[of] || only.Target != "" && only.Target != step.Target || only.Step != "" && only.Step != step.FailedCommand {
				continue
			}
			log, err := s.client.Logs(ctx, s.queue, change, Run{Target: step.Target, Hash: step.Hash, Attempt: int(step.Attempt)})
			var failure *Failure
			switch {
			case err == nil:
				s.printLog(log)
			case !errors.As(err, &failure) || passes(err):
				return false, err
			} // else it is forgotten in the meantime
			printed[of] = true
		}
	}
	for of, n := range read { // of what was aborted builds show an earlier run if that has failed
		if n == 0 || printed[of] || running[of] {
			continue
		}
		log, err := s.client.Logs(ctx, s.queue, change, Run{Target: of.target, Hash: of.hash, Attempt: int(of.attempt)})
		switch {
		case passes(err):
			return false, err
		case err == nil && log.Outcome == view.StepRunning: // for the build of another change
			continue
		case err == nil:
			s.printRun(of.target, int(of.attempt), log.Outcome)
		}
		printed[of] = true
	}
	return view.Final(c.State), nil
}

// printRunning prints what a step prints after its first bytes, and returns how much that was. It ends with the step, and before that if
// the gateway has somebody ask again.
func (s *session) printRunning(ctx context.Context, change string, step view.Step, after int64) (n int64, err error) {
	output, err := s.client.FollowLog(ctx, s.queue, change, Run{Target: step.Target, Hash: step.Hash, Attempt: int(step.Attempt)})
	if err != nil {
		return 0, err
	}
	defer output.Close()
	if after == 0 {
		s.printRun(step.Target, int(step.Attempt), view.StepRunning)
	}
	if _, err := io.CopyN(io.Discard, output, after); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil // it is of a log that is elsewhere, of which there is the end alone
		}
		return 0, err
	}
	for lines := bufio.NewReaderSize(output, maxLine); ; {
		line, err := lines.ReadSlice('\n')
		n += int64(len(line))
		fmt.Fprint(s.out, harmless(strings.ToValidUTF8(string(line), "\uFFFD")))
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return n, s.client.unreachable(err)
		}
	}
}

// maxLine is how much of a line is printed at a time.
const maxLine = 64 << 10
