package proof

import (
	"fmt"
	"slices"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// operation is something that a client or a bystander does.
type operation struct {
	at   int64
	name string
	do   func()
}

// add notes an operation on a queue at a random time in the span.
func (s *schedule) add(x *site, name string, do func()) {
	if x != s.m.sites[0] {
		name = x.queue + " " + name
	}
	s.ops = append(s.ops, operation{at: s.r.Int64N(s.span), name: name, do: do})
}

// maxDrawn is how many changes there are at most for a queue, but for those that repair the mainline.
const maxDrawn = 12

// operations draws what clients and bystanders do with a queue.
func (s *schedule) operations(x *site) {
	n := 4 + s.r.IntN(maxDrawn-3)
	if len(s.m.sites) > 1 {
		n = 2 + s.r.IntN(6) // so that a schedule costs about the same
	}
	if s.m.leaves == M19Land || s.m.leaves == M19Reject {
		// Fairness is checked of a change that has one ahead of it, and that one waits.
		n = 2 + s.r.IntN(2)
		x.editor.peace = 4
		held := "c0"
		if s.m.leaves == M19Reject {
			held = fmt.Sprintf("c%d", n-1) // only what is drawn later can mend what is drawn first
		}
		s.add(x, "hold", func() { x.steer("hold", &eventsv1.ChangeHeld{Change: held, Hold: "all along"}) })
	}
	for i := range n {
		s.change(x, fmt.Sprintf("c%d", i), i, n)
	}
	for i := range max(0, s.r.IntN(8)-4) {
		s.directPush(x, fmt.Sprintf("push%d", i))
	}
	if s.r.IntN(10) == 0 {
		s.rewrite(x)
	}
	if s.r.IntN(6) == 0 {
		s.add(x, "pause", func() { x.steer("pause", &eventsv1.QueuePaused{Who: "sre"}); s.m.tally[Pauses]++ })
		if s.r.IntN(2) == 0 {
			s.add(x, "resume", func() { x.steer("resume", &eventsv1.QueueResumed{Who: "sre"}) })
		}
	}
	if s.r.IntN(10) == 0 {
		settings := drawSettings(s.r, "second")
		s.setHubs(x, settings)
		x.least = x.least.orLess(retriesOf(settings.Steps))
		s.add(x, "configure", func() {
			if !slices.Equal(x.settings.Hubs, settings.Hubs) {
				s.m.tally[HubChanges]++
			}
			x.settings = settings
		})
	}
	for i := range s.r.IntN(3) {
		s.add(x, fmt.Sprintf("tick%d", i), func() { s.m.enumeratorOf(x).tick(x) })
	}
}

// change draws a change and what its author and others do with it.
func (s *schedule) change(x *site, id string, place, n int) {
	edits := func(revision int) (list []*atom) {
		for i := range 1 + s.r.IntN(8)/6*(1+s.r.IntN(2)) {
			list = append(list, x.editor.atom(fmt.Sprintf("%s.%d.%d", id, revision, i), false))
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
	s.add(x, "admit "+id, func() { x.land(request{change: id, edits: first, requires: needs}) })
	switch s.r.IntN(16) {
	case 0, 1:
		revision := uint64(s.r.IntN(3)) // 0: whichever is pending
		s.add(x, "cancel "+id, func() { x.steer("x"+id, &eventsv1.ChangeCancelled{Change: id, Revision: revision}) })
	case 2, 3:
		second, needs := edits(2), requires(n)
		s.add(x, "revise "+id, func() { x.land(request{change: id, edits: second, requires: needs}) })
	case 4, 5:
		before := ""
		if s.r.IntN(2) == 0 {
			before = fmt.Sprintf("c%d", s.r.IntN(place+1))
		}
		s.add(x, "move "+id, func() { x.steer("m"+id, &eventsv1.ChangeMoved{Change: id, Before: before}) })
	case 8:
		// It was a flake, they hope.
		s.add(x, "again "+id, func() { x.landAgain(request{change: id, edits: first, requires: needs}) })
		s.ops[len(s.ops)-1].at += int64(s.r.IntN(3000)) // once it is rejected, if it is
	case 6, 7:
		hold := fmt.Sprintf("h%d", s.r.IntN(2))
		s.add(x, "hold "+id, func() { x.steer("h"+id, &eventsv1.ChangeHeld{Change: id, Hold: hold}) })
		if s.r.IntN(2) == 0 {
			s.add(x, "release "+id, func() { x.steer("r"+id, &eventsv1.ChangeReleased{Change: id, Hold: hold}) })
		}
	}
}

// directPush draws what somebody lands past the queue, red or not, and perhaps a change that repairs it.
func (s *schedule) directPush(x *site, id string) {
	a := x.editor.atom(id, true)
	s.add(x, "push "+id, func() { x.push([]*atom{a}, x.main.head, id) })
	if s.r.IntN(2) == 0 {
		s.add(x, "repair "+id, func() {
			if a := x.main.repository.repair("repair-"+id, x.main.tree()); a != nil {
				x.land(request{change: "repair-" + id, edits: []*atom{a}})
			}
		})
	}
}

// rewrite draws a mainline that loses its last commits, and gets another one in their place or none.
func (s *schedule) rewrite(x *site) {
	back, a := 1+s.r.IntN(3), x.editor.atom("rewrite", false)
	// A branch that is back at a former head is where a push arrives that was given up: nobody can tell.
	exact := s.r.IntN(2) == 0 && !s.m.zombies && !s.latePushes
	s.add(x, "rewrite", func() {
		m := x.main
		to := m.head
		for range back {
			if c := m.commits[to]; c.parent != "" {
				to = c.parent
			}
		}
		if to == m.head || !x.started() {
			return
		}
		if !exact {
			if x.push([]*atom{a}, to, "rewrite") {
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
func (x *site) release() (any bool) {
	x.lineup.read()
	if x.lineup.queue.Paused != nil {
		x.steer("resume at the end", &eventsv1.QueueResumed{Who: "sre"})
		any = true
	}
	for _, c := range x.lineup.queue.Order() {
		for _, h := range c.Holds {
			x.steer("release at the end", &eventsv1.ChangeReleased{Change: c.ID(), Hold: h.Name})
			any = true
		}
	}
	return any
}

// bystand lands a change that affects no target if some wait that the remote has refused, or landings are paused for it.
func (x *site) bystand() bool {
	x.lineup.read()
	waits := x.lineup.queue.RefusedByRemote != nil || slices.ContainsFunc(x.lineup.queue.Order(), func(c *lineup.Change) bool { return x.main.refused[c.ID()] > 0 })
	if !waits || x.bystanders == maxDrawn {
		return false
	}
	id := fmt.Sprintf("bystander%d", x.bystanders)
	x.bystanders++
	a := x.main.repository.newAtom(id)
	a.touch("docs/" + id)
	x.land(request{change: id, edits: []*atom{a}})
	x.main.tries += maxTries
	x.main.again = 5
	return true
}

// repair mends the mainline by a push if that is what changes may wait for (M23a).
func (x *site) repair() bool {
	x.lineup.read()
	if len(x.lineup.queue.Order()) == 0 || x.repaired == maxRepairs {
		return false
	}
	m := x.main
	id := fmt.Sprintf("mend%d", x.repaired)
	a := m.repository.repair(id, m.tree())
	if a == nil {
		if !x.blocked() {
			return false
		}
		// The mainline is green, but its proof has failed: it gets versions that can be tried anew.
		a = m.repository.newAtom(id)
		for name := range m.tree().truth().red {
			a.edit(name)
		}
		slices.Sort(a.edits)
	}
	x.repaired++
	return x.push([]*atom{a}, m.head, id)
}
