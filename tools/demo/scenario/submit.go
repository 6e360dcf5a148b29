package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/segmentio/kafka-go"
	kafkasasl "github.com/segmentio/kafka-go/sasl"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"landfall.build/events"
	"landfall.build/services/gateway/api"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/sample"
	"landfall.build/tools/embedded/broker"
)

const (
	// pause is how long to wait before asking a gateway again that did not answer.
	pause = 250 * time.Millisecond
	// patience is how long a gateway may stay away: it is being started again.
	patience = 60 * time.Second
	// every so many-th change is published on the topic instead of sent to the API.
	published = 10
)

// arrive is one change's author: a little later than the one before, and not before what it requires is there.
func (s *Scenario) arrive(ctx context.Context, c *sample.Change, place int) error {
	select {
	case <-time.After(time.Duration(place) * 5 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, name := range c.Requires {
		if err := s.state.await(ctx, func() bool { return s.state.admitted(name, 1) }); err != nil {
			return err
		}
	}
	if place%published == published/2 {
		return s.publish(ctx, c)
	}
	return s.submit(ctx, c, 1)
}

// commits are those of a revision.
func commits(c *sample.Change, revision uint64) []sample.Commit {
	if revision > 1 {
		return c.Better
	}
	return c.Commits
}

// submit asks the API for a revision of a change, until it is admitted.
func (s *Scenario) submit(ctx context.Context, c *sample.Change, revision uint64) error {
	own, err := client.New(s.Server, c.Author.Name)
	if err != nil {
		return err
	}
	body := api.LandBody{
		Change: c.Name, Revision: revision, Requires: c.Requires, Author: c.Author.Name, Title: c.Title(),
		RequestID: fmt.Sprintf("demo-%s-%d", c.Name, revision),
	}
	for _, commit := range commits(c, revision) {
		body.Entries = append(body.Entries, api.LandEntry{Commit: commit.ID})
	}
	if len(body.Entries) == 1 {
		body.Entries[0].Ref = "refs/heads/" + c.Branch()
	}
	if err := s.patiently(ctx, func() error {
		_, err := own.Land(ctx, s.Queue, body)
		return err
	}); err != nil {
		return fmt.Errorf("%s could not be submitted: %w", c.Name, err)
	}
	return s.state.await(ctx, func() bool { return s.state.admitted(c.Name, revision) })
}

// publish puts a land event on the topic, as a code-review system would: JSON, by a Kafka client that knows
// nothing of Landfall.
func (s *Scenario) publish(ctx context.Context, c *sample.Change) error {
	type entry struct {
		Ref    string `json:"ref,omitempty"`
		Commit string `json:"commit"`
	}
	event := struct {
		Queue    string   `json:"queue"`
		Change   string   `json:"change"`
		Revision uint64   `json:"revision"`
		Entries  []entry  `json:"entries"`
		Requires []string `json:"requires,omitempty"`
		Author   string   `json:"author"`
		Title    string   `json:"title"`
	}{Queue: s.Queue, Change: c.Name, Revision: 1, Requires: c.Requires, Author: c.Author.Name, Title: c.Title()}
	for _, commit := range c.Commits {
		event.Entries = append(event.Entries, entry{Commit: commit.ID})
	}
	value, err := json.Marshal(event)
	if err != nil {
		return err
	}
	transport, err := s.transport()
	if err != nil {
		return err
	}
	writer := &kafka.Writer{Transport: transport, Addr: kafka.TCP(s.Brokers...), Topic: events.TopicLandRequests, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond}
	defer transport.CloseIdleConnections()
	defer writer.Close()
	// A broker that is being started again is waited for. What was written without an answer may be there
	// twice then, which changes nothing.
	for until := time.Now().Add(max(patience, s.Stillness)); ; {
		err := writer.WriteMessages(ctx, kafka.Message{Key: []byte(s.Queue), Value: value})
		if err == nil {
			break
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return fmt.Errorf("%s could not be published on %s: %w", c.Name, events.TopicLandRequests, err)
		}
	}
	return s.state.await(ctx, func() bool { return s.state.admitted(c.Name, 1) })
}

// transport returns one that gives the brokers the secret that they ask for.
func (s *Scenario) transport() (*kafka.Transport, error) {
	transport := &kafka.Transport{}
	if s.Secret == nil || s.Secret() == "" {
		return transport, nil
	}
	secret, err := broker.ReadSecret(s.Secret())
	if err != nil {
		return nil, err
	}
	transport.SASL = mechanism{scram.Auth{User: broker.User, Pass: secret}.AsSha256Mechanism()}
	return transport, nil
}

// mechanism is one of franz-go for kafka-go, whose own needs further modules.
type mechanism struct{ sasl.Mechanism }

// Start implements the interface of kafka-go.
func (m mechanism) Start(ctx context.Context) (kafkasasl.StateMachine, []byte, error) {
	session, first, err := m.Authenticate(ctx, "")
	return exchange{session}, first, err
}

type exchange struct{ sasl.Session }

// Next implements the interface of kafka-go.
func (e exchange) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	return e.Challenge(challenge)
}

// isAway reports whether an error is that of a gateway that does not answer, or is still reading the log.
func isAway(err error) bool {
	var failure *client.Failure
	return errors.Is(err, client.ErrUnreachable) || errors.As(err, &failure) && failure.Status >= http.StatusInternalServerError
}

// patiently repeats what fails only because the gateway is away, or is still reading the log.
func (s *Scenario) patiently(ctx context.Context, ask func() error) error {
	until := time.Now().Add(max(patience, s.Stillness))
	for {
		err := ask()
		if !isAway(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
