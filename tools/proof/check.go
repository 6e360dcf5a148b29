package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// checker holds the log and the mainline against the promises.
type checker struct {
	s     *schedule
	x     *site
	tally *Tally
	wrong []string
	fold  *lineupFold

	attempts map[evidence.Version][]attempt
	// forgotten are the places of the last records that forget versions.
	forgotten map[evidence.Version]int64
	// unprepared are, by change, the builds whose trees could not be made, and the offsets at which that is told first.
	unprepared map[string]map[string]int64
	// proven is where landfall.builds ended when the intention of a decision was written.
	proven map[string]int64
	// prepared are the builds of which the trees were made, and where that stands.
	prepared map[string]int64
	landed   map[string]bool // change at its revision
	// withdrawn are the attempts that have had their effect, up to the newest.
	withdrawn map[evidence.Version]uint32
	// retriedAt has what retries of blocked changes took back.
	retriedAt map[evidence.Version][]retriedAttempt
	// moved: an operator has moved changes; foreign: something came past the queue.
	moved, foreign bool
	head           string
	tips           map[string]bool
	// voids are intentions that were given up.
	voids []*eventsv1.LandVoid
	// heads are branches under review that were to be moved, came the commits that landed.
	heads      []*eventsv1.ReviewHead
	came       map[string]bool
	toleration toleration
	// landings are those that the log has told so far, away what it says of a mainline that cannot be reached.
	landings []*eventsv1.ChangeLanded
	away     *eventsv1.MainlineUnreachable
	// frozen is what the log says of a remote that refuses every push.
	frozen *eventsv1.LandingsPaused
	// passed is, by change that the remote refuses, how often another one has landed between its refusals; recent are those
	// that were refused since the last landing.
	passed map[string]int
	recent map[string]bool
	// fates is what became of changes.
	fates fates
}

