package proof

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// onlyAhead is the one pending change ahead of another, if there is just one, it merges and is green on the
// mainline as it stands, and nothing else keeps it from landing there; else nil.
func (k *checker) onlyAhead(c *lineup.Change, base *tree) *lineup.Change {
	// What lies about conflicts, or about results, may be believed until the guard looks. A decision that was
	// right before an operator moved a change, or somebody pushed past the queue, may be answered behind that.
	if k.s.sabotaged || k.s.flaky || k.s.slow || k.s.failing || k.s.o.Sabotage != "" || k.s.tolerance != nil || k.s.worlds != nil || k.moved || k.foreign || base.unknown() || base.isRed("//:repository") {
		return nil
	}
	var ahead *lineup.Change
	for _, a := range k.fold.queue.Order() {
		if a.Position >= c.Position || a == c {
			continue
		}
		if ahead != nil {
			return nil
		}
		ahead = a
	}
	if ahead == nil || len(ahead.Admission.Requires) > 0 || len(c.Admission.Requires) > 0 {
		return nil
	}
	r := k.x.main.repository
	s := r.study(base, r.editsOf(ahead.Admission.LandingCommits))
	if s.obstacle != "" || s.invalid || s.hidden() || s.isNotGreen(base, nil) != "" {
		return nil
	}
	return ahead
}

// hidden says that the targets of one of the trees are not known.
func (s study) hidden() bool { return slices.ContainsFunc(s.trees, (*tree).unknown) }

// overtakes says that a change that landed past another one spoiled it: alone that one was green (M19, Land).
func (k *checker) overtakes(f *eventsv1.ChangeLanded, c *lineup.Change) {
	if len(f.Bypasses) == 0 {
		return
	}
	m, r := k.x.main, k.x.main.repository
	ahead := k.onlyAhead(c, m.commits[f.Base].tree)
	if ahead == nil {
		return
	}
	onto := m.commits[f.Commits[len(f.Commits)-1]].tree
	s := r.study(onto, r.editsOf(ahead.Admission.LandingCommits))
	// That three changes do not merge, and each two of them do, is beyond an analysis of pairs (M24).
	target := s.reddens(onto, nil)
	if s.obstacle != "" || s.invalid || target == "" {
		return
	}
	if c.Admission.Mainline != f.Base || ahead.Admission.Mainline != f.Base {
		// A third one has landed since. What the two make together was built without it, and is what they make
		// with it for all that pairs can tell (M24).
		k.tally[Spoiled]++
	} else {
		k.bad(Overtaken, "%s landed past %s, which was green without it and is not with it", refString(f.Change), ahead.ID())
	}
}

// tooEarly says that a rejected change is green once the one ahead of it has landed (M19, Reject).
func (k *checker) tooEarly(f *eventsv1.ChangeRejected, c *lineup.Change) {
	m, r := k.x.main, k.x.main.repository
	base := m.commits[f.Base].tree
	ahead := k.onlyAhead(c, base)
	if ahead == nil {
		return
	}
	trees, _ := r.apply(base, r.editsOf(ahead.Admission.LandingCommits))
	onto := trees[len(trees)-1]
	s := r.study(onto, r.editsOf(c.Admission.LandingCommits))
	if s.obstacle != "" || s.invalid || s.hidden() || s.isNotGreen(onto, nil) != "" {
		return
	}
	if slices.ContainsFunc(f.Reason.GetFailed(), func(p *eventsv1.Proof) bool { return k.x.isHub(p.Version.Target) }) {
		return // in a hub nobody is waited for
	}
	k.bad(WronglyRejected, "%s was rejected while %s was pending, with which it is green", refString(f.Change), ahead.ID())
}

// withdraws notes what a rejection or ejection names: that has had its effect, and speaks against nobody any
// more (M20a).
func (k *checker) withdraws(change *eventsv1.ChangeRef, r *eventsv1.Reason, offset int64) {
	for _, p := range r.GetFailed() {
		v := evidence.Version{Target: p.Version.Target, Hash: p.Version.Hash}
		if p.Attempt <= k.withdrawn[v] || k.hadEffect(p, offset) {
			k.bad(WronglyRejected, "%s is out because of attempt %d at %s, which had its effect before", refString(change), p.Attempt, v.Target)
		}
		k.withdrawn[v] = max(k.withdrawn[v], p.Attempt)
	}
}

