package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"landfall.build/tools/simulate/course"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// What a workload on a pool has unless flags say otherwise. Its steps are short, so that a round that is fit for builds of half an hour
// would dominate.
const (
	poolWorkers  = 64
	poolRound    = time.Second
	poolMedian   = 15 * time.Second
	poolP95      = time.Minute
	poolShortest = time.Second
	poolLongest  = 10 * time.Minute
	poolFlakes   = 0.0005
)

// onPool reports whether the workers run steps.
func (f *flags) onPool(workload string) bool { return f.pool || workload == workloadMono }

func (f *flags) poolOf() *course.Pool {
	if !f.onPool(f.workload) {
		return nil
	}
	return &course.Pool{Checkout: f.checkout, Overhead: f.overhead}
}

// settleDefaults sets what depends on the workload and was not given.
func (f *flags) settleDefaults() {
	if !f.onPool(f.workload) {
		return
	}
	p := &f.paper
	stepwise := f.workload == workloadMono || f.workload == workloadGit
	for _, d := range []struct {
		flag string
		to   *time.Duration
		is   time.Duration
	}{{"median", &p.Median, poolMedian}, {"p95", &p.P95, poolP95}, {"shortest", &p.Shortest, poolShortest}, {"longest", &p.Longest, poolLongest}, {"round", &f.round, poolRound}} {
		if stepwise && !f.given(d.flag) {
			*d.to = d.is
		}
	}
	if stepwise && !f.given("workers") {
		f.workers = []int{poolWorkers}
	}
	if !f.given("policies") {
		f.policies = policy.PoolNames()
	}
	if f.workload == workloadMono && !f.given("flakes") {
		f.disturbed.Flakes = poolFlakes
	}
}

// unsuited returns what is wrong with the flags of pools.
func (f *flags) unsuited() error {
	var errs []error
	if f.checkout < 0 || f.overhead < 0 {
		errs = append(errs, errors.New("--checkout and --overhead cannot be negative"))
	}
	if len(f.loads) > 0 && f.given("rate") {
		errs = append(errs, errors.New("--load gives the rate; --rate is refused beside it"))
	}
	for _, l := range f.loads {
		if !(l > 0 && l <= maxLoad) {
			errs = append(errs, fmt.Errorf("--load is %v; it is above 0 and at most %v", l, maxLoad))
		}
	}
	if !f.onPool(f.workload) {
		for _, name := range []string{"load", "checkout", "overhead"} {
			if f.given(name) {
				errs = append(errs, fmt.Errorf("--%s is about workers that run steps; pass --pool, or take the workload %s", name, workloadMono))
			}
		}
		for _, name := range f.policies {
			if k, err := policy.Named(name); err == nil && k.Pool {
				errs = append(errs, fmt.Errorf("the policy %s differs from others in the order of steps alone; pass --pool, or take the workload %s", name, workloadMono))
			}
		}
	}
	return errors.Join(errs...)
}

// maxLoad bounds a load: beyond it everything waits for ever longer.
const maxLoad = 10

// drawnRepository sweeps a drawn repository over loads, or rates, and numbers of workers.
func (f *flags) drawnRepository() (list []Setting, err error) {
	m := trace.PinnedMonorepo(f.paper)
	m.Targets, m.Affected, m.Affected975 = f.targets, f.affected, f.affected975
	described := func() map[string]any {
		return map[string]any{
			"name": workloadMono, "changes": m.Changes, "failure": m.Failure, "true_conflicts": m.True, "near_s": m.Near.Seconds(), "targets": m.Targets,
			"affected": m.Affected, "affected_p975": m.Affected975, "checkout_s": f.checkout.Seconds(), "overhead_s": f.overhead.Seconds(),
			"median_s": m.Median.Seconds(), "p95_s": m.P95.Seconds(), "shortest_s": m.Shortest.Seconds(), "longest_s": m.Longest.Seconds(),
		}
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	at := func(rate float64) func(seed uint64) trace.Trace {
		return func(seed uint64) trace.Trace {
			with := m
			with.Seed, with.Rate = seed, rate
			return with.Start()
		}
	}
	if len(f.loads) == 0 {
		for _, rate := range f.rates {
			workload := described()
			workload["rate_per_h"] = rate
			list = append(list, f.machines(workload, at(rate))...)
		}
		return list, nil
	}
	for _, load := range f.loads {
		workload := described()
		workload["load"] = load
		for _, s := range f.machines(workload, nil) {
			s.Start = f.loaded(at, load, s.Workers)
			list = append(list, s)
		}
	}
	return list, nil
}

// loaded is a workload at the rate at which an oracle would keep a share of the workers busy. The rate is found for each seed: how
// much work a change has differs between seeds by more than policies do.
func (f *flags) loaded(at func(rate float64) func(seed uint64) trace.Trace, load float64, workers int) func(seed uint64) trace.Trace {
	return func(seed uint64) trace.Trace {
		rate := 100.0
		for range loadRounds {
			disturbed := f.disturbed
			disturbed.Seed = seed
			seconds, changes := needed(disturbed.Cancelling(at(rate)(seed)), disturbed, f.checkout, f.overhead)
			rate = load * float64(workers) * 3600 * float64(changes) / seconds
		}
		return at(rate)(seed)
	}
}

// loadRounds is how often a rate is corrected: which changes conflict depends on how close they arrive, though hardly.
const loadRounds = 2

// needed returns the worker seconds that an oracle spends on a trace: on a change that lands all of its steps, on any other the one that
// fails, and on each flake a second run.
func needed(t trace.Trace, d trace.Disturbances, checkout, overhead time.Duration) (seconds float64, changes int) {
	var truth trace.Truth
	var us float64
	again := float64(d.Retries())
	for {
		c, err := t.Next()
		if err != nil {
			break
		}
		changes++
		lands := truth.Take(c)
		if c.Cancelled > 0 {
			continue
		}
		us += float64(checkout.Microseconds())
		if lands {
			us += (float64(c.Duration) + float64(overhead.Microseconds())*float64(len(c.Targets))) * (1 + d.Flakes)
			continue
		}
		at := c.Fails
		if c.Green {
			i := slices.IndexFunc(c.Breaks, truth.Lands)
			at = c.BreaksAt[i]
		}
		us += (float64(c.Takes(slices.Index(c.Targets, at))) + float64(overhead.Microseconds())) * (1 + again)
	}
	return math.Max(us/1e6, math.SmallestNonzeroFloat64), changes
}
