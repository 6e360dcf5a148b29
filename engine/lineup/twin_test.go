package lineup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// naive is a queue as a list of names, without positions.
type naive struct {
	order     []string
	revision  map[string]uint64 // of pending changes
	requires  map[string][]string
	holds     map[string][]string
	settled   map[string]Settled
	intention *eventsv1.LandIntended
	head      string
	moves     uint64
	paused    bool
	refused   bool
}

func newNaive() *naive {
	return &naive{revision: map[string]uint64{}, requires: map[string][]string{}, holds: map[string][]string{}, settled: map[string]Settled{}}
}

func (q *naive) pending(id string) bool { return q.revision[id] > 0 }

func (q *naive) at(r *eventsv1.ChangeRef) bool {
	return q.pending(r.Change) && q.revision[r.Change] == r.Revision
}

func (q *naive) intended(id string) bool {
	return q.intention != nil && q.intention.Change.Change == id
}

// needs reports whether a requires b, perhaps through others that are pending.
func (q *naive) needs(a, b string) bool {
	reached := map[string]bool{a: true}
	for grew := true; grew; {
		grew = false
		for id := range reached {
			if !q.pending(id) {
				continue
			}
			for _, r := range q.requires[id] {
				if !reached[r] {
					reached[r], grew = true, true
				} else if r == a && b == a {
					return true
				}
			}
		}
	}
	return a != b && reached[b]
}

func (q *naive) without(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(q.order), func(id string) bool { return slices.Contains(ids, id) })
}

func (q *naive) forget(id string) {
	q.order = q.without([]string{id})
	delete(q.revision, id)
	delete(q.requires, id)
	delete(q.holds, id)
}

func (q *naive) settle(r *eventsv1.ChangeRef, s State) bool {
	if !q.at(r) || s != Landed && q.intended(r.Change) {
		return false
	}
	q.settled[r.Change] = Settled{r.Revision, s}
	q.forget(r.Change)
	return true
}

// dependants of a change, in queue order.
func (q *naive) dependants(id string) (list []string) {
	for _, d := range q.order {
		if d != id && q.needs(d, id) {
			list = append(list, d)
		}
	}
	return list
}

func (q *naive) admit(a *eventsv1.Admission) bool {
	id := a.Change
	if a.Revision == 0 || len(a.LandingCommits) == 0 || a.Revision <= max(q.revision[id], q.settled[id].Revision) || q.intended(id) {
		return false
	}
	followers := q.dependants(id)
	holds := q.holds[id]
	q.forget(id)
	q.order = append(q.without(followers), append([]string{id}, followers...)...)
	q.revision[id], q.requires[id], q.holds[id] = a.Revision, a.Requires, holds
	return true
}

func (q *naive) move(id, before string) bool {
	if !q.pending(id) || id == before || before != "" && (!q.pending(before) || q.needs(id, before)) {
		return false
	}
	place := 0
	if before != "" {
		place = slices.Index(q.order, before)
	}
	var moving []string
	for i, r := range q.order {
		if r == id || q.needs(id, r) && i >= place {
			moving = append(moving, r)
		}
	}
	rest := q.without(moving)
	place = 0
	if before != "" {
		place = slices.Index(rest, before)
	}
	q.order = slices.Insert(rest, place, moving...)
	// Whoever requires it cannot stand ahead of it.
	var ahead []string
	for _, d := range q.dependants(id) {
		if slices.Index(q.order, d) < slices.Index(q.order, id) {
			ahead = append(ahead, d)
		}
	}
	rest = q.without(ahead)
	q.order = slices.Insert(rest, slices.Index(rest, id)+1, ahead...)
	return true
}

