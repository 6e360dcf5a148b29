package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"landfall.build/engine/prediction"
	"landfall.build/learning/fitted"
	"landfall.build/learning/ngboost"
	"landfall.build/learning/table"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/trace"
	"landfall.build/tools/train/recorded"
)

// maxBuilds bounds how many recorded builds are taken.
const maxBuilds = 1_000_000

// predictorTrained takes its forecasts from models; the others are package forecast's.
const predictorTrained = "trained"

// How durations of recorded builds are learned, as docs/guides/analyst.md does by hand: of those tried it was the best on windows
// of older builds (decision 37).
const (
	learnedOver   = "typical_seconds"
	learnedRounds = 500
	learnedRate   = 0.01
)

// recording is the newest part of recorded builds, and what went before.
type recording struct {
	// older had begun before the trace does, newest are its changes in order.
	older, newest []recorded.Row
}

// record reads the builds of a folder that ended by themselves: the duration and outcome of an aborted build are unknown. The
// newest share of them is the trace.
func record(folder string, share float64, most int) (*recording, error) {
	builds, err := recorded.ReadJenkins(folder)
	if err != nil {
		return nil, err
	}
	if len(builds) > maxBuilds {
		return nil, fmt.Errorf("%s: more than %d builds", folder, maxBuilds)
	}
	var settled []recorded.Row
	for _, r := range recorded.Rows(builds) {
		if r.Settled() && r.Took > 0 {
			settled = append(settled, r)
		}
	}
	cut := len(settled) - int(math.Round(share*float64(len(settled))))
	if cut >= len(settled) {
		return nil, fmt.Errorf("%s: the newest %g of %d builds that ended by themselves are none", folder, share, len(settled))
	}
	return &recording{settled[:cut], settled[cut:min(len(settled), cut+most)]}, nil
}

// runs are the changes: SUCCESS is green, UNSTABLE and FAILURE are not.
func (r *recording) runs() []trace.Run {
	runs := make([]trace.Run, len(r.newest))
	for i, b := range r.newest {
		runs[i] = trace.Run{
			Name:  fmt.Sprintf("%s/%s/%d", b.Project, b.Change, b.Number),
			Start: float64(b.Started.UnixMilli()) / 1000, Duration: b.Took.Seconds(), Green: b.Result == "SUCCESS",
		}
	}
	return runs
}

// perHour is how many builds began in an hour.
func (r *recording) perHour() float64 {
	span := r.newest[len(r.newest)-1].Started.Sub(r.newest[0].Started)
	return float64(len(r.newest)) / math.Max(span.Hours(), time.Millisecond.Hours())
}

// ended returns the older builds that had ended when the trace begins: a model for it may be trained on these.
func (r *recording) ended() (list []recorded.Row) {
	for _, b := range r.older {
		if b.Started.Add(b.Took).Before(r.newest[0].Started) {
			list = append(list, b)
		}
	}
	return list
}

// Columns of the tables that package recorded writes.
const (
	columnBegan   = "began"
	columnPassed  = "passed"
	columnSeconds = "seconds"
)

// asTable gives rows just as `landfall train` reads them.
func asTable(rows []recorded.Row, write func(io.Writer, []recorded.Row, bool) (int, error)) (*table.Table, error) {
	var b bytes.Buffer
	if _, err := write(&b, rows, false); err != nil {
		return nil, err
	}
	kinds := map[string]table.Kind{}
	for _, name := range recorded.Columns() {
		kinds[name] = table.Number // one that is missing in all of few rows too
	}
	return table.Read(&b, table.Options{Kinds: kinds})
}

// models of success and duration, from files or trained on what had ended.
type models struct {
	success  *fitted.Outcome
	duration *fitted.Distribution
	// names are for errors.
	successName, durationName string
}

// models reads the files that are given, and trains what has none.
func (r *recording) models(ctx context.Context, successFile, durationFile string) (*models, error) {
	m := &models{successName: successFile, durationName: durationFile}
	var err error
	if successFile == "" {
		m.successName = "the model of success"
		m.success, err = trainOn(r.ended(), m.successName, recorded.WriteOutcomes, func(t *table.Table) (*fitted.Outcome, error) {
			of, _, err := fitted.TrainOutcome(ctx, t, fitted.Columns{Target: columnPassed, Time: columnBegan})
			return of, err
		})
	} else {
		m.success, err = modelFile(successFile, r.newest[0].Started, fitted.UnmarshalOutcome)
	}
	if err != nil {
		return nil, err
	}
	if durationFile == "" {
		m.durationName = "the model of durations"
		m.duration, err = trainOn(r.ended(), m.durationName, recorded.WriteDurations, func(t *table.Table) (*fitted.Distribution, error) {
			of, _, err := fitted.TrainDistribution(ctx, t, fitted.DistributionOptions{
				Columns: fitted.Columns{Target: columnSeconds, Time: columnBegan}, Over: learnedOver, Tune: true,
				Config: ngboost.Config{Distribution: ngboost.LogNormal, Rounds: learnedRounds, LearningRate: learnedRate, Method: ngboost.Histogram},
			})
			return of, err
		})
	} else {
		m.duration, err = modelFile(durationFile, r.newest[0].Started, fitted.UnmarshalDistribution)
	}
	return m, err
}

