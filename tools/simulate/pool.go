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

// arriving is a rate of arrivals, or the load that gives one.
type arriving struct{ rate, load float64 }

// firstRate is where the search for the rate of a load begins.
const firstRate = 100

func (f *flags) arrivals() (list []arriving) {
	for _, load := range f.loads {
		list = append(list, arriving{firstRate, load})
	}
	if len(list) == 0 {
		for _, rate := range f.rates {
			list = append(list, arriving{rate: rate})
		}
	}
	return list
}

// drawnRepository is a repository whose changes differ in size.
func (f *flags) drawnRepository() ([]Setting, error) {
	m := trace.PinnedMonorepo(f.paper)
	m.Targets, m.Affected, m.Affected975 = f.targets, f.affected, f.affected975
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return f.drawn(func(p trace.Paper) (map[string]any, at) {
		m := m
		m.Paper = p
		described := map[string]any{"changes": m.Changes, "failure": m.Failure, "targets": m.Targets, "affected": m.Affected, "affected_p975": m.Affected975}
		f.describeSteps(described)
		return described, func(rate float64, seed uint64) trace.Trace {
			with := m
			with.Rate, with.Seed = rate, seed
			return with.Start()
		}
	}, workloadMono)
}

// describeSteps adds what drawn steps take.
func (f *flags) describeSteps(workload map[string]any) {
	for name, d := range map[string]time.Duration{"median_s": f.paper.Median, "p95_s": f.paper.P95, "shortest_s": f.paper.Shortest, "longest_s": f.paper.Longest} {
		workload[name] = d.Seconds()
	}
}

// loaded is a workload at the rate at which an oracle would keep a share of the workers busy. The rate is found for each seed: how
// much work a change has differs between seeds by more than policies do.
func (f *flags) loaded(of at, load float64, workers int) func(seed uint64) trace.Trace {
	return func(seed uint64) trace.Trace {
		disturbed := f.disturbed
		disturbed.Seed = seed
		rate := float64(firstRate)
		for range loadRounds {
			seconds, changes := needed(disturbed.Cancelling(of(rate, seed)), disturbed, f.checkout, f.overhead)
			rate = load * float64(workers) * 3600 * float64(changes) / seconds
		}
		return of(rate, seed)
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
