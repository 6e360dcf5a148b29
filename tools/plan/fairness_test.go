package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"landfall.build/events/seedtest"
)

// flood is a queue that is never empty: whatever is decided, others arrive behind. A round is a minute.
type flood struct {
	r       *rand.Rand
	slots   int
	pending []*arrival
	landed  map[string]bool
	made    int
	round   int
}

type arrival struct {
	id       string
	at, deep int // its round, and how many were before it
	good     bool
	success  float64
	rounds   int // of a build
	ahead    []string
	breaks   []string // which of them it is red with
	builds   []floodBuild
}

type floodBuild struct {
	assumed []string
	state   string
	since   int
}

const longestBuild = 4

func (f *flood) arrive() {
	f.made++
	a := &arrival{id: fmt.Sprint("C", f.made), at: f.round, deep: len(f.pending), good: f.r.IntN(8) > 0, success: f.r.Float64(), rounds: 1 + f.r.IntN(longestBuild)}
	for _, o := range f.pending {
		if f.r.IntN(2) == 0 {
			a.ahead = append(a.ahead, o.id)
			if f.r.IntN(6) == 0 {
				a.breaks = append(a.breaks, o.id)
			}
		}
	}
	f.pending = append(f.pending, a)
}

func yes(x float64) number { return number{value: x, given: true} }

func (f *flood) document() *document {
	at := func(round int) string { return worldNow.Add(time.Duration(round) * time.Minute).Format(time.RFC3339) }
	d := &document{Now: at(f.round), Slots: yes(float64(f.slots)), Threshold: yes(0.05), AbortThreshold: yes(0.02), BypassThreshold: yes(0.7)}
	for _, a := range f.pending {
		d.Changes = append(d.Changes, changeForm{ID: a.id, Success: yes(a.success), Duration: &durationForm{yes(60 * float64(a.rounds)), yes(30)}})
		for _, k := range a.ahead {
			d.Conflicts = append(d.Conflicts, conflictForm{Ahead: k, Behind: a.id, Probability: yes(0.1)})
		}
		for _, b := range a.builds {
			d.Builds = append(d.Builds, buildForm{Change: a.id, Assumed: b.assumed, State: b.state, Started: at(b.since)})
		}
	}
	return d
}

func (f *flood) find(id string) *arrival {
	i := slices.IndexFunc(f.pending, func(a *arrival) bool { return a.id == id })
	return f.pending[i]
}

// work ends the builds whose time is over.
func (f *flood) work() {
	for _, a := range f.pending {
		for i := range a.builds {
			b := &a.builds[i]
			if b.state != stateRunning || f.round < b.since+a.rounds {
				continue
			}
			b.state = stateRed
			if a.good && !slices.ContainsFunc(a.breaks, func(k string) bool { return f.landed[k] || slices.Contains(b.assumed, k) }) {
				b.state = stateGreen
			}
		}
	}
}

// follow carries the plan out.
func (f *flood) follow(p *Plan) (decided []*arrival) {
	for _, x := range p.Abort {
		a := f.find(x.Change)
		a.builds = slices.DeleteFunc(a.builds, func(b floodBuild) bool {
			return b.state == stateRunning && slices.Equal(b.assumed, x.Assumed)
		})
	}
	for _, x := range p.Builds {
		if x.Action == actionStart {
			a := f.find(x.Change)
			a.builds = append(a.builds, floodBuild{x.Assumed, stateRunning, f.round})
		}
	}
	for _, d := range p.Decisions {
		if d.Decision != "wait" {
			a := f.find(d.Change)
			f.leave(a, d.Decision == "land")
			decided = append(decided, a)
		}
	}
	return decided
}

// leave takes a change out of the queue, and out of what the builds of others assume.
func (f *flood) leave(gone *arrival, lands bool) {
	f.landed[gone.id] = lands
	f.pending = slices.DeleteFunc(f.pending, func(a *arrival) bool { return a == gone })
	for _, a := range f.pending {
		at := slices.Index(a.ahead, gone.id)
		if at < 0 {
			continue
		}
		a.ahead = slices.Delete(a.ahead, at, at+1)
		a.builds = slices.DeleteFunc(a.builds, func(b floodBuild) bool { return slices.Contains(b.assumed, gone.id) != lands })
		for i := range a.builds {
			a.builds[i].assumed = slices.DeleteFunc(slices.Clone(a.builds[i].assumed), func(id string) bool { return id == gone.id })
		}
	}
}

// TestNoChangeStarvesWhateverArrivesBehind: with equal benefits, what is first in the queue has nothing ahead, is
// needed for sure, and comes before all that is as much needed. So it waits at most for one slot to become free,
// and one build; and whoever has n before it, n times as long.
func TestNoChangeStarvesWhateverArrivesBehind(t *testing.T) {
	r := seedtest.Random(t)
	decided, longest := 0, 0
	for range 12 {
		f := &flood{r: r, slots: 1 + r.IntN(3), landed: map[string]bool{}}
		asRun := r.IntN(2) == 0
		for ; f.round < 150; f.round++ {
			for len(f.pending) < 7 {
				f.arrive()
			}
			f.work()
			problems := &problems{}
			q := f.document().check(problems)
			if err := problems.err(); err != nil {
				t.Fatal(err)
			}
			for _, a := range f.follow(planner{asRun: asRun}.plan(q)) {
				decided++
				longest = max(longest, f.round-a.at)
			}
			for _, a := range f.pending {
				if bound := (a.deep + 1) * (2*longestBuild + 1); f.round-a.at > bound {
					t.Fatalf("%+v is not decided after %d rounds; with %d before it and %d slots it is at most %d", a, f.round-a.at, a.deep, f.slots, bound)
				}
			}
		}
	}
	t.Logf("%d decided, the longest after %d rounds", decided, longest)
	if decided < 500 {
		t.Errorf("only %d were decided", decided)
	}
}
