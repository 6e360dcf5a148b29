package proving

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/admission"
)

// operation is something that a client or a bystander does.
type operation struct {
	at   int64
	name string
	do   func()
}

// gatewayActor is one instance of the gateway: it decides on what it has read.
type gatewayActor struct {
	m      *machine
	name   string
	fold   *lineupFold
	known  admission.Known
	writes int
}

func newGatewayActor(m *machine, number int) *gatewayActor {
	g := &gatewayActor{m: m, name: strconv.Itoa(number + 1), fold: m.newLineupFold()}
	g.known = admission.Known{Lineup: g.fold.queue, Heads: map[string]admission.Heads{}}
	g.fold.entered = func(a *eventsv1.Admission) { g.known.Heads[a.Change] = admission.HeadsOf(a.Entries) }
	return g
}

func (g *gatewayActor) write(id string, fact proto.Message) {
	g.writes++
	g.m.appendEffect(events.TopicChanges, events.ServiceGateway, g.name, id, fact)
	if g.m.r.IntN(20) == 0 {
		g.m.appendEffect(events.TopicChanges, events.ServiceGateway, g.name, id, fact)
		g.m.tally[Duplicates]++
	}
}

// land answers a request as the production gateway does.
func (g *gatewayActor) land(id string, edits []*atom, requires []string) {
	if g.m.r.IntN(4) != 0 {
		g.fold.read()
	}
	pinned := admission.Pinned{Mainline: g.m.main.head}
	for _, a := range edits {
		pinned.Entries = append(pinned.Entries, &eventsv1.Entry{Commit: a.id})
		pinned.LandingCommits = append(pinned.LandingCommits, &eventsv1.LandingCommit{Head: a.id})
	}
	requires = slices.DeleteFunc(slices.Clone(requires), func(r string) bool { return g.known.Lineup.Known(r) == 0 })
	g.writes++
	answer := admission.Decide(g.known, admission.Limits{Pending: 100, Stack: 10, Requires: 10}, admission.Request{
		ID:         fmt.Sprintf("%s/%d", g.name, g.writes),
		Land:       &eventsv1.LandRequest{Queue: queueName, Change: id, Requires: requires, Benefit: 1},
		ReceivedUS: g.m.clock,
	}, pinned)
	if _, refused := answer.(*eventsv1.RequestRefused); refused {
		return
	}
	if _, revised := answer.(*eventsv1.ChangeRevised); revised {
		g.m.tally[Revisions]++
	}
	if len(requires) > 0 {
		g.m.tally[Requirements]++
	}
	g.write(fmt.Sprintf("land %s %d", g.name, g.writes), answer)
}

// add notes an operation at a random time in the span.
func (s *schedule) add(name string, do func()) {
	s.ops = append(s.ops, operation{at: s.r.Int64N(s.span), name: name, do: do})
}

// operations draws what clients and bystanders do.
func (s *schedule) operations() {
	n := 4 + s.r.IntN(9)
	s.span = int64(1 + s.r.IntN(400))
	for i := range n {
		s.change(fmt.Sprintf("c%d", i), i, n)
	}
	for i := range max(0, s.r.IntN(8)-4) {
		s.directPush(fmt.Sprintf("push%d", i))
	}
	if s.r.IntN(10) == 0 {
		s.rewrite()
	}
	if s.r.IntN(6) == 0 {
		s.add("pause", func() { s.steer("pause", &eventsv1.QueuePaused{Who: "sre"}); s.m.tally[Pauses]++ })
		if s.r.IntN(2) == 0 {
			s.add("resume", func() { s.steer("resume", &eventsv1.QueueResumed{Who: "sre"}) })
		}
	}
	if s.r.IntN(10) == 0 {
		settings := drawSettings(s.r, "second")
		s.add("configure", func() { s.m.enumerator.settings = settings })
	}
	for i := range s.r.IntN(3) {
		s.add(fmt.Sprintf("tick%d", i), s.m.enumerator.tick)
	}
	slices.SortStableFunc(s.ops, func(a, b operation) int { return int(a.at - b.at) })
	s.ops = slices.DeleteFunc(s.ops, func(op operation) bool { return s.o.Without[op.name] })
}

func (s *schedule) gateway() *gatewayActor { return s.gateways[s.m.r.IntN(len(s.gateways))] }

func (s *schedule) steer(id string, fact proto.Message) { s.gateway().write(id, fact) }

