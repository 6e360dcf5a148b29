package proving

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/journal"
	"landfall.build/services/lineup"
)

// Tally counts what a schedule went through, and what it found.
type Tally struct {
	Schedules, Changes, Landed, Rejected, Ejected, Cancelled   int
	Bypasses, Refusals, EarlyRejections, Crashes, Steps, Pushes int
	Red, Doubled, Lost, Undecided, WronglyRejected             int
}

// Add sums tallies.
func (t *Tally) Add(o Tally) {
	t.Schedules += o.Schedules
	t.Changes += o.Changes
	t.Landed += o.Landed
	t.Rejected += o.Rejected
	t.Ejected += o.Ejected
	t.Cancelled += o.Cancelled
	t.Bypasses += o.Bypasses
	t.Refusals += o.Refusals
	t.EarlyRejections += o.EarlyRejections
	t.Crashes += o.Crashes
	t.Steps += o.Steps
	t.Pushes += o.Pushes
	t.Red += o.Red
	t.Doubled += o.Doubled
	t.Lost += o.Lost
	t.Undecided += o.Undecided
	t.WronglyRejected += o.WronglyRejected
}

// Violations is the number of broken promises.
func (t Tally) Violations() int {
	return t.Red + t.Doubled + t.Lost + t.Undecided + t.WronglyRejected
}

// Options of a schedule. Everything else is drawn from the seed.
type Options struct {
	Seed uint64
	// Changes is the number of changes; 0 draws 4 to 12.
	Changes int
	// Without drops the client's operations of these indices: shrinking.
	Without map[int]bool
	// Trace, if set, gets a line for each record of the log.
	Trace func(string)
}

// operation is something that a client or a bystander does.
type operation struct {
	at    int64
	index int
	what  string
	do    func()
}

// maxSteps bounds a schedule: one that has not come to rest by then is undecided.
const maxSteps = 20_000

// Run goes through one random schedule and says what came of it, and what was wrong.
func Run(o Options) (Tally, []string) {
	r := rand.New(rand.NewPCG(o.Seed, 0x1a2b3c4d))
	w := newWorld(r)
	settings := drawSettings(r)
	m := newMachine(r, w, settings)
	flaky, slow := r.IntN(3) == 0, r.IntN(3) == 0
	m.builder.outcome = func(red bool) eventsv1.StepOutcome {
		switch {
		case slow && r.IntN(12) == 0:
			return eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT
		case slow && r.IntN(12) == 0:
			return eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN
		case red:
			return eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		case flaky && settings.Steps.FailedRetries > 0 && r.IntN(16) == 0:
			return eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		}
		return eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	}
	if slow {
		m.builder.broken = func() bool { return r.IntN(10) == 0 }
	}
	if r.IntN(3) == 0 {
		w.loseAnswer = func() (bool, bool) {
			arrive := r.IntN(4) != 0
			return arrive, arrive && r.IntN(3) != 0
		}
	}
	s := &schedule{m: m, w: w, r: r, o: o, lineup: m.newLineupFold(), flaky: flaky}
	s.operations()
	s.play()
	return s.check()
}

func drawSettings(r *rand.Rand) *eventsv1.QueueSettings {
	s := &eventsv1.QueueSettings{
		Hash: "s", Repository: "r", Branch: "main", Strategy: "squash", Workers: uint32(1 + r.IntN(6)),
		Threshold: []float64{0, 0.05, 0.3}[r.IntN(3)], Best: uint32(1 + r.IntN(64)),
		Steps:        &eventsv1.StepPolicy{FailedRetries: uint32(r.IntN(2)), TimedOutRetries: uint32(r.IntN(3)), InfrastructureRetries: uint32(r.IntN(3))},
		PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000,
	}
	s.AbortThreshold = s.Threshold / 2
	if r.IntN(4) != 0 {
		s.BypassThreshold = proto.Float64([]float64{0.1, 0.5, 0.9}[r.IntN(3)])
	}
	return s
}

type schedule struct {
	m       *machine
	w       *world
	r       *rand.Rand
	o       Options
	lineup  *lineupFold
	ops     []operation
	changes []string
	flaky   bool
	redPush bool
}

