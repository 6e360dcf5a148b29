// Package forecast is what a policy knows of changes before they are built: how likely each passes, how long it takes, and
// how likely a pair breaks. All policies get the same forecast.
package forecast

import (
	"fmt"
	"io"
	"math"

	"landfall.build/tools/simulate/trace"
)

// Forecast of the changes of a trace.
type Forecast interface {
	// Success is p of M6: how likely the change passes by itself.
	Success(c *trace.Change) float64
	// Conflict is r: how likely behind is red with ahead, given that it is green alone.
	Conflict(behind, ahead *trace.Change) float64
	// Duration is the mean and standard deviation of its build, in microseconds.
	Duration(c *trace.Change) (mean, std float64)
}

// Names of the forecasts that New makes.
const (
	Perfect    = "perfect"
	Calibrated = "calibrated"
	Flat       = "flat"
)

// Accuracy is how often the calibrated forecast predicts the outcome of a change correctly: that of the model in
// the 2019 paper. DurationError is the mean absolute error of its durations, relative to the true one: that
// of the 2025 paper for iOS.
const (
	Accuracy      = 0.97
	DurationError = 0.06
)

// New makes the forecast of that name. start gives the trace that it is for, from its beginning.
func New(name string, seed uint64, start func() trace.Trace) (Forecast, error) {
	switch name {
	case Perfect:
		return perfect{}, nil
	case Flat:
		return flat{start().Rates()}, nil
	case Calibrated:
		return newCalibrated(seed, start)
	}
	return nil, fmt.Errorf("there is no predictor %q; choose %s, %s or %s", name, Perfect, Calibrated, Flat)
}

// Said is the prediction of a model for a change before it was built. Durations are in microseconds; a Mean of 0 means
// that the model predicts none.
type Said struct{ Success, Mean, Std float64 }

// Trained holds the predictions of models for the changes of a trace, by number. Pairs, and durations that the models do
// not predict, are as in flat.
func Trained(said []Said, rates trace.Rates) Forecast { return trained{flat{rates}, said} }

type trained struct {
	flat
	said []Said
}

func (t trained) Success(c *trace.Change) float64 { return t.said[c.Number].Success }

func (t trained) Duration(c *trace.Change) (mean, std float64) {
	if s := t.said[c.Number]; s.Mean > 0 {
		return s.Mean, s.Std
	}
	return t.flat.Duration(c)
}

type perfect struct{}

func (perfect) Success(c *trace.Change) float64 { return probability(c.Green) }

func (perfect) Conflict(behind, ahead *trace.Change) float64 {
	return probability(behind.Broken(ahead.Number))
}

func (perfect) Duration(c *trace.Change) (mean, std float64) { return float64(c.Duration), 0 }

func probability(certain bool) float64 {
	if certain {
		return 1
	}
	return 0
}

// flat knows the overall rates alone, and of a pair how far apart it arrived.
type flat struct{ trace.Rates }

func (f flat) Success(*trace.Change) float64 { return f.Green }

func (f flat) Conflict(behind, ahead *trace.Change) float64 { return f.prior(behind, ahead) }

func (f flat) Duration(*trace.Change) (mean, std float64) { return f.Mean, f.Std }

func (f flat) prior(behind, ahead *trace.Change) float64 {
	if behind.Arrival-ahead.Arrival > f.Near {
		return 0
	}
	return f.Rates.Conflict
}

// calibrated sees each outcome through noise, and predicts the probability given what it sees: of those with 0.8, eight of
// ten come about.
type calibrated struct {
	flat
	seed  uint64
	noise float64
}

// Streams of draws.
const (
	streamSuccess = 5001 + iota
	streamConflict
	streamDuration
)

// calibrationSample bounds how much of a trace the noise is set on.
const calibrationSample = 4000

// newCalibrated finds the noise with which the outcome of a change (that it lands, in the order of arrival) is predicted
// correctly as often as Accuracy.
func newCalibrated(seed uint64, start func() trace.Trace) (Forecast, error) {
	t := start()
	f := calibrated{flat: flat{t.Rates()}, seed: seed}
	var changes, near []*trace.Change
	var lands []bool
	var met [][]*trace.Change
	var truth trace.Truth
	for taken := 0; taken < calibrationSample; taken++ {
		c, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for len(near) > 0 && c.Arrival-near[0].Arrival > f.Near {
			near = near[1:]
		}
		var of []*trace.Change
		for _, k := range near {
			if truth.Lands(k.Number) && t.Meet(k, c) {
				of = append(of, k)
			}
		}
		landed := truth.Take(c)
		if c.Cancelled == 0 { // how builds of the others would have ended does not matter
			changes, lands, met = append(changes, c), append(lands, landed), append(met, of)
		}
		near = append(near, c)
	}
	right := func() float64 {
		n := 0
		for i, c := range changes {
			p := f.Success(c)
			for _, k := range met[i] {
				p *= 1 - f.Conflict(c, k)
			}
			if (p >= 0.5) == lands[i] {
				n++
			}
		}
		return float64(n) / float64(max(1, len(changes)))
	}
	low, high := 0.05, 20.0
	for range 40 {
		f.noise = math.Sqrt(low * high)
		if right() >= Accuracy {
			low = f.noise
		} else {
			high = f.noise
		}
	}
	f.noise = low
	return f, nil
}

func (f calibrated) Success(c *trace.Change) float64 {
	return f.posterior(f.Green, c.Green, trace.Normal(f.seed, streamSuccess, c.Number, 0))
}

func (f calibrated) Conflict(behind, ahead *trace.Change) float64 {
	return f.posterior(f.prior(behind, ahead), behind.Broken(ahead.Number), trace.Normal(f.seed, streamConflict, behind.Number, ahead.Number))
}

// steps is how many a calibrated probability comes in. What is less likely than half of one is 0: most pairs.
// No model is known to be right beyond that, and certainties need not be weighed.
const steps = 1024

// posterior is how likely the event is, once ±1 (it is, or is not) was seen with noise added.
func (f calibrated) posterior(prior float64, is bool, z float64) float64 {
	if prior <= 0 || prior >= 1 {
		return prior
	}
	seen := f.noise * z
	if is {
		seen++
	} else {
		seen--
	}
	logOdds := math.Log(prior/(1-prior)) + 2*seen/(f.noise*f.noise)
	return math.Round(steps/(1+math.Exp(-logOdds))) / steps
}

// meanOfAbsolute is E|Z| of the standard normal distribution: the mean absolute error of a relative error is
// this times its spread.
var meanOfAbsolute = math.Sqrt(2 / math.Pi)

func (f calibrated) Duration(c *trace.Change) (mean, std float64) {
	spread := DurationError / meanOfAbsolute
	mean = float64(c.Duration) * math.Exp(spread*trace.Normal(f.seed, streamDuration, c.Number, 0))
	return mean, spread * mean
}
