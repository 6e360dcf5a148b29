package fitting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
	"landfall.build/services/trainer/dataset"
)

// minRows is the fewest usable rows that are trained on, minTestRows the fewest that a model is judged on.
const (
	minRows     = 200
	minTestRows = 40
)

// ErrTooLittle occurs when there is not enough to learn from yet: too few rows, or one outcome only. It goes away as changes
// come.
var ErrTooLittle = errors.New("there is not enough to learn from yet")

// Names of what is compared on the test rows.
const (
	OfCandidate = "candidate"
	OfInUse     = "in_use"
	OfRolling   = "rolling"
	// OfLog are the predictions that were published at the time.
	OfLog = "as_predicted"
)

// Options of a training.
type Options struct {
	// InUse is the model that predicts now, nil if priors do.
	InUse *eventsv1.Model
	// Now is the time of the training, in microseconds since 1970.
	Now int64
	// Version is that of the program.
	Version string
}

// Report is the result of a training.
type Report struct {
	Queue string
	Kind  eventsv1.ModelKind
	// Model is the candidate, with its card.
	Model *eventsv1.Model
	// Better is set if the model beats the rolling baseline and the model in use, so that it should be put into use.
	Better bool
	// Figures are by name, then by what is compared. Lower is better, except for auc and coverage90.
	Figures map[string]map[string]float64
	// Calibration is that of the candidate on the test rows; for durations, of the share below each quantile.
	Calibration []Bin
	// LossOverTime has the mean losses in intervals of the test rows, oldest first.
	LossOverTime []Interval
	// Weights are of the features, the largest first.
	Weights []*eventsv1.ModelWeight
}

// Bin compares what was predicted with what was observed.
type Bin struct {
	Predicted, Observed float64
	Rows                int
}

// Interval is a part of the test rows.
type Interval struct {
	// From is in microseconds since 1970.
	From int64
	Rows int
	// Loss is the mean, by what is compared.
	Loss map[string]float64
}

// candidate is a model that was fitted, with how models of its kind are judged.
type candidate struct {
	model     *eventsv1.Model
	algorithm string
	// choosingRows is how many of the training rows its settings were chosen on.
	trainingRows, choosingRows int
	weights                    []*eventsv1.ModelWeight
	until                      int64

	// score scores a model on a row, rolling the baseline, asPublished the prediction of the time.
	score                func(m *prediction.Model, r dataset.Row) (scored, error)
	rolling, asPublished func(r dataset.Row) scored
	figures              func(of []scored) map[string]float64
	calibrationOf        func(of []scored) []Bin
}

// scored is a prediction of a row with its loss.
type scored struct {
	row  dataset.Row
	loss float64
	// predicted is the probability, or the point estimate of a duration.
	predicted float64
	// below is the predicted probability of at most what was observed; covered is set if that was within the 90 % interval.
	below   float64
	covered bool
}

// Train fits a model of the set's kind to the older rows, and judges it on the newest. It returns ErrTooLittle or an error of the
// learners; none is worth a retry with the same rows.
func Train(ctx context.Context, set *dataset.Set, o Options) (*Report, error) {
	if len(set.Rows) < minRows {
		return nil, fmt.Errorf("%w: %d rows, at least %d are needed", ErrTooLittle, len(set.Rows), minRows)
	}
	var c *candidate
	var err error
	rows := set.Rows
	if set.Kind == eventsv1.ModelKind_MODEL_KIND_DURATION {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r dataset.Row) bool { return !(median(r) > 0) || !(r.Target > 0) })
	}
	p := split(rows)
	if len(p.training) < minRows/2 || len(p.test) < minTestRows {
		return nil, fmt.Errorf("%w: of %d usable rows, %d had ended before the newest %d", ErrTooLittle, len(rows), len(p.training), len(p.test))
	}
	if set.Kind == eventsv1.ModelKind_MODEL_KIND_DURATION {
		c, err = fitDuration(ctx, p)
	} else {
		c, err = fitProbability(ctx, set.Kind, p)
	}
	switch {
	case errors.Is(err, bytime.ErrTooFewRows), errors.Is(err, logistic.ErrTooFewRows), errors.Is(err, logistic.ErrOneClass), errors.Is(err, ngboost.ErrTooFewRows), errors.Is(err, ngboost.ErrTarget):
		// There are enough rows, but not before each window.
		return nil, fmt.Errorf("%w: %w", ErrTooLittle, err)
	case err != nil:
		return nil, err
	}
	return c.compare(set, p, o)
}

