package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// decision is M19.
func (w *world) decision(i int) string {
	land, reject := w.outcome(i, 0) == stateGreen && !w.held[i], w.outcome(i, 0) == stateRed
	alone := false // a class that nothing ahead affects is red
	for x, k := range w.partition(i) {
		alone = alone || k == 0 && w.version(i, x, 0) == stateRed
	}
	requires := false
	for k := range i {
		requires = requires || w.required[[2]int{i, k}]
	}
	every := true
	w.eachPath(i, func(s uint) {
		land = land && (w.dead(i, s) || w.outcome(i, s) == stateGreen)
		ruledOut := false
		for j := range i {
			ruledOut = ruledOut || w.ahead[i]&s&(1<<j) != 0 && w.ruledOut(i, j, s)
		}
		every = every && (ruledOut || w.outcome(i, s) == stateRed)
	})
	switch {
	case land:
		return "land"
	case reject && (alone || every && !requires):
		return "reject"
	}
	return "wait"
}

// outstanding are the versions that a path waits for.
func (w *world) outstanding(i int, s uint) (list []string) {
	for x, k := range w.partition(i) {
		if w.version(i, x, s&k) == "" {
			list = append(list, fmt.Sprint(i, " ", x, " ", s&k))
		}
	}
	return list
}

// plan is M14 to M19 and M26 by looking at every path. Of the paths that wait for the same versions
// the best is listed, and one whose versions are all being made is not started (M25).
func (w *world) plan() *Plan {
	out := &Plan{Exact: true, Decisions: []Decision{}, Builds: []Build{}, Abort: []Abort{}}
	for i := range w.p {
		d := Decision{Change: name(i), Decision: w.decision(i), Bypasses: []string{}}
		if d.Decision != "wait" {
			d.Bypasses = namesOf(w.ahead[i])
		}
		out.Decisions = append(out.Decisions, d)
	}
	var paths []worldPath
	for i := range w.p {
		w.eachPath(i, func(s uint) {
			p := w.path(i, s)
			if !p.over && out.Decisions[i].Decision == "wait" && p.needed > 0 && (p.needed >= w.threshold || w.ahead[i] == 0) {
				paths = append(paths, p)
			}
		})
	}
	slices.SortFunc(paths, func(a, b worldPath) int {
		rejectsA, rejectsB := bits.OnesCount(w.ahead[a.i]&^a.s), bits.OnesCount(w.ahead[b.i]&^b.s)
		switch {
		case a.value != b.value:
			return int(math.Copysign(1, b.value-a.value))
		case a.i != b.i:
			return a.i - b.i
		case a.needed != b.needed:
			return int(math.Copysign(1, b.needed-a.needed))
		case rejectsA != rejectsB:
			return rejectsA - rejectsB
		}
		if differ := bits.TrailingZeros(a.s ^ b.s); a.s&(1<<differ) != 0 {
			return -1
		}
		return 1
	})
	seen := map[string]bool{}
	var listed []worldPath
	for _, p := range paths {
		if key := strings.Join(w.outstanding(p.i, p.s), ","); !seen[key] && len(listed) != w.slots {
			seen[key] = true
			listed = append(listed, p)
		}
	}
	making, running, held := map[string]bool{}, map[[2]uint]bool{}, 0
	for _, b := range w.builds {
		if b.state != stateRunning {
			continue
		}
		p := w.path(b.change, b.assumed)
		over := p.over || out.Decisions[b.change].Decision != "wait"
		among := slices.ContainsFunc(listed, func(l worldPath) bool { return l.i == b.change && l.s == b.assumed })
		nearlyDone := w.mean[b.change] > 0 && b.elapsed >= 0.8*w.mean[b.change]
		if over || !among && p.needed < w.abort && !nearlyDone {
			out.Abort = append(out.Abort, Abort{Change: name(b.change), Assumed: namesOf(b.assumed)})
			continue
		}
		held++
		running[[2]uint{uint(b.change), b.assumed}] = true
		for _, v := range w.outstanding(b.change, b.assumed) {
			making[v] = true
		}
	}
	for _, p := range listed {
		versions := w.outstanding(p.i, p.s)
		b := Build{Change: name(p.i), Assumed: namesOf(p.s), Needed: p.needed, Value: p.value, Action: actionNone}
		missing := slices.ContainsFunc(versions, func(v string) bool { return !making[v] })
		switch {
		case running[[2]uint{uint(p.i), p.s}]:
			b.Action = actionKeep
		case missing && (w.slots < 0 || held < w.slots):
			b.Action = actionStart
			held++
			for _, v := range versions {
				making[v] = true
			}
		}
		out.Builds = append(out.Builds, b)
	}
	return out
}

