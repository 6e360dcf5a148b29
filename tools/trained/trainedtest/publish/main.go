// Command publish writes small models of success to the log of a data directory, for tests in other processes: one that is put into use,
// one that is not, and one that is not better.
//
// Usage: publish DATA QUEUE
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/registry"
	"landfall.build/tools/replay"
	"landfall.build/tools/trained/trainedtest"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data, queue string) error {
	log, done, err := replay.Source{Data: data}.Open(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer done()
	first, err := trainedtest.Model(1, 0.52)
	if err != nil {
		return err
	}
	second, err := trainedtest.Model(2, 0.41)
	if err != nil {
		return err
	}
	declined := proto.CloneOf(first)
	declined.Predictor, declined.Version = nil, "declined"
	declined.Card.Verdict = `<img src=x onerror=globalThis.hurt=1> is not better`
	now := time.Now().UnixMicro()
	for _, m := range []proto.Message{
		&eventsv1.ModelPromoted{Model: first, Who: "trainer", Why: "better than the rolling baseline", StampUs: now - 7_200_000_000},
		&eventsv1.ModelTrained{Model: second, Who: "trainer", StampUs: now - 3_600_000_000}, &eventsv1.ModelTrained{Model: declined, Who: "trainer", StampUs: now},
	} {
		if err := registry.Publish(ctx, log, events.ServiceTrainer, "test", queue, m); err != nil {
			return err
		}
	}
	return nil
}
