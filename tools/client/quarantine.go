package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// Quarantines lists a queue's quarantines that are in force.
func (c *Client) Quarantines(ctx context.Context, queue string) (api.QuarantineList, error) {
	var list api.QuarantineList
	err := c.call(ctx, http.MethodGet, queuePath(queue, "quarantines"), nil, &list)
	return list, err
}

// Flakes lists the targets of a queue that failed and then passed with nothing changed.
func (c *Client) Flakes(ctx context.Context, queue string) (api.FlakeList, error) {
	var list api.FlakeList
	err := c.call(ctx, http.MethodGet, queuePath(queue, "flakes"), nil, &list)
	return list, err
}

func (c *Client) quarantine(ctx context.Context, queue string, body api.SteerBody, end bool) (api.SteerReply, error) {
	path := queuePath(queue, "quarantines")
	if end {
		path = queuePath(queue, "quarantines", "end")
	}
	var out api.SteerReply
	err := c.call(ctx, http.MethodPost, path, body, &out)
	return out, err
}

func quarantineCommand() *cobra.Command {
	var body api.SteerBody
	var lasts, until string
	var end bool
	cmd, _ := command("quarantine [TARGET]", "Keep a target's failures from blocking anybody, for a while",
		`Quarantine a target, or with * several: it runs as before and is reported, and if it fails, that blocks nobody until the time is over. Landing
commits name the quarantined targets that they rest on. With --end the quarantine is over at once. Without a target those in force are listed.

  landfall quarantine //e2e:checkout --for 7d --why "a race in the test server"
  landfall quarantine //e2e:checkout --end

  UNTIL   when it ends by itself
  BY      who asked for it: a person, the configuration, or the rate of flakes
  WHY     the reason that was given; "unseen" before it: no target that the queue has seen has the name

A name that is none of the targets of the queue's changes and builds is refused; --force quarantines a target that is to come.`,
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("quarantine takes one TARGET at most, not %d", len(args))
			}
			return nil
		}, func(ctx context.Context, s *session, args []string) error {
			if len(args) > 0 && !end {
				var err error
				if body.Until, err = quarantineEnd(time.Now(), lasts, until); err != nil {
					return err
				}
			}
			if len(args) == 0 && (end || lasts != "" || until != "" || body.Why != "" || body.Force) {
				return errors.New("name the TARGET; `landfall quarantine` alone lists those in force")
			}
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			if len(args) == 0 {
				return s.showQuarantines(ctx)
			}
			body.Target = args[0]
			reply, err := s.client.quarantine(ctx, s.queue, body, end)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(reply)
			}
			fmt.Fprintf(s.out, "%s: %s\n", Plain(body.Target), Plain(reply.Message))
			return nil
		})
	cmd.Flags().StringVarP(&body.Why, "why", "m", "", "reason, shown to everybody and kept")
	cmd.Flags().StringVar(&lasts, "for", "", "how long: 7d, 36h")
	cmd.Flags().StringVar(&until, "until", "", "the last day, in UTC: 2026-12-31")
	cmd.Flags().BoolVar(&body.Force, "force", false, "also a target that the queue has not seen")
	cmd.Flags().BoolVar(&end, "end", false, "end the quarantine of that name")
	return cmd
}

