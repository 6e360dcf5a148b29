// Package trainedtest makes models for tests.
package trainedtest

import (
	"time"

	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/logistic"
)

// Model returns a small model of success, which is in use nowhere: changes with many targets rarely pass, from odd many on (0 to 3). Its card
// has loss as its log loss.
func Model(odd int, loss float64) (*eventsv1.Model, error) {
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