// heeds checks that what is to land is not held (M19). Of who comes in between nobody can know while appends
// arrive late.
func (k *checker) heeds(f *eventsv1.LandIntended) {
	if k.s.had.faults {
		return
	}
	q := k.fold.queue
	if c := q.PendingAt(f.Change); c != nil && (len(c.Holds) > 0 || q.Paused != nil) {
		k.bad(Unheeded, "%s is landed though it is held, or the queue is paused", refString(f.Change))
	}
}

// told checks that the log tells the moves of the mainline, each from where the one before it ended.
func (k *checker) told(f *eventsv1.MainlineMoved, head string) {
	m := k.x.main
	k.drops(f)
	switch {
	case f.From != head:
		k.bad(Disordered, "the log lets the mainline go to %.8s from %.8s, and it was at %.8s", f.To, f.From, head)
	case !f.Initial && !f.Forced && m.commits[f.To].parent != f.From:
		k.bad(Disordered, "the log tells several commits, up to %.8s, as one", f.To)
	}
	if c := m.commits[f.To]; c.by != "" && !f.Forced && !f.Initial {
		k.bad(Lost, "%.8s of %s is taken for a push past the queue", c.id, c.by)
	}
}

// reach checks that the log says once that the mainline cannot be reached, or takes nothing, and once that it does.
func (k *checker) reach(m proto.Message) {
	switch f := m.(type) {
	case *eventsv1.MainlineUnreachable:
		k.tally[OutagesTold]++
		if k.away != nil && k.away.Trouble == f.Trouble {
			k.bad(Disordered, "the log says again what it has said: %v", f)
		}
		k.away = f
	case *eventsv1.MainlineReachable:
		if k.away == nil {
			k.bad(Disordered, "the log says that the mainline is back, and not that it was away")
		}
		k.away = nil
	case *eventsv1.LandingsPaused:
		k.tally[PausedByRemote]++
		if k.frozen != nil && k.frozen.Message == f.Message {
			k.bad(Disordered, "the log says again what it has said: %v", f)
		}
		k.frozen = f
	case *eventsv1.LandingsResumed:
		if k.frozen == nil {
			k.bad(Disordered, "the log says that the remote takes pushes again, and not that it refused them")
		}
		k.frozen = nil
	}
}

// drops checks that a push that rewrote the mainline is told with the landings that it took off.
func (k *checker) drops(f *eventsv1.MainlineMoved) {
	var dropped, told []string
	for _, l := range k.landings {
		if !k.x.main.contains(f.To, l.Commits[len(l.Commits)-1]) {
			dropped = append(dropped, refString(l.Change))
		}
	}
	for _, c := range f.Dropped {
		told = append(told, refString(c))
	}
	k.tally[Dropped] += len(told)
	if f.Forced && !slices.Equal(dropped, told) {
		k.bad(Disordered, "a rewrite to %.8s drops %v, and the log says %v", f.To, dropped, told)
	}
}

// foreignKept checks that what came past the queue is there unless somebody took it off.
func (k *checker) foreignKept() {
	m := k.x.main
	for id := range m.heads {
		if c := m.commits[id]; c.by == "" && !m.removed[id] && !m.contains(m.head, id) {
			k.bad(Lost, "%.8s, which came past the queue, is not on the mainline any more", id)
		}
	}
	if !k.s.restless && k.fold.queue.Head != m.head {
		k.bad(Disordered, "the mainline is at %.8s, and the log says %.8s", m.head, k.fold.queue.Head)
	}
}

// refusedAgain checks that a change that the remote refuses is not passed for ever: each change that is refused first may begin
// the count of the others again.
func (k *checker) refusedAgain(f *eventsv1.LandVoid) {
	if !f.Refused {
		return
	}
	change := f.Change.Change
	k.recent[change] = true
	k.passed[change] += 0
	if n := k.passed[change]; n > 3*len(k.passed) {
		k.bad(Undecided, "%s is refused again though %d others have landed between its refusals", refString(f.Change), n)
	}
}

// passes counts that a change has landed past those that were refused.
func (k *checker) passes(landed string) {
	for change := range k.recent {
		if change != landed {
			k.passed[change]++
		}
	}
	clear(k.recent)
}