func (k *checker) bad(c Count, format string, args ...any) {
	k.tally[c]++
	if k.s.o.Sabotage == SabotageProposals && c == Undecided {
		return // not promised: see SabotageProposals
	}
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

// check says what was wrong.
func (s *schedule) check() (wrong []string) {
	for _, x := range s.m.sites {
		wrong = append(wrong, s.checkSite(x)...)
	}
	for _, e := range s.m.enumerators {
		wrong = append(wrong, s.m.checkOrder(e.partition)...)
	}
	if s.restless && s.o.Sabotage != SabotageProposals {
		s.m.tally[Undecided]++
		wrong = append(wrong, fmt.Sprintf("no rest after %d steps", s.ticks))
	}
	return wrong
}

func (s *schedule) checkSite(x *site) []string {
	k := &checker{
		s: s, x: x, tally: s.m.tally, fold: s.m.newLineupFold(x), attempts: map[evidence.Version][]attempt{}, forgotten: map[evidence.Version]int64{},
		unprepared: map[string]map[string]int64{}, proven: map[string]int64{}, prepared: map[string]int64{}, landed: map[string]bool{}, withdrawn: map[evidence.Version]uint32{}, retriedAt: map[evidence.Version][]retriedAttempt{}, tips: map[string]bool{}, came: map[string]bool{}, passed: map[string]int{}, recent: map[string]bool{}, toleration: newToleration(), fates: fates{},
	}
	k.builds()
	k.decisions()
	k.fold.each = k.change
	k.fold.read()
	for _, c := range k.fold.queue.Order() {
		k.bad(Undecided, "%s is undecided", c.ID())
	}
	if k.away != nil && !s.restless {
		k.bad(Disordered, "the log says to the end that the mainline cannot be reached: %v", k.away)
	}
	if k.frozen != nil && !s.restless {
		k.bad(Disordered, "the log says to the end that the remote refuses every push: %v", k.frozen)
	}
	k.mainline()
	k.reviews()
	k.tells()
	s.trace(x)
	return k.wrong
}

// counted calls f for the counted records of a topic about the queue.
func (x *site) counted(topic string, f func(e journal.Entry)) {
	c, terms := x.m.follow(topic, x.partition, 0), journal.NewTerms(topic)
	defer c.Close()
	for e, ok := next(c); ok; e, ok = next(c) {
		if terms.Counts(e) && e.Queue == x.queue {
			f(e)
		}
	}
}

// attempt is one at a version, and where it is told.
type attempt struct {
	*eventsv1.StepFinished
	offset int64
}

func (k *checker) builds() {
	ledger, made := evidence.NewLedger(), map[evidence.Version]map[uint32]bool{}
	k.x.counted(events.TopicBuilds, func(e journal.Entry) {
		k.numbers(e.Message, ledger, made)
		switch f := e.Message.(type) {
		case *eventsv1.StepFinished:
			v := evidence.Version{Target: f.Target, Hash: f.Hash}
			if slices.ContainsFunc(k.attempts[v], func(o attempt) bool { return o.Attempt == f.Attempt && o.Worker != f.Worker }) {
				k.tally[RunTwice]++
			}
			k.attempts[v] = append(k.attempts[v], attempt{f, e.Offset})
		case *eventsv1.EvidenceForgotten:
			for _, v := range f.Versions {
				k.forgotten[evidence.Version{Target: v.Target, Hash: v.Hash}] = e.Offset
			}
		case *eventsv1.BuildPrepared:
			if _, had := k.prepared[f.Build]; !had {
				k.prepared[f.Build] = e.Offset
			}
			if f.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE {
				of := refString(f.Change)
				if k.unprepared[of] == nil {
					k.unprepared[of] = map[string]int64{}
				}
				if _, had := k.unprepared[of][f.Build]; !had {
					k.unprepared[of][f.Build] = e.Offset
				}
			}
		}
	})
}

// numbers looks whether the next attempt at a version would get the number of one that was made, forgotten or not.
func (k *checker) numbers(m proto.Message, ledger *evidence.Ledger, made map[evidence.Version]map[uint32]bool) {
	switch f := m.(type) {
	case *eventsv1.StepLeased:
		for _, l := range append([]*eventsv1.LeasedVersion{{Target: f.Target, Hash: f.Hash, Attempt: f.Attempt}}, f.Group...) {
			if v := (evidence.Version{Target: l.Target, Hash: l.Hash}); l.Attempt >= ledger.NextAttempt(v) {
				ledger.Expect(v)
			}
		}
	case *eventsv1.StepFinished:
		v := evidence.Version{Target: f.Target, Hash: f.Hash}
		if ledger.Apply(f); made[v] == nil {
			made[v] = map[uint32]bool{}
		}
		made[v][f.Attempt] = true
	case *eventsv1.EvidenceForgotten:
		ledger.Forget(f, func(v evidence.Version) {
			if n := ledger.NextAttempt(v); made[v][n] {
				k.bad(Disordered, "attempt %d at %s@%.8s is made, and the next one gets its number", n, v.Target, v.Hash)
			}
		})
	}
}

func (k *checker) decisions() {
	scheduled := map[string]string{} // by what is built, while it is not aborted
	k.x.counted(events.TopicDecisions, func(e journal.Entry) {
		d := e.Message.(*eventsv1.Decision)
		for _, i := range d.Items {
			if a := i.GetBuildAborted(); a != nil {
				k.tally[Aborts]++
				maps.DeleteFunc(scheduled, func(_, build string) bool { return build == a.Build })
			}
		}
		for _, i := range d.Items {
			if b := i.GetBuildScheduled(); b != nil {
				k.tally[Builds]++
				if b.Idle {
					k.tally[IdleBuilds]++
				}
				at := builds(b)
				if before := scheduled[at]; before != "" {
					if offset, prepared := k.prepared[before]; !prepared || offset >= d.Positions.GetBuilds() {
						k.again("%s is built once more while build %.8s of the same waits to be prepared", refString(b.Change.GetChange()), before)
					}
				}
				scheduled[at] = b.Build
			}
		}
	})
}

// again is told of a build that is scheduled while the same one waits. Who is told lies about what is over
// cannot know.
func (k *checker) again(format string, args ...any) {
	if k.s.o.Sabotage != SabotageProposals {
		k.bad(Disordered, format, args...)
	}
}

// builds names what a build builds.
func builds(b *eventsv1.BuildScheduled) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s on %s:", refString(b.Change.GetChange()), b.Base)
	for _, a := range b.Assumed {
		fmt.Fprintf(&out, " %s", refString(a.Change))
	}
	for _, t := range b.Targets {
		fmt.Fprintf(&out, " %s/%d@%s", t.Target, t.Part, t.Hash)
	}
	return out.String()
}

