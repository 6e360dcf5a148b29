package course

import (
	"container/heap"
	"slices"
	"strings"

	"landfall.build/engine/evidence"
	"landfall.build/tools/simulate/policy"
)

// joint is one build that verifies several changes together, each on top of those before it. It runs as
// long as the longest of them would: most of what they would build is the same.
type joint struct {
	batch []string
	parts []*build
	// cost is how long a run of it takes.
	cost int64
}

// startBatches runs the batches of a policy that has them, as soon as all their members are prepared.
func (c *course) startBatches(b policy.Batching) {
	m := c.machines
	latest := map[string]*build{}
	for _, x := range m.builds {
		latest[x.of.ID] = x
	}
	for _, batch := range b.Batches() {
		key := strings.Join(batch, " ")
		if m.joints[key] || len(m.joints) >= c.o.Workers {
			continue
		}
		j := &joint{batch: batch}
		for _, id := range batch {
			if x := latest[id]; x != nil {
				j.parts = append(j.parts, x)
				j.cost = max(j.cost, x.of.Step()*int64(len(x.open)))
			}
		}
		if len(j.parts) < len(batch) {
			continue
		}
		m.joints[key] = true
		c.startJoint(j, 1)
		c.result.Builds++
	}
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
