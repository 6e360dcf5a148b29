package course

import (
	"container/heap"
	"slices"
	"strings"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/policy"
)

// machines are the workers: each build has one, on which its steps run one after the other, and a target version runs
// once, for all builds that need it.
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

// build is a scheduled build that has neither ended nor been aborted.
type build struct {
	id      string
	of      *pending
	assumed []*pending
	// open are the versions that it waits for, in the order in which it runs them.
	open []want
	// runs is what its worker does, nil while another build's worker does it. begun: it has done something.
	runs  *step
	begun bool

	// On a pool: the versions that it waits for, how many of them are left, the targets that fail in its tree, and the batch that
	// it is a build of.
	waits   []evidence.Version
	left    int
	failing map[int]bool
	joint   *joint
}

// want is a version that a build waits for.
type want struct {
	version *eventsv1.TargetVersion
	key     string
}

// step is a run of a target version.
type step struct {
	want
	by         *build
	attempt    uint32
	joint      *joint
	start, end int64
	passes     bool
	serial     int
	dropped    bool
}

func newMachines() *machines {
	return &machines{byID: map[string]*build{}, steps: map[string]*step{}, wanted: map[string][]*build{}, joints: map[string]bool{}}
}

// pathKey names a path by its change and the changes that it assumes to land.
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

// newBuild is a build that was scheduled.
func (c *course) newBuild(s *eventsv1.BuildScheduled) *build {
	b := &build{id: s.Build, of: c.pending[s.Change.Change.Change]}
	for _, a := range s.Assumed {
		b.assumed = append(b.assumed, c.pending[a.Change.Change])
	}
	return b
}

// treeOf makes the tree of a scheduled build.
func (c *course) treeOf(b *build, s *eventsv1.BuildScheduled) *eventsv1.BuildPrepared {
	var assumed []*eventsv1.ChangeRef
	for _, a := range s.Assumed {
		assumed = append(assumed, a.Change)
	}
	asked := make(map[string]bool, len(s.Targets))
	for _, t := range s.Targets {
		asked[t.Target] = true
	}
	b.of.prepared = slices.DeleteFunc(c.versions(b.of, b.assumed), func(v *eventsv1.TargetVersion) bool { return !asked[v.Target] })
	return &eventsv1.BuildPrepared{
		Build: b.id, Change: b.of.ref, Base: c.head, Assumed: assumed, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
		Versions: b.of.prepared,
	}
}

func (c *course) tellPrepared(b *build, prepared *eventsv1.BuildPrepared) {
	c.tell(factOf(prepared))
	for _, v := range prepared.Versions {
		c.memory.name(b.of, versionAt(v))
	}
}

func versionAt(v *eventsv1.TargetVersion) evidence.Version {
	return evidence.Version{Target: v.Target, Hash: v.Hash}
}

// prepare makes the tree of a scheduled build, and runs what is not known of it.
func (c *course) prepare(s *eventsv1.BuildScheduled) (urgent bool) {
	b := c.newBuild(s)
	prepared := c.treeOf(b, s)
	c.tellPrepared(b, prepared)
	versions := prepared.Versions
	for _, v := range versions {
		switch c.state(v) {
		case evidence.Unknown:
			b.open = append(b.open, want{v, versionKey(v)})
		case evidence.Red:
			return true // the rest cannot change the outcome
		}
	}
	if len(b.open) == 0 {
		return true
	}
	c.machines.add(b)
	if _, batches := c.policy.(policy.Batching); !batches {
		c.goOn(b)
	}
	return false
}

// goOn has a build's worker run the first of its open versions that nobody runs.
func (c *course) goOn(b *build) {
	for _, w := range b.open {
		if c.machines.steps[w.key] == nil {
			c.start(b, w)
			return
		}
	}
	b.runs = nil
}