// change draws a change and what its author and others do with it.
func (s *schedule) change(id string, place, n int) {
	edits := func(revision int) (list []*atom) {
		for i := range 1 + s.r.IntN(8)/6*(1+s.r.IntN(2)) {
			list = append(list, s.editor.atom(fmt.Sprintf("%s.%d.%d", id, revision, i), false))
		}
		return list
	}
	requires := func(below int) (list []string) {
		for range s.r.IntN(12) / 10 * (1 + s.r.IntN(2)) {
			if k := fmt.Sprintf("c%d", s.r.IntN(below)); k != id && !slices.Contains(list, k) {
				list = append(list, k)
			}
		}
		return list
	}
	first, needs := edits(1), requires(place+1)
	s.add("admit "+id, func() { s.gateway().land(id, first, needs) })
	switch s.r.IntN(16) {
	case 0, 1:
		revision := uint64(s.r.IntN(3)) // 0: whichever is pending
		s.add("cancel "+id, func() { s.steer("x"+id, &eventsv1.ChangeCancelled{Change: id, Revision: revision}) })
	case 2, 3:
		second, needs := edits(2), requires(n)
		s.add("revise "+id, func() { s.gateway().land(id, second, needs) })
	case 4, 5:
		before := ""
		if s.r.IntN(2) == 0 {
			before = fmt.Sprintf("c%d", s.r.IntN(place+1))
		}
		s.add("move "+id, func() { s.steer("m"+id, &eventsv1.ChangeMoved{Change: id, Before: before}) })
	case 6, 7:
		hold := fmt.Sprintf("h%d", s.r.IntN(2))
		s.add("hold "+id, func() { s.steer("h"+id, &eventsv1.ChangeHeld{Change: id, Hold: hold}) })
		if s.r.IntN(2) == 0 {
			s.add("release "+id, func() { s.steer("r"+id, &eventsv1.ChangeReleased{Change: id, Hold: hold}) })
		}
	}
}

// directPush draws what somebody lands past the queue, red or not, and perhaps a change that repairs it.
func (s *schedule) directPush(id string) {
	a := s.editor.atom(id, true)
	s.add("push "+id, func() { s.push([]*atom{a}, s.m.main.head, id) })
	if s.r.IntN(2) == 0 {
		s.add("repair "+id, func() {
			if a := s.m.main.repository.repair("repair-"+id, s.m.main.tree()); a != nil {
				s.gateway().land("repair-"+id, []*atom{a}, nil)
				s.repairs = append(s.repairs, a)
			}
		})
	}
}

// started says that the queue knows the mainline: what it starts from is green.
func (s *schedule) started() bool {
	s.lineup.read()
	return s.lineup.queue.Head != ""
}

// push puts edits on a commit and moves the branch there, past the queue, if they merge.
func (s *schedule) push(edits []*atom, onto, salt string) bool {
	m := s.m.main
	if !s.started() {
		return false
	}
	trees, obstacle := m.repository.apply(m.commits[onto].tree, edits)
	if obstacle != "" {
		return false
	}
	tip := onto
	for i, t := range trees {
		tip = m.commit(tip, t, "", edits[i:i+1], onto, salt)
	}
	for name, red := range trees[len(trees)-1].truth().red {
		if red && !m.tree().truth().red[name] {
			s.m.tally[RedPushes]++
			break
		}
	}
	m.point(tip)
	s.m.tally[Pushes]++
	return true
}

// rewrite draws a mainline that loses its last commits, and gets another one in their place or none.
func (s *schedule) rewrite() {
	back, a := 1+s.r.IntN(3), s.editor.atom("rewrite", false)
	// A branch that is back at a former head is where a push arrives that was given up: nobody can tell.
	exact := s.r.IntN(2) == 0 && !s.m.zombies && !s.latePushes
	s.add("rewrite", func() {
		m := s.m.main
		to := m.head
		for range back {
			if c := m.commits[to]; c.parent != "" {
				to = c.parent
			}
		}
		if to == m.head || !s.started() {
			return
		}
		if !exact {
			if s.push([]*atom{a}, to, "rewrite") {
				s.m.tally[Rewrites]++
			}
			return
		}
		m.point(to)
		s.m.tally[Resets]++
	})
}

// release takes off all holds and the pause, so that nothing has a reason to wait any more. It says whether
// there were any.
func (s *schedule) release() (any bool) {
	s.lineup.read()
	if s.lineup.queue.Paused != nil {
		s.steer("resume at the end", &eventsv1.QueueResumed{Who: "sre"})
		any = true
	}
	for _, c := range s.lineup.queue.Order() {
		for _, h := range c.Holds {
			s.steer("release at the end", &eventsv1.ChangeReleased{Change: c.ID(), Hold: h.Name})
			any = true
		}
	}
	return any
}

// repair mends the mainline by a push if that is what changes may wait for (M23a).
func (s *schedule) repair() bool {
	s.lineup.read()
	if len(s.lineup.queue.Order()) == 0 || s.repaired == maxRepairs {
		return false
	}
	m := s.m.main
	id := fmt.Sprintf("mend%d", s.repaired)
	a := m.repository.repair(id, m.tree())
	if a == nil {
		if !s.blocked() {
			return false
		}
		// The mainline is green, but its proof has failed: it gets versions that can be tried anew.
		a = m.repository.newAtom(id)
		for name := range m.tree().truth().red {
			a.edit(name)
		}
		slices.Sort(a.edits)
	}
	s.repaired++
	return s.push([]*atom{a}, m.head, id)
}

func (m *machine) end(topic string) int64 { return must(m.log.End(context.Background(), topic, 0)) }
