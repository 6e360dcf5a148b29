package ngboost

import (
	"context"
	"fmt"
	"math"
)

// Report is how training went.
type Report struct {
	// TrainingLoss has, for each round, the mean loss of the batch before its step.
	TrainingLoss []float64
	// Steps has the length found by the line search, before the learning rate.
	Steps []float64
	// ValidationNLL has the mean negative log-likelihood of the validation data
	// after each round, whatever the rule trained by; empty without such data.
	ValidationNLL []float64
	// Rounds is how many rounds the model holds: up to and including the one
	// with the first smallest ValidationNLL, or all of them.
	Rounds int
	// Stopped says why training ended.
	Stopped Stop
}

// Stop is why training ended.
type Stop string

const (
	// StoppedAfterRounds is the ordinary end.
	StoppedAfterRounds Stop = "all rounds done"
	// StoppedByTolerance means that the steps became shorter than Config.Tolerance.
	StoppedByTolerance Stop = "steps below tolerance"
	// StoppedByValidation means Config.Patience rounds without a better ValidationNLL.
	StoppedByValidation Stop = "validation loss no longer falls"
)

// Train fits a model. validation may be nil; when given, the model keeps only
// the rounds up to the smallest validation loss. Equal arguments give equal
// models, however many processors there are; at most two are used. It returns
// the context's error when that ends, the errors of [Config.Validate], or one
// of the data errors, and never part of a model.
func Train(ctx context.Context, training Data, validation *Data, config Config) (*Model, *Report, error) {
	config = config.WithDefaults()
	if err := config.Validate(); err != nil {
		return nil, nil, err
	}
	b, err := prepare(training, validation, config)
	if err != nil {
		return nil, nil, err
	}
	report := &Report{Stopped: StoppedAfterRounds}
	for round := range config.Rounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("ngboost: training stopped in round %d: %w", round, err)
		}
		if stop := b.boost(report); stop != "" {
			report.Stopped = stop
			break
		}
	}
	report.Rounds = len(report.Steps)
	if validation != nil {
		report.Rounds = b.best + 1
	}
	b.model.truncate(report.Rounds)
	return b.model, report, nil
}

// booster is the state between rounds.
type booster struct {
	config Config
	rule   score
	model  *Model
	draw   *sampler

	table   columns
	target  modelled
	params  parameters
	natural parameters
	step    parameters
	growers [2]grower

	check       bool // there is validation data
	checkTable  columns
	checkTarget modelled
	checkParams parameters
	checkAll    []int32
	best        int
	bestNLL     float64
}

func prepare(training Data, validation *Data, config Config) (*booster, error) {
	b := &booster{config: config, rule: scoreFor(config.Distribution, config.Rule), best: -1, bestNLL: math.Inf(1)}
	var err error
	if b.table, b.target, err = load(training, config.Distribution); err != nil {
		return nil, err
	}
	if b.table.count < MinRows {
		return nil, fmt.Errorf("%w: %d, at least %d", ErrTooFewRows, b.table.count, MinRows)
	}
	if err = b.table.checkVaries(); err != nil {
		return nil, err
	}
	mu, s, err := b.target.marginal()
	if err != nil {
		return nil, err
	}
	width := len(b.table.values)
	b.model = newModel(config, b.table.names, mu, s)
	b.draw = newSampler(config, b.table.count, width)
	b.params, b.natural, b.step = newParameters(b.table.count), newParameters(b.table.count), newParameters(b.table.count)
	fillParameters(b.params, mu, s)
	if config.Method == Auto {
		config.Method = Histogram
		if b.table.count <= AutoRows {
			config.Method = Exact
		}
	}
	switch config.Method {
	case Exact:
		sorted := presort(b.table)
		for k := range b.growers {
			b.growers[k] = newExactGrower(sorted, config.Depth, config.MinLeaf)
		}
	case Histogram:
		table := bin(b.table, config.Bins)
		for k := range b.growers {
			b.growers[k] = newHistogramGrower(table, config.Depth, config.MinLeaf)
		}
	}
	return b, b.prepareValidation(validation, mu, s)
}

