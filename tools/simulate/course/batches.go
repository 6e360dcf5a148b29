package course

import (
	"container/heap"
	"strings"

	"landfall.build/tools/simulate/policy"
)

// joint is one build that verifies several changes together, each on top of those before it. It runs as
// long as the longest of them would: most of what they would build is the same.
type joint struct {
	batch []string
	parts []*build
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
		st := &step{joint: j, start: c.clock, passes: true}
		for _, id := range batch {
			if x := latest[id]; x != nil {
				j.parts = append(j.parts, x)
				st.end = max(st.end, c.clock+x.of.Duration)
				st.passes = st.passes && x.of.passes(x.assumed)
			}
		}
		if len(j.parts) < len(batch) {
			continue
		}
		m.serial++
		st.serial = m.serial
		m.joints[key] = true
		heap.Push(&m.ends, st)
		c.result.Builds++
	}
}

// endJoint tells what is known once a batch has run: that each of its changes passes, or, of one alone,
// that it fails.
func (c *course) endJoint(st *step, b policy.Batching) {
	delete(c.machines.joints, strings.Join(st.joint.batch, " "))
	if !st.passes && len(st.joint.batch) > 1 {
		c.result.Aborted++ // for nothing, like a build that is taken off its worker
		b.Failed(st.joint.batch)
		c.tick() // nothing is known that was not, but other batches are to run
		return
	}
	for _, x := range st.joint.parts {
		c.finish(x.version, x.id, st)
	}
}
