package course

import (
	"container/heap"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/dispatch"
	"landfall.build/tools/simulate/policy"
)

// Pool has the workers run steps, as production's do, instead of whole builds.
type Pool struct {
	// Slots is the number of builds that may be scheduled at a time, 0 for as many as there are workers.
	Slots int
	// Checkout is how long a worker takes to lay out the tree of another build than its last one's.
	Checkout time.Duration
	// Overhead is what a step takes a worker beside its commands: its lease, its process and its result.
	Overhead time.Duration
}

// pool is what runs: each worker one step at a time, the dispatch saying which.
type pool struct {
	c        *course
	dispatch dispatch.Dispatch
	// clock is the time up to which steps have run; offset numbers what the dispatch was given.
	clock, offset int64

	workers []worker
	idle    []int // ascending
	ends    attemptHeap
	// builds are those that are prepared and neither over nor aborted, as they were scheduled.
	builds []*build
	byID   map[string]*build
	// made has all builds of pending changes: the dispatch may want more of one that is over.
	made map[string]*build
	// wanted has the builds that wait for a version.
	wanted map[steps.Version][]*build
	serial int
	usage  usage
}

type worker struct {
	runs *attempt
	// tree is the build whose tree it has.
	tree string
}

// attempt is one at a target version on a worker.
type attempt struct {
	steps.Step
	by     *build
	worker int
	// leased is when a worker took it, start when the step began, end when it ends.
	leased, start, end int64
	passes             bool
	serial             int
	dropped            bool
}

func newPool(c *course) *pool {
	p := &pool{c: c, workers: make([]worker, c.o.Workers), byID: map[string]*build{}, made: map[string]*build{}, wanted: map[steps.Version][]*build{}}
	p.dispatch = c.o.Kind.Dispatched(p.truth)
	if q, is := p.dispatch.(*steps.Queue); is {
		q.Workers = c.o.Workers
	}
	for i := range p.workers {
		p.idle = append(p.idle, i)
	}
	p.usage.workers = int64(len(p.workers))
	return p
}

// apply gives the dispatch a record.
func (p *pool) apply(m proto.Message) {
	p.offset++
	p.dispatch.Apply(m, steps.Origin{Offset: p.offset})
}

// truth is what the oracle knows of a step.
func (p *pool) truth(id string, v steps.Version) (us int64, fails bool) {
	us, passes := p.made[id].makes(v)
	if !passes {
		us *= int64(1 + p.c.o.Disturbed.Retries())
	}
	return us, !passes
}

// carryOut does what the selector decided about builds. given are builds that the policy took from it before.
func (p *pool) carryOut(d *eventsv1.Decision, given []*build) (urgent bool) {
	p.clock = max(p.clock, p.c.clock)
	all := &eventsv1.Decision{Position: d.GetPosition(), StampUs: p.c.clock, Items: slices.Clone(d.GetItems())}
	for _, b := range given {
		all.Items = append(all.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: b.id}}})
	}
	if len(all.Items) == 0 {
		return false
	}
	_, batches := p.c.policy.(policy.Batching)
	if !batches {
		p.apply(all)
	}
	for _, i := range all.Items {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			urgent = p.prepare(x.BuildScheduled, batches) || urgent
		case *eventsv1.DecisionItem_BuildAborted:
			if b := p.byID[x.BuildAborted.Build]; b != nil {
				if p.remove(b); b.begun {
					p.c.result.Aborted++
				}
			}
		}
	}
	return urgent
}

// prepare makes the tree of a scheduled build. A member of a batch is not run by itself.
func (p *pool) prepare(s *eventsv1.BuildScheduled, batched bool) (urgent bool) {
	c := p.c
	b := c.newBuild(s)
	prepared := c.treeOf(b, s)
	b.failing = c.failing(b.of, b.assumed)
	p.make(b)
	if c.tellPrepared(b, prepared); batched {
		for _, v := range prepared.Versions {
			if c.state(v) == evidence.Unknown {
				b.open = append(b.open, want{v, versionKey(v)})
			}
		}
		if urgent = len(b.open) == 0; !urgent {
			p.add(b)
		}
		return urgent
	}
	p.apply(prepared)
	return p.run(b, prepared.Versions)
}

// make notes a build of a change until that is decided.
func (p *pool) make(b *build) {
	p.made[b.id] = b
	b.of.builds = append(b.of.builds, b.id)
}

// left forgets the builds of a change that is no longer pending.
func (p *pool) left(of *pending) {
	for _, id := range of.builds {
		delete(p.made, id)
	}
}

// run waits for the versions of a build that are not known, and reports whether there are none.
func (p *pool) run(b *build, versions []*eventsv1.TargetVersion) (none bool) {
	var open []steps.Version
	for _, t := range versions {
		switch v := versionAt(t); p.c.state(t) {
		case evidence.Unknown:
			open = append(open, v)
		case evidence.Red:
			return true // the rest cannot change the outcome
		}
	}
	if len(open) == 0 {
		return true
	}
	b.left = len(open)
	b.waits = open
	p.add(b)
	for _, v := range open {
		p.wanted[v] = append(p.wanted[v], b)
	}
	return false
}

func (p *pool) add(b *build) {
	p.builds = append(p.builds, b)
	p.byID[b.id] = b
}

