package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
)

func waitingRequest(publisher, id, change, ref string, requires ...string) *asked {
	return &asked{publisher: publisher, Request: admission.Request{ID: id, Land: &eventsv1.LandRequest{
		Change: change, Requires: requires, Entries: []*eventsv1.Entry{{Ref: ref}},
	}}}
}

// TestAFloodOfOnePublisherLeavesOthersTheirTurns, and one of a ref the publisher's other refs.
func TestAFloodOfOnePublisherLeavesOthersTheirTurns(t *testing.T) {
	var waiting []*asked
	for i := range 1000 {
		waiting = append(waiting, waitingRequest("bot", fmt.Sprint("flood", i), fmt.Sprint("c", i), fmt.Sprint("ghost", i)))
	}
	for i := range 1000 {
		waiting = append(waiting, waitingRequest("ci", fmt.Sprint("same", i), fmt.Sprint("d", i), "one"))
	}
	waiting = append(waiting, waitingRequest("ci", "other", "other", "other"), waitingRequest("ada", "good", "good", "good"))
	batch, rest := fairTurns(waiting, 512)
	if len(batch) != 512 || len(batch)+len(rest) != len(waiting) {
		t.Fatalf("%d taken of %d, %d left", len(batch), len(waiting), len(rest))
	}
	for id, within := range map[string]int{"good": 3, "other": 5} {
		if at := slices.IndexFunc(batch, func(a *asked) bool { return a.ID == id }); at < 0 || at >= within {
			t.Errorf("%s is number %d", id, at)
		}
	}
}

// TestTurnsKeepTheOrderOfWhatDepends on random requests: each is taken once, behind all that it must wait for; and a publisher
// that has a turn left is never more than one behind another, but for what others needed.
func TestTurnsKeepTheOrderOfWhatDepends(t *testing.T) {
	random := seedtest.Random(t)
	for range 2000 {
		var waiting []*asked
		place := map[*asked]int{}
		for i := range random.IntN(40) {
			var requires []string
			if random.IntN(4) == 0 {
				requires = []string{fmt.Sprint("c", random.IntN(8))}
			}
			a := waitingRequest(fmt.Sprint("p", random.IntN(4)), fmt.Sprint("r", random.IntN(30)), fmt.Sprint("c", random.IntN(20)), fmt.Sprint("b", random.IntN(10)), requires...)
			waiting, place[a] = append(waiting, a), i
		}
		var order []*asked
		for rest := slices.Clone(waiting); len(rest) > 0; {
			most := 1 + random.IntN(8)
			batch, left := fairTurns(rest, most)
			if len(batch) < min(most, len(rest)) || len(batch)+len(left) != len(rest) {
				t.Fatalf("%d and %d of %d", len(batch), len(left), len(rest))
			}
			if !slices.IsSortedFunc(left, func(a, b *asked) int { return place[a] - place[b] }) {
				t.Fatal("what is left has lost its order")
			}
			order, rest = append(order, batch...), left
		}
		for i, a := range order {
			for _, b := range order[i+1:] {
				if place[b] < place[a] && mustPrecede(b, a) {
					t.Fatalf("%v before %v, which it must wait for", a.Request, b.Request)
				}
			}
		}
	}
}

// mustPrecede reports whether a request, read before b, is to be answered first.
func mustPrecede(a, b *asked) bool {
	return a.ID == b.ID || a.Land.Change == b.Land.Change || slices.Contains(b.Land.Requires, a.Land.Change)
}

// What git takes long to fetch had no bound of its own where much else does, and what came after it for the same change waited with it.
func TestWhatIsNotFetchedInAnHourIsGivenUp(t *testing.T) {
	a := waitingRequest("ada", "slow", "c", "slow")
	a.slow(gitrepo.ErrSlow)
	if answers, open := splitReached([]*asked{a}); len(answers) > 0 || len(open) != 1 {
		t.Fatalf("at first it is answered: %v", a.problem)
	}
	a.slowSince = a.slowSince.Add(-slowest - time.Second)
	a.slow(gitrepo.ErrSlow)
	if answers, _ := splitReached([]*asked{a}); len(answers) != 1 || a.problem == nil || a.problem.Code != admission.RepositoryUnreachable {
		t.Errorf("after an hour: %v, %v", a.problem, a.unreachable)
	}
}
