package fitting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/learning/bytime"
	"landfall.build/learning/logistic"
	"landfall.build/learning/ngboost"
	"landfall.build/services/profiler/features"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/trainer/dataset"
)

// Fewest rows: of all, and of the newest window.
const (
	fewestRows   = 200
	fewestNewest = 40
)

// ErrTooLittle occurs when there is not enough to learn from yet: too few rows, or one outcome only. It goes away as changes
// come.
var ErrTooLittle = errors.New("there is not enough to learn from yet")

// Names of what is compared on the newest window.
const (
	OfCandidate = "candidate"
	OfInUse     = "in_use"
	OfRolling   = "rolling"
	// OfLog is what was said at the time, by whatever predicted then.
	OfLog = "as_predicted"
)

// Options of a training.
type Options struct {
	// InUse is the model that predicts now, nil if priors do, or if it cannot be opened.
	InUse *eventsv1.Model
	// Now is the moment of the training, microseconds since 1970.
	Now int64
	// Version of the code.
	Version string
}

// Report is a model that was trained, and how it compares.
type Report struct {
	Queue string
	Kind  eventsv1.ModelKind
	// Model is the candidate, with its card.
	Model *eventsv1.Model
	// Better says that it should be put into use: it beats the rolling baseline, and the model in use.
	Better bool
	// Figures by name, then by what is compared: lower is better but for auc and coverage90.
	Figures map[string]map[string]float64
	// Calibration is of the candidate on the newest window; for a duration, of the share below each quantile.
	Calibration []Bin
	// Course is the mean loss in stretches of the newest window, oldest first.
	Course []Stretch
	// Weights of features, those that matter most first.
	Weights []*eventsv1.ModelWeight
}

// Bin compares what was said with what came true.
type Bin struct {
	Said, CameTrue float64
	Rows           int
}

// Stretch is a part of the newest window.
type Stretch struct {
	// From is microseconds since 1970.
	From int64
	Rows int
	// Loss of what is compared, by name.
	Loss map[string]float64
}

// candidate is a model that was fitted, and how to ask one.
type candidate struct {
	model     *eventsv1.Model
	algorithm string
	// training is how many rows it was fitted to, choosing how many of these choices were made by first.
	training, choosing int
	weights            []*eventsv1.ModelWeight
	until              int64
	rolling            func(r dataset.Row) judged
	ask                func(m *prediction.Model, r dataset.Row) (judged, error)
	asLogged           func(r dataset.Row) judged
	figures            func(of []judged) map[string]float64
	calibrationOf      func(of []judged) []Bin
}

// judged is one row with what was said of it.
type judged struct {
	row  dataset.Row
	loss float64
	// said is the probability, or the point of a duration.
	said float64
	// below is the probability that was given to at most what came true; covered says that it was within the 90 % interval.
	below   float64
	covered bool
}

// Train fits a model of the set's kind to its older rows, and compares it on the newest. The errors are ErrTooLittle and
// those of the learners; none is worth a retry with the same rows.
func Train(ctx context.Context, set *dataset.Set, o Options) (*Report, error) {
	if len(set.Rows) < fewestRows {
		return nil, fmt.Errorf("%w: %d rows, at least %d are needed", ErrTooLittle, len(set.Rows), fewestRows)
	}
	var c *candidate
	var err error
	rows := set.Rows
	if set.Kind == eventsv1.ModelKind_MODEL_KIND_DURATION {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r dataset.Row) bool { return !(median(r) > 0) || !(r.Target > 0) })
	}
	p := split(rows)
	if len(p.older) < fewestRows/2 || len(p.newest) < fewestNewest {
		return nil, fmt.Errorf("%w: of %d usable rows, %d had ended before the newest %d", ErrTooLittle, len(rows), len(p.older), len(p.newest))
	}
	if set.Kind == eventsv1.ModelKind_MODEL_KIND_DURATION {
		c, err = fitDuration(ctx, p)
	} else {
		c, err = fitProbability(ctx, set.Kind, p)
	}
	switch {
	case errors.Is(err, bytime.ErrTooFewRows), errors.Is(err, logistic.ErrTooFewRows), errors.Is(err, logistic.ErrOneClass), errors.Is(err, ngboost.ErrTooFewRows), errors.Is(err, ngboost.ErrTarget):
		// Of all rows there are enough, of those before some window there are not.
		return nil, fmt.Errorf("%w: %w", ErrTooLittle, err)
	case err != nil:
		return nil, err
	}
	return c.compare(set, p, o)
}

