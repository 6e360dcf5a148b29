// Package outbox lists the deliveries to webhooks that failed, and has outcomes sent again.
package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/tools/client"
	"landfall.build/tools/replay"
)

// Failed is a delivery that failed and was not made since.
type Failed struct {
	Endpoint string    `json:"endpoint"`
	ID       string    `json:"id"`
	Queue    string    `json:"queue"`
	Subject  string    `json:"subject"`
	State    string    `json:"state"`
	Attempts uint32    `json:"attempts"`
	Status   int32     `json:"status,omitempty"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	// Next is when it is tried again; zero if it is given up.
	Next time.Time `json:"next,omitzero"`
}

// Values of Failed.State.
const (
	stateFailed  = "failed"
	stateGivenUp = "given_up"
)

// deliveryKey names a delivery. One that was asked for mends that of the outcome.
type deliveryKey struct{ endpoint, id string }

// fold is what a partition of landfall.deliveries says.
type fold struct {
	failed map[deliveryKey]Failed
	// endpoints are those that are followed.
	endpoints map[string]bool
}

func (f fold) apply(e *journal.Entry) {
	switch m := e.Message.(type) {
	case *eventsv1.WebhookFollowed:
		f.endpoints[m.Endpoint] = true
	case *eventsv1.WebhookLeft:
		delete(f.endpoints, m.Endpoint)
		for k := range f.failed {
			if k.endpoint == m.Endpoint {
				delete(f.failed, k)
			}
		}
	case *eventsv1.WebhookDelivery:
		k := deliveryKey{m.Endpoint, m.Id}
		if m.State == eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED {
			delete(f.failed, k)
			return
		}
		d := Failed{Endpoint: m.Endpoint, ID: m.Id, Queue: m.Queue, Subject: m.Subject, State: stateFailed, Attempts: m.Attempt, Status: m.Status, Reason: m.Message, At: time.UnixMicro(m.StampUs).UTC()}
		if m.State == eventsv1.DeliveryState_DELIVERY_STATE_GIVEN_UP {
			d.State = stateGivenUp
		} else {
			d.Next = time.UnixMicro(m.NextUs).UTC()
		}
		f.failed[k] = d
	}
}

// read returns what landfall.deliveries holds now: what failed, and which endpoints are followed.
func read(ctx context.Context, log journal.Log) (failed []Failed, endpoints []string, err error) {
	for p := range log.Partitions() {
		f := fold{failed: map[deliveryKey]Failed{}, endpoints: map[string]bool{}}
		terms := journal.NewTerms(events.TopicDeliveries)
		err := reading.Each(ctx, log, events.TopicDeliveries, p, func(e *journal.Entry) bool {
			if terms.Counts(*e) {
				f.apply(e)
			}
			return true
		})
		if err != nil {
			return nil, nil, err
		}
		for _, d := range f.failed {
			failed = append(failed, d)
		}
		for name := range f.endpoints {
			endpoints = append(endpoints, name)
		}
	}
	slices.SortFunc(failed, func(a, b Failed) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Endpoint, b.Endpoint), strings.Compare(a.ID, b.ID))
	})
	slices.Sort(endpoints)
	return failed, slices.Compact(endpoints), nil
}

// find returns the outcome with an id.
func find(ctx context.Context, log journal.Log, id string) (m *eventsv1.ChangeOutcome, err error) {
	queue, _, _ := strings.Cut(id, "/")
	err = reading.Each(ctx, log, events.TopicOutcomes, events.PartitionOf(queue, log.Partitions()), func(e *journal.Entry) bool {
		if e.ID == id {
			m, _ = e.Message.(*eventsv1.ChangeOutcome)
		}
		return m == nil
	})
	if err == nil && m == nil {
		err = fmt.Errorf("landfall.outcomes has no record with the id %s; landfall webhooks list names those that failed", id)
	}
	return m, err
}

// send asks for an outcome to be delivered once more to some endpoints.
func send(ctx context.Context, log journal.Log, id string, endpoints []string, now time.Time) error {
	m, err := find(ctx, log, id)
	if err != nil {
		return err
	}
	who := "somebody"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	for _, endpoint := range endpoints {
		if _, err := log.Append(ctx, events.TopicDeliveries, events.PartitionOf(m.Queue, log.Partitions()), events.Envelope{
			ID:     events.DeriveID(log.ID(), "webhook-asked", endpoint, id, fmt.Sprint(now.UnixNano())),
			Source: "client", Queue: m.Queue, Subject: m.Subject, Time: now, Term: -1,
			Message: &eventsv1.WebhookAsked{Endpoint: endpoint, Id: id, Outcome: m, Who: who, StampUs: now.UnixMicro(), Actor: client.Operator("landfall webhooks send")},
		}); err != nil {
			return err
		}
	}
	return nil
}

// choose returns the endpoints to send an outcome to: the one that is named, or those at which it failed.
func choose(failed []Failed, endpoints []string, id, named string) ([]string, error) {
	if named != "" {
		if !slices.Contains(endpoints, named) {
			return nil, fmt.Errorf("no endpoint %s is followed; there are: %s", named, strings.Join(endpoints, ", "))
		}
		return []string{named}, nil
	}
	var chosen []string
	for _, d := range failed {
		if d.ID == id {
			chosen = append(chosen, d.Endpoint)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no delivery of %s has failed; name an endpoint with --endpoint to send it all the same", id)
	}
	return chosen, nil
}

// Commands are those below `landfall webhooks`. load reads a configuration file.
func Commands(load func(file string) (*configuration.Configuration, error)) []*cobra.Command {
	return []*cobra.Command{listCommand(load), sendCommand(load)}
}

func open(cmd *cobra.Command, source replay.Source) (journal.Log, func(), error) {
	cmd.SilenceUsage = true
	return source.Open(cmd.Context(), slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn})))
}

func listCommand(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	source := replay.Source{Load: load}
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the deliveries that failed and were not made since", Args: cobra.NoArgs,
		Example: "  landfall webhooks list --data ~/.landfall",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, done, err := open(cmd, source)
			if err != nil {
				return err
			}
			defer done()
			failed, _, err := read(cmd.Context(), log)
			if err != nil {
				return err
			}
			return print(cmd.OutOrStdout(), failed, asJSON)
		},
	}
	source.Flags(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON value a line")
	return c
}

func print(out io.Writer, failed []Failed, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		for _, d := range failed {
			if err := encoder.Encode(d); err != nil {
				return err
			}
		}
		return nil
	}
	if len(failed) == 0 {
		_, err := fmt.Fprintln(out, "no delivery has failed")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tENDPOINT\tCHANGE\tATTEMPTS\tLAST\tNEXT\tREASON")
	for _, d := range failed {
		next := "given up"
		if !d.Next.IsZero() {
			next = d.Next.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", client.Plain(d.ID), client.Plain(d.Endpoint), client.Plain(d.Subject), d.Attempts, d.At.Format(time.RFC3339), next, client.Plain(d.Reason))
	}
	return w.Flush()
}

func sendCommand(load func(file string) (*configuration.Configuration, error)) *cobra.Command {
	source := replay.Source{Load: load}
	var endpoint string
	c := &cobra.Command{
		Use: "send ID...", Short: "Have outcomes delivered once more",
		Long: "Have outcomes delivered once more, by their ids, to the endpoints at which they failed, or to one that --endpoint names. They are tried for a day, " +
			"whatever else waits for the endpoint.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			log, done, err := open(cmd, source)
			if err != nil {
				return err
			}
			defer done()
			failed, endpoints, err := read(cmd.Context(), log)
			if err != nil {
				return err
			}
			var errs []error
			for _, id := range ids {
				chosen, err := choose(failed, endpoints, id, endpoint)
				if err == nil {
					err = send(cmd.Context(), log, id, chosen, time.Now())
				}
				if err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintln(cmd.OutOrStdout(), client.Plain(fmt.Sprintf("asked for %s to be sent to %s", id, strings.Join(chosen, ", "))))
			}
			return errors.Join(errs...)
		},
	}
	source.Flags(c.Flags())
	c.Flags().StringVar(&endpoint, "endpoint", "", "send to this endpoint, whether it failed there or not")
	return c
}
