package course

import (
	"fmt"
	"slices"

	"landfall.build/engine/evidence"
	"landfall.build/engine/guard"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/trace"
)

// pending is a change of the trace that is neither landed nor rejected.
type pending struct {
	*trace.Change
	ref *eventsv1.ChangeRef
	// ahead are the changes that were pending when it arrived and that it meets; those decided are marked.
	ahead []*pending
	// landed is the sum of those that have landed: it names the versions of the change's targets.
	landed sum
	// broken: something that it truly conflicts with has landed.
	broken bool
	// meets are the same by their ids.
	meets map[string]*trace.Change
	// survives is the forecast's probability that it breaks with nothing that had landed when it arrived (M6).
	survives float64
	gone     bool
	// prepared are the versions of its latest build.
	prepared []*eventsv1.TargetVersion
	// told are the estimates of when it is decided.
	told []*eventsv1.Estimate
	// places has where each of its targets is among them.
	places map[int]int
	// builds are the ids of those of it that a pool has made; alone is how long it takes if nothing else is pending.
	builds []string
	alone  int64
	// names are the versions that its trees have, in the order in which they came up; named is the same as a set.
	names []evidence.Version
	named map[evidence.Version]bool
}

// first reports whether none of those ahead is pending.
func (p *pending) first() bool {
	for _, a := range p.ahead {
		if !a.gone {
			return false
		}
	}
	return true
}

// arrive admits a change and analyses it.
func (c *course) arrive(t *trace.Change) {
	p := &pending{Change: t, ref: &eventsv1.ChangeRef{Change: t.ID, Revision: 1}, survives: 1, meets: map[string]*trace.Change{}}
	p.places = make(map[int]int, len(t.Targets))
	for i, target := range t.Targets {
		p.places[target] = i
	}
	c.truth.Take(t)
	for _, b := range t.Breaks {
		p.broken = p.broken || c.result.landedNumbers.has(b)
	}
	for _, k := range c.order {
		if c.o.Trace.Meet(k.Change, t) {
			p.ahead = append(p.ahead, k)
			p.meets[k.ID] = k.Change
		}
	}
	near := c.o.Trace.Rates().Near
	c.landedNear = slices.DeleteFunc(c.landedNear, func(k *trace.Change) bool { return t.Arrival-k.Arrival > near })
	for _, k := range c.landedNear {
		if c.o.Trace.Meet(k, t) {
			p.survives *= 1 - c.forecast.Conflict(t, k)
		}
	}
	c.pending[t.ID] = p
	c.order = append(c.order, p)
	c.awaitCancel(p)
	if c.pool != nil {
		p.alone = c.alone(p)
	}
	c.report(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: queueName, Change: t.ID, Revision: 1, ReceivedUs: t.Arrival, Mainline: c.head,
		LandingCommits: []*eventsv1.LandingCommit{{Head: t.ID}},
	}})
	c.analyze(p)
}

// analyze reports what the change affects. By the papers' model, in which a path is built or it is not, that is one target of
// its own, and all of those of the changes that it meets, so that any of them alters it as a whole.
func (c *course) analyze(p *pending) {
	affected := &eventsv1.Affected{Targets: c.versions(p, nil)}
	if p.Targets == nil {
		affected.Leaves = []string{"with " + p.ID}
		for _, k := range p.ahead {
			if !k.gone {
				affected.AddedEdges = append(affected.AddedEdges, "with "+k.ID)
			}
		}
	}
	c.report(&eventsv1.ChangeAnalyzed{
		Change: p.ref, Base: c.head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: affected,
	})
}

// candidate returns the versions of the change on the mainline as it stands.
func (c *course) candidate(p *pending) (guard.Candidate, guard.Finding) {
	t := guard.Candidate{Versions: c.versions(p, nil)}
	return t, guard.Examine(t, guard.Evidence{Ledger: c.ledger, Policy: c.settings.Steps, Pushes: c.foreign})
}

