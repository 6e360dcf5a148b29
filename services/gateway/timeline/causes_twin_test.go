package timeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"landfall.build/events/seedtest"
	"landfall.build/services/gateway/view"
)

// causeAt is why a worker would be idle of a queue at a moment, looked up one version after the other.
func causeAt(a Activity, at time.Time) (Cause, []string) {
	within := func(s view.Span) bool { return !s.From.After(at) && (s.To.IsZero() || at.Before(s.To)) }
	asked := map[view.Version][]view.Span{}
	waits, claims := map[view.Version][]view.Version{}, map[view.Version]string{}
	preparing := false
	for _, ask := range a.Asks {
		made := ask.From
		if ask.Prepared == nil {
			made = ask.Until
		}
		preparing = preparing || within(view.Span{From: ask.Scheduled, To: made}) && !ask.Scheduled.Equal(made)
		for i, w := range ask.Prepared.GetVersions() {
			v := view.Version{Target: w.Target, Hash: w.Hash}
			asked[v] = append(asked[v], view.Span{From: ask.From, To: ask.Until})
			if _, had := claims[v]; !had {
				claims[v] = ""
				for _, c := range ask.Prepared.Claims {
					if int(c.Version) == i && len(c.Labels) > 0 {
						claims[v] = c.Labels[0]
					} else if int(c.Version) == i {
						claims[v] = "!" + c.Exclusive[0]
					}
				}
				for _, n := range ask.Prepared.Needs[i].Versions {
					of := ask.Prepared.Versions[n]
					waits[v] = append(waits[v], view.Version{Target: of.Target, Hash: of.Hash})
				}
			}
		}
	}
	running := 0
	for _, r := range a.Runs {
		if within(view.Span{From: r.From, To: r.To}) {
			running++
		}
	}
	cause, needs := NoStep, []string(nil)
	found := func(c Cause, need string) {
		if slices.Index(Causes(), c) < slices.Index(Causes(), cause) {
			cause, needs = c, nil
		}
		if c == cause && need != "" && !slices.Contains(needs, need) {
			needs = append(needs, need)
		}
	}
	if preparing {
		found(Preparing, "")
	}
	for v := range asked {
		var since *time.Time
		for _, s := range union(asked[v]) {
			if within(s) {
				since = &s.From
			}
		}
		if since == nil {
			continue
		}
		var last *view.Span
		runs, more := false, false
		for _, r := range a.Attempts[v] {
			switch {
			case within(r):
				runs = true
			case r.From.After(at):
				more = true
			default:
				last = &r
			}
		}
		if runs || last != nil && (last.Settled && (!more || since.Before(last.To)) || last.Failed && !more) {
			continue
		}
		blocked := Cause("")
		for _, of := range waits[v] {
			if !slices.ContainsFunc(a.Attempts[of], func(r view.Span) bool { return r.Settled && !r.To.After(at) }) {
				blocked = Dependencies
			}
		}
		name := claims[v]
		if blocked == "" && name != "" && name[0] == '!' {
			for other, runs := range a.Attempts {
				if other != v && claims[other] == name && slices.ContainsFunc(runs, within) {
					blocked = Exclusive
				}
			}
		}
		switch {
		case blocked != "":
			found(blocked, "")
		case name != "" && name[0] != '!':
			found(Needs, name)
		case a.Limit > 0 && running >= a.Limit:
			found(Limited, "")
		default:
			found(NotKnown, "")
		}
	}
	slices.Sort(needs)
	return cause, needs
}

// TestCausesAreThoseOfEachMoment in random histories of a queue.
func TestCausesAreThoseOfEachMoment(t *testing.T) {
	random := seedtest.Random(t)
	seen := map[Cause]int{}
	rare := func(c Cause) bool { return seen[c] < 100 }
	for n := 0; n < 400 || n < 4000 && slices.ContainsFunc(Causes(), rare); n++ {
		r := rand.New(rand.NewPCG(random.Uint64(), 0))
		takes := map[string]string{"a": "a", "b": "b gpu", "c": "c arm", "d": "d !db", "e": "e !db", "f": "f <a", "g": "g"}
		var list []view.Asking
		for range 1 + r.IntN(4) {
			scheduled := 1 + r.IntN(30)
			prepared := scheduled + r.IntN(6)
			ended := prepared + r.IntN(30)
			if r.IntN(4) == 0 {
				ended = 0
			}
			var targets []string
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
				if r.IntN(3) == 0 || name == "a" {
					targets = append(targets, takes[name])
				}
			}
			if r.IntN(6) == 0 {
				prepared, ended = 0, scheduled+1+r.IntN(9)
			}
			list = append(list, asks(scheduled, prepared, ended, targets...))
		}
		var runs []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			at := 1 + r.IntN(40)
			for n := r.IntN(4); n > 0; n-- {
				end := at + 1 + r.IntN(8)
				state := []string{"passed", "failed", "aborted"}[r.IntN(3)]
				if n == 1 && r.IntN(5) == 0 {
					state, end = "running", 0
				}
				runs = append(runs, fmt.Sprintf("m/%d %s %s %d %d", r.IntN(9), name, state, at, end))
				at = end + r.IntN(5)
			}
		}
		a := activity(list, runs...)
		a.Limit = r.IntN(4)
		made := merge([]Activity{{Activity: a}}, s(1), s(80))
		for half := 3; half < 150; half++ {
			at := start.Add(time.Duration(half) * 500 * time.Millisecond)
			i := len(made) - 1
			for ; made[i].at.After(at); i-- {
			}
			want, needs := causeAt(Activity{Activity: a}, at)
			if got := made[i]; got.cause != want || !slices.Equal(got.needs, needs) {
				t.Fatalf("at %v it is %s %v, want %s %v\nasked %v\nruns %q, %d at a time", at.Sub(start).Seconds(), got.cause, got.needs, want, needs, list, runs, a.Limit)
			}
			seen[want]++
		}
	}
	for _, c := range Causes() {
		if rare(c) {
			t.Errorf("%s was the cause %d times", c, seen[c])
		}
	}
}