func (q *naive) apply(m proto.Message) bool {
	switch f := m.(type) {
	case *eventsv1.ChangeAdmitted:
		return q.admit(f.Admission)
	case *eventsv1.ChangeRevised:
		return q.admit(f.Admission)
	case *eventsv1.ChangeCancelled:
		revision := f.Revision
		if revision == 0 {
			revision = q.revision[f.Change]
		}
		return q.settle(&eventsv1.ChangeRef{Change: f.Change, Revision: revision}, Cancelled)
	case *eventsv1.ChangeMoved:
		return q.move(f.Change, f.Before)
	case *eventsv1.ChangeHeld:
		if !q.pending(f.Change) {
			return false
		}
		if !slices.Contains(q.holds[f.Change], f.Hold) {
			q.holds[f.Change] = append(q.holds[f.Change], f.Hold)
		}
		return true
	case *eventsv1.ChangeReleased:
		at := slices.Index(q.holds[f.Change], f.Hold)
		if at >= 0 {
			q.holds[f.Change] = slices.Delete(slices.Clone(q.holds[f.Change]), at, at+1)
		}
		return at >= 0
	case *eventsv1.QueuePaused:
		q.paused = true
	case *eventsv1.QueueResumed:
		q.paused = false
	case *eventsv1.LandingsPaused:
		q.refused = true
	case *eventsv1.LandingsResumed:
		was := q.refused
		q.refused = false
		return was
	case *eventsv1.LandIntended:
		if !q.at(f.Change) || q.intention != nil {
			return false
		}
		q.intention = f
	case *eventsv1.LandVoid:
		if q.intention == nil || q.intention.Commits[0] != f.Commit {
			return false
		}
		q.intention = nil
	case *eventsv1.ChangeLanded:
		if q.intention == nil || q.intention.Commits[0] != f.Commits[0] || !q.at(f.Change) {
			return false
		}
		q.intention, q.head = nil, f.Commits[0]
		q.moves++
		return q.settle(f.Change, Landed)
	case *eventsv1.ChangeRejected:
		return q.settle(f.Change, Rejected)
	case *eventsv1.ChangeEjected:
		return q.settle(f.Change, Ejected)
	case *eventsv1.Refused:
		return q.at(f.Change)
	case *eventsv1.MainlineMoved:
		q.head = f.To
		q.moves++
	}
	return true
}

// facts draws one fact about changes a to f.
func randomFact(r *rand.Rand, q *naive, n int) proto.Message {
	id := func() string { return string(rune('a' + r.IntN(6))) }
	change := id()
	ref := &eventsv1.ChangeRef{Change: change, Revision: q.revision[change]}
	if r.IntN(12) == 0 {
		ref.Revision++
	}
	switch r.IntN(17) {
	case 0, 1, 2, 3:
		a := &eventsv1.Admission{Change: change, Revision: uint64(1 + r.IntN(4)), LandingCommits: []*eventsv1.LandingCommit{{Head: "h"}}}
		for range r.IntN(3) {
			// As the gateway does: what requires the change in turn is refused.
			if k := id(); k != change && !q.needs(k, change) {
				a.Requires = append(a.Requires, k)
			}
		}
		if r.IntN(40) == 0 {
			a.LandingCommits = nil
		}
		if r.IntN(2) == 0 {
			return &eventsv1.ChangeRevised{Admission: a}
		}
		return &eventsv1.ChangeAdmitted{Admission: a}
	case 4, 5, 6:
		f := &eventsv1.ChangeMoved{Change: change}
		if r.IntN(3) != 0 {
			f.Before = id()
		}
		return f
	case 7:
		return &eventsv1.ChangeCancelled{Change: change, Revision: uint64(r.IntN(3))}
	case 8:
		return &eventsv1.ChangeHeld{Change: change, Hold: fmt.Sprint(r.IntN(2))}
	case 9:
		return &eventsv1.ChangeReleased{Change: change, Hold: fmt.Sprint(r.IntN(2))}
	case 10:
		return &eventsv1.LandIntended{Change: ref, Commits: []string{fmt.Sprintf("t%d", n)}}
	case 11, 12:
		commit := "t0"
		if q.intention != nil && r.IntN(4) != 0 {
			ref, commit = q.intention.Change, q.intention.Commits[0]
		}
		if r.IntN(3) == 0 {
			return &eventsv1.LandVoid{Change: ref, Commit: commit}
		}
		return &eventsv1.ChangeLanded{Change: ref, Commits: []string{commit}}
	case 13:
		if r.IntN(2) == 0 {
			return &eventsv1.ChangeEjected{Change: ref}
		}
		return &eventsv1.ChangeRejected{Change: ref}
	case 14:
		if r.IntN(2) == 0 {
			return &eventsv1.QueuePaused{StampUs: 7}
		}
		return &eventsv1.QueueResumed{}
	case 15:
		if r.IntN(2) == 0 {
			return &eventsv1.LandingsPaused{Message: "frozen", SinceUs: int64(n)}
		}
		return &eventsv1.LandingsResumed{}
	}
	if r.IntN(2) == 0 {
		return &eventsv1.Refused{Change: ref}
	}
	return &eventsv1.MainlineMoved{To: fmt.Sprintf("m%d", n)}
}

