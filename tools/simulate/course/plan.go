package course

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/features"
	"landfall.build/engine/graph"
	"landfall.build/engine/speculation"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/trace"
)

const queueName = "simulated"

// identify derives an id from what identifies a build or a decision.
func identify(parts ...string) string {
	h := fnv.New128a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// open reports the queue's settings and the mainline's first head.
func (c *course) open() {
	rates := c.o.Trace.Rates()
	slots := cmp.Or(c.o.slots(), c.o.Workers) * max(1, c.o.Kind.Traits.Batches) // a batch has one worker, but a build for each member
	c.settings = &eventsv1.QueueSettings{
		Hash: "simulated", Repository: "simulated", Branch: "main", Strategy: "squash",
		Workers: uint32(slots), Best: uint32(slots), Threshold: c.o.Threshold, AbortThreshold: c.o.Threshold / 2,
		Steps: &eventsv1.StepPolicy{FailedRetries: c.o.Disturbed.Retries()}, PriorSuccess: rates.Green, PriorConflict: rates.Conflict,
		PriorDurationMeanUs: int64(rates.Mean), PriorDurationStdUs: int64(rates.Std),
	}
	if c.pool != nil && c.o.Kind.Budget {
		c.settings.PoolWorkers = uint32(c.o.Workers)
	}
	if c.o.Bypass <= 1 {
		c.settings.BypassThreshold = proto.Float64(c.o.Bypass)
	}
	c.head = "m0"
	c.tell(&eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: c.settings}})
	c.report(&eventsv1.MainlineMoved{To: c.head, Initial: true})
	c.remember()
}

// remember reports what ran before the trace begins: a queue knows its targets.
func (c *course) remember() {
	t, remembers := c.o.Trace.(trace.Remembering)
	if c.pool == nil || !remembers {
		return
	}
	for _, r := range t.Ran() {
		for attempt := range uint32(ranBefore) {
			c.report(&eventsv1.StepFinished{
				Target: targetName(r.Target), Hash: "before", Attempt: attempt + 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
				StartedUs: -r.Duration,
			})
		}
	}
}

// ranBefore is how often each target has run before the trace begins.
const ranBefore = 4

// report adds a fact of landfall.changes or landfall.builds.
func (c *course) report(m proto.Message) {
	c.tell(factOf(m))
	if c.pool != nil {
		c.pool.apply(m)
	}
}

func factOf(m proto.Message) *eventsv1.Fact {
	fact, ok := speculation.FactOf(m)
	if !ok {
		panic(fmt.Sprintf("%T is no fact of a queue", m))
	}
	return fact
}

func (c *course) tell(f *eventsv1.Fact) { c.facts = append(c.facts, f) }

// tick adds the fact that time has passed.
func (c *course) tick() { c.tell(&eventsv1.Fact{Fact: &eventsv1.Fact_Tick{Tick: &eventsv1.Tick{}}}) }

// plan runs every stage on what is new, and carries out what the selector decides. It reports whether that made
// something new that cannot wait.
func (c *course) plan() (again bool, err error) {
	for _, f := range c.facts {
		c.offset++
		c.enumerator.Apply(f, c.offset)
	}
	delta := c.enumerator.Decide()
	c.enumerator.Fold(delta)
	c.plans++
	s := &eventsv1.Speculation{StampUs: c.clock, Facts: c.facts, Delta: delta}
	c.facts = nil
	if c.o.Record != nil {
		c.o.Record(s)
	}
	c.profiler.Apply(s)
	profile := c.profiler.Decide()
	if profile == nil {
		return false, nil
	}
	profile.Position, profile.StampUs = c.plans, c.clock
	c.profiler.Fold(profile)
	priority := c.policy.Plan(profile)
	if priority == nil {
		return false, nil
	}
	priority.Position, priority.StampUs = c.plans, c.clock
	if c.best, err = graph.EditedRanking(c.best, priority); err != nil {
		return false, err
	}
	var given []*build
	if c.o.Kind.Traits.Exclusive {
		given = c.giveUp()
	}
	c.selection.Apply(priority)
	d := c.selection.Decide()
	if d != nil && !c.o.Kind.Traits.Passes {
		c.waitForThoseAhead(d)
	}
	c.selection.Fold(d)
	return c.carryOut(d, given)
}

// foreseen is the forecast as the profiler's model, where a trained one would be.
type foreseen struct{ *course }

func (f foreseen) Predict(n *graph.Node) *eventsv1.Prediction {
	of := f.pending[n.Change.Change]
	mean, std := f.forecast.Duration(of.Change)
	out := &eventsv1.Prediction{
		Change: n.Change, Success: f.forecast.Success(of.Change) * of.survives, SuccessSource: "forecast",
		DurationMeanUs: mean, DurationStdUs: std, DurationSource: "forecast",
	}
	if len(of.Steps) > 0 {
		at := features.IndexOfChange("longest_seconds")
		out.Features = make([]float32, at+1)
		out.Features[at] = float32(float64(slices.Max(of.Steps)) / 1e6)
	}
	return out
}

func (f foreseen) Pair(n *graph.Node, a *eventsv1.Ahead) *eventsv1.PairPrediction {
	of := f.pending[n.Change.Change]
	return &eventsv1.PairPrediction{
		Behind: n.Change, Ahead: a.Change, Conflict: f.forecast.Conflict(of.Change, of.meets[a.Change.Change]), Source: "forecast",
	}
}

// waitForThoseAhead drops decisions that a policy without bypass would not take yet: of a change with a pending one ahead
// of it. The rule decides the same again once that has left.
func (c *course) waitForThoseAhead(d *eventsv1.Decision) {
	kept := d.Items[:0]
	for _, i := range d.Items {
		var id string
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_LandDecided:
			id = x.LandDecided.Change.Change
		case *eventsv1.DecisionItem_RejectDecided:
			id = x.RejectDecided.Change.Change
		}
		if id == "" || c.pending[id].first() {
			kept = append(kept, i)
		}
	}
	d.Items = kept
}

// giveUp takes from the selector the builds that are not among the best: as many as there are workers run.
func (c *course) giveUp() (given []*build) {
	best := map[string]bool{}
	for i, b := range c.best.GetBest() {
		if i < cmp.Or(c.o.slots(), c.o.Workers) {
			best[pathKey(b.Change.Change, func(yield func(string)) {
				for _, a := range b.Assumed {
					yield(a.Change)
				}
			})] = true
		}
	}
	aborted := &eventsv1.Decision{}
	for _, b := range c.builds() {
		if !best[b.path()] {
			given = append(given, b)
			aborted.Items = append(aborted.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: b.id}}})
		}
	}
	c.selection.Fold(aborted)
	return given
}
