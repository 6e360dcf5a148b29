package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// landed is what land and retry print as JSON.
type landed struct {
	api.LandReply
	// Final is the change as it ended, with --wait.
	Final *view.Summary `json:"final,omitempty"`
}

func landCommand() *cobra.Command {
	var body api.LandBody
	var wait, watch bool
	var timeout time.Duration
	var directory string
	cmd, _ := command("land REF...", "Land a change: a branch, a commit, or several that stack on each other",
		`Land a change on its queue's mainline. Each REF is looked up in the clone in the current directory (or
--repo) and pinned to the commit that it is at; outside of a clone the gateway looks it up in the
repository. Several REFs are one change that lands as one ordered unit.
Exit codes: 0 it has landed, or is in the queue, 1 these commits were rejected before, 2 they were ejected,
cancelled or dropped by a force-push, 3 the request was refused, or nobody has answered it within --timeout.`,
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("land takes at least one REF: a branch, or HEAD, or a commit")
			}
			return nil
		}, func(ctx context.Context, s *session, refs []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			if math.IsNaN(body.Benefit) || math.IsInf(body.Benefit, 0) {
				return fmt.Errorf("--benefit is %v; it is a number, 1 for an ordinary change", body.Benefit)
			}
			if timeout < 0 {
				return fmt.Errorf("--timeout is %s; it is a duration such as 10m, 0 for no bound", timeout)
			}
			entries, err := pinRefs(ctx, directory, refs)
			if err != nil {
				return err
			}
			body.Entries = entries
			if body.Author == "" {
				body.Author = localAuthor(ctx, directory)
			}
			reply, err := s.client.Land(ctx, s.queue, body)
			if err != nil {
				return s.advisePush(ctx, err, entries)
			}
			if reply, err = s.insist(ctx, reply, body, timeout); err != nil {
				return s.advisePush(ctx, err, entries)
			}
			if reply.Outcome == api.OutcomePending {
				wait, watch = false, false // it is not known whether there is a change to wait for
			}
			return s.report(ctx, reply, wait || watch)
		})
	f := cmd.Flags()
	f.StringVar(&body.Change, "id", "", "id of the change (default: from the first REF)")
	f.StringSliceVar(&body.Requires, "requires", nil, "ids of changes that must land first")
	f.StringVar(&body.Title, "title", "", "title (default: the last commit's)")
	f.StringVar(&body.Author, "author", "", "author, as \"Name <address>\" (default: the clone's user.name and user.email)")
	f.StringVar(&body.RequestID, "request-id", "", "id under which the request may be repeated; the answer stays the same")
	f.StringVar(&body.URI, "uri", "", "address of the change, for people")
	f.StringVar(&body.Team, "team", "", "team of the change")
	f.StringToStringVar(&body.Labels, "label", nil, "labels, as name=value")
	f.Float64Var(&body.Benefit, "benefit", 0, "factor on the value of its builds (default: 1)")
	f.BoolVar(&wait, "wait", false, "wait until it has landed or left the queue; exit codes as for watch")
	f.BoolVar(&watch, "watch", false, "same as --wait")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "ask so long whether the change is taken while the gateway has no answer; 0: without a bound")
	f.StringVar(&directory, "repo", "", "the clone in which REFs are looked up")
	return cmd
}

func retryCommand() *cobra.Command {
	var wait, mainline bool
	change := Exactly("CHANGE")
	args := func(cmd *cobra.Command, args []string) error {
		if mainline && len(args) == 0 {
			return nil
		}
		return change(cmd, args)
	}
	cmd, _ := command("retry CHANGE", "Land the same commits of a change again, or verify the mainline again",
		"Put a change that was rejected, ejected or cancelled into the queue again, with the same commits, as its next revision. For one that is\n"+
			"blocked because the mainline is red, what failed there and with the change no longer counts, and both are verified again.\n"+
			"With --mainline and no CHANGE, what failed on the mainline itself is verified again: a server that its steps need is back, say.",
		args, func(ctx context.Context, s *session, args []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			if mainline {
				if len(args) > 0 || wait {
					return errors.New("--mainline takes no CHANGE and does not wait; `landfall status` shows what comes of it")
				}
				reply, err := s.client.Steer(ctx, s.queue, "", "retry", api.SteerBody{})
				if err != nil {
					return err
				}
				if s.asJSON {
					return s.print(reply)
				}
				_, err = fmt.Fprintf(s.out, "queue %s: %s\n", Plain(s.queue), Plain(reply.Message))
				return err
			}
			reply, err := s.client.Retry(ctx, s.queue, args[0])
			if err != nil {
				return err
			}
			if wait && reply.Outcome == api.OutcomePending {
				return fmt.Errorf("%s: %s --wait needs it in the queue: type `landfall watch %s` once it is there, or retry it again", args[0], reply.Message, args[0])
			}
			return s.report(ctx, reply, wait)
		})
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it has landed or left the queue; exit codes as for watch")
	cmd.Flags().BoolVar(&mainline, "mainline", false, "verify again what fails on the mainline itself")
	return cmd
}

// insist asks again, under the same request id, until the request is answered: before that it is not known whether there
// is a change. After the timeout, if there is one, the reply is still pending.
func (s *session) insist(ctx context.Context, reply api.LandReply, body api.LandBody, timeout time.Duration) (api.LandReply, error) {
	if reply.Outcome != api.OutcomePending {
		return reply, nil
	}
	fmt.Fprintf(s.progress, "%s: the request (request_id %s) is in the log; waiting for the queue to look it up in the repository\n", Plain(reply.Change), Plain(reply.RequestID))
	var over <-chan time.Time
	if timeout > 0 {
		over = time.After(timeout)
	}
	for body.RequestID = reply.RequestID; reply.Outcome == api.OutcomePending; {
		select {
		case <-ctx.Done():
			return reply, fmt.Errorf("interrupted before %s was answered (request_id %s); look for it with `landfall status`", reply.Change, reply.RequestID)
		case <-over:
			return reply, nil
		case <-time.After(insistPause):
		}
		var err error
		if reply, err = s.client.Land(ctx, s.queue, body); err != nil {
			return reply, err
		}
	}
	return reply, nil
}