// start runs a version on the build's worker. An attempt that failed counts, though the build that made it may be gone.
func (c *course) start(b *build, w want) {
	m, attempt := c.machines, c.ledger.NextAttempt(evidence.Version{Target: w.version.Target, Hash: w.version.Hash})
	m.serial++
	st := &step{
		want: w, by: b, attempt: attempt, start: c.clock, serial: m.serial,
		end:    c.clock + c.o.Disturbed.Takes(b.of.Change, w.key, attempt, b.of.Step()),
		passes: c.passes(b.of, b.assumed, w.version.Target) && !c.o.Disturbed.Flaky(b.of.Change, w.key, attempt),
	}
	m.steps[w.key] = st
	heap.Push(&m.ends, st)
	if b.runs = st; !b.begun {
		b.begun = true
		c.result.Builds++
	}
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
		c.finish(st.version, st.by, st)
	}
}

// finish writes how a version's run ended. If it is known by that, the builds that waited for it go on, or are over.
func (c *course) finish(v *eventsv1.TargetVersion, by *build, st *step) {
	f := &eventsv1.StepFinished{
		Target: v.Target, Hash: v.Hash, Attempt: st.attempt, Build: by.id, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
		StartedUs: st.start, FinishedUs: st.end,
	}
	if !st.passes {
		f.Outcome, f.Reason = eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the trace says so"
	}
	c.ledger.Apply(f)
	c.report(f)
	m := c.machines
	known := c.state(v)
	if known == evidence.Unknown {
		if st.joint == nil {
			c.start(by, st.want)
		}
		return
	}
	for _, b := range slices.Clone(m.wanted[versionKey(v)]) {
		m.satisfy(b, versionKey(v))
		if len(b.open) == 0 || known == evidence.Red {
			c.release(b)
		} else if b == by {
			c.goOn(b)
		}
	}
}

func (m *machines) add(b *build) {
	m.builds = append(m.builds, b)
	m.byID[b.id] = b
	for _, w := range b.open {
		m.wanted[w.key] = append(m.wanted[w.key], b)
	}
}

// satisfy takes a version from what a build waits for.
func (m *machines) satisfy(b *build, key string) {
	b.open = slices.DeleteFunc(b.open, func(w want) bool { return w.key == key })
	if b.runs != nil && b.runs.key == key {
		b.runs = nil
	}
	if rest := slices.DeleteFunc(m.wanted[key], func(o *build) bool { return o == b }); len(rest) > 0 {
		m.wanted[key] = rest
	} else {
		delete(m.wanted, key)
	}
}

// release takes a build off its worker. A step that an idle one waits for goes on, on the worker of that; else it ends.
func (c *course) release(b *build) (dropped bool) {
	m := c.machines
	delete(m.byID, b.id)
	at := slices.Index(m.builds, b)
	m.builds = slices.Delete(m.builds, at, at+1)
	st := b.runs
	for len(b.open) > 0 {
		m.satisfy(b, b.open[0].key)
	}
	if st == nil {
		return false
	}
	if i := slices.IndexFunc(m.wanted[st.key], func(o *build) bool { return o.runs == nil }); i >= 0 {
		heir := m.wanted[st.key][i]
		st.by, heir.runs, heir.begun = heir, st, true
		return false
	}
	st.dropped = true
	delete(m.steps, st.key)
	c.result.busy += c.clock - st.start
	return true
}

// abort takes a build's worker away.
func (c *course) abort(id string) {
	if b := c.machines.byID[id]; b != nil && c.release(b) {
		c.result.Aborted++
	}
}

// carryOut does what the selector decided. given are builds that the policy took from it before.
func (c *course) carryOut(d *eventsv1.Decision, given []*build) (again bool, err error) {
	if c.pool != nil {
		again = c.pool.carryOut(d, given)
	} else {
		again = c.runWhole(d, given)
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
		again = c.startBatches(b) || again
	}
	return again, nil
}

// runWhole starts and ends the builds of which each has a worker of its own.
func (c *course) runWhole(d *eventsv1.Decision, given []*build) (urgent bool) {
	for _, i := range d.GetItems() {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			urgent = c.prepare(x.BuildScheduled) || urgent
		case *eventsv1.DecisionItem_BuildAborted:
			c.abort(x.BuildAborted.Build)
		}
	}
	for _, b := range given {
		c.abort(b.id)
	}
	return urgent
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