// change looks at one record of landfall.changes, after the lineup took it.
func (k *checker) change(e journal.Entry, counts bool, consequence lineup.Consequence) {
	if k.s.o.Trace != nil {
		k.s.o.Trace(fmt.Sprintf("%s changes/%d counts=%v applied=%v %T %v", k.x.queue, e.Offset, counts, consequence.Applied, e.Message, e.Message))
	}
	if !counts {
		return
	}
	k.toleration.fold(e.Message, e.Offset)
	if _, is := e.Message.(*eventsv1.TargetQuarantined); is {
		k.tally[Quarantines]++
	}
	if consequence.Entered != nil {
		k.tally[Changes]++
	}
	k.reach(e.Message)
	if !consequence.Applied {
		switch e.Message.(type) {
		case *eventsv1.ChangeCancelled, *eventsv1.ChangeRevised:
			if k.fold.queue.Intention != nil {
				k.tally[TooLate]++
			}
		}
		return
	}
	k.fates.expect(e.Offset, consequence)
	head := k.head
	k.head = k.fold.queue.Head
	switch f := e.Message.(type) {
	case *eventsv1.MainlineMoved:
		k.foreign = k.foreign || !f.Initial
		k.told(f, head)
	case *eventsv1.LandIntended:
		k.heeds(f)
		k.heads = append(k.heads, f.Heads...)
		k.proven[f.Decision] = k.s.m.buildsEnd[answered{f.Decision, e.Term}]
	case *eventsv1.ChangeLanded:
		k.changeLanded(f, consequence.Left)
		for _, c := range f.Commits {
			k.came[c] = true
		}
		k.passes(f.Change.Change)
		k.overtakes(f, consequence.Left)
	case *eventsv1.ChangeRejected:
		k.changeRejected(f, consequence.Left, e.Offset)
		k.withdraws(f.Change, f.Reason, e.Offset)
	case *eventsv1.ChangeEjected:
		k.tally[Ejected]++
		k.withdraws(f.Change, f.Reason, e.Offset)
		if why := k.wronglyEjected(f, k.s.m.buildsEnd[answered{f.Decision, e.Term}]); why != "" {
			k.bad(WronglyEjected, "%s ejected: %s", refString(f.Change), why)
		}
	case *eventsv1.ChangeRetried:
		k.retried(f, e.Offset)
	case *eventsv1.Refused:
		k.tally[Refusals]++
	case *eventsv1.LandVoid:
		k.tally[Voids]++
		k.voids = append(k.voids, f)
		k.refusedAgain(f)
	case *eventsv1.ChangeCancelled:
		k.tally[Cancelled]++
	case *eventsv1.ChangeMoved:
		k.tally[Moves]++
		k.moved = true
	case *eventsv1.ChangeHeld:
		k.tally[Holds]++
	}
}