func load(d Data, distribution Distribution) (columns, modelled, error) {
	if err := d.checkShape(); err != nil {
		return columns{}, modelled{}, err
	}
	table, err := d.columnise()
	if err != nil {
		return columns{}, modelled{}, err
	}
	target, err := d.model(distribution)
	return table, target, err
}

func (b *booster) prepareValidation(validation *Data, mu, s float64) error {
	if validation == nil {
		if b.config.Patience > 0 {
			return fmt.Errorf("%w: patience of %d rounds needs validation data", ErrShape, b.config.Patience)
		}
		return nil
	}
	var err error
	if b.checkTable, b.checkTarget, err = load(*validation, b.config.Distribution); err != nil {
		return fmt.Errorf("validation: %w", err)
	}
	if got, want := len(b.checkTable.values), len(b.table.values); got != want {
		return fmt.Errorf("%w: validation has %d features, training has %d", ErrShape, got, want)
	}
	b.check = true
	b.checkParams = newParameters(b.checkTable.count)
	fillParameters(b.checkParams, mu, s)
	b.checkAll = everyRow(b.checkTable.count)
	return nil
}

func fillParameters(p parameters, mu, s float64) {
	for i := range p.mu {
		p.mu[i], p.s[i] = mu, s
	}
}

// boost does one round and says whether it was the last.
func (b *booster) boost(report *Report) Stop {
	batch, features := b.draw.next()
	start := meanLoss(b.rule, b.target, b.params, b.params, 0, batch)
	for _, i := range batch {
		censored := b.target.censored != nil && b.target.censored[i]
		b.natural.mu[i], b.natural.s[i] = b.rule.natural(b.params.mu[i], b.params.s[i], b.target.target[i], censored)
	}
	trees := [2]tree{newTree(b.config.Depth), newTree(b.config.Depth)}
	b.growBoth(trees, batch, features)

	norm := meanNorm(b.step, batch)
	length := searchStep(start, norm, b.config.Tolerance, func(scale float64) float64 {
		return meanLoss(b.rule, b.target, b.params, b.step, scale, batch)
	})
	for _, t := range trees {
		for k, v := range t.leaves {
			t.leaves[k] = -b.config.LearningRate * length * v
		}
	}
	b.params.add(trees, b.table.values)
	b.model.append(trees)
	report.TrainingLoss = append(report.TrainingLoss, start)
	report.Steps = append(report.Steps, length)

	if b.check && b.validate(trees, report) {
		return StoppedByValidation
	}
	if norm < b.config.Tolerance {
		return StoppedByTolerance
	}
	return ""
}

// growBoth fits one tree to each component of the natural gradient, side by
// side, and fills step with what they give for every row of the batch.
func (b *booster) growBoth(trees [2]tree, batch, features []int32) {
	targets, steps := [2][]float64{b.natural.mu, b.natural.s}, [2][]float64{b.step.mu, b.step.s}
	fit := func(k int) {
		b.growers[k].grow(trees[k], targets[k], batch, features, b.model.gains[k])
		for _, i := range batch {
			steps[k][i] = trees[k].at(b.table.values, i)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fit(1)
	}()
	fit(0)
	<-done
}

// add moves the parameters of all rows of a table by the trees' leaves.
func (p parameters) add(trees [2]tree, values [][]float32) {
	for i := range p.mu {
		p.mu[i] += trees[0].at(values, int32(i))
		p.s[i] += trees[1].at(values, int32(i))
	}
}

// validate moves the validation rows and reports that patience has run out.
func (b *booster) validate(trees [2]tree, report *Report) bool {
	b.checkParams.add(trees, b.checkTable.values)
	rule := scoreFor(b.config.Distribution, LogScore)
	nll := meanLoss(rule, b.checkTarget, b.checkParams, b.checkParams, 0, b.checkAll)
	report.ValidationNLL = append(report.ValidationNLL, nll)
	round := len(report.ValidationNLL) - 1
	if nll < b.bestNLL {
		b.best, b.bestNLL = round, nll
	}
	return b.config.Patience > 0 && round-b.best >= b.config.Patience
}