// remove takes out a build that is over or aborted.
func (p *pool) remove(b *build) {
	delete(p.byID, b.id)
	p.builds = slices.DeleteFunc(p.builds, func(o *build) bool { return o == b })
	for _, v := range b.waits {
		if rest := slices.DeleteFunc(p.wanted[v], func(o *build) bool { return o == b }); len(rest) > 0 {
			p.wanted[v] = rest
		} else {
			delete(p.wanted, v)
		}
	}
	b.waits = nil
}

// settle ends what nobody wants, and gives the free workers steps.
func (p *pool) settle() {
	now := p.clock
	p.usage.until(p, now)
	for i := range p.workers {
		if r := p.workers[i].runs; r != nil && !p.dispatch.Wants(r.Version) {
			r.dropped = true
			p.free(r, now)
			p.finished(r, now, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED)
		}
	}
	if len(p.idle) == 0 {
		return
	}
	for _, s := range p.dispatch.Next(now, len(p.idle), nil, nil) {
		p.start(s)
	}
}

// start has a worker run a step: one that has the tree already, if there is one, as production's builder chooses it.
func (p *pool) start(s steps.Step) {
	c, id := p.c, s.Build.GetBuild()
	at := max(0, slices.IndexFunc(p.idle, func(i int) bool { return p.workers[i].tree == id }))
	number := p.idle[at]
	p.idle = slices.Delete(p.idle, at, at+1)
	w := &p.workers[number]
	b := p.made[id]
	cost, passes := b.makes(s.Version)
	p.serial++
	r := &attempt{Step: s, by: b, worker: number, leased: p.clock, start: p.clock + c.o.Pool.Overhead.Microseconds(), serial: p.serial}
	if w.tree != id {
		r.start += c.o.Pool.Checkout.Microseconds()
		w.tree = id
	}
	key := s.Target + "@" + s.Hash
	r.end = r.start + c.o.Disturbed.Takes(b.of.Change, key, s.Attempt, cost)
	r.passes = passes && !c.o.Disturbed.Flaky(b.of.Change, key, s.Attempt)
	w.runs = r
	heap.Push(&p.ends, r)
	c.result.Steps++
	p.apply(&eventsv1.StepLeased{
		Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Lease: strconv.Itoa(r.serial), Worker: strconv.Itoa(number), Build: id,
		StampUs: p.clock, UntilUs: r.end,
	})
	if !b.begun {
		b.begun = true
		c.result.Builds++
	}
}

// free takes a run off its worker.
func (p *pool) free(r *attempt, now int64) {
	p.workers[r.worker].runs = nil
	at, _ := slices.BinarySearch(p.idle, r.worker)
	p.idle = slices.Insert(p.idle, at, r.worker)
	p.c.result.worked(r.by.of, now-r.leased)
}

// finished writes how a run ended.
func (p *pool) finished(r *attempt, now int64, outcome eventsv1.StepOutcome) {
	f := &eventsv1.StepFinished{
		Target: r.Target, Hash: r.Hash, Attempt: r.Attempt, Build: r.by.id, Outcome: outcome, StartedUs: min(r.start, now), FinishedUs: now,
	}
	if outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
		f.Reason = "the trace says so"
	}
	p.c.ledger.Apply(f)
	p.c.report(f)
}

// nextEnd is when the next step ends, if one runs.
func (p *pool) nextEnd() (int64, bool) {
	for len(p.ends) > 0 && p.ends[0].dropped {
		heap.Pop(&p.ends)
	}
	if len(p.ends) == 0 {
		return 0, false
	}
	return p.ends[0].end, true
}

// advance lets steps run until a time; with untilOver, until a build is over, if that is before. It returns the time.
func (p *pool) advance(to int64, untilOver bool) int64 {
	for {
		end, any := p.nextEnd()
		if !any || end > to {
			p.usage.until(p, to)
			p.clock = max(p.clock, to)
			return to
		}
		p.usage.until(p, end)
		p.clock = end
		over := p.end(heap.Pop(&p.ends).(*attempt))
		p.settle()
		if over && untilOver {
			return end
		}
	}
}

// end ends a run, and reports whether a build is over by that.
func (p *pool) end(r *attempt) (over bool) {
	p.free(r, r.end)
	outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	if !r.passes {
		outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
	}
	p.finished(r, r.end, outcome)
	known := p.c.ledger.State(r.Version, p.c.settings.Steps)
	if known == evidence.Unknown {
		return false
	}
	waiting := p.wanted[r.Version]
	delete(p.wanted, r.Version)
	for _, b := range waiting {
		if b.left--; b.left > 0 && known != evidence.Red {
			continue
		}
		over = true
		p.remove(b)
		if b.joint != nil {
			p.c.endBatch(b, known == evidence.Green)
		}
	}
	return over
}

// attemptHeap orders runs by their end, then by their start.
type attemptHeap []*attempt

func (h attemptHeap) Len() int { return len(h) }

func (h attemptHeap) Less(i, j int) bool {
	if h[i].end != h[j].end {
		return h[i].end < h[j].end
	}
	return h[i].serial < h[j].serial
}

func (h attemptHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *attemptHeap) Push(x any) { *h = append(*h, x.(*attempt)) }

func (h *attemptHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