// trainOn trains a model on rows.
func trainOn[M any](rows []recorded.Row, name string, write func(io.Writer, []recorded.Row, bool) (int, error), train func(*table.Table) (M, error)) (m M, err error) {
	if len(rows) == 0 {
		return m, fmt.Errorf("%s has nothing to learn from: no build had ended when the trace begins; leave older ones with --newest 0.2", name)
	}
	t, err := asTable(rows, write)
	if err == nil {
		m, err = train(t)
	}
	if err != nil {
		return m, fmt.Errorf("%s, on %d builds that had ended when the trace begins: %w", name, len(rows), err)
	}
	return m, nil
}

// modelFile reads a model that `landfall train --model` wrote. One that was trained on the trace itself is refused.
func modelFile[M interface{ Until() float64 }](name string, begins time.Time, unmarshal func([]byte) (M, error)) (m M, err error) {
	sealed, err := os.ReadFile(name)
	if err != nil {
		return m, err
	}
	if m, err = unmarshal(sealed); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	until := m.Until()
	if math.IsNaN(until) {
		return m, fmt.Errorf("%s does not say until when its rows go; train it with --time", name)
	}
	if until >= float64(begins.Unix()) {
		return m, fmt.Errorf("%s was trained on rows until %s, and the trace begins at %s: train it with a larger --test-share, or simulate a smaller --newest",
			name, time.Unix(int64(until), 0).UTC().Format(time.RFC3339), begins.UTC().Format(time.RFC3339))
	}
	return m, nil
}

// mostSeconds bounds a predicted duration and its spread.
const mostSeconds = 1e9

// say asks the models about each change of the trace, from what was known when its build began.
func (m *models) say(r *recording) ([]forecast.Said, error) {
	t, err := asTable(r.newest, recorded.WriteOutcomes)
	if err != nil {
		return nil, err
	}
	success, err := m.success.Predict(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.successName, err)
	}
	durations, known, err := m.duration.Predict(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.durationName, err)
	}
	said := make([]forecast.Said, len(r.newest))
	for i := range said {
		said[i].Success = prediction.Clamp(success[i])
		if !known[i] {
			continue
		}
		mean, std := durations[i].Mean(), durations[i].StandardDeviation()
		if !(mean > 0 && mean <= mostSeconds && std >= 0 && std <= mostSeconds) {
			return nil, fmt.Errorf("%s predicts what cannot be: of build %d of %s, %g s, give or take %g", m.durationName, r.newest[i].Number, r.newest[i].Change, mean, std)
		}
		said[i].Mean, said[i].Std = mean*1e6, std*1e6
	}
	return said, nil
}

// builds is the workload lrts.
func (f *flags) builds(ctx context.Context) ([]Setting, error) {
	if f.source.Data == "" {
		return nil, errors.New("the workload lrts reads the folder of that data set; name it with --data")
	}
	r, err := record(f.source.Data, f.newest, f.paper.Changes)
	if err != nil {
		return nil, err
	}
	var said []forecast.Said
	if f.predictor == predictorTrained {
		m, err := r.models(ctx, f.successModel, f.durationModel)
		if err != nil {
			return nil, err
		}
		if said, err = m.say(r); err != nil {
			return nil, err
		}
	}
	runs := r.runs()
	list, err := f.drawn(func(p trace.Paper) (map[string]any, at) {
		of := trace.Recorded{Runs: runs, Rate: p.Rate, Potential: p.Potential, True: p.True, Near: p.Near}
		rates := of.Start().Rates()
		return map[string]any{"changes": len(runs), "failure": 1 - rates.Green, "mean_s": rates.Mean / 1e6, "recorded_per_h": r.perHour()},
			func(rate float64, seed uint64) trace.Trace {
				with := of
				with.Rate, with.Seed = rate, seed
				return with.Start()
			}
	}, workloadLRTS)
	for i := range list {
		list[i].Said = said
	}
	return list, err
}
