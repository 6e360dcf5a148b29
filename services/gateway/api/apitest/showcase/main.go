// Command showcase serves the gateway's API and the web page over queues that stand still: what happened in them, the time, and who
// asks are always the same. Golden pictures of the page are taken of it. It prints its URL on standard error, and ends with its input.
//
// With a number a thousand changes more are pending, and so many facts a second are written about them, for measuring.
//
// Usage: showcase [FACTS-A-SECOND]
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/deadletters"
	"landfall.build/platform/identity"
	"landfall.build/platform/registry"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

// now is the moment that is shown.
var now = apitest.Start.Add(30 * time.Minute)

func main() {
	perSecond := 0
	if len(os.Args) > 1 {
		var err error
		if perSecond, err = strconv.Atoi(os.Args[1]); err != nil || perSecond < 1 {
			fmt.Fprintln(os.Stderr, "usage: showcase [FACTS-A-SECOND]")
			os.Exit(2)
		}
	}
	server, err := start(perSecond)
	if err != nil {
		fmt.Fprintln(os.Stderr, "showcase:", err)
		os.Exit(1)
	}
	defer server.Close()
	fmt.Fprintln(os.Stderr, server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

const access = `version: 1
repositories: {shop: {url: shop}}
queues: {docs: {repository: shop, branch: docs}, shop: {repository: shop}, tools: {repository: shop, branch: tools}}
access:
  mode: required
  issuers: {company: {url: "https://id.example.com", audiences: [landfall]}}
  rules: [{role: admin, issuer: company, any: [{all: {sub: ada}}]}]
`

func start(perSecond int) (*httptest.Server, error) {
	c, err := configuration.Parse([]byte(access), "showcase.yaml", configuration.Defaults{Workers: 4})
	if err != nil {
		return nil, err
	}
	b := apitest.New("docs", "shop", "tools")
	tell(b)
	if perSecond > 0 {
		busy(b, perSecond)
	}
	handler, err := api.NewHandler(api.Options{
		Lists:   &lists,
		Backend: b, Access: c.Access, Tokens: tokens(), DeadLetters: letters{}, Models: models{}, Analyst: figures{}, Differ: revisions{}, WhatIf: simulated(), Identity: reader{}, Clock: func() time.Time { return now },
	})
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(handler), nil
}

// lists counts what changes of a simulation.
var lists api.Lists

// reader is who asks, always.
type reader struct{}

// Of implements identity.Source.
func (reader) Of(*http.Request) (*identity.Identity, error) {
	return &identity.Identity{Issuer: "https://id.example.com", Subject: "ada", Name: "Ada Byron", Email: "ada@example.com", Claims: map[string]any{"sub": "ada"}}, nil
}

// at is a moment so many minutes before the one that is shown, in microseconds since 1970.
func at(minutes int) int64 { return now.Add(time.Duration(-minutes) * time.Minute).UnixMicro() }

func tokens() *apitest.Tokens {
	t := &apitest.Tokens{}
	for _, m := range []proto.Message{
		&eventsv1.TokenCreated{Token: "aaaaaaaa", Hash: make([]byte, 32), Name: "nightly build", Role: "lander", Queues: []string{"shop"}, StampUs: at(60 * 24 * 20), Actor: &eventsv1.Actor{Name: "Ada Byron"}},
		&eventsv1.TokenCreated{Token: "bbbbbbbb", Hash: make([]byte, 32), Name: "dashboard", Role: "viewer", Queues: []string{"*"}, StampUs: at(60 * 24 * 3), ExpiresUs: at(-60 * 24 * 87), Actor: &eventsv1.Actor{Name: "Grace"}},
	} {
		_ = t.Grant(context.Background(), m) // it never fails
	}
	return t
}

type letters struct{}

// DeadLetters implements api.DeadLetterStore.
func (letters) DeadLetters() (list []deadletters.Letter, older int) {
	return []deadletters.Letter{
		{DeadLetter: &eventsv1.DeadLetter{
			Topic: "landfall.land-requests", Partition: 2, Offset: 17, Service: "gateway", Queue: "shop", Change: "new-prices", Type: "LandRequest", StampUs: at(95),
			Reason: "The record is no JSON: unexpected end of input.", Advice: "Correct the program that published it, and publish the request again.", Key: []byte("shop"), Value: []byte(`{"queue":"shop","change":"new-prices",`),
		}},
		{
			DeadLetter: &eventsv1.DeadLetter{
				Topic: "landfall.land-requests", Partition: 0, Offset: 4, Service: "gateway", Queue: "tools", Change: "linter", Type: "LandRequest", StampUs: at(12),
				Reason: "There is no queue \"tool\".", Advice: "Add the queue to the configuration, and send it again.", Value: []byte(`{"queue":"tool","change":"linter"}`),
			},
			Sent: []*eventsv1.DeadLetterSent{{StampUs: at(3), Who: "Grace", Why: "the queue is there now"}}, Times: 1,
		},
	}, 3
}

// SendAgain implements api.DeadLetterStore.
func (letters) SendAgain(context.Context, *eventsv1.DeadLetter, *eventsv1.DeadLetterSent) error {
	return api.ErrUnconfirmed
}

type models struct{}

// ReadModels implements api.ModelStore.
func (models) ReadModels(_ context.Context, queue string, f func(*registry.Registry) error) error {
	r := registry.New()
	if queue != "shop" {
		return f(r)
	}
	model := func(version, verdict string, loss float64) *eventsv1.Model {
		return &eventsv1.Model{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS, Version: version, Card: &eventsv1.ModelCard{
			Algorithm: "logistic regression with trees", TrainingRows: 4120, NewestRows: 611, DataFromUs: at(60 * 24 * 90), DataUntilUs: at(60 * 24), TrainedUs: at(60 * 20), Verdict: verdict,
			Figures: []*eventsv1.ModelFigure{{Name: "log_loss", Of: "candidate", Value: loss}, {Name: "log_loss", Of: "rolling", Value: 0.41}, {Name: "auc", Of: "candidate", Value: 0.87}, {Name: "auc", Of: "rolling", Value: 0.71}},
		}}
	}
	r.Apply(&eventsv1.ModelPromoted{Model: model("5f1d0c7a9b3e", "It is better than the rolling baseline.", 0.2913), Who: "trainer", Why: "better on the newest week", StampUs: at(60 * 20)})
	r.Apply(&eventsv1.ModelTrained{Model: model("0a44b1e2c6d8", "The model in use is better on the newest week.", 0.3301), StampUs: at(60 * 2)})
	return f(r)
}

// ChooseModel implements api.ModelStore.
func (models) ChooseModel(context.Context, string, proto.Message) error { return api.ErrUnconfirmed }
