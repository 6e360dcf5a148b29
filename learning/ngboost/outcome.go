package ngboost

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// leafPrior is how many rows' worth of doubt a leaf of [TrainOutcome] starts with, in units of the information
// Σ p(1−p) that its rows have: a leaf of few rows, or of rows that are nearly certain, moves little.
const leafPrior = 10

// TrainOutcome boosts trees to outcomes: Target is 1 or 0, and the model gives the probability of 1. Each round grows
// one tree on the residuals y − p, and moves each of its leaves by the natural gradient of the log loss there, which
// is Σ(y − p)/Σp(1−p): taken over the leaf's rows and not row by row, since a row that is nearly certain has almost
// no information, and a natural gradient almost without bound. Distribution, Rule and Tolerance of config mean
// nothing here; the rest, the report and the errors are those of [Train].
func TrainOutcome(ctx context.Context, training Data, validation *Data, config Config) (*OutcomeModel, *Report, error) {
	config = config.WithDefaults()
	config.Distribution, config.Rule = Normal, LogScore
	if err := config.Validate(); err != nil {
		return nil, nil, err
	}
	b, err := prepareOutcome(training, validation, config)
	if err != nil {
		return nil, nil, err
	}
	report := &Report{Stopped: StoppedAfterRounds}
	best, least := -1, math.Inf(1)
	for round := range config.Rounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("ngboost: training stopped in round %d: %w", round, err)
		}
		report.TrainingLoss = append(report.TrainingLoss, b.boost())
		report.Steps = append(report.Steps, 1)
		if validation == nil {
			continue
		}
		loss := logLoss(b.checkOdds, b.checkTarget)
		report.ValidationNLL = append(report.ValidationNLL, loss)
		if loss < least {
			best, least = round, loss
		}
		if config.Patience > 0 && round-best >= config.Patience {
			report.Stopped = StoppedByValidation
			break
		}
	}
	report.Rounds = len(report.Steps)
	if validation != nil {
		report.Rounds = best + 1
	}
	b.model.truncate(report.Rounds)
	return b.model, report, nil
}

// outcomeBooster is the state between rounds.
type outcomeBooster struct {
	config Config
	model  *OutcomeModel
	draw   *sampler
	grower grower

	table               columns
	target, odds        []float64
	residual            []float64
	checkTable          columns
	checkTarget         []float64
	checkOdds           []float64
	slope, curve, moved []float64 // by leaf
	regions             []int
}

func prepareOutcome(training Data, validation *Data, config Config) (*outcomeBooster, error) {
	b := &outcomeBooster{config: config}
	var err error
	if b.table, b.target, err = loadOutcomes(training); err != nil {
		return nil, err
	}
	if b.table.count < MinRows {
		return nil, fmt.Errorf("%w: %d, at least %d", ErrTooFewRows, b.table.count, MinRows)
	}
	if err = b.table.checkVaries(); err != nil {
		return nil, err
	}
	share := 0.0
	for _, y := range b.target {
		share += y / float64(len(b.target))
	}
	if !(share > 0 && share < 1) {
		return nil, fmt.Errorf("%w: all %d outcomes are equal", ErrTarget, len(b.target))
	}
	leaves := 1 << config.Depth
	b.model = &OutcomeModel{features: b.table.names, depth: config.Depth, start: math.Log(share / (1 - share)), gains: make([]float64, len(b.table.names))}
	b.draw = newSampler(config, b.table.count, len(b.table.values))
	b.odds, b.residual = filled(b.table.count, b.model.start), make([]float64, b.table.count)
	b.slope, b.curve, b.moved, b.regions = make([]float64, leaves), make([]float64, leaves), make([]float64, leaves), make([]int, leaves)
	if config.Method == Exact || config.Method == Auto && b.table.count <= AutoRows {
		b.grower = newExactGrower(presort(b.table), config.Depth, config.MinLeaf)
	} else {
		b.grower = newHistogramGrower(bin(b.table, config.Bins), config.Depth, config.MinLeaf)
	}
	if validation == nil {
		if config.Patience > 0 {
			return nil, fmt.Errorf("%w: patience of %d rounds needs validation data", ErrShape, config.Patience)
		}
		return b, nil
	}
	if b.checkTable, b.checkTarget, err = loadOutcomes(*validation); err != nil {
		return nil, fmt.Errorf("validation: %w", err)
	}
	if got, want := len(b.checkTable.values), len(b.table.values); got != want {
		return nil, fmt.Errorf("%w: validation has %d features, training has %d", ErrShape, got, want)
	}
	b.checkOdds = filled(b.checkTable.count, b.model.start)
	return b, nil
}

