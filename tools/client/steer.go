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
		fmt.Fprintf(s.out, "%s: %s\n", name, reply.Message)
		if c := reply.Change; c != nil && c.Position > 0 {
			fmt.Fprintf(s.out, "  position %d; %s\n", c.Position, c.Why)
		}
		return nil
	})
	cmd.Flags().StringVarP(&body.Why, "why", "m", "", "why; it is shown to everybody and kept")
	return cmd, body
}

func cancelCommand() *cobra.Command {
	cmd, body := steerCommand("cancel CHANGE", "cancel", "Take a change out of the queue",
		"Take a change out of the queue. Once it is being landed it is too late, and the command says so.", false, nil)
	cmd.Flags().Uint64Var(&body.Revision, "revision", 0, "only if this is the change's revision")
	return cmd
}

func pauseCommand() *cobra.Command {
	cmd, _ := steerCommand("pause", "pause", "Let nothing land for a while; builds go on",
		"Pause a queue: builds go on and nothing lands until it is resumed. Who paused it and why is shown wherever a change waits for it.", true, nil)
	return cmd
}

func resumeCommand() *cobra.Command {
	cmd, _ := steerCommand("resume", "resume", "Let changes land again", "Resume a paused queue.", true, nil)
	return cmd
}

func priorityCommand() *cobra.Command {
	cmd, body := steerCommand("priority CHANGE", "priority", "Move a change ahead in its queue",
		"Move a change to the front of its queue, or before another change. What it requires moves along.", false,
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
	cmd, body := steerCommand("hold CHANGE", "hold", "Keep a change from landing; its builds go on",
		"Keep a change from landing until the hold is released. Holds have names; there can be several.", false, nil)
	cmd.Flags().StringVar(&body.Hold, "name", "", "name of the hold (default: manual)")
	return cmd
}

func releaseCommand() *cobra.Command {
	cmd, body := steerCommand("release CHANGE", "release", "Release a hold of a change", "Release a hold of a change.", false, nil)
	cmd.Flags().StringVar(&body.Hold, "name", "", "name of the hold (default: manual)")
	return cmd
}
