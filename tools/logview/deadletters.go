package logview

import (
	"context"
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
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/tools/client"
	"landfall.build/tools/replay"
)

// place returns the position of a dead letter's record, as TOPIC/PARTITION/OFFSET.
func place(d *eventsv1.DeadLetter) string {
	return fmt.Sprintf("%s/%d/%d", strings.TrimPrefix(d.Topic, "landfall."), d.Partition, d.Offset)
}

// deadLetters returns the dead letters of a log, the first of each record.
func deadLetters(ctx context.Context, log journal.Log) (list []*eventsv1.DeadLetter, err error) {
	seen := map[string]bool{}
	for p := range log.Partitions() {
		end, err := log.End(ctx, events.TopicDeadLetters, p)
		if err != nil {
			return nil, fmt.Errorf("end of %s/%d: %w", events.TopicDeadLetters, p, err)
		}
		r, err := reading.To(ctx, log, events.TopicDeadLetters, p, end, reading.Options{})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		for {
			e, err := r.Take(ctx)
			if err != nil {
				return nil, err
			}
			if e == nil {
				break
			}
			if d, is := e.Message.(*eventsv1.DeadLetter); is && !seen[place(d)] {
				seen[place(d)] = true
				list = append(list, d)
			}
		}
	}
	return list, nil
}

// printDeadLetters prints the dead letters of a queue, or all if queue is "".
func printDeadLetters(list []*eventsv1.DeadLetter, queue string, asJSON bool, out io.Writer) error {
	for _, d := range list {
		if queue != "" && d.Queue != queue {
			continue
		}
		if asJSON {
			body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(d)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(out).Encode(json.RawMessage(body)); err != nil {
				return err
			}
			continue
		}
		line := place(d) + "  " + time.UnixMicro(d.StampUs).Format(time.DateTime)
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
	}
	return nil
}

// sendAgain publishes the land request of a dead letter again, if this version can read it. A request without an id gets one
// that is derived from its record, so that it is admitted once, however often it is sent.
func sendAgain(ctx context.Context, log journal.Log, d *eventsv1.DeadLetter) error {
	if d.Topic != events.TopicLandRequests {
		return fmt.Errorf("%s is no land request; only those can be sent again", place(d))
	}
	cursor, err := log.Follow(ctx, d.Topic, d.Partition, d.Offset)
	if err != nil {
		return err
	}
	defer cursor.Close()
	e, err := cursor.Next(ctx)
	switch {
	case err != nil:
		return err
	case e.Offset != d.Offset:
		return fmt.Errorf("%s is no longer in the log", place(d))
	case e.Err != nil:
		return fmt.Errorf("%s cannot be read by this version either: %w", place(d), e.Err)
	}
	land := e.Message.(*eventsv1.LandRequest)
	if land.RequestId == "" {
		land.RequestId = events.DeriveID(log.ID(), "land-request", fmt.Sprint(e.Partition), fmt.Sprint(e.Offset))
	}
	e.Envelope.ID = events.DeriveID(log.ID(), "sent-again", place(d))
	_, err = log.Append(ctx, d.Topic, events.PartitionOf(land.Queue, log.Partitions()), e.Envelope)
	return err
}

// DeadLettersCommand is `landfall dead-letters`. load reads a configuration file.
func DeadLettersCommand(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	source := replay.Source{Load: load}
	var queue string
	var asJSON, all bool
	open := func(cmd *cobra.Command) (journal.Log, []*eventsv1.DeadLetter, func(), error) {
		cmd.SilenceUsage = true
		log, done, err := source.Open(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
		if err != nil {
			return nil, nil, nil, err
		}
		list, err := deadLetters(cmd.Context(), log)
		if err != nil {
			done()
			return nil, nil, nil, err
		}
		return log, list, done, nil
	}
	c := &cobra.Command{
		Use:     "dead-letters",
		Short:   "List what could not be read or handled, and send land requests again",
		Example: "  landfall dead-letters --data ~/.landfall\n  landfall dead-letters send land-requests/0/12",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, list, done, err := open(cmd)
			if err != nil {
				return err
			}
			defer done()
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
				if err := sendAgain(cmd.Context(), log, d); err != nil {
					failed = append(failed, err)
					continue
				}
				fmt.Fprintln(cmd.OutOrStdout(), client.Plain("sent "+place(d)))
			}
			return errors.Join(failed...)
		},
	}
	source.Flags(c.PersistentFlags())
	c.PersistentFlags().StringVar(&queue, "queue", "", "only those that name this queue")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON value a line, with key, headers and value")
	send.Flags().BoolVar(&all, "all", false, "every land request among the dead letters")
	c.AddCommand(send)
	return c
}

// chooseLetters returns the dead letters at some places, or all land requests of a queue if no place is given.
func chooseLetters(list []*eventsv1.DeadLetter, queue string, places []string) (chosen []*eventsv1.DeadLetter, err error) {
	at := map[string]*eventsv1.DeadLetter{}
	for _, d := range list {
		at[place(d)] = d
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