func loadOutcomes(d Data) (columns, []float64, error) {
	if err := d.checkShape(); err != nil {
		return columns{}, nil, err
	}
	for i, y := range d.Target {
		if y != 0 && y != 1 || d.censoredAt(i) {
			return columns{}, nil, fmt.Errorf("%w: row %d is %g; an outcome is 1 or 0", ErrTarget, i, y)
		}
	}
	table, err := d.columnise()
	return table, d.Target, err
}

func filled(count int, value float64) []float64 {
	out := make([]float64, count)
	for i := range out {
		out[i] = value
	}
	return out
}

// boost does one round, and gives the loss of all rows before it.
func (b *outcomeBooster) boost() (before float64) {
	before = logLoss(b.odds, b.target)
	batch, features := b.draw.next()
	for _, i := range batch {
		b.residual[i] = b.target[i] - chance(b.odds[i])
	}
	t := newTree(b.config.Depth)
	b.grower.grow(t, b.residual, batch, features, b.model.gains)
	t.fillRegions(b.regions, 0)
	// A row's leaf is what the tree gives once each leaf holds its own number.
	for k := range t.leaves {
		t.leaves[k] = float64(b.regions[k])
		b.slope[k], b.curve[k] = 0, leafPrior
	}
	for _, i := range batch {
		k := int(t.at(b.table.values, i))
		p := chance(b.odds[i])
		b.slope[k] += b.residual[i]
		b.curve[k] += p * (1 - p)
	}
	for k, region := range b.regions {
		b.moved[k] = b.config.LearningRate * b.slope[region] / b.curve[region]
	}
	copy(t.leaves, b.moved)
	for i := range b.odds {
		b.odds[i] += t.at(b.table.values, int32(i))
	}
	for i := range b.checkOdds {
		b.checkOdds[i] += t.at(b.checkTable.values, int32(i))
	}
	b.model.nodes, b.model.leaves = append(b.model.nodes, t.nodes...), append(b.model.leaves, t.leaves...)
	return before
}

// fillRegions returns for each leaf the first leaf of its region. A leaf found early fills everything below it, and where a
// row ends there depends on what it lacks: these are one region. A split that sends only missing values to the right looks
// the same, but its sides hold different values.
func (t tree) fillRegions(into []int, position int) {
	first, count := position, 1
	for first < len(t.nodes) {
		first, count = 2*first+1, 2*count
	}
	first -= len(t.nodes)
	differs := func(v float64) bool { return v != t.leaves[first] }
	if count > 1 && (t.nodes[position] != noSplit || slices.ContainsFunc(t.leaves[first:first+count], differs)) {
		t.fillRegions(into, 2*position+1)
		t.fillRegions(into, 2*position+2)
		return
	}
	for k := first; k < first+count; k++ {
		into[k] = first
	}
}

// chance is the probability of log-odds.
func chance(odds float64) float64 {
	if odds >= 0 {
		return 1 / (1 + math.Exp(-odds))
	}
	e := math.Exp(odds)
	return e / (1 + e)
}

func logLoss(odds, target []float64) (mean float64) {
	for i, z := range odds {
		mean += max(z, 0) - z*target[i] + math.Log1p(math.Exp(-math.Abs(z)))
	}
	return mean / float64(len(odds))
}
