// Package logview prints the log: every record of the topics, decoded, with whether it counts.
package logview

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/structpb"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/tools/client"
	"landfall.build/tools/replay"
)

// Options choose what is printed; what is left out chooses nothing.
type Options struct {
	Topics        []string
	Queue, Change string
	// From is the first offset.
	From int64
	// Since and Until bound the time of a record, by its writer's clock: Since is part of it, Until is not.
	Since, Until time.Time
	// Types are names of events, Services who wrote them.
	Types, Services []string
	// Counted leaves out what does not count.
	Counted bool
	JSON    bool
	// Full shows long values whole.
	Full bool
}

// holds reports whether a record is wanted, as far as its envelope shows.
func (o Options) holds(e *journal.Entry, counts bool) bool {
	switch {
	case e.Offset < o.From, o.Queue != "" && e.Queue != o.Queue, o.Counted && !counts:
		return false
	case !o.Since.IsZero() && e.Time.Before(o.Since), !o.Until.IsZero() && !e.Time.Before(o.Until):
		return false
	case len(o.Services) > 0 && !slices.Contains(o.Services, e.Source):
		return false
	}
	return len(o.Types) == 0 || e.Message != nil && slices.Contains(o.Types, typeOf(e))
}

func typeOf(e *journal.Entry) string {
	return strings.TrimPrefix(events.TypeOf(e.Message), "landfall.events.v1.")
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
func Print(ctx context.Context, log journal.Log, o Options, out io.Writer) error {
	encoder := json.NewEncoder(out)
	for _, topic := range o.Topics {
		for p := range log.Partitions() {
			if err := printPartition(ctx, log, o, topic, p, func(r row) error {
				if o.JSON {
					return encoder.Encode(r)
				}
				return r.print(out, o.Full)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

func printPartition(ctx context.Context, log journal.Log, o Options, topic string, partition int32, print func(row) error) error {
	end, err := log.End(ctx, topic, partition)
	if err != nil {
		return fmt.Errorf("end of %s/%d: %w", topic, partition, err)
	}
	// Which records count depends on the claims before them: reading starts at the beginning.
	r, err := reading.To(ctx, log, topic, partition, end, reading.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	terms := journal.NewTerms(topic)
	for {
		e, err := r.Take(ctx)
		if err != nil || e == nil {
			return err
		}
		counts := terms.Counts(*e)
		if !o.holds(e, counts) {
			continue
		}
		row := rowOf(*e, counts)
		if o.Change != "" && e.Subject != o.Change && !strings.Contains(string(row.Event), quoted(o.Change)) {
			continue
		}
		if err := print(row); err != nil {
			return err
		}
	}
}

// quoted is a text as protojson writes it.
func quoted(text string) string {
	body, err := protojson.Marshal(structpb.NewStringValue(text))
	if err != nil {
		return text
	}
	return string(body)
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
	r.Type = typeOf(&e)
	body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(e.Message)
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Event = body
	return r
}

func (r row) print(out io.Writer, full bool) error {
	event := string(r.Event)
	if !full && len(r.Event) > 0 {
		event = shorten(r.Event)
	}
	mark := " "
	if !r.Counts {
		mark = "-"
	}
	// Whoever can write to the broker has written it; what moves a terminal's cursor stays out.
	line := client.Plain(fmt.Sprintf("%s %s/%d/%d %s %s %s %s%s", mark, strings.TrimPrefix(r.Topic, "landfall."), r.Partition, r.Offset,
		r.Time.Format("15:04:05.000"), r.Queue, r.Type, event, r.Error))
	_, err := fmt.Fprintln(out, line)
	return err
}

// Command is `landfall log`. load reads a configuration file.
func Command(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	var o Options
	source := replay.Source{Load: load}
	var topic, since, until string
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the log: every record, decoded, with whether it counts",
		Long: "Print what the topics hold now. A line starts with - where a record does not count: it was written under a term that " +
			"another claim had ended, or is a claim itself. Long texts and lists are cut.\n\nTimes are those of the writers' clocks: 14:05, \"2026-01-31 14:05:30\", RFC 3339, or -10m for ten minutes ago.",
		Example: `  landfall log --change feature/x --counted --data ~/.landfall
  landfall log --topic changes --since 14:00 --until 14:10 --brokers kafka-1:9092
  landfall log --service lander --type Refused,LandVoid --since -2h --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.choose(topic, since, until, time.Now()); err != nil {
				return err
			}
			cmd.SilenceUsage = true
			log, done, err := source.Open(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
			if err != nil {
				return err
			}
			defer done()
			return Print(cmd.Context(), log, o, cmd.OutOrStdout())
		},
	}
	s := c.Flags()
	source.Flags(s)
	s.StringVar(&topic, "topic", "", "only this topic, e.g. changes")
	s.StringVar(&o.Queue, "queue", "", "only this queue")
	s.StringVar(&o.Change, "change", "", "only records that name this change")
	s.StringSliceVar(&o.Services, "service", nil, "only records of these services, e.g. lander")
	s.StringSliceVar(&o.Types, "type", nil, "only these events, e.g. ChangeLanded")
	s.StringVar(&since, "since", "", "only records of this time or later")
	s.StringVar(&until, "until", "", "only records of before this time")
	s.Int64Var(&o.From, "from", 0, "first offset")
	s.BoolVar(&o.Counted, "counted", false, "only records that count")
	s.BoolVar(&o.Full, "full", false, "show long values whole, as --json does")
	s.BoolVar(&o.JSON, "json", false, "one JSON value a line")
	return c
}

// choose reads the flags for topics, types and times.
func (o *Options) choose(topic, since, until string, now time.Time) (err error) {
	var known []string
	for _, t := range events.Topics() {
		known = append(known, strings.TrimPrefix(t.Name, "landfall."))
		if topic == "" || topic == t.Name || "landfall."+topic == t.Name {
			o.Topics = append(o.Topics, t.Name)
		}
	}
	if len(o.Topics) == 0 {
		return fmt.Errorf("there is no topic %q; topics are %s", topic, strings.Join(known, ", "))
	}
	for _, name := range o.Types {
		if _, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("landfall.events.v1." + name)); err != nil {
			return fmt.Errorf("there is no event %q; they are named as in schemas/events/v1, e.g. ChangeLanded", name)
		}
	}
	for _, t := range []struct {
		flag, text string
		into       *time.Time
	}{{"since", since, &o.Since}, {"until", until, &o.Until}} {
		if t.text == "" {
			continue
		}
		if *t.into, err = client.ParseTime(t.text, now); err != nil {
			return fmt.Errorf("--%s: %w", t.flag, err)
		}
	}
	return nil
}