// newAtom makes an atom with its bugs and clashes.
func (s *schedule) newAtom(id string) *atom {
	a := &atom{id: id}
	for range 1 + s.r.IntN(2) {
		a.edits = append(a.edits, s.w.targets[s.r.IntN(len(s.w.targets))])
	}
	if s.r.IntN(5) == 0 && len(s.w.targets) > 1 {
		i := 1 + s.r.IntN(len(s.w.targets)-1)
		a.edges = append(a.edges, [2]string{s.w.targets[i], s.w.targets[s.r.IntN(i)]})
		a.edits = append(a.edits, s.w.targets[i])
	}
	var others []string
	for x := range s.w.atoms {
		others = append(others, x)
	}
	slices.Sort(others)
	s.w.atoms[id] = a
	if s.r.IntN(6) == 0 {
		s.w.bugs = append(s.w.bugs, bug{a.edits[0], []string{id}})
	}
	for _, x := range others {
		switch s.r.IntN(24) {
		case 0:
			s.w.bugs = append(s.w.bugs, bug{s.w.targets[s.r.IntN(len(s.w.targets))], []string{x, id}})
		case 1:
			s.w.clashes[[2]string{x, id}] = true
		}
	}
	return a
}

func (s *schedule) gateway(id string, msg proto.Message) {
	s.m.append(events.TopicChanges, events.ServiceGateway, -1, id, msg)
}

func (s *schedule) admission(id string, revision uint64, requires []string) *eventsv1.Admission {
	a := &eventsv1.Admission{Queue: queueName, Change: id, Revision: revision, Requires: requires, Benefit: 1}
	for i := range 1 + s.r.IntN(8)/6*(1+s.r.IntN(2)) {
		x := fmt.Sprintf("%s.%d.%d", id, revision, i)
		s.newAtom(x)
		a.LandingCommits = append(a.LandingCommits, &eventsv1.LandingCommit{Head: x})
	}
	return a
}

// operations draws what clients and bystanders do.
func (s *schedule) operations() {
	n := s.o.Changes
	if n == 0 {
		n = 4 + s.r.IntN(9)
	}
	span := int64(1 + s.r.IntN(400))
	var ops []operation
	add := func(what string, do func()) {
		ops = append(ops, operation{at: s.r.Int64N(span), index: len(ops), what: what, do: do})
	}
	for i := range n {
		id := fmt.Sprintf("c%d", i)
		s.changes = append(s.changes, id)
		var requires []string
		if i > 0 && s.r.IntN(6) == 0 {
			requires = []string{fmt.Sprintf("c%d", s.r.IntN(i))}
		}
		a := s.admission(id, 1, requires)
		add("admit "+id, func() {
			// As the gateway does: a requirement must be known.
			s.lineup.read()
			for _, q := range a.Requires {
				if s.lineup.queue.Known(q) == 0 {
					a.Requires = nil
				}
			}
			s.gateway(id, &eventsv1.ChangeAdmitted{Admission: a})
		})
		switch s.r.IntN(14) {
		case 0:
			add("cancel "+id, func() { s.gateway("x"+id, &eventsv1.ChangeCancelled{Change: id}) })
		case 1:
			b := s.admission(id, 2, requires)
			add("revise "+id, func() { s.lineup.read(); s.dropUnknown(b); s.gateway(id+"r2", &eventsv1.ChangeRevised{Admission: b}) })
		case 2:
			add("move "+id, func() { s.gateway("m"+id, &eventsv1.ChangeMoved{Change: id}) })
		case 3:
			add("hold "+id, func() { s.gateway("h"+id, &eventsv1.ChangeHeld{Change: id, Hold: "h"}) })
		}
	}
	for i := range s.r.IntN(8) / 5 * (1 + s.r.IntN(2)) {
		x := fmt.Sprintf("push%d", i)
		s.newAtom(x)
		add("push "+x, func() { s.push(x) })
	}
	if s.r.IntN(6) == 0 {
		add("pause", func() { s.gateway("pause", &eventsv1.QueuePaused{Who: "sre"}) })
	}
	slices.SortStableFunc(ops, func(a, b operation) int { return int(a.at - b.at) })
	for _, op := range ops {
		if !s.o.Without[op.index] {
			s.ops = append(s.ops, op)
		}
	}
}

func (s *schedule) dropUnknown(a *eventsv1.Admission) {
	for _, q := range a.Requires {
		if s.lineup.queue.Known(q) == 0 {
			a.Requires = nil
		}
	}
}