// quarantineEnd returns when a quarantine ends: so long after now, or with the end of a day.
func quarantineEnd(now time.Time, lasts, until string) (time.Time, error) {
	if (lasts == "") == (until == "") {
		return time.Time{}, errors.New("say for how long: either --for 7d or --until 2026-12-31")
	}
	if until != "" {
		day, err := time.Parse(time.DateOnly, until)
		if err != nil {
			return time.Time{}, fmt.Errorf("--until %q is not a day such as 2026-12-31", until)
		}
		return day.AddDate(0, 0, 1), nil
	}
	if text, is := strings.CutSuffix(lasts, "d"); is {
		if days, err := strconv.Atoi(text); err == nil && days > 0 && days <= 10_000 {
			return now.AddDate(0, 0, days), nil
		}
	} else if d, err := time.ParseDuration(lasts); err == nil && d > 0 {
		return now.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("--for %q is not a time such as 7d or 36h", lasts)
}

func (s *session) showQuarantines(ctx context.Context) error {
	list, err := s.client.Quarantines(ctx, s.queue)
	if err != nil {
		return err
	}
	if s.asJSON {
		return s.print(list)
	}
	if len(list.Quarantines) == 0 {
		fmt.Fprintf(s.out, "queue %s: nothing is quarantined\n", s.queue)
		return nil
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TARGET\tUNTIL\tBY\tWHY")
	for _, q := range list.Quarantines {
		by := Plain(q.Who)
		switch q.Source {
		case view.QuarantineConfigured:
			by = "configuration"
		case view.QuarantineOfRate:
			by = "rate of flakes"
		}
		why := Plain(q.Why)
		if q.Unseen {
			why = "unseen: " + why
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", Plain(q.Target), endOf(q.Until), by, why)
	}
	return w.Flush()
}

func flakesCommand() *cobra.Command {
	var owners []string
	cmd, _ := command("flakes", "Show the targets that rejected changes, and those that fail by chance",
		`Show the targets of a queue for which changes were rejected, those that rejected most first, and those that failed and then passed with
nothing changed, those that cost most first.

  REJECTED     how many changes were rejected for the target, of those that the gateway keeps; LAST: the last of them
  RATE         share of the versions that were flakes
  FLAKES       versions that passed only after a failure, of those that passed since the first flake; older ones weigh less
  LOST         time that workers spent on attempts which failed and were contradicted
  LAST SEEN    the last flake, with its build
  QUARANTINED  until when its failures block nobody
  OWNERS       who owns it, by the manifests and the CODEOWNERS file of the mainline

With --owner only those that somebody owns: --owner me for yours, by LANDFALL_USER, your login and git's user.name and
user.email; --owner @shop/payments for a team's.`, none,
		func(ctx context.Context, s *session, _ []string) error {
			if err := s.chooseQueue(ctx); err != nil {
				return err
			}
			list, err := s.client.Flakes(ctx, s.queue)
			if err != nil {
				return err
			}
			if len(owners) > 0 {
				wanted := ownerNames(ctx, owners, s.client.user)
				others := func(owners []string) bool {
					return !slices.ContainsFunc(owners, func(owner string) bool { return wanted[ownerName(owner)] })
				}
				list.Flakes = slices.DeleteFunc(list.Flakes, func(f view.Flake) bool { return others(f.Owners) })
				list.Rejecting = slices.DeleteFunc(list.Rejecting, func(r view.RejectingTarget) bool { return others(r.Owners) })
			}
			if s.asJSON {
				return s.print(list)
			}
			return writeFlakes(s.out, list, owners)
		})
	cmd.Flags().StringArrayVar(&owners, "owner", nil, "only the targets of this owner: me, @ada, @shop/payments, ada@example.com; several times")
	return cmd
}

// ownerNames returns the owners that are meant, me among them by all names that this machine has for its user.
func ownerNames(ctx context.Context, owners []string, user string) map[string]bool {
	wanted := map[string]bool{}
	for _, owner := range owners {
		if owner != "me" {
			wanted[ownerName(owner)] = true
			continue
		}
		name, _ := localGit(ctx, ".", "config", "user.name")
		address, _ := localGit(ctx, ".", "config", "user.email")
		for _, mine := range []string{user, name, address} {
			if mine = ownerName(mine); mine != "" {
				wanted[mine] = true
			}
		}
	}
	return wanted
}

// ownerName returns the name of an owner as it is compared: without its case and the @ before it.
func ownerName(owner string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimSpace(owner), "@"))
}

func writeFlakes(w io.Writer, list api.FlakeList, owners []string) error {
	if len(list.Rejecting) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "TARGET\tREJECTED\tLAST\tOWNERS")
		for _, r := range list.Rejecting {
			fmt.Fprintf(t, "%s\t%s\t%s, %s\t%s\n", Plain(r.Target), counted(r.Changes, "change"), minute(r.LastAt), Plain(r.LastChange), Plain(cmp.Or(listed(r.Owners), "-")))
		}
		t.Flush()
		fmt.Fprintln(w)
	}
	if len(list.Flakes) == 0 && len(owners) > 0 {
		owners = slices.Clone(owners)
		for i, owner := range owners {
			if owner == "me" {
				owners[i] = "you"
			}
		}
		fmt.Fprintf(w, "queue %s: no target that belongs to %s has contradicted itself\n", list.Queue, Plain(strings.Join(owners, " or ")))
		return nil
	}
	if len(list.Flakes) == 0 {
		fmt.Fprintf(w, "queue %s: no target has contradicted itself\n", list.Queue)
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tRATE\tFLAKES\tLOST\tLAST SEEN\tQUARANTINED\tOWNERS")
	for _, f := range list.Flakes {
		seen := minute(f.LastSeen)
		if f.LastBuild != "" {
			seen += " in build " + events.ShortID(f.LastBuild)
		}
		if f.Change != "" {
			seen += " of " + Plain(f.Change)
		}
		until := "-"
		if f.Quarantined != nil {
			if until = endOf(f.Quarantined.Until); view.LastDay(f.Quarantined.Until) == "" {
				until = "until " + until
			}
		}
		lost := (time.Duration(f.LostMS) * time.Millisecond).Round(time.Second)
		fmt.Fprintf(t, "%s\t%.0f %%\t%d of %d\t%s\t%s\t%s\t%s\n", Plain(f.Target), 100*f.Rate, f.Flakes, f.Versions, lost, seen, until, Plain(cmp.Or(listed(f.Owners), "-")))
	}
	return t.Flush()
}

// endOf returns the end of a quarantine: its last day in UTC, or the minute where people are.
func endOf(t time.Time) string {
	if day := view.LastDay(t); day != "" {
		return "through " + day
	}
	return minute(t)
}

func minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }
