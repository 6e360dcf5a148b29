package course

import (
	"cmp"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/steps"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/dispatch"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// listed is a trace of changes that are written down.
type listed struct {
	list []*trace.Change
	next int
}

func (l *listed) Next() (*trace.Change, error) {
	if l.next == len(l.list) {
		return nil, io.EOF
	}
	l.next++
	return l.list[l.next-1], nil
}

func (l *listed) Meet(ahead, behind *trace.Change) bool { return trace.Share(ahead, behind) }

func (l *listed) Rates() trace.Rates { return trace.Rates{Green: 0.9, Mean: 1e6, Std: 1e5} }

// add adds a change with steps on targets from a first one on. Times are in seconds.
func (l *listed) add(arrival float64, first int, steps ...float64) *trace.Change {
	c := &trace.Change{Number: len(l.list), ID: "c" + strconv.Itoa(len(l.list)), Arrival: int64(arrival * 1e6), Green: true, Steps: []int64{}}
	for i, s := range steps {
		c.Targets, c.Steps = append(c.Targets, first+i), append(c.Steps, int64(s*1e6))
		c.Duration += int64(s * 1e6)
	}
	l.list = append(l.list, c)
	return c
}

func (l *listed) run(t *testing.T, k policy.Kind, workers int, pool Pool, round time.Duration, record func(*eventsv1.Speculation)) *Result {
	t.Helper()
	l.next = 0
	f, err := forecast.New(forecast.Perfect, 1, func() trace.Trace { return l })
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Options{
		Trace: l, Forecast: f, Kind: k, Workers: workers, Threshold: k.Threshold, Bypass: k.Bypass, Round: round, Pool: &pool, Record: record,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func named(t *testing.T, name string) policy.Kind {
	t.Helper()
	k, err := policy.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// On a queue with four slots and two step workers, a change with 41 steps of 2 s was followed by four independent ones of one
// step of 1 s. They landed after 43 s.
func TestByBuildSmallChangesWaitForALargeOneAsTheyDid(t *testing.T) {
	const really = 43.0
	large := &listed{}
	large.add(0, 0, slices.Repeat([]float64{2}, 41)...)
	for i := range 4 {
		large.add(0.1, 100+i, 1)
	}
	r := large.run(t, named(t, "landfall-by-build"), 2, Pool{Slots: 4, Overhead: 100 * time.Millisecond, Checkout: 50 * time.Millisecond}, 200*time.Millisecond, nil)
	small := r.Sizes[0].Turnaround
	if got := mean(small); len(small) != 4 || math.Abs(got-really) > really/10 {
		t.Errorf("the small changes took %v s, %.1f on average; in reality %.0f", small, got, really)
	}
	// The same changes, if steps go by the work that is left for a change.
	r = large.run(t, named(t, "landfall"), 2, Pool{Slots: 5}, 200*time.Millisecond, nil)
	if got := r.Sizes[0].Turnaround; got[3] > 6 {
		t.Errorf("by the work left the small changes took %v s", got)
	}
}

// lone is a queue of changes of one step each that have nothing in common, as queueing theory has it.
func lone(r *rand.Rand, n int, load float64, workers int) *listed {
	l := &listed{}
	at := 0.0
	for i := range n {
		at += r.ExpFloat64() * 10 / load / float64(workers)
		l.add(at, i, math.Max(0.001, r.ExpFloat64()*10))
	}
	return l
}

// served are the turnarounds on so many workers if the first of those that wait is taken by an order; worked out one after the other.
func served(l *listed, workers int, before func(a, b *trace.Change) bool) []float64 {
	free := make([]int64, workers)
	waiting, next := []*trace.Change{}, 0
	var took []float64
	for next < len(l.list) || len(waiting) > 0 {
		slices.Sort(free)
		now := free[0]
		if len(waiting) == 0 {
			now = max(now, l.list[next].Arrival)
		}
		for next < len(l.list) && l.list[next].Arrival <= now {
			waiting = append(waiting, l.list[next])
			next++
		}
		at := 0
		for i, c := range waiting {
			if before(c, waiting[at]) {
				at = i
			}
		}
		c := waiting[at]
		waiting = slices.Delete(waiting, at, at+1)
		free[0] = now + c.Duration
		took = append(took, float64(free[0]-c.Arrival)/1e6)
	}
	slices.Sort(took)
	return took
}

func TestAPoolServesLoneStepsAsQueueingTheorySays(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 1))
	first := func(a, b *trace.Change) bool { return a.Number < b.Number }
	for _, workers := range []int{1, 3} {
		l := lone(r, 1500, 0.8, workers)
		k := named(t, "landfall-by-build")
		got, want := l.run(t, k, workers, Pool{Slots: 2000}, 0, nil).Turnaround, served(l, workers, first)
		if !near(got, want) {
			t.Errorf("seed %d, %d workers, first come, first served: mean %.3f s, worked out %.3f", seed, workers, mean(got), mean(want))
		}
		k.Dispatch = func(truth dispatch.Truth) dispatch.Dispatch { return dispatch.New(shortest, truth) }
		got = l.run(t, k, workers, Pool{Slots: 2000}, 0, nil).Turnaround
		want = served(l, workers, func(a, b *trace.Change) bool { return a.Duration < b.Duration })
		if !near(got, want) {
			t.Errorf("seed %d, %d workers, shortest first: mean %.3f s, worked out %.3f", seed, workers, mean(got), mean(want))
		}
	}
	// The twin itself against the formula for one worker: steps of 10 s at a load of 0.7 take 10/(1−0.7) s.
	if got := mean(served(lone(rand.New(rand.NewPCG(7, 7)), 200_000, 0.7, 1), 1, first)); math.Abs(got-10/0.3) > 2 {
		t.Errorf("M/M/1 at 0.7 has %.1f s, not %.1f", got, 10/0.3)
	}
}

func shortest(b dispatch.Build) float64 { return -float64(b.Remaining) }

// near reports whether two lists differ by rounding alone.
func near(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 0.01 })
}

// counting adds up what ran.
type counting struct {
	dispatch.Dispatch
	ran int64
}

func (c *counting) Apply(m proto.Message, origin steps.Origin) bool {
	if f, is := m.(*eventsv1.StepFinished); is && f.Hash != "before" {
		c.ran += f.FinishedUs - f.StartedUs
	}
	return c.Dispatch.Apply(m, origin)
}

func TestWorkerSecondsAreThoseOfTheSteps(t *testing.T) {
	workerSeconds(t, seedtest.Of(t))
}

// In this course a batch has a member that is known to fail, and one behind it that has no build for that.
func TestABatchWithAMemberThatFailsIsHalved(t *testing.T) { workerSeconds(t, 1053536775133206614) }

func workerSeconds(t *testing.T, seed uint64) {
	t.Helper()
	for _, name := range policy.PoolNames() {
		m := repository(seed)
		k := named(t, name)
		d := trace.Disturbances{Seed: seed, Flakes: 0.01}
		f, err := forecast.New(forecast.Calibrated, m.Seed, m.Start)
		if err != nil {
			t.Fatal(err)
		}
		counted := &counting{Dispatch: k.Dispatched(nil)}
		if name != "oracle" {
			k.Dispatch = func(dispatch.Truth) dispatch.Dispatch { return counted }
		}
		r, err := Run(t.Context(), Options{
			Trace: m.Start(), Forecast: f, Kind: k, Workers: 12, Threshold: k.Threshold, Bypass: k.Bypass, Round: time.Second, Pool: &Pool{}, Disturbed: d,
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var bySize float64
		changes := 0
		for _, s := range r.Sizes {
			bySize += s.WorkerSeconds
			changes += len(s.Turnaround)
		}
		seconds := r.WorkerHours * 3600
		if math.Abs(seconds-bySize) > 1e-3 || math.Abs(seconds-float64(counted.ran)/1e6) > 1e-3 && name != "oracle" || changes != r.Decided() {
			t.Errorf("seed %d, %s: %.3f worker seconds, %.3f by size, %.3f of steps; %d of %d changes by size", seed, name, seconds, bySize, float64(counted.ran)/1e6, changes, r.Decided())
		}
		if r.Utilisation <= 0 || r.Utilisation > 1 || seconds > 12*3600*r.Hours {
			t.Errorf("seed %d, %s: utilisation %v, %.0f worker seconds in %.0f of 12 workers", seed, name, r.Utilisation, seconds, 12*3600*r.Hours)
		}
	}
}

// Without conflicts and failures every step runs once, whoever orders them.
func TestWithoutConflictsEveryStepRunsOnce(t *testing.T) {
	l := &listed{}
	r := rand.New(rand.NewPCG(3, 3))
	var all float64
	for i := range 40 {
		var steps []float64
		for range 1 + r.IntN(30) {
			steps = append(steps, 1+r.Float64()*20)
		}
		all += float64(l.add(float64(i)*5, i*100, steps...).Duration) / 1e6
	}
	for _, name := range policy.PoolNames() {
		got := l.run(t, named(t, name), 6, Pool{}, time.Second, nil)
		if math.Abs(got.WorkerHours*3600-all) > 1e-3 {
			t.Errorf("%s: %.3f worker seconds; the steps take %.3f", name, got.WorkerHours*3600, all)
		}
		if got.Utilisation < 0.9 {
			t.Errorf("%s: utilisation %.3f, though more arrives than the workers can run", name, got.Utilisation)
		}
	}
}

// A change that has the pool to itself is not slowed down.
func TestAloneAChangeTakesWhatItIsSaidTo(t *testing.T) {
	seed := seedtest.Of(t)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 30 {
		l := &listed{}
		var steps []float64
		for range 1 + r.IntN(40) {
			steps = append(steps, 1+math.Floor(r.Float64()*20))
		}
		c := l.add(3, 0, steps...)
		pool := Pool{Checkout: time.Second, Overhead: 100 * time.Millisecond}
		got := l.run(t, named(t, "oracle"), 1+r.IntN(8), pool, time.Second, nil)
		if s := got.Slowdown[0]; math.Abs(s-1) > 1e-9 {
			t.Errorf("seed %d: %v: slowdown %v", seed, steps, s)
		}
		if c.Green = false; len(c.Targets) > 1 {
			c.Fails = c.Targets[r.IntN(len(c.Targets))]
		}
		if s := l.run(t, named(t, "oracle"), 1+r.IntN(8), pool, time.Second, nil).Slowdown[0]; s > 1+1e-9 {
			t.Errorf("seed %d: %v, which fails: slowdown %v, though the oracle begins with what fails", seed, steps, s)
		}
	}
}

// both is two dispatches that have to say the same.
type both struct {
	t           *testing.T
	first, then dispatch.Dispatch
	asked       int
}

func (b *both) Apply(m proto.Message, origin steps.Origin) bool {
	b.then.Apply(m, origin)
	return b.first.Apply(m, origin)
}

func (b *both) Next(nowUs int64, limit int, taken []steps.Version, fits func(*eventsv1.StepClaims) bool) []steps.Step {
	list, other := b.first.Next(nowUs, limit, taken, fits), b.then.Next(nowUs, limit, taken, fits)
	b.asked += len(list)
	if !slices.EqualFunc(list, other, func(x, y steps.Step) bool {
		return x.Version == y.Version && x.Build.GetBuild() == y.Build.GetBuild()
	}) {
		b.t.Fatalf("at %d: %v and %v", nowUs, list, other)
	}
	return list
}

func (b *both) Wants(v steps.Version) bool {
	w := b.first.Wants(v)
	if w != b.then.Wants(v) {
		b.t.Fatalf("%v is wanted: %v and %v", v, w, !w)
	}
	return w
}

// naive is the order by whole builds, worked out of all records each time that it is asked.
type naive struct{ records []proto.Message }

func (n *naive) Apply(m proto.Message, _ steps.Origin) bool {
	n.records = append(n.records, m)
	return true
}

// state has the builds that are not over, as they were scheduled, with what is open of each, the longest first; and what is leased.
func (n *naive) state() (live []*eventsv1.BuildScheduled, open map[string][]steps.Version, leased map[steps.Version]bool) {
	failed, passed := map[steps.Version]int{}, map[steps.Version]bool{}
	asked := map[string][]steps.Version{}
	ran := map[string]int64{}
	took := map[string]int64{}
	open, leased = map[string][]steps.Version{}, map[steps.Version]bool{}
	gone := map[string]bool{}
	for _, m := range n.records {
		switch m := m.(type) {
		case *eventsv1.Decision:
			for _, i := range m.Items {
				if b := i.GetBuildScheduled(); b != nil {
					live = append(live, b)
				}
				gone[i.GetBuildAborted().GetBuild()] = true
			}
		case *eventsv1.BuildPrepared:
			for _, v := range m.Versions {
				asked[m.Build] = append(asked[m.Build], steps.Version{Target: v.Target, Hash: v.Hash})
			}
			slices.SortStableFunc(asked[m.Build], func(x, y steps.Version) int {
				of := func(v steps.Version) int64 {
					if ran[v.Target] == 0 {
						return math.MaxInt64
					}
					return took[v.Target]
				}
				return cmp.Or(cmp.Compare(of(y), of(x)), cmp.Compare(x.Target, y.Target), cmp.Compare(x.Hash, y.Hash))
			})
		case *eventsv1.StepLeased:
			leased[steps.Version{Target: m.Target, Hash: m.Hash}] = true
		case *eventsv1.StepFinished:
			v := steps.Version{Target: m.Target, Hash: m.Hash}
			delete(leased, v)
			switch m.Outcome {
			case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
				failed[v]++
			case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
				passed[v] = true
				ran[m.Target] = min(ran[m.Target]+1, 16)
				took[m.Target] += (m.FinishedUs - m.StartedUs - took[m.Target]) / ran[m.Target]
			}
		}
	}
	live = slices.DeleteFunc(live, func(b *eventsv1.BuildScheduled) bool {
		id := b.Build
		for _, v := range asked[id] {
			gone[id] = gone[id] || failed[v] > int(b.GetSteps().GetFailedRetries())
			if !passed[v] {
				open[id] = append(open[id], v)
			}
		}
		return gone[id] || len(open[id]) == 0
	})
	slices.SortStableFunc(live, func(a, b *eventsv1.BuildScheduled) int { return cmp.Compare(b.Value, a.Value) })
	return live, open, leased
}

func (n *naive) Next(_ int64, limit int, _ []steps.Version, _ func(*eventsv1.StepClaims) bool) (list []steps.Step) {
	live, open, leased := n.state()
	for _, b := range live {
		for _, v := range open[b.Build] {
			if len(list) < limit && !leased[v] {
				leased[v] = true
				list = append(list, steps.Step{Version: v, Build: b})
			}
		}
	}
	return list
}

func (n *naive) Wants(v steps.Version) bool {
	live, open, _ := n.state()
	return slices.ContainsFunc(live, func(b *eventsv1.BuildScheduled) bool { return slices.Contains(open[b.Build], v) })
}

func TestTheOrderByBuildIsTheNaiveOne(t *testing.T) {
	seed := seedtest.Of(t)
	for i := range uint64(2) {
		m := repository(seed + i)
		m.Changes = 30
		k := named(t, "landfall-by-build")
		b := &both{t: t, first: dispatch.New(dispatch.ByBuild, nil), then: &naive{}}
		k.Dispatch = func(dispatch.Truth) dispatch.Dispatch { return b }
		if onPool(t, m, k, trace.Disturbances{Flakes: 0.02, Losses: 0.2, Cancelled: 0.1}, 6); b.asked < 150 {
			t.Errorf("seed %d: only %d steps were asked for", m.Seed, b.asked)
		}
	}
}