// insistPause keeps a gateway that does not wait itself from being asked without end.
const insistPause = 200 * time.Millisecond

// report prints what became of a land request, and waits for the end of the change if wait is set.
func (s *session) report(ctx context.Context, reply api.LandReply, wait bool) error {
	if !s.asJSON {
		fmt.Fprintf(s.out, "%s: %s\n", Plain(reply.Change), Plain(reply.Message))
	}
	if !wait {
		if s.asJSON {
			if err := s.print(landed{LandReply: reply}); err != nil {
				return err
			}
		} else if exitOf(reply.State) != ExitLanded {
			fmt.Fprintf(s.out, "  to land it again: landfall retry %s\n", reply.Change)
		}
		code := exitOf(reply.State)
		if reply.Outcome == api.OutcomePending {
			code = ExitFailed // nobody knows whether it will land
		}
		if code != ExitLanded {
			return outcome{code}
		}
		return nil
	}
	watcher := newWatcher(s, []string{reply.Change})
	watcher.from = map[string]uint64{reply.Change: reply.Revision}
	if err := watcher.run(ctx); err != nil {
		return err
	}
	if s.asJSON {
		final := watcher.last[reply.Change].Summary
		if err := s.print(landed{LandReply: reply, Final: &final}); err != nil {
			return err
		}
	}
	return watcher.ended()
}

// advisePush adds what to type to an error of a repository that lacks what is to be landed.
func (s *session) advisePush(ctx context.Context, err error, entries []api.LandEntry) error {
	var failure *Failure
	if !errors.As(err, &failure) || (failure.Code != "no_such_commit" && failure.Code != "no_such_ref" && failure.Code != "ref_moved") {
		return err
	}
	queues, listErr := s.client.Queues(ctx)
	i := slices.IndexFunc(queues, func(q view.Overview) bool { return q.Queue == s.queue })
	if listErr != nil || i < 0 || queues[i].Head == "" {
		return failure // the mainline itself may be what is missing
	}
	var refs []string
	for _, e := range entries {
		branch, is := strings.CutPrefix(e.Ref, "refs/heads/")
		if is && branch == queues[i].Branch {
			// To push there would be to land past the queue.
			failure.Advice = fmt.Sprintf("The queue lands on %s itself; push to a branch of your own and land that: git push origin %s:refs/heads/NAME", branch, events.ShortID(e.Commit))
			return failure
		}
		if is && !slices.Contains(refs, branch) {
			refs = append(refs, branch)
		}
	}
	if len(refs) > 0 {
		failure.Advice = "To push: git push origin " + strings.Join(refs, " ")
	}
	return failure
}

// pinRefs looks the refs up in the local clone. Where there is none they are left to the gateway.
func pinRefs(ctx context.Context, directory string, refs []string) ([]api.LandEntry, error) {
	entries := make([]api.LandEntry, len(refs))
	local := true
	if _, err := localGit(ctx, directory, "rev-parse", "--git-dir"); err != nil {
		if directory != "" {
			return nil, fmt.Errorf("%s is no clone: %w", directory, err)
		}
		local = false
	}
	for i, ref := range refs {
		if !utf8.ValidString(ref) {
			return nil, fmt.Errorf("%q is not UTF-8, and requests are; push the commit under another name", ref)
		}
		if !local {
			if entries[i].Ref = ref; isCommit(ref) {
				entries[i] = api.LandEntry{Commit: ref}
			}
			continue
		}
		commit, err := localGit(ctx, directory, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
		switch {
		case err == nil:
			entries[i] = api.LandEntry{Commit: commit, Ref: fullName(ctx, directory, ref)}
		case isCommit(ref):
			entries[i] = api.LandEntry{Commit: ref}
		default:
			return nil, &Failure{FailureDetail: api.FailureDetail{
				Code: "no_such_ref", Message: fmt.Sprintf("This clone has no %q.", ref), Advice: "Fetch it, or leave the clone to have the gateway look it up.",
			}}
		}
	}
	return entries, nil
}

// fullName returns a ref's full name in the repository that the queue lands on, "" if it has none there.
func fullName(ctx context.Context, directory, ref string) string {
	name, err := localGit(ctx, directory, "rev-parse", "--symbolic-full-name", "--end-of-options", ref)
	if err != nil {
		return ""
	}
	// Older versions of git print the marker too.
	name = strings.TrimSpace(strings.TrimPrefix(name, "--end-of-options"))
	if rest, is := strings.CutPrefix(name, "refs/remotes/"); is {
		_, branch, _ := strings.Cut(rest, "/")
		return "refs/heads/" + branch
	}
	if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
		return name
	}
	return ""
}

// localAuthor returns who git says makes commits in the clone, "" if it does not say.
func localAuthor(ctx context.Context, directory string) string {
	name, _ := localGit(ctx, directory, "config", "user.name")
	address, _ := localGit(ctx, directory, "config", "user.email")
	if address == "" {
		return name
	}
	return strings.TrimSpace(name + " <" + address + ">")
}

func isCommit(text string) bool {
	return len(text) == 40 && strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}

func localGit(ctx context.Context, directory string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = directory
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return "", errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
