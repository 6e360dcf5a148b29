package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/api"
	"landfall.build/tools/login"
)

// Exit codes of the commands. They are fixed: scripts compare them.
const (
	ExitLanded   = 0
	ExitRejected = 1
	// ExitLeft: ejected or cancelled.
	ExitLeft = 2
	// ExitFailed: the command was wrong, the gateway did not answer, or it said no.
	ExitFailed = 3
)

// outcome ends a command with an exit code although nothing went wrong.
type outcome struct{ code int }

func (o outcome) Error() string { return fmt.Sprintf("exit code %d", o.code) }

// ExitCode returns the exit code for the error of a command, 0 for nil. It is silent if there is no error, or none that is still to be
// printed.
func ExitCode(err error) (code int, silent bool) {
	var o outcome
	switch {
	case err == nil:
		return 0, true
	case errors.As(err, &o):
		return o.code, true
	}
	var printed printedError
	return ExitFailed, errors.As(err, &printed)
}

// printedError has been printed as JSON.
type printedError struct{ error }

func (e printedError) Unwrap() error { return e.error }

// Commands are land, queue, status, watch, explain, logs, cancel, retry, pause, resume, priority, hold,
// release, quarantine, flakes, pools, timeline, analytics, what-if, login, logout and whoami. Their errors go through ExitCode; the root should silence cobra's own usage and errors.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		landCommand(), queueCommand(), statusCommand(), watchCommand(), explainCommand(), logsCommand(),
		cancelCommand(), retryCommand(), pauseCommand(), resumeCommand(), priorityCommand(), holdCommand(), releaseCommand(),
		quarantineCommand(), flakesCommand(), poolsCommand(), timelineCommand(), analyticsCommand(), whatIfCommand(), loginCommand(), logoutCommand(), whoAmICommand(),
	}
}

// session is what every command needs: the flags, the client, where to write.
type session struct {
	server, queue string
	asJSON        bool
	client        *Client
	// patience is how long the command waits for the gateway, 0 as long as each request does.
	patience time.Duration
	// at is the moment that is asked for, as the user wrote it; "" is now.
	at string
	// kept are the tokens of whoever has signed in; nil where the user has no folder.
	kept          *login.Store
	out, progress io.Writer
}

// command makes a cobra command around a session. With --json an error is the one JSON value.
func command(use, short, long string, args cobra.PositionalArgs, run func(context.Context, *session, []string) error) (*cobra.Command, *session) {
	s := &session{}
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: args}
	if strings.Contains(use, "CHANGE") {
		cmd.ValidArgsFunction = s.completeChange
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		// From here on the flags are right: printing the usage would only hide the error.
		cmd.SilenceUsage = true
		s.out, s.progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
		err := s.connect()
		if err == nil {
			s.client.progress = s.progress
		}
		if err == nil {
			s.client.at, err = ParseAt(s.at)
		}
		if err == nil {
			err = s.within(cmd.Context(), func(ctx context.Context) error { return run(ctx, s, args) })
		}
		var o outcome
		if err == nil || errors.As(err, &o) || !s.asJSON {
			return err
		}
		return PrintFailure(s.out, err)
	}
	server := os.Getenv("LANDFALL_SERVER")
	if server == "" {
		server = DefaultServer
	}
	cmd.Flags().StringVar(&s.server, "server", server, "address of the gateway (LANDFALL_SERVER)")
	cmd.Flags().StringVarP(&s.queue, "queue", "q", os.Getenv("LANDFALL_QUEUE"), "the queue; needed only if there are several (LANDFALL_QUEUE)")
	cmd.Flags().BoolVar(&s.asJSON, "json", false, "print one JSON value on standard output and nothing else there")
	return cmd, s
}

// addTimeout gives a command that asks and prints the flag --timeout.
func (s *session) addTimeout(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&s.patience, "timeout", 0, "wait so long for the gateway (default: "+requestTimeout.String()+" for each request)")
}