// compare judges the candidate, the model in use and the baselines on the newest window.
func (c *candidate) compare(set *dataset.Set, p parts, o Options) (*Report, error) {
	c.model.Kind = set.Kind
	c.model.Card = &eventsv1.ModelCard{DataFromUs: p.older[0].At, DataUntilUs: c.until}
	prediction.Sealed(c.model)
	opened, err := prediction.Open(c.model)
	if err != nil {
		return nil, fmt.Errorf("the model that was just trained: %w", err)
	}
	compared := map[string][]judged{}
	if compared[OfCandidate], err = c.askAll(opened, p.newest); err != nil {
		return nil, err
	}
	for _, r := range p.newest {
		compared[OfRolling] = append(compared[OfRolling], c.rolling(r))
		compared[OfLog] = append(compared[OfLog], c.asLogged(r))
	}
	if o.InUse != nil {
		// One that cannot be asked any more is no rival.
		if rival, err := prediction.Open(o.InUse); err == nil && rival.Old(o.Now) == nil {
			if said, err := c.askAll(rival, p.newest); err == nil {
				compared[OfInUse] = said
			}
		}
	}
	r := &Report{Queue: set.Queue, Kind: set.Kind, Model: c.model, Figures: map[string]map[string]float64{}, Weights: c.weights}
	for of, said := range compared {
		for name, value := range c.figures(said) {
			if r.Figures[name] == nil {
				r.Figures[name] = map[string]float64{}
			}
			r.Figures[name][of] = value
		}
	}
	r.Calibration = c.calibrationOf(compared[OfCandidate])
	r.Course = courseOf(compared)
	verdict := r.judge(compared)
	c.complete(r, p, o, verdict)
	return r, nil
}

func (c *candidate) askAll(m *prediction.Model, rows []dataset.Row) ([]judged, error) {
	out := make([]judged, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = c.ask(m, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// judge decides whether the candidate should be put into use (M31).
func (r *Report) judge(compared map[string][]judged) (verdict string) {
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

func lossesOf(said []judged) []float64 {
	out := make([]float64, len(said))
	for i, s := range said {
		out[i] = s.loss
	}
	return out
}

// mostWeights is how many features a card names.
const mostWeights = 40

func (c *candidate) complete(r *Report, p parts, o Options, verdict string) {
	card := c.model.Card
	card.Algorithm, card.TrainedUs, card.TrainedBy, card.Verdict = c.algorithm, o.Now, o.Version, verdict
	card.TrainingRows, card.ChoosingRows, card.NewestRows = uint64(c.training), uint64(c.choosing), uint64(len(p.newest))
	card.Weights = c.weights[:min(len(c.weights), mostWeights)]
	for name, of := range r.Figures {
		for what, value := range of {
			card.Figures = append(card.Figures, &eventsv1.ModelFigure{Name: name, Of: what, Value: value})
		}
	}
	slices.SortFunc(card.Figures, func(a, b *eventsv1.ModelFigure) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Of, b.Of))
	})
}

// stretches is how many parts of the newest window a course has.
const stretches = 12

func courseOf(compared map[string][]judged) (out []Stretch) {
	n := len(compared[OfCandidate])
	for k := range min(stretches, n) {
		from, to := k*n/min(stretches, n), (k+1)*n/min(stretches, n)
		s := Stretch{From: compared[OfCandidate][from].row.At, Rows: to - from, Loss: map[string]float64{}}
		for of, said := range compared {
			s.Loss[of] = average(lossesOf(said[from:to]))
		}
		out = append(out, s)
	}
	return out
}

// sortedWeights are weights, those that matter most first; those of nothing are left out.
func sortedWeights(names []string, weights []float64) (out []*eventsv1.ModelWeight) {
	for i, name := range names {
		if weights[i] != 0 {
			out = append(out, &eventsv1.ModelWeight{Feature: name, Weight: weights[i]})
		}
	}
	slices.SortStableFunc(out, func(a, b *eventsv1.ModelWeight) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
	return out
}

// usable are the indices of features that take at least two values in some rows. Those of the group evidence are left out
// for success: the profiler counts them by itself.
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

// varies says that a feature is known in some rows and not the same in all: being missing is a value too.
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

func matrix(kind eventsv1.ModelKind, index []int, rows []dataset.Row, straight bool) [][]float64 {
	schema := prediction.SchemaOf(kind)
	out := make([][]float64, len(rows))
	for i, r := range rows {
		out[i] = prediction.Row(nil, schema, index, r.Vector, straight)
	}
	return out
}

// untilOf is when the last of some rows had ended.
func untilOf(rows []dataset.Row) (until int64) {
	for _, r := range rows {
		until = max(until, r.Ended)
	}
	return until
}