// compare judges the candidate, the model in use and the baselines on the test rows.
func (c *candidate) compare(set *dataset.Set, p parts, o Options) (*Report, error) {
	c.model.Kind = set.Kind
	c.model.Card = &eventsv1.ModelCard{DataFromUs: p.training[0].At, DataUntilUs: c.until}
	prediction.Seal(c.model)
	opened, err := prediction.Open(c.model)
	if err != nil {
		return nil, fmt.Errorf("the model that was just trained: %w", err)
	}
	compared := map[string][]scored{}
	if compared[OfCandidate], err = c.scoreAll(opened, p.test); err != nil {
		return nil, err
	}
	for _, r := range p.test {
		compared[OfRolling] = append(compared[OfRolling], c.rolling(r))
		compared[OfLog] = append(compared[OfLog], c.asPublished(r))
	}
	if o.InUse != nil {
		// A model that must not be used any more is no rival.
		if rival, err := prediction.Open(o.InUse); err == nil && rival.CheckAge(o.Now) == nil {
			if predictions, err := c.scoreAll(rival, p.test); err == nil {
				compared[OfInUse] = predictions
			}
		}
	}
	r := &Report{Queue: set.Queue, Kind: set.Kind, Model: c.model, Figures: map[string]map[string]float64{}, Weights: c.weights}
	for of, predictions := range compared {
		for name, value := range c.figures(predictions) {
			if r.Figures[name] == nil {
				r.Figures[name] = map[string]float64{}
			}
			r.Figures[name][of] = value
		}
	}
	r.Calibration = c.calibrationOf(compared[OfCandidate])
	r.LossOverTime = lossOverTime(compared)
	verdict := r.judge(compared)
	c.complete(r, p, o, verdict)
	return r, nil
}

func (c *candidate) scoreAll(m *prediction.Model, rows []dataset.Row) ([]scored, error) {
	out := make([]scored, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = c.score(m, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// judge sets whether the candidate should be put into use (M31), and returns why in words.
func (r *Report) judge(compared map[string][]scored) (verdict string) {
	own := lossesOf(compared[OfCandidate])
	verdict = fmt.Sprintf("loss %.4f on the newest %d rows", average(own), len(own))
	r.Better = true
	for _, of := range []string{OfRolling, OfInUse} {
		if compared[of] == nil {
			continue
		}
		rival := lossesOf(compared[of])
		beats := better(own, rival)
		r.Better = r.Better && beats
		verdict += fmt.Sprintf("; %s %.4f: %s", of, average(rival), map[bool]string{true: "better", false: "not better by more than chance"}[beats])
	}
	return verdict
}

func lossesOf(predictions []scored) []float64 {
	out := make([]float64, len(predictions))
	for i, s := range predictions {
		out[i] = s.loss
	}
	return out
}

// maxWeights bounds the features that a card names.
const maxWeights = 40

func (c *candidate) complete(r *Report, p parts, o Options, verdict string) {
	card := c.model.Card
	card.Algorithm, card.TrainedUs, card.TrainedBy, card.Verdict = c.algorithm, o.Now, o.Version, verdict
	card.TrainingRows, card.ChoosingRows, card.NewestRows = uint64(c.trainingRows), uint64(c.choosingRows), uint64(len(p.test))
	card.Weights = c.weights[:min(len(c.weights), maxWeights)]
	for name, of := range r.Figures {
		for what, value := range of {
			card.Figures = append(card.Figures, &eventsv1.ModelFigure{Name: name, Of: what, Value: value})
		}
	}
	slices.SortFunc(card.Figures, func(a, b *eventsv1.ModelFigure) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Of, b.Of))
	})
}

// intervals is the number of intervals of LossOverTime.
const intervals = 12

func lossOverTime(compared map[string][]scored) (out []Interval) {
	n := len(compared[OfCandidate])
	for k := range min(intervals, n) {
		from, to := k*n/min(intervals, n), (k+1)*n/min(intervals, n)
		s := Interval{From: compared[OfCandidate][from].row.At, Rows: to - from, Loss: map[string]float64{}}
		for of, predictions := range compared {
			s.Loss[of] = average(lossesOf(predictions[from:to]))
		}
		out = append(out, s)
	}
	return out
}

// sortedWeights returns the weights other than 0, the largest first.
func sortedWeights(names []string, weights []float64) (out []*eventsv1.ModelWeight) {
	for i, name := range names {
		if weights[i] != 0 {
			out = append(out, &eventsv1.ModelWeight{Feature: name, Weight: weights[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b *eventsv1.ModelWeight) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
	return out
}

// usable returns the indices of the features that take at least two values. Of success it leaves out the group evidence, by which the
// profiler updates the model's prediction itself.
func usable(kind eventsv1.ModelKind, rows []dataset.Row) (index []int) {
	for i, f := range prediction.SchemaOf(kind) {
		if kind == eventsv1.ModelKind_MODEL_KIND_SUCCESS && f.Group == features.Evidence {
			continue
		}
		if varies(rows, i) {
			index = append(index, i)
		}
	}
	return index
}

// varies reports whether a feature takes at least two values, of which missing may be one.
func varies(rows []dataset.Row, i int) bool {
	first, missing, seen := float32(0), false, false
	for _, r := range rows {
		x := r.Vector[i]
		switch {
		case x != x:
			missing = true
		case !seen:
			first, seen = x, true
		case x != first:
			return true
		}
		if seen && missing {
			return true
		}
	}
	return false
}

func namesOf(kind eventsv1.ModelKind, index []int) []string {
	schema := prediction.SchemaOf(kind)
	out := make([]string, len(index))
	for i, k := range index {
		out[i] = schema[k].Name
	}
	return out
}

func matrix(kind eventsv1.ModelKind, index []int, rows []dataset.Row, logScale bool) [][]float64 {
	schema := prediction.SchemaOf(kind)
	out := make([][]float64, len(rows))
	for i, r := range rows {
		out[i] = prediction.Row(nil, schema, index, r.Vector, logScale)
	}
	return out
}

// untilOf returns when the last of some rows had ended.
func untilOf(rows []dataset.Row) (until int64) {
	for _, r := range rows {
		until = max(until, r.Ended)
	}
	return until
}
