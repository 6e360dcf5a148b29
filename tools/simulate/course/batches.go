package course

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/policy"
)

// joint is one build that verifies several changes together, each on top of those before it. It runs as
// long as the longest of them would: most of what they would build is the same.
type joint struct {
	batch []string
	parts []*build
	// cost is how long a run of it takes.
	cost int64
	// On a pool, owner has the part whose version of a target stands for the batch: the last one that has it.
	owner map[string]*build
}

// startBatches runs the batches of a policy that has them, as soon as all their members are prepared. A batch with a member that is
// known to fail counts as failed at once, as the members behind that one may have no build. Members that are known to pass are not waited
// for. It reports whether a batch is over at once.
func (c *course) startBatches(b policy.Batching) (over bool) {
	m := c.machines
	latest := map[string]*build{}
	for _, x := range c.builds() {
		if x.joint != nil {
			continue
		}
		latest[x.of.ID] = x
	}
	for _, batch := range b.Batches() {
		key := strings.Join(batch, " ")
		if m.joints[key] || len(m.joints) >= cmp.Or(c.o.slots(), c.o.Workers) {
			continue
		}
		j := &joint{batch: batch}
		green, red := 0, false
		for _, id := range batch {
			known := c.known(c.pending[id])
			red = red || known == evidence.Red
			if x := latest[id]; x != nil {
				j.parts = append(j.parts, x)
				j.cost = max(j.cost, x.of.Step()*int64(len(x.open)))
			} else if known == evidence.Green {
				green++
			}
		}
		if red && len(batch) > 1 {
			b.Failed(batch)
			c.tick()
			over = true
			continue
		}
		if len(j.parts) == 0 || len(j.parts)+green < len(batch) {
			continue
		}
		m.joints[key] = true
		if c.pool != nil {
			over = c.pool.runBatch(j) || over
			continue
		}
		c.startJoint(j, 1)
		c.result.Builds++
	}
	return over
}

// known returns the state of a pending change's latest build.
func (c *course) known(p *pending) evidence.State {
	if p == nil || p.prepared == nil { // Decided, or not built for yet.
		return evidence.Unknown
	}
	known := evidence.Green
	for _, v := range p.prepared {
		switch c.state(v) {
		case evidence.Red:
			return evidence.Red
		case evidence.Unknown:
			known = evidence.Unknown
		}
	}
	return known
}

// startJoint runs a batch. A worker is lost under it, and it flakes, as a build of its first change does.
func (c *course) startJoint(j *joint, attempt uint32) {
	first, key := j.parts[0], strings.Join(j.batch, " ")
	c.machines.serial++
	st := &step{
		joint: j, attempt: attempt, start: c.clock, serial: c.machines.serial,
		end:    c.clock + c.o.Disturbed.Takes(first.of.Change, key, attempt, j.cost),
		passes: !c.o.Disturbed.Flaky(first.of.Change, key, attempt),
	}
	for _, x := range j.parts {
		for _, w := range x.open {
			st.passes = st.passes && c.passes(x.of, x.assumed, w.version.Target)
		}
	}
	heap.Push(&c.machines.ends, st)
}

// endJoint reports the result of a batch: each of its changes passes, or, of a batch of one, that it fails. A batch that
// fails runs again first, if builds do.
func (c *course) endJoint(st *step, b policy.Batching) {
	j := st.joint
	if !st.passes && st.attempt <= c.o.Disturbed.Retries() {
		c.startJoint(j, st.attempt+1)
		return
	}
	delete(c.machines.joints, strings.Join(j.batch, " "))
	if !st.passes && len(j.batch) > 1 {
		c.result.Aborted++ // it gave no result, like a build that loses its worker
		b.Failed(j.batch)
		c.tick() // nothing new is known, but other batches should run
		return
	}
	for _, x := range j.parts {
		for _, w := range slices.Clone(x.open) {
			each := *st
			each.want = w
			each.passes = st.passes || c.passes(x.of, x.assumed, w.version.Target)
			for each.attempt = 1; ; each.attempt++ {
				c.finish(w.version, x, &each)
				if c.state(w.version) != evidence.Unknown {
					break
				}
			}
		}
	}
}

// runBatch runs the steps of a batch: each target once, as the last of its changes that affects it has it. It reports whether the
// batch is over at once, as all is known.
func (p *pool) runBatch(j *joint) (over bool) {
	c, last := p.c, j.parts[len(j.parts)-1]
	j.owner = map[string]*build{}
	versions := map[string]*eventsv1.TargetVersion{}
	for _, x := range j.parts {
		for _, w := range x.open {
			j.owner[w.version.Target], versions[w.version.Target] = x, w.version
		}
	}
	c.machines.serial++
	b := &build{id: fmt.Sprintf("batch %d", c.machines.serial), of: last.of, joint: j}
	prepared := &eventsv1.BuildPrepared{Build: b.id, Change: last.of.ref, Base: c.head, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for _, target := range slices.Sorted(maps.Keys(versions)) {
		prepared.Versions = append(prepared.Versions, versions[target])
	}
	p.made[b.id] = b
	p.apply(&eventsv1.Decision{StampUs: c.clock, Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{
		BuildScheduled: &eventsv1.BuildScheduled{Build: b.id, Change: &eventsv1.AssumedChange{Change: last.of.ref}, Base: c.head, Value: 1, Steps: c.settings.Steps},
	}}}})
	p.apply(prepared)
	if over = p.run(b, prepared.Versions); over {
		red := slices.ContainsFunc(prepared.Versions, func(v *eventsv1.TargetVersion) bool { return c.state(v) == evidence.Red })
		c.endBatch(b, !red)
	}
	return over
}

// endBatch reports the result of a batch on a pool. What its steps have shown is known already; what one of its changes was not built
// for on its own, it has proven too.
func (c *course) endBatch(b *build, green bool) {
	j := b.joint
	delete(c.pool.made, b.id)
	delete(c.machines.joints, strings.Join(j.batch, " "))
	if !green && len(j.batch) > 1 {
		c.result.Aborted++
		c.policy.(policy.Batching).Failed(j.batch)
		c.tick()
		return
	}
	for _, x := range j.parts {
		for _, w := range x.open {
			v := versionAt(w.version)
			for green && c.state(w.version) == evidence.Unknown {
				f := &eventsv1.StepFinished{
					Target: v.Target, Hash: v.Hash, Attempt: c.ledger.NextAttempt(v), Build: x.id,
					Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: c.pool.clock, FinishedUs: c.pool.clock,
				}
				c.ledger.Apply(f)
				c.report(f)
			}
		}
		c.pool.remove(x)
	}
}