// ParseAt reads the text of the flag --at, and returns the zero time for none.
func ParseAt(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return ParseTime(text, clock())
}

// AddAt gives a command the flag --at, whose text ParseAt reads.
func AddAt(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", "show it as it was then: 14:05, \"2026-01-31 14:05:30\", 2026-01-31T14:05:30Z, or -10m for ten minutes ago")
}

// addAt gives a command that shows queues or changes the flag --at.
func (s *session) addAt(cmd *cobra.Command) {
	AddAt(cmd, &s.at)
}

// now returns the moment that is shown.
func (s *session) now() time.Time {
	if s.at != "" {
		return s.client.at
	}
	return clock()
}

// writeMoment prints which moment is shown, if it is one of the past.
func (s *session) writeMoment() {
	if s.at != "" {
		fmt.Fprintf(s.out, "as of %s\n", s.client.at.Local().Format("2006-01-02 15:04:05 -07:00"))
	}
}

// within runs what asks the gateway, for as long as the user has patience.
func (s *session) within(ctx context.Context, run func(context.Context) error) error {
	switch {
	case s.patience < 0:
		return fmt.Errorf("--timeout is %v; give a time above 0, such as 5s", s.patience)
	case s.patience == 0:
		return run(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := run(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w at %s within %v", ErrUnreachable, s.client.server, s.patience)
	}
	return err
}

const (
	completionWait = 2 * time.Second
	maxCompletions = 200
)

// completeChange returns the pending changes, for a shell; none if the gateway does not say.
func (s *session) completeChange(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
	defer cancel()
	if s.connect() != nil || s.chooseQueue(ctx) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := s.client.Changes(ctx, s.queue, maxCompletions, "pending")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, c := range list.Changes {
		if !slices.Contains(args, c.Change) {
			names = append(names, c.Change+"\t"+c.Title)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// PrintFailure prints an error of a command as the one JSON value, and returns one that ExitCode knows to be printed.
func PrintFailure(out io.Writer, err error) error {
	detail := api.FailureDetail{Code: "failed", Message: err.Error()}
	var failure *Failure
	if errors.As(err, &failure) {
		detail = failure.FailureDetail
	} else if errors.Is(err, ErrUnreachable) {
		detail.Code = "unreachable"
	}
	printJSON(out, api.Failure{Error: detail})
	return printedError{err}
}

func (s *session) connect() error {
	name := os.Getenv("LANDFALL_USER")
	if name == "" {
		if current, err := user.Current(); err == nil {
			name = current.Username
		}
	}
	var err error
	if s.client, err = New(s.server, name); err != nil {
		return err
	}
	if err = s.client.Prove(); err == nil && s.client.exposed && s.progress != nil {
		fmt.Fprintf(s.progress, "%s is reached over plain HTTP, where others can read the token\n", s.client.server)
	}
	s.kept, _ = login.Open() // who has no folder for credentials has none
	return err
}

// print writes the one JSON value.
func (s *session) print(value any) error { return printJSON(s.out, value) }

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// chooseQueue takes the only queue that there is, unless one was named.
func (s *session) chooseQueue(ctx context.Context) error {
	if s.queue != "" {
		return nil
	}
	queues, err := s.client.Queues(ctx)
	if err != nil {
		return err
	}
	if len(queues) == 1 {
		s.queue = queues[0].Queue
		return nil
	}
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Queue
	}
	return fmt.Errorf("there are %d queues; name one with --queue: %s", len(queues), strings.Join(names, ", "))
}

// atMostOne takes one argument or none.
func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one %s at most, not %d", cmd.Name(), what, len(args))
		}
		return nil
	}
}

// Exactly is cobra.ExactArgs with a message that names what is missing.
func Exactly(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s takes one %s, not %d; see `%s --help`", cmd.Name(), what, len(args), cmd.CommandPath())
		}
		return nil
	}
}

func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments; name the queue with --queue", cmd.Name())
	}
	return nil
}