// TestAPlanIsWhatLookingAtEveryPathGives, by the formulas written out for the numbers of the snapshot.
func TestAPlanIsWhatLookingAtEveryPathGives(t *testing.T) {
	r := seedtest.Random(t)
	count := map[string]int{}
	for x := range 20_000 {
		w := randomWorld(r)
		if x%2000 == 0 {
			w = worldOf(r, maxLarge-x/2000%3)
		}
		text := w.snapshot(r)
		q, err := read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got, want := planner{}.plan(q), w.plan()
		complaint := differ(got, want, count)
		if complaint != "" && (hangsOnRounding(got) || hangsOnRounding(want)) {
			count["rounding"]++
			continue
		}
		if complaint != "" {
			g, _ := json.MarshalIndent(got, "", " ")
			x, _ := json.MarshalIndent(want, "", " ")
			t.Fatalf("%s\n%s\ngot %s\nwant %s", complaint, text, g, x)
		}
	}
	t.Log(count)
	if count["rounding"] > 20 {
		t.Errorf("%d plans differed where only rounding decides", count["rounding"])
	}
	for _, what := range []string{"land", "reject", "wait", "bypass", actionStart, actionKeep, actionNone, "abort"} {
		if count[what] < 1000 {
			t.Errorf("only %d times: %s", count[what], what)
		}
	}
}

// hangsOnRounding reports whether the order of some values depends on their last bits: a twin that multiplies in
// another order may order them otherwise.
func hangsOnRounding(p *Plan) bool {
	for i := 1; i < len(p.Builds); i++ {
		if a, b := p.Builds[i-1].Value, p.Builds[i].Value; a != b && math.Abs(a-b) < 1e-14*max(a, b) {
			return true
		}
	}
	return false
}

func differ(got, want *Plan, count map[string]int) string {
	if len(got.Decisions) != len(want.Decisions) || len(got.Builds) != len(want.Builds) || len(got.Abort) != len(want.Abort) || got.Exact != want.Exact {
		return "the lengths differ"
	}
	for i, d := range got.Decisions {
		if d.Decision != want.Decisions[i].Decision || d.Change != want.Decisions[i].Change || !slices.Equal(d.Bypasses, want.Decisions[i].Bypasses) {
			return fmt.Sprintf("decision %d differs", i)
		}
		if count[d.Decision]++; len(d.Bypasses) > 0 {
			count["bypass"]++
		}
	}
	for i, b := range got.Builds {
		w := want.Builds[i]
		if b.Change != w.Change || !slices.Equal(b.Assumed, w.Assumed) || b.Action != w.Action ||
			math.Abs(b.Needed-w.Needed) > 1e-9 || math.Abs(b.Value-w.Value) > 1e-9 {
			return fmt.Sprintf("build %d differs", i)
		}
		count[b.Action]++
	}
	for i, a := range got.Abort {
		if a.Change != want.Abort[i].Change || !slices.Equal(a.Assumed, want.Abort[i].Assumed) {
			return fmt.Sprintf("abort %d differs", i)
		}
		count["abort"]++
	}
	return ""
}