func describe(q *Queue) string {
	var b strings.Builder
	for _, c := range q.Order() {
		fmt.Fprintf(&b, "%s@%d%v", c.ID(), c.Revision(), c.Admission.Requires)
		for _, h := range c.Holds {
			fmt.Fprintf(&b, "+%s", h.Name)
		}
		fmt.Fprint(&b, " ")
	}
	fmt.Fprintf(&b, "head %s %d paused %v refused %v intention %v", q.Head, q.Sequence, q.Paused != nil, q.RefusedByRemote != nil, q.Intention != nil)
	for id := 'a'; id <= 'f'; id++ {
		if s, ok := q.SettledAs(string(id)); ok {
			fmt.Fprintf(&b, " %c@%d %s", id, s.Revision, s.State)
		}
	}
	return b.String()
}

func (q *naive) describe() string {
	var b strings.Builder
	for _, id := range q.order {
		fmt.Fprintf(&b, "%s@%d%v", id, q.revision[id], q.requires[id])
		for _, h := range q.holds[id] {
			fmt.Fprintf(&b, "+%s", h)
		}
		fmt.Fprint(&b, " ")
	}
	fmt.Fprintf(&b, "head %s %d paused %v refused %v intention %v", q.head, q.moves, q.paused, q.refused, q.intention != nil)
	for id := 'a'; id <= 'f'; id++ {
		if s, ok := q.settled[string(id)]; ok {
			fmt.Fprintf(&b, " %c@%d %s", id, s.Revision, s.State)
		}
	}
	return b.String()
}

// TestALineupIsTheListThatItsFactsMake: on random facts, those that come too late among them, the lineup is a
// plain list of names; positions rise along it, and nothing stands ahead of what it requires.
func TestALineupIsTheListThatItsFactsMake(t *testing.T) {
	r := seedtest.Random(t)
	applied := map[string]int{}
	for range 4000 {
		q, twin := New(), newNaive()
		var past []proto.Message
		for n := range 40 {
			m := randomFact(r, twin, n)
			past = append(past, m)
			before := describe(q)
			want := twin.apply(m)
			consequence := q.Apply(m, int64(n))
			story := func() string { return fmt.Sprintf("after %v\n(before: %s)", past[max(0, len(past)-12):], before) }
			if consequence.Applied != want || consequence.Applied == (consequence.Why != "") {
				t.Fatalf("applied %v (%q), want %v: %s", consequence.Applied, consequence.Why, want, story())
			}
			if got, want := describe(q), twin.describe(); got != want {
				t.Fatalf("got  %s\nwant %s\n%s", got, want, story())
			}
			if !consequence.Applied && describe(q) != before {
				t.Fatalf("a fact that came too late changed the queue: %s", story())
			}
			if consequence.Applied {
				applied[fmt.Sprintf("%T", m)]++
			}
			checkOrder(t, q, twin, story)
		}
	}
	if len(applied) < 14 {
		t.Errorf("only these facts had an effect: %v", applied)
	}
}

func checkOrder(t *testing.T, q *Queue, twin *naive, story func() string) {
	t.Helper()
	place := map[string]int{}
	for i, c := range q.Order() {
		place[c.ID()] = i
		if i > 0 && q.Order()[i-1].Position >= c.Position {
			t.Fatalf("%s does not stand behind %s: %s", c.ID(), q.Order()[i-1].ID(), story())
		}
		if q.Pending(c.ID()) != c || q.PendingAt(c.Ref()) != c {
			t.Fatalf("%s is not found: %s", c.ID(), story())
		}
	}
	for _, c := range q.Order() {
		if twin.needs(c.ID(), c.ID()) {
			continue // a circle, which the gateway refuses; none of it can land
		}
		for _, required := range c.Admission.Requires {
			if p, pending := place[required]; pending && p > place[c.ID()] && !twin.needs(required, required) {
				t.Fatalf("%s stands ahead of %s, which it requires: %s", c.ID(), required, story())
			}
		}
	}
}
