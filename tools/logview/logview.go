// Package logview prints the log: every record of the topics, decoded, with whether it counts.
package logview

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"landfall.build/events"
	"landfall.build/services/journal"
	"landfall.build/services/journal/kafka"
)

// Options choose what is printed.
type Options struct {
	Brokers       []string
	Topics        []string
	Queue, Change string
	From          int64
	JSON          bool
}

// row is one record as JSON.
type row struct {
	Topic     string          `json:"topic"`
	Partition int32           `json:"partition"`
	Offset    int64           `json:"offset"`
	Time      time.Time       `json:"time"`
	Type      string          `json:"type,omitempty"`
	Source    string          `json:"source,omitempty"`
	Queue     string          `json:"queue,omitempty"`
	Change    string          `json:"change,omitempty"`
	Term      *int64          `json:"term,omitempty"`
	Counts    bool            `json:"counts"`
	Event     json.RawMessage `json:"event,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// Print writes what the topics hold now, topic by topic, partition by partition.
func Print(ctx context.Context, o Options, out io.Writer, logger *slog.Logger) error {
	log, err := kafka.Open(ctx, kafka.Options{Brokers: o.Brokers, ClientID: "landfall-log", Log: logger})
	if err != nil {
		return err
	}
	defer log.Close()
	encoder := json.NewEncoder(out)
	for _, topic := range o.Topics {
		for p := range log.Partitions() {
			if err := printPartition(ctx, log, o, topic, p, func(r row) error {
				if o.JSON {
					return encoder.Encode(r)
				}
				return r.print(out)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func printPartition(ctx context.Context, log journal.Log, o Options, topic string, partition int32, print func(row) error) error {
	end, err := log.End(ctx, topic, partition)
	if err != nil || end == 0 {
		return err
	}
	// Which records count depends on the claims before them: reading starts at the beginning.
	cursor, err := log.Follow(ctx, topic, partition, 0)
	if err != nil {
		return err
	}
	defer cursor.Close()
	terms := journal.NewTerms(topic)
	for at := int64(0); at < end-1; {
		// The last offsets may be parts of a record that never became whole: nothing comes then.
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		e, err := cursor.Next(wait)
		cancel()
		if err != nil {
			if ctx.Err() == nil && wait.Err() != nil {
				return nil
			}
			return err
		}
		at = e.Offset
		counts := terms.Counts(e)
		if e.Offset < o.From || (o.Queue != "" && e.Queue != o.Queue) {
			continue
		}
		r := rowOf(e, counts)
		if o.Change != "" && !strings.Contains(string(r.Event), `"`+o.Change+`"`) {
			continue
		}
		if err := print(r); err != nil {
			return err
		}
	}
	return nil
}

func rowOf(e journal.Entry, counts bool) row {
	r := row{Topic: e.Topic, Partition: e.Partition, Offset: e.Offset, Time: e.Time, Source: e.Source, Queue: e.Queue, Change: e.Subject, Counts: counts}
	if e.Term >= 0 {
		r.Term = &e.Term
	}
	if e.Err != nil {
		r.Error = e.Err.Error()
		return r
	}
	r.Type = strings.TrimPrefix(events.TypeOf(e.Message), "landfall.events.v1.")
	body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(e.Message)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Event = body
	return r
}

func (r row) print(out io.Writer) error {
	mark := " "
	if !r.Counts {
		mark = "-"
	}
	_, err := fmt.Fprintf(out, "%s %s/%d/%d %s %s %s %s%s\n", mark, strings.TrimPrefix(r.Topic, "landfall."), r.Partition, r.Offset,
		r.Time.Format("15:04:05.000"), r.Queue, r.Type, r.Event, r.Error)
	return err
}

// Command is `landfall log`.
func Command(brokersOf func(config string) ([]string, error)) *cobra.Command {
	var o Options
	var config, topic string
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the log: every record, decoded, with whether it counts",
		Long: "Print what the topics hold now. A line starts with - where a record does not count: it was written under a term that " +
			"another claim had ended, or is a claim itself.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(o.Brokers) == 0 {
				var err error
				if o.Brokers, err = brokersOf(config); err != nil {
					return err
				}
			}
			for _, t := range events.Topics() {
				if topic == "" || topic == t.Name || "landfall."+topic == t.Name {
					o.Topics = append(o.Topics, t.Name)
				}
			}
			if len(o.Topics) == 0 {
				return fmt.Errorf("there is no topic %q; topics are changes, builds, speculations, profiles, priorities, decisions, land-requests, models, dead-letters", topic)
			}
			return Print(cmd.Context(), o, cmd.OutOrStdout(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
		},
	}
	c.Flags().StringVar(&config, "config", "landfall.config.yaml", "configuration file, for the brokers' addresses")
	c.Flags().StringSliceVar(&o.Brokers, "brokers", nil, "host:port of the log's brokers")
	c.Flags().StringVar(&topic, "topic", "", "only this topic, e.g. changes")
	c.Flags().StringVar(&o.Queue, "queue", "", "only this queue")
	c.Flags().StringVar(&o.Change, "change", "", "only records that name this change")
	c.Flags().Int64Var(&o.From, "from", 0, "first offset")
	c.Flags().BoolVar(&o.JSON, "json", false, "one JSON value a line")
	return c
}
