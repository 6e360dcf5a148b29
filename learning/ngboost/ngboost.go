// Package ngboost is natural gradient boosting: it fits, for every row, the two
// parameters of a distribution of a numeric target, where an ordinary regressor
// fits one number. What comes out is a [Prediction], with mean, median,
// quantiles and spread.
//
// Each round computes the natural gradient of a proper scoring rule at the
// present parameters, fits one small regression tree to each of its two
// components, finds one step length for both by line search, and moves all rows
// (Duan et al., "NGBoost: Natural Gradient Boosting for Probabilistic
// Prediction", ICML 2020). Parameters are (μ, s) with s = log σ, of the target
// for [Normal] and of its logarithm for [LogNormal].
//
// Two ways of growing trees are offered. [Exact] tries every midpoint between
// neighbouring values and follows the authors' implementation closely enough to
// give the same training losses to rounding. [Histogram] puts every feature into
// at most 255 bins once, picks the best border of bins, and then the best
// midpoint near it. [Auto] takes the first for little data, where it costs
// little, and the second for more.
//
// A missing feature is NaN. Each split learns on which side missing values go.
package ngboost

import (
	"errors"
	"fmt"
	"math"
)

// Distribution is the family a model predicts.
type Distribution uint8

const (
	// Normal has the target itself as N(μ, σ²).
	Normal Distribution = iota
	// LogNormal has the logarithm of the target as N(μ, σ²). Targets are above zero.
	LogNormal
)

// String returns the lower-case name used in configuration and reports.
func (d Distribution) String() string {
	switch d {
	case Normal:
		return "normal"
	case LogNormal:
		return "lognormal"
	}
	return fmt.Sprintf("distribution %d", uint8(d))
}

// ParseDistribution is the inverse of [Distribution.String] for known families.
func ParseDistribution(name string) (Distribution, error) {
	for _, d := range []Distribution{Normal, LogNormal} {
		if d.String() == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("ngboost: distribution %q is unknown: use normal or lognormal", name)
}

// Rule is the proper scoring rule that training minimises.
type Rule uint8

const (
	// LogScore is the negative log-likelihood.
	LogScore Rule = iota
	// CRPS is the continuous ranked probability score, less moved by outliers.
	// For LogNormal it is taken on the logarithm of the target.
	CRPS
)

// Method is how split points are found.
type Method uint8

const (
	// Auto is Exact up to AutoRows rows and Histogram above.
	Auto Method = iota
	// Histogram tries the borders of bins, then those between the rows next to the best one.
	Histogram
	// Exact tries every midpoint between neighbouring values of the node.
	Exact
)

// AutoRows is the most rows for which [Auto] takes exact trees.
const AutoRows = 4096

// Bounds of what is trained, stored and loaded.
const (
	// MaxFeatures is the largest number of columns.
	MaxFeatures = 1 << 16
	// MaxRounds is the largest number of boosting rounds.
	MaxRounds = 100_000
	// MaxDepth is the deepest tree.
	MaxDepth = 8
	// MinRows is the fewest rows to train on.
	MinRows = 20
	// MaxCells is the largest rows × features to train on.
	MaxCells = 1 << 31
)

// Config is how to train. Its zero value is usable: zero fields mean the defaults.
type Config struct {
	Distribution Distribution
	Rule         Rule
	Method       Method

	// Rounds is the number of boosting rounds; 500 when zero.
	Rounds int
	// LearningRate shrinks each step; 0.01 when zero.
	LearningRate float64
	// Depth of the trees; 3 when zero.
	Depth int
	// MinLeaf is the fewest rows in a leaf; 1 when zero.
	MinLeaf int
	// Bins per feature in Histogram, one of them for missing values; 256 when zero.
	Bins int
	// RowFraction of the rows is drawn, without replacement, for each round; all when zero.
	RowFraction float64
	// ColumnFraction of the columns is drawn for each round; all when zero.
	ColumnFraction float64
	// Seed of both draws. Equal seeds and data give equal models.
	Seed uint64
	// Tolerance ends training when the mean length of a round's step is below it; 1e-4 when zero.
	Tolerance float64
	// Patience ends training when the validation loss has not fallen for this
	// many rounds; zero trains all rounds. It needs validation data.
	Patience int
}

// WithDefaults returns the configuration with every zero field filled.
func (c Config) WithDefaults() Config {
	fill(&c.Rounds, 500)
	fill(&c.LearningRate, 0.01)
	fill(&c.Depth, 3)
	fill(&c.MinLeaf, 1)
	fill(&c.Bins, 256)
	fill(&c.RowFraction, 1)
	fill(&c.ColumnFraction, 1)
	fill(&c.Tolerance, 1e-4)
	return c
}

func fill[T int | float64](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate reports every field that is out of its range, all at once.
// It expects the defaults to be filled.
func (c Config) Validate() error {
	var problems []error
	check := func(good bool, format string, args ...any) {
		if !good {
			problems = append(problems, fmt.Errorf("ngboost: "+format, args...))
		}
	}
	check(c.Distribution <= LogNormal, "distribution %d is unknown", c.Distribution)
	check(c.Rule <= CRPS, "scoring rule %d is unknown", c.Rule)
	check(c.Method <= Exact, "method %d is unknown", c.Method)
	check(c.Rounds >= 1 && c.Rounds <= MaxRounds, "rounds is %d: use 1 to %d", c.Rounds, MaxRounds)
	check(c.LearningRate > 0 && c.LearningRate <= 1, "learning rate is %g: use above 0 to 1", c.LearningRate)
	check(c.Depth >= 1 && c.Depth <= MaxDepth, "depth is %d: use 1 to %d", c.Depth, MaxDepth)
	check(c.MinLeaf >= 1, "the smallest leaf is %d rows: use 1 or more", c.MinLeaf)
	check(c.Bins >= 3 && c.Bins <= 256, "bins is %d: use 3 to 256", c.Bins)
	check(c.RowFraction > 0 && c.RowFraction <= 1, "row fraction is %g: use above 0 to 1", c.RowFraction)
	check(c.ColumnFraction > 0 && c.ColumnFraction <= 1, "column fraction is %g: use above 0 to 1", c.ColumnFraction)
	check(c.Tolerance >= 0 && !math.IsInf(c.Tolerance, 0), "tolerance is %g: use a number from 0", c.Tolerance)
	check(c.Patience >= 0, "patience is %d rounds: use 0 or more", c.Patience)
	return errors.Join(problems...)
}

// Errors of the data given to [Train] and [Evaluate]; each is wrapped with the
// row, the feature or the count it is about. None is worth a retry with the same data.
var (
	// ErrTooFewRows occurs below [MinRows].
	ErrTooFewRows = errors.New("ngboost: too few rows")
	// ErrShape occurs when rows, targets, names and censoring marks do not fit together or exceed a bound.
	ErrShape = errors.New("ngboost: data of the wrong shape")
	// ErrFeature occurs when a feature is infinite or outside the range of float32.
	ErrFeature = errors.New("ngboost: feature out of range")
	// ErrTarget occurs when a target is not finite, is not above zero for
	// LogNormal, or when all targets are equal and there is nothing to learn.
	ErrTarget = errors.New("ngboost: unusable target")
	// ErrConstantFeatures occurs when no feature takes two different values.
	ErrConstantFeatures = errors.New("ngboost: every feature is constant")
)
