package logview

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/deadletters"
	"landfall.build/platform/journal"
	"landfall.build/tools/client"
	"landfall.build/tools/replay"
)

// printDeadLetters prints the dead letters of a queue, or all if queue is "".
func printDeadLetters(list []*deadletters.Letter, queue string, asJSON bool, out io.Writer) error {
	printed := 0
	for _, d := range list {
		if queue != "" && d.Queue != queue {
			continue
		}
		printed++
		if asJSON {
			body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(d.DeadLetter)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(out).Encode(json.RawMessage(body)); err != nil {
				return err
			}
			continue
		}
		line := deadletters.Place(d) + "  " + time.UnixMicro(d.StampUs).Format(time.DateTime)
		for _, part := range [][2]string{{"queue", d.Queue}, {"change", d.Change}, {"request", d.RequestId}, {"type", d.Type}, {"reported by", d.Service}} {
			if part[1] != "" {
				line += "  " + part[0] + " " + part[1]
			}
		}
		fmt.Fprintln(out, client.Plain(line))
		fmt.Fprintln(out, "    "+client.Plain(shortText(d.Reason)))
		if d.Advice != "" {
			fmt.Fprintln(out, "    "+client.Plain(d.Advice))
		}
		if s := d.LastSent(); s != nil {
			fmt.Fprintln(out, "    "+client.Plain(shortText(fmt.Sprintf("sent again %s by %s: %s", time.UnixMicro(s.StampUs).Format(time.DateTime), s.Who, s.Why))))
		}
	}
	switch {
	case printed > 0 || asJSON:
	case queue != "":
		fmt.Fprintln(out, client.Plain("There are no dead letters of the queue "+queue+"."))
	default:
		fmt.Fprintln(out, "There are no dead letters.")
	}
	return nil
}

// DeadLettersCommand is `landfall dead-letters`. load reads a configuration file.
func DeadLettersCommand(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	source := replay.Source{Load: load}
	var queue, at, who, why string
	var asJSON, all bool
	open := func(cmd *cobra.Command) (journal.Log, []*deadletters.Letter, func(), error) {
		cmd.SilenceUsage = true
		log, done, err := source.Open(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
		if err != nil {
			return nil, nil, nil, err
		}
		list, err := deadletters.Read(cmd.Context(), log)
		if err != nil {
			done()
			return nil, nil, nil, err
		}
		return log, list.Letters(), done, nil
	}
	c := &cobra.Command{
		Use:     "dead-letters",
		Short:   "List what could not be read or handled, and send land requests again",
		Example: "  landfall dead-letters --data ~/.landfall\n  landfall dead-letters send land-requests/0/12",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			then, err := client.ParseAt(at)
			if err != nil {
				return err
			}
			_, list, done, err := open(cmd)
			if err != nil {
				return err
			}
			defer done()
			if at != "" {
				list = lettersAt(list, then)
			}
			return printDeadLetters(list, queue, asJSON, cmd.OutOrStdout())
		},
	}
	send := &cobra.Command{
		Use:   "send [TOPIC/PARTITION/OFFSET...]",
		Short: "Publish land requests among the dead letters again",
		Long: "Publish land requests again that could not be read or handled, once the cause is mended: the queue is there now, or this version reads them. " +
			"Each keeps its request id, so sending it twice does no harm. The answer is in landfall.changes; a request that fails again is a new dead letter.",
		RunE: func(cmd *cobra.Command, places []string) error {
			if all == (len(places) > 0) {
				return errors.New("name dead letters as landfall dead-letters lists them, or give --all")
			}
			log, list, done, err := open(cmd)
			if err != nil {
				return err
			}
			defer done()
			chosen, err := chooseLetters(list, queue, places)
			if err != nil {
				return err
			}
			var failed []error
			for _, d := range chosen {
				by := &eventsv1.DeadLetterSent{Who: who, Why: why, StampUs: time.Now().UnixMicro(), Actor: client.Operator("landfall dead-letters send")}
				if _, err := deadletters.Send(cmd.Context(), log, d.DeadLetter, by, events.ServiceGateway, "dead-letters"); err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintln(cmd.OutOrStdout(), client.Plain("sent "+deadletters.Place(d)))
			}
			return errors.Join(failed...)
		},
	}
	source.Flags(c.PersistentFlags())
	c.PersistentFlags().StringVar(&queue, "queue", "", "only those that name this queue")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON value a line, with key, headers and value")
	client.AddAt(c, &at)
	send.Flags().BoolVar(&all, "all", false, "every land request among the dead letters")
	send.Flags().StringVar(&who, "who", client.Person(), "who asks")
	send.Flags().StringVar(&why, "why", "", "reason, for the record")
	c.AddCommand(send)
	return c
}

// lettersAt returns the dead letters as they were at a moment.
func lettersAt(list []*deadletters.Letter, at time.Time) (then []*deadletters.Letter) {
	for _, d := range list {
		if was, there := d.At(at.UnixMicro()); there {
			then = append(then, &was)
		}
	}
	return then
}

// chooseLetters returns the dead letters at some places, or all land requests of a queue if no place is given.
func chooseLetters(list []*deadletters.Letter, queue string, places []string) (chosen []*deadletters.Letter, err error) {
	at := map[string]*deadletters.Letter{}
	for _, d := range list {
		at[deadletters.Place(d)] = d
		if len(places) == 0 && d.Topic == events.TopicLandRequests && (queue == "" || queue == d.Queue) {
			chosen = append(chosen, d)
		}
	}
	for _, p := range places {
		d := at[strings.TrimPrefix(p, "landfall.")]
		if d == nil {
			return nil, fmt.Errorf("there is no dead letter of %s; landfall dead-letters lists them", p)
		}
		chosen = append(chosen, d)
	}
	return chosen, nil
}