// push lands an atom past the queue, red or not, if it merges.
func (s *schedule) push(x string) {
	head := s.w.commits[s.w.head]
	if s.lineup.read(); s.lineup.queue.Head == "" {
		return // the queue starts on a green mainline; later pushes are its business
	}
	if _, ok := s.w.merges(head.atoms, x); !ok {
		return
	}
	id := s.w.commit(head.id, append(slices.Clone(head.atoms), x), "push")
	s.w.pushed[id] = true
	s.w.advance(id)
	was := s.w.redTargets(head.atoms)
	for t, red := range s.w.redTargets(s.w.commits[id].atoms) {
		s.redPush = s.redPush || (red && !was[t])
	}
}

// play lets everybody do something in random order until all is at rest; then holds and pauses are lifted,
// so that nothing has a reason to wait any more.
func (s *schedule) play() {
	crashy := s.r.IntN(2) == 0
	released := false
	idle := 0
	var tick int64
	for range maxSteps {
		tick++
		s.m.clock += int64(1000 * (1 + s.r.IntN(2_000)))
		if len(s.ops) > 0 && s.ops[0].at <= tick {
			s.ops[0].do()
			s.ops = s.ops[1:]
			idle = 0
			continue
		}
		if crashy && s.m.crashes < 40 && s.r.IntN(100) == 0 {
			s.crash()
		}
		if s.someone() {
			idle = 0
			continue
		}
		if idle++; idle < 8 {
			continue
		}
		if s.everyone() {
			idle = 0
			continue
		}
		if len(s.ops) > 0 {
			tick = s.ops[0].at
			idle = 0
			continue
		}
		if released {
			return
		}
		released = true
		idle = 0
		s.release()
	}
}

func (s *schedule) crash() {
	s.m.crashes++
	switch i := s.r.IntN(5); i {
	case 0:
		s.m.enumerator.crash()
	case 1, 2, 3:
		s.m.stages[i-1].crash()
	default:
		s.m.lander.crash()
	}
}

// actors are who may do something.
const actors = 7

// someone does a little; it says whether there was anything to do.
func (s *schedule) someone() bool { return s.actor(s.r.IntN(actors)) }

// everyone is someone for all of them: if it says no, everything is at rest.
func (s *schedule) everyone() (any bool) {
	for i := range actors {
		did := s.actor(i)
		if did && s.o.Trace != nil {
			s.o.Trace(fmt.Sprintf("actor %d was busy", i))
		}
		any = did || any
	}
	return any
}

func (s *schedule) actor(i int) bool {
	switch i {
	case 0:
		return s.m.enumerator.step()
	case 1, 2, 3:
		return s.m.stages[i-1].step()
	case 4:
		return s.m.lander.step()
	case 5:
		return s.m.analyzer.step()
	default:
		return s.m.builder.step()
	}
}

func (s *schedule) release() {
	s.lineup.read()
	if s.lineup.queue.Paused != nil {
		s.gateway("resume", &eventsv1.QueueResumed{Who: "sre"})
	}
	for _, c := range s.lineup.queue.Order() {
		for _, h := range c.Holds {
			s.gateway("rel"+c.ID(), &eventsv1.ChangeReleased{Change: c.ID(), Hold: h.Name})
		}
	}
}

