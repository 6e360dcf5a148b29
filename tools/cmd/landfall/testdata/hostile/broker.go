package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// broker asks the log for its topics: without a secret, with those that are guessed first, and with the one in the file.
func broker() {
	ways := map[string]sasl.Mechanism{
		"nobody":         nil,
		"admin":          scram.Auth{User: "admin", Pass: "admin"}.AsSha256Mechanism(),
		"the user alone": scram.Auth{User: "landfall", Pass: "landfall"}.AsSha256Mechanism(),
		"the user plain": plain.Auth{User: "landfall"}.AsMechanism(),
	}
	if text, err := os.ReadFile(know.Secret); err == nil {
		ways["whoever has the secret"] = scram.Auth{User: "landfall", Pass: strings.TrimSpace(string(text))}.AsSha256Mechanism()
	}
	for who, mechanism := range ways {
		options := []kgo.Opt{kgo.SeedBrokers(know.Broker), kgo.RequestRetries(0)}
		if mechanism != nil {
			options = append(options, kgo.SASL(mechanism))
		}
		client, err := kgo.NewClient(options...)
		if err != nil {
			report("broker", "as %s: %v", who, err)
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if topics, err := kadm.NewClient(client).ListTopics(ctx); err == nil {
			report("broker", "its %d topics, as %s", len(topics), who)
		}
		cancel()
		client.Close()
	}
}