// land asks the guard, and puts the change onto the mainline.
func (c *course) land(d *eventsv1.LandDecided) error {
	p := c.pending[d.Change.Change]
	t, found := c.candidate(p)
	if no := guard.MayLand(t, found); no != nil {
		c.refuse(p, d.Decision, no)
		return nil
	}
	if !p.Green || p.broken {
		c.result.RedCommits++
	}
	base := c.head
	c.landings++
	c.head = fmt.Sprintf("m%d", c.landings)
	c.report(&eventsv1.LandIntended{Change: p.ref, Decision: d.Decision, Base: base, Commits: []string{c.head}, Proof: found.Proof, StampUs: c.clock})
	landed := &eventsv1.ChangeLanded{Change: p.ref, Decision: d.Decision, Base: base, Commits: []string{c.head}, Proof: found.Proof, StampUs: c.clock}
	c.report(landed)
	c.leave(p)
	c.result.decided(c, p, true)
	c.holds(p)
	c.landedNear = append(c.landedNear, p.Change)
	for _, q := range c.order {
		for _, a := range q.ahead {
			if a == p {
				q.landed, q.broken = q.landed.plus(p.Number), q.broken || q.Broken(p.Number)
			}
		}
	}
	passed := false
	for _, a := range p.ahead {
		if !a.gone {
			passed = true
			c.analyze(a) // what was proven of it holds on the new mainline too
		}
	}
	if passed {
		c.result.Passed++
	}
	c.check(p, true)
	return nil
}

func (c *course) reject(d *eventsv1.RejectDecided) error {
	p := c.pending[d.Change.Change]
	t, found := c.candidate(p)
	reason, no := guard.MayReject(t, found, d.Reason, "")
	if no != nil {
		c.refuse(p, d.Decision, no)
		return nil
	}
	c.report(&eventsv1.ChangeRejected{Change: p.ref, Decision: d.Decision, Base: c.head, Reason: reason, StampUs: c.clock})
	c.leave(p)
	c.result.decided(c, p, false)
	c.check(p, false)
	return nil
}

func (c *course) refuse(p *pending, decision string, no *eventsv1.Refused) {
	no.Change, no.Decision, no.Base, no.StampUs = p.ref, decision, c.head, c.clock
	c.report(no)
	c.result.Refused++
}

// cancel takes out the change whose author cancels it.
func (c *course) cancel(p *pending) {
	c.report(&eventsv1.ChangeCancelled{Change: p.ID, Revision: p.ref.Revision, Who: "its author", StampUs: c.clock})
	c.leave(p)
	c.result.Cancelled++
}

// leave removes a change that is no longer pending.
func (c *course) leave(p *pending) {
	p.gone = true
	delete(c.pending, p.ID)
	c.memory.left(p)
	if c.pool != nil {
		c.pool.left(p)
	}
	if c.o.Left != nil {
		c.o.Left()
	}
	for i, q := range c.order {
		if q == p {
			c.order = append(c.order[:i], c.order[i+1:]...)
			break
		}
	}
}

// Difference is the error of a simulation in which other changes landed than those of the trace.
type Difference struct {
	// Changes counts those decided otherwise than by the trace, First describes the first of them.
	Changes int
	First   string
	// RedCommits are the result's.
	RedCommits int
}

// Error names their number and the first.
func (d *Difference) Error() string {
	return fmt.Sprintf("%d changes were decided otherwise than in the trace, and there are %d red commits; the first: %s", d.Changes, d.RedCommits, d.First)
}

// check compares the decision with the truth: the trace alone determines which changes land.
func (c *course) check(p *pending, landed bool) {
	if landed == c.truth.Lands(p.Number) {
		return
	}
	if c.differs == nil {
		c.differs = &Difference{First: p.ID + " was rejected; in the trace it lands"}
		if landed {
			c.differs.First = p.ID + " landed; in the trace it does not"
		}
	}
	c.differs.Changes++
}
