package course

import (
	"container/heap"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/policy"
)

// machines are the workers: each build has one, and a target version runs once, for whoever wants it.
type machines struct {
	// builds are in the order in which they were scheduled.
	builds []*build
	byID   map[string]*build
	steps  map[string]*step // by version
	ends   stepHeap
	// wanted lists the builds that wait for a version; joints are the batches that run.
	wanted map[string][]*build
	joints map[string]bool
	serial int
}

// build is one that was scheduled and is neither over nor aborted.
type build struct {
	id      string
	of      *pending
	assumed []*pending
	version *eventsv1.TargetVersion
	key     string
}

// step is a run of a target version.
type step struct {
	version    *eventsv1.TargetVersion
	key        string
	build      string
	joint      *joint
	start, end int64
	passes     bool
	serial     int
	dropped    bool
}

func newMachines() *machines {
	return &machines{byID: map[string]*build{}, steps: map[string]*step{}, wanted: map[string][]*build{}, joints: map[string]bool{}}
}

// pathKey names a path by its change and whom it assumes to land.
func pathKey(change string, assumed func(yield func(string))) string {
	var key strings.Builder
	key.WriteString(change)
	assumed(func(id string) {
		key.WriteByte(' ')
		key.WriteString(id)
	})
	return key.String()
}

// path is the one that the build stands for now: what landed of those it assumed is part of the mainline.
func (b *build) path() string {
	return pathKey(b.of.ID, func(yield func(string)) {
		for _, a := range b.assumed {
			if !a.gone {
				yield(a.ID)
			}
		}
	})
}

func versionKey(v *eventsv1.TargetVersion) string { return v.Target + "@" + v.Hash }

// nextEnd is when the next step ends, if one runs.
func (m *machines) nextEnd() (int64, bool) {
	for len(m.ends) > 0 && m.ends[0].dropped {
		heap.Pop(&m.ends)
	}
	if len(m.ends) == 0 {
		return 0, false
	}
	return m.ends[0].end, true
}

// prepare makes the tree of a scheduled build, and runs what is not known of it.
func (c *course) prepare(s *eventsv1.BuildScheduled) (urgent bool) {
	b := &build{id: s.Build, of: c.pending[s.Change.Change.Change]}
	var assumed []*eventsv1.ChangeRef
	for _, a := range s.Assumed {
		b.assumed = append(b.assumed, c.pending[a.Change.Change])
		assumed = append(assumed, a.Change)
	}
	b.version = b.of.version(b.assumed)
	b.key = versionKey(b.version)
	c.report(&eventsv1.BuildPrepared{
		Build: b.id, Change: b.of.ref, Base: c.head, Assumed: assumed,
		Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Versions: []*eventsv1.TargetVersion{b.version},
	})
	if c.settled(b.version) {
		return true
	}
	m := c.machines
	m.add(b)
	if _, batches := c.policy.(policy.Batching); !batches && m.steps[b.key] == nil {
		c.start(b)
	}
	return false
}

// start runs the build's version on its worker.
func (c *course) start(b *build) {
	m := c.machines
	m.serial++
	st := &step{
		version: b.version, key: b.key, build: b.id, start: c.clock, end: c.clock + b.of.Duration,
		passes: b.of.passes(b.assumed), serial: m.serial,
	}
	m.steps[b.key] = st
	heap.Push(&m.ends, st)
	c.result.Builds++
}

// endSteps ends what has run to its end by now.
func (c *course) endSteps() {
	m := c.machines
	for {
		end, any := m.nextEnd()
		if !any || end > c.clock {
			return
		}
		st := heap.Pop(&m.ends).(*step)
		c.result.busy += st.end - st.start
		if st.joint != nil {
			c.endJoint(st, c.policy.(policy.Batching))
			continue
		}
		delete(m.steps, st.key)
		c.finish(st.version, st.build, st)
	}
}

// finish writes how a version's run ended; builds that waited for it are over.
func (c *course) finish(v *eventsv1.TargetVersion, id string, st *step) {
	f := &eventsv1.StepFinished{
		Target: v.Target, Hash: v.Hash, Attempt: 1, Build: id, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
		StartedUs: st.start, FinishedUs: st.end,
	}
	if !st.passes {
		f.Outcome, f.Reason = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the trace says so"
	}
	c.ledger.Apply(f)
	c.report(f)
	m := c.machines
	for _, b := range slices.Clone(m.wanted[versionKey(v)]) {
		m.remove(b)
	}
}

func (m *machines) add(b *build) {
	m.builds = append(m.builds, b)
	m.byID[b.id] = b
	m.wanted[b.key] = append(m.wanted[b.key], b)
}

func (m *machines) remove(b *build) {
	delete(m.byID, b.id)
	m.builds = slices.Delete(m.builds, slices.Index(m.builds, b), slices.Index(m.builds, b)+1)
	if rest := slices.DeleteFunc(m.wanted[b.key], func(o *build) bool { return o == b }); len(rest) > 0 {
		m.wanted[b.key] = rest
	} else {
		delete(m.wanted, b.key)
	}
}

// abort takes a build's worker away. A step that another build wants goes on.
func (c *course) abort(id string) {
	m := c.machines
	b := m.byID[id]
	if b == nil {
		return
	}
	m.remove(b)
	if st := m.steps[b.key]; st != nil && len(m.wanted[b.key]) == 0 {
		st.dropped = true
		delete(m.steps, b.key)
		c.result.busy += c.clock - st.start
		c.result.Aborted++
	}
}

// carryOut does what the selector decided. given are builds that the policy took from it before.
func (c *course) carryOut(d *eventsv1.Decision, given []*build) (again bool, err error) {
	for _, i := range d.GetItems() {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			again = c.prepare(x.BuildScheduled) || again
		case *eventsv1.DecisionItem_BuildAborted:
			c.abort(x.BuildAborted.Build)
		}
	}
	for _, b := range given {
		c.abort(b.id)
	}
	for _, i := range d.GetItems() {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_LandDecided:
			err, again = c.land(x.LandDecided), true
		case *eventsv1.DecisionItem_RejectDecided:
			err, again = c.reject(x.RejectDecided), true
		}
		if err != nil {
			return false, err
		}
	}
	if b, batches := c.policy.(policy.Batching); batches {
		c.startBatches(b)
	}
	return again, nil
}

// stepHeap orders steps by their end, then by their start.
type stepHeap []*step

func (h stepHeap) Len() int { return len(h) }

func (h stepHeap) Less(i, j int) bool {
	if h[i].end != h[j].end {
		return h[i].end < h[j].end
	}
	return h[i].serial < h[j].serial
}

func (h stepHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *stepHeap) Push(x any) { *h = append(*h, x.(*step)) }

func (h *stepHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
