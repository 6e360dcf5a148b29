package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/api"
)

// steerCommand makes a command that changes one change, or with queueOnly the queue.
func steerCommand(use, verb, short, long string, queueOnly bool, check func(*api.SteerBody) error) (*cobra.Command, *api.SteerBody) {
	body := &api.SteerBody{}
	args := Exactly("CHANGE")
	if queueOnly {
		args = none
	}
	cmd, _ := command(use, short, long, args, func(ctx context.Context, s *session, args []string) error {
		if check != nil {
			if err := check(body); err != nil {
				return err
			}
		}
		if err := s.chooseQueue(ctx); err != nil {
			return err
		}
		change := ""
		if !queueOnly {
			change = args[0]
		}
		reply, err := s.client.Steer(ctx, s.queue, change, verb, *body)
		if err != nil {
			return err
		}
		if s.asJSON {
			return s.print(reply)
		}
		name := "queue " + s.queue
		if change != "" {
			name = change
		}
		fmt.Fprintf(s.out, "%s: %s\n", Plain(name), Plain(reply.Message))
		if c := reply.Change; c != nil && c.Position > 0 {
			fmt.Fprintf(s.out, "  position %d; %s\n", c.Position, Plain(c.Why))
		}
		return nil
	})
	cmd.Flags().StringVarP(&body.Why, "why", "m", "", "reason, shown to everybody and kept")
	return cmd, body
}

func cancelCommand() *cobra.Command {
	cmd, body := steerCommand("cancel CHANGE", "cancel", "Take a change out of the queue",
		"Take a change out of the queue. A change that is being pushed cannot be cancelled any more.", false, nil)
	cmd.Flags().Uint64Var(&body.Revision, "revision", 0, "only if this is the change's revision")
	return cmd
}

func pauseCommand() *cobra.Command {
	cmd, _ := steerCommand("pause", "pause", "Let nothing land until resumed; builds continue",
		"Pause a queue: builds continue, and nothing lands until it is resumed. Every change that waits for it shows who paused it, and why.", true, nil)
	return cmd
}

func resumeCommand() *cobra.Command {
	cmd, _ := steerCommand("resume", "resume", "Let changes land again", "Resume a paused queue.", true, nil)
	return cmd
}

func priorityCommand() *cobra.Command {
	cmd, body := steerCommand("priority CHANGE", "priority", "Move a change ahead in its queue",
		"Move a change to the front of its queue, or before another change. The changes that it requires move along.", false,
		func(b *api.SteerBody) error {
			if b.Front == (b.Before != "") {
				return errors.New("say where to: either --front or --before CHANGE")
			}
			return nil
		})
	cmd.Flags().BoolVar(&body.Front, "front", false, "to the front of the queue")
	cmd.Flags().StringVar(&body.Before, "before", "", "before this pending change")
	return cmd
}

func holdCommand() *cobra.Command {
	cmd, body := steerCommand("hold CHANGE", "hold", "Keep a change from landing; its builds continue",
		"Keep a change from landing until the hold is released. A change can have several holds, by name.", false, nil)
	cmd.Flags().StringVar(&body.Hold, "name", "", "name of the hold (default: manual)")
	return cmd
}

func releaseCommand() *cobra.Command {
	cmd, body := steerCommand("release CHANGE", "release", "Release a hold of a change", "Release a hold of a change.", false, nil)
	cmd.Flags().StringVar(&body.Hold, "name", "", "name of the hold (default: manual)")
	return cmd
}