func (k *checker) changeLanded(f *eventsv1.ChangeLanded, c *lineup.Change) {
	m, ref := k.x.main, refString(f.Change)
	k.tally[Landed]++
	k.tally[Bypasses] += len(f.Bypasses)
	for n, is := range map[Count]bool{
		HubLandings:     slices.ContainsFunc(f.Proof, func(p *eventsv1.Proof) bool { return k.x.isHub(p.Version.Target) }),
		SeveralBypassed: len(f.Bypasses) > 1, LandedInParts: len(f.Commits) > 1, LandedInChain: len(c.Admission.Requires) > 0,
	} {
		if is {
			k.tally[n]++
		}
	}
	if k.landed[ref] {
		k.bad(Doubled, "%s landed twice", ref)
	}
	k.landed[ref] = true
	tip := f.Commits[len(f.Commits)-1]
	k.tips[tip] = true
	k.landings = append(k.landings, f)
	if !m.heads[tip] || !m.contains(m.head, tip) && !m.removed[tip] {
		k.bad(Lost, "%s is said to have landed as %.8s, which is not on the mainline", ref, tip)
	}
	for _, r := range c.Admission.Requires {
		if k.fold.queue.RequirementState(r) != lineup.Landed {
			k.bad(Unproven, "%s landed without %s, which it requires", ref, r)
		}
	}
	base, edits := m.commits[f.Base].tree, m.repository.editsOf(c.Admission.LandingCommits)
	s := m.repository.study(base, edits)
	for _, a := range edits {
		for _, b := range m.repository.bugs {
			if base.isRed("//:repository") && slices.Contains(b.unless, a) {
				k.tally[Repairs]++
			}
		}
	}
	if target := s.isNotGreen(base, k.toleration.at[f.Decision]); target != "" || s.obstacle != "" || s.invalid {
		k.bad(Unproven, "%s landed on %.8s though it is not green there (%s %s)", ref, f.Base, target, s.obstacle)
	}
	proof := map[evidence.Version]bool{}
	for _, p := range f.Proof {
		proof[evidence.Version{Target: p.Version.Target, Hash: p.Version.Hash}] = true
	}
	for _, v := range s.affected.GetTargets() {
		proven := slices.ContainsFunc(m.repository.readings, func(reading string) bool {
			read := &eventsv1.TargetVersion{Target: v.Target, Part: v.Part, Hash: plain(v.Hash) + reading}
			at := evidence.Version{Target: read.Target, Hash: read.Hash}
			passed := slices.ContainsFunc(k.attempts[at], func(a attempt) bool {
				return a.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED && a.offset < k.proven[f.Decision]
			})
			return proof[at] && (passed || k.isTolerated(f, read))
		})
		if !v.Trivial && !v.Absent && !proven {
			k.bad(Unproven, "%s landed without a proof of %s@%.8s", ref, v.Target, v.Hash)
		}
	}
}

// mainline looks at every commit that the queue brought.
func (k *checker) mainline() {
	m := k.x.main
	for i, c := range m.landed {
		parent := m.commits[c.parent].tree
		for _, onto := range []*tree{parent, m.commits[c.base].tree} {
			for target, red := range c.tree.truth().red {
				if red && !onto.truth().red[target] && !k.toleration.covers(c.id, target) {
					k.bad(Red, "commit %.8s of %s makes %s red", c.id, c.by, target)
				}
			}
			if c.tree.truth().invalid && !onto.truth().invalid {
				k.bad(Red, "commit %.8s of %s makes the definitions invalid", c.id, c.by)
			}
		}
		last := i+1 == len(m.landed) || m.landed[i+1].parent != c.id || m.landed[i+1].by != c.by
		if last && !k.tips[c.id] && !m.removed[c.id] {
			k.bad(Lost, "commit %.8s of %s is on the mainline, and the log does not say so", c.id, c.by)
		}
	}
	for _, f := range k.voids {
		// Two decisions of one stamp make one commit, so what was given up may be intended again, and land.
		if m.heads[f.Commit] && !m.removed[f.Commit] && !k.tips[f.Commit] {
			k.bad(Lost, "%.8s of %s is on the mainline though it was given up", f.Commit, refString(f.Change))
		}
	}
	k.foreignKept()
	seen := map[*atom]bool{}
	for _, c := range m.between("", m.head) {
		for _, a := range c.edits {
			if seen[a] {
				k.bad(Doubled, "%s is on the mainline twice", a.id)
			}
			seen[a] = true
		}
	}
}
