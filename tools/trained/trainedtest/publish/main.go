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

	"landfall.build/engine/prediction"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/logistic"
	"landfall.build/platform/registry"
	"landfall.build/tools/replay"
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
	first, err := model(1, 0.52)
	if err != nil {
		return err
	}
	second, err := model(2, 0.41)
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

// model returns a model: changes with many targets rarely pass, from odd many on.
func model(odd int, loss float64) (*eventsv1.Model, error) {
	d := logistic.Data{Features: []string{"targets"}}
	for i := range 40 {
		d.Rows, d.Outcomes = append(d.Rows, []float64{float64(i % 4)}), append(d.Outcomes, i%4 < odd || i%7 == 0)
	}
	m, err := logistic.Fit(d, logistic.Config{})
	if err != nil {
		return nil, err
	}
	predictor, err := m.MarshalBinary()
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixMicro()
	return prediction.Seal(&eventsv1.Model{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS, Features: d.Features, Predictor: predictor, Card: &eventsv1.ModelCard{
		Algorithm: "logistic regression", TrainingRows: 1200, ChoosingRows: 480, NewestRows: 300, DataFromUs: now - 90*86_400_000_000, DataUntilUs: now - 86_400_000_000, TrainedUs: now, TrainedBy: "test",
		Figures: []*eventsv1.ModelFigure{{Name: "log_loss", Of: "candidate", Value: loss}, {Name: "log_loss", Of: "rolling", Value: 0.61}, {Name: "auc", Of: "candidate", Value: 0.9}}, Verdict: "better by more than chance",
	}}), nil
}
