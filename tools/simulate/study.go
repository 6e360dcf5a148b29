// Package simulate compares the published policies with landfall's: each runs the same trace through the production cores
// in virtual time (package course), and the results are put side by side.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"landfall.build/tools/simulate/course"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// maxRuns bounds a sweep: more is probably a mistake.
const maxRuns = 10_000

// gcPercent trades memory, of which a simulation needs little, for time, up to memoryLimit bytes.
const (
	gcPercent   = 400
	memoryLimit = 2 << 30
)

// Setting is one cell of a sweep: a workload that is fixed but for the seed, and the machines for it.
type Setting struct {
	// Workload names its parameters, for people and for --json.
	Workload map[string]any
	// Start gives the trace for a seed, from its beginning.
	Start   func(seed uint64) trace.Trace
	Workers int
	// Pool has the workers run steps; nil: each build has one of its own.
	Pool *course.Pool
	// Said, if not nil, holds the predictions of trained models for each change; then package forecast is not asked.
	Said []forecast.Said
	// Disturbed holds failures of the machines; its seed is that of the trace.
	Disturbed trace.Disturbances
}

// Study describes a comparison.
type Study struct {
	Settings  []Setting
	Policies  []policy.Kind
	Predictor string
	// Thresholds and Bypasses are tried, each with each, on the policies that know them; if empty, each
	// policy has its own.
	Thresholds, Bypasses []float64
	Seeds                []uint64
	Round                time.Duration
	// Parallel is the number of simulations at a time, 0 for one on each processor.
	Parallel int
	// Progress, if set, is called with what was done: simulations that ended, and changes that left their queues, of how many. It
	// may be called concurrently.
	Progress func(courses, of int, changes, ofChanges int64)
}

// variant is a policy with its thresholds.
type variant struct {
	policy.Kind
	setting int
}

// variants lists what is run in each setting, the oracle first: everything is measured against it.
func (s Study) variants() (list []variant) {
	oracle, _ := policy.Named("oracle")
	kinds := append([]policy.Kind{oracle}, slices.DeleteFunc(slices.Clone(s.Policies), func(k policy.Kind) bool { return k.Name == oracle.Name })...)
	for i := range s.Settings {
		for _, k := range kinds {
			for _, tuned := range s.tunings(k) {
				list = append(list, variant{tuned, i})
			}
		}
	}
	return list
}

func (s Study) tunings(k policy.Kind) (list []policy.Kind) {
	if !k.Tunes {
		return []policy.Kind{k}
	}
	thresholds, bypasses := s.Thresholds, s.Bypasses
	if len(thresholds) == 0 {
		thresholds = []float64{k.Threshold}
	}
	if len(bypasses) == 0 {
		bypasses = []float64{k.Bypass}
	}
	for _, t := range thresholds {
		for _, b := range bypasses {
			k.Threshold, k.Bypass = t, b
			list = append(list, k)
		}
	}
	return list
}

// Run runs everything and returns a row for each variant. The same study gives the same rows. If other changes landed than those of
// the trace, there are rows and an error.
func (s Study) Run(ctx context.Context) ([]Row, error) {
	variants := s.variants()
	runs := len(variants) * len(s.Seeds)
	if runs > maxRuns {
		return nil, fmt.Errorf("that is %d courses, at most %d; sweep fewer values, or fewer seeds", runs, maxRuns)
	}
	// A plan is gone once it is carried out, so there is little worth collecting often.
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	if given := debug.SetMemoryLimit(-1); given > memoryLimit { // a lower GOMEMLIMIT stands
		debug.SetMemoryLimit(memoryLimit)
		defer debug.SetMemoryLimit(given)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	results := make([][]*course.Result, len(variants))
	for i := range results {
		results[i] = make([]*course.Result, len(s.Seeds))
	}
	parallel := s.Parallel
	if parallel == 0 {
		parallel = runtime.GOMAXPROCS(0)
	}
	jobs := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed, differ []error
	done := 0
	var left atomic.Int64
	changes := int64(0)
	for _, v := range variants {
		n, _ := s.Settings[v.setting].Workload["changes"].(int)
		changes += int64(n * len(s.Seeds))
	}
	progress := func(more int64) {
		if now := left.Add(more); s.Progress != nil {
			mu.Lock()
			courses := done
			mu.Unlock()
			s.Progress(courses, runs, now, changes)
		}
	}
	for range min(parallel, runs) {
		wg.Go(func() {
			for job := range jobs {
				v, seed := variants[job/len(s.Seeds)], s.Seeds[job%len(s.Seeds)]
				r, err := s.course(ctx, v, seed, func() { progress(1) })
				mu.Lock()
				results[job/len(s.Seeds)][job%len(s.Seeds)] = r
				done++
				if difference := (*course.Difference)(nil); errors.As(err, &difference) {
					differ = append(differ, fmt.Errorf("seed %d: %w", seed, err))
				} else if err != nil {
					failed = append(failed, fmt.Errorf("seed %d: %w", seed, err))
					stop()
				}
				mu.Unlock()
				progress(0)
			}
		})
	}
	for job := range runs {
		jobs <- job
	}
	close(jobs)
	wg.Wait()
	if err := first(failed); err != nil {
		return nil, err
	}
	slices.SortFunc(differ, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) }) // however many ran at a time
	return s.rows(variants, results), errors.Join(differ...)
}

// first returns the first error that is not a consequence of another.
func first(errs []error) error {
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

func (s Study) course(ctx context.Context, v variant, seed uint64, left func()) (*course.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	setting := s.Settings[v.setting]
	disturbed := setting.Disturbed
	disturbed.Seed = seed
	start := func() trace.Trace { return disturbed.Cancelling(setting.Start(seed)) }
	f, err := s.forecast(setting, seed, start)
	if err != nil {
		return nil, err
	}
	r, err := course.Run(ctx, course.Options{
		Trace: start(), Forecast: f, Kind: v.Kind, Workers: setting.Workers, Pool: setting.Pool,
		Threshold: v.Threshold, Bypass: v.Bypass, Round: s.Round, Disturbed: disturbed, Left: left,
	})
	if err == nil && r.Decided() == 0 {
		return nil, fmt.Errorf("all %d changes of the trace were cancelled: there is nothing to compare", r.Cancelled)
	}
	return r, err
}

func (s Study) forecast(setting Setting, seed uint64, start func() trace.Trace) (forecast.Forecast, error) {
	if setting.Said != nil {
		return forecast.Trained(setting.Said, start().Rates()), nil
	}
	return forecast.New(s.Predictor, seed, start)
}