// check holds the log and the mainline against the promises.
func (s *schedule) check() (Tally, []string) {
	t := Tally{Schedules: 1, Crashes: s.m.crashes, Steps: s.m.builder.steps, Pushes: len(s.w.pushed)}
	var wrong []string
	bad := func(n *int, format string, args ...any) {
		*n++
		wrong = append(wrong, fmt.Sprintf(format, args...))
	}
	f := s.m.newLineupFold()
	landedBy := map[string]int{}
	f.each = func(e journal.Entry, counts bool, eff lineup.Effect) {
		if s.o.Trace != nil {
			s.o.Trace(fmt.Sprintf("changes/%d counts=%v applied=%v %T %v", e.Offset, counts, eff.Applied, e.Message, e.Message))
		}
		if !counts || !eff.Applied {
			return
		}
		switch x := e.Message.(type) {
		case *eventsv1.ChangeLanded:
			t.Landed++
			t.Bypasses += len(x.Bypasses)
			landedBy[x.Commits[len(x.Commits)-1]]++
		case *eventsv1.Refused:
			t.Refusals++
		case *eventsv1.ChangeEjected:
			t.Ejected++
		case *eventsv1.ChangeRejected:
			t.Rejected++
			if why := s.wronglyRejected(x, eff.Left); why != "" {
				bad(&t.WronglyRejected, "%s rejected though it is green on %.8s (%s)", x.Change.Change, x.Base, why)
			}
			if len(f.queue.Order()) > 0 && f.queue.Order()[0].Position < eff.Left.Position {
				t.EarlyRejections++
			}
		case *eventsv1.ChangeCancelled:
			t.Cancelled++
		}
	}
	f.read()
	s.traceDecisions()
	t.Changes = len(s.changes)
	for _, c := range f.queue.Order() {
		if s.mayWait(c) {
			continue
		}
		bad(&t.Undecided, "%s is undecided", c.ID())
	}
	for commit, n := range landedBy {
		if n > 1 {
			bad(&t.Doubled, "commit %.8s landed %d times", commit, n)
		}
		if !slices.Contains(s.w.landed, commit) {
			bad(&t.Lost, "landed commit %.8s is not on the mainline", commit)
		}
	}
	seen := map[string]bool{}
	base := s.w.commits[s.w.landed[0]]
	for _, id := range s.w.landed[1:] {
		c := s.w.commits[id]
		fresh := c.atoms[len(c.atoms)-1]
		if seen[fresh] {
			bad(&t.Doubled, "atom %s is on the mainline twice", fresh)
		}
		seen[fresh] = true
		if !s.w.pushed[id] {
			was := s.w.redTargets(base.atoms)
			for target, red := range s.w.redTargets(c.atoms) {
				if red && !was[target] {
					bad(&t.Red, "commit %.8s (%s) makes %s red", id, fresh, target)
				}
			}
		}
		base = c
	}
	return t, wrong
}

// traceDecisions writes the selector's records and the last state of the graph to the trace.
func (s *schedule) traceDecisions() {
	if s.o.Trace == nil {
		return
	}
	for _, topic := range []string{events.TopicBuilds, events.TopicDecisions} {
		c, terms := s.m.follow(topic, 0), journal.NewTerms(topic)
		for e, ok := next(c); ok; e, ok = next(c) {
			s.o.Trace(fmt.Sprintf("%s/%d counts=%v %T %v", topic, e.Offset, terms.Counts(e), e.Message, e.Message))
		}
	}
	c, terms := s.m.follow(events.TopicPriorities, 0), journal.NewTerms(events.TopicPriorities)
	g := graph.New()
	var ranking *eventsv1.Ranking
	for e, ok := next(c); ok; e, ok = next(c) {
		counts := terms.Counts(e)
		if p, is := e.Message.(*eventsv1.Priority); is && counts {
			g.Fold(p.Delta)
			if p.Ranking != nil {
				ranking = p.Ranking
			}
		}
	}
	s.o.Trace(fmt.Sprintf("mainline %v", g.Mainline))
	for _, n := range g.Order() {
		s.o.Trace(fmt.Sprintf("node %v", n.Node))
	}
	s.o.Trace(fmt.Sprintf("ranking %v", ranking))
}

// mayWait: while a direct push has left the mainline red, changes that its red targets affect wait (M23a).
func (s *schedule) mayWait(c *lineup.Change) bool {
	head := s.w.commits[s.w.head].atoms
	red := s.w.redTargets(head)
	any := false
	for _, r := range red {
		any = any || r
	}
	return any
}

func (s *schedule) wronglyRejected(x *eventsv1.ChangeRejected, c *lineup.Change) string {
	if x.Reason.GetClass() == eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT {
		return ""
	}
	base := s.w.commits[x.Base].atoms
	trees, clash := s.w.apply(base, atomsOf(c.Admission.LandingCommits))
	if clash != "" {
		return ""
	}
	was := s.w.redTargets(base)
	for _, tree := range trees {
		for t, red := range s.w.redTargets(tree) {
			if red && !was[t] {
				return ""
			}
		}
	}
	if s.flaky {
		return "" // every attempt of a step that is green may have failed: the retries are what there is
	}
	return strings.TrimSpace(x.Reason.GetMessage())
}
