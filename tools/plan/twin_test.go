package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is a queue as the model speaks of it: numbers, no events. Sets of changes are bits.
type world struct {
	p, benefit, mean, std []float64 // mean < 0: no duration
	held                  []bool
	conflict              map[[2]int]float64 // behind, ahead
	unmerged, required    map[[2]int]bool
	ahead                 []uint
	classes               [][]uint // nil: one class of all
	builds                []worldBuild
	threshold, abort      float64
	bypass                float64 // < 0: none
	slots                 int     // < 0: no bound
}

type worldBuild struct {
	change  int
	assumed uint
	state   string
	failed  []int
	elapsed float64
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomWorld(r *rand.Rand) *world {
	n := 1 + r.IntN(7)
	w := &world{
		conflict: map[[2]int]float64{}, unmerged: map[[2]int]bool{}, required: map[[2]int]bool{},
		threshold: pick(r, 0, 0, 0.05, 0.3), bypass: pick(r, -1, 0, 0.5, 0.9), slots: pick(r, -1, 0, 1, 3, 10),
	}
	// What is worthless and makes versions for others is not told apart from what others make: no classes then.
	w.abort = pick(r, 0, 0.05, 0.3, 0.8)
	dense := 1 + r.IntN(4)
	for i := range n {
		w.p = append(w.p, pick(r, 0, 1, 0.5, r.Float64(), r.Float64()))
		w.benefit = append(w.benefit, pick(r, 1, 1, 4, r.Float64()+0.01))
		w.mean = append(w.mean, pick(r, -1, float64(r.IntN(100)), 60, 60))
		w.std = append(w.std, pick(r, 0, 10, 20*r.Float64()))
		w.held = append(w.held, r.IntN(8) == 0)
		var ahead uint
		for k := range i {
			pair := [2]int{i, k}
			if r.IntN(4) < dense {
				ahead |= 1 << k
				w.conflict[pair] = pick(r, 0, 0.05, r.Float64(), 1)
				if r.IntN(12) == 0 {
					w.unmerged[pair], w.conflict[pair] = true, 1
				}
			}
			if r.IntN(16) == 0 {
				ahead |= 1 << k
				w.required[pair] = true
			}
		}
		w.ahead = append(w.ahead, ahead)
		w.classes = append(w.classes, nil)
		if w.abort == 0 && r.IntN(2) == 0 {
			for range 1 + r.IntN(3) {
				w.classes[i] = append(w.classes[i], ahead&uint(r.Uint64()))
			}
		}
	}
	lucky := r.IntN(3)
	for i := range n {
		for s := uint(0); ; s = (s - w.ahead[i]) & w.ahead[i] {
			if r.IntN(6) == 0 || lucky > 0 && r.IntN(2) == 0 {
				b := worldBuild{change: i, assumed: s, state: []string{stateGreen, stateRed, stateRunning}[lucky]}
				// Beyond ten deviations the duration that is left is profiler/bypass' own to show (M12).
				b.elapsed = float64(r.IntN(150))
				if limit := w.mean[i] + 9*w.std[i]; w.std[i] > 0 {
					b.elapsed = max(0, min(b.elapsed, math.Floor(limit)))
				}
				if r.IntN(4) == 0 {
					b.state = pick(r, stateGreen, stateRed, stateRunning)
				}
				for x := range w.partition(i) {
					if b.state == stateRed && r.IntN(2) == 0 {
						b.failed = append(b.failed, x)
					}
				}
				w.builds = append(w.builds, b)
			}
			if s == w.ahead[i] {
				break
			}
		}
	}
	if running := w.running(); w.abort > 0 && w.slots >= 0 {
		w.slots = max(w.slots, running) // the selector does not yet shrink to fewer slots than run by evicting
	}
	r.Shuffle(len(w.builds), func(x, y int) { w.builds[x], w.builds[y] = w.builds[y], w.builds[x] })
	return w
}

func (w *world) running() (n int) {
	for _, b := range w.builds {
		if b.state == stateRunning {
			n++
		}
	}
	return n
}

// partition is a change's classes.
func (w *world) partition(i int) []uint {
	if w.classes[i] == nil {
		return []uint{w.ahead[i]}
	}
	return w.classes[i]
}

func name(i int) string { return fmt.Sprintf("C%d", i) }

func namesOf(set uint) []string {
	list := []string{}
	for i := range 64 {
		if set&(1<<i) != 0 {
			list = append(list, name(i))
		}
	}
	return list
}

var worldNow = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// snapshot writes it down; a seed decides which defaults are written out.
func (w *world) snapshot(r *rand.Rand) string {
	type object map[string]any
	var changes, conflicts, builds []object
	for i := range w.p {
		c := object{"id": name(i)}
		if w.p[i] != 1 || r.IntN(2) == 0 {
			c["success"] = w.p[i]
		}
		if w.benefit[i] != 1 || r.IntN(2) == 0 {
			c["benefit"] = w.benefit[i]
		}
		if w.mean[i] >= 0 {
			c["duration"] = object{"mean": w.mean[i], "std": w.std[i]}
		}
		if w.held[i] {
			c["held"] = true
		}
		if w.classes[i] != nil {
			list := [][]string{}
			for _, k := range w.classes[i] {
				list = append(list, namesOf(k))
			}
			c["classes"] = list
		}
		var requires []string
		for k := range i {
			if w.required[[2]int{i, k}] {
				requires = append(requires, name(k))
			}
		}
		c["requires"] = requires
		changes = append(changes, c)
	}
	for pair, x := range w.conflict {
		c := object{"ahead": name(pair[1]), "behind": name(pair[0])}
		if w.unmerged[pair] {
			c["merge_conflict"] = true
		} else {
			c["probability"] = x
		}
		conflicts = append(conflicts, c)
	}
	for _, b := range w.builds {
		o := object{"change": name(b.change), "assumed": namesOf(b.assumed), "state": b.state}
		if b.state == stateRunning {
			o["started"] = worldNow.Add(-time.Duration(b.elapsed * float64(time.Second)))
		}
		if len(b.failed) > 0 {
			o["failed"] = b.failed
		}
		builds = append(builds, o)
	}
	s := object{"now": worldNow, "changes": changes, "conflicts": conflicts, "builds": builds, "threshold": w.threshold, "abort_threshold": w.abort}
	if w.slots >= 0 {
		s["slots"] = w.slots
	}
	if w.bypass >= 0 {
		s["bypass_threshold"] = w.bypass
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// version is what is known of the version that a class makes with these members: the first result stands.
func (w *world) version(i, class int, members uint) string {
	for _, b := range w.builds {
		if b.change != i || b.assumed&w.partition(i)[class] != members || b.state == stateRunning {
			continue
		}
		if b.state == stateGreen || slices.Contains(b.failed, class) {
			return b.state
		}
	}
	return ""
}

// outcome is what is known of (i, S): M25 with M5 and M5a.
func (w *world) outcome(i int, s uint) string {
	for k := range i {
		if pair := [2]int{i, k}; w.unmerged[pair] && s&(1<<k) != 0 || w.required[pair] && s&(1<<k) == 0 {
			return stateRed
		}
	}
	for x, b := range w.builds {
		if b.change == i && b.assumed == s && b.state == stateRed && len(b.failed) == 0 {
			before := *w
			before.builds = w.builds[:x]
			if before.outcomeByClass(i, s) != stateGreen { // else this result is the second one
				return stateRed
			}
		}
	}
	return w.outcomeByClass(i, s)
}

func (w *world) outcomeByClass(i int, s uint) string {
	state := stateGreen
	for x, k := range w.partition(i) {
		switch w.version(i, x, s&k) {
		case stateRed:
			return stateRed
		case "":
			state = ""
		}
	}
	return state
}

// shown is what the evidence shows of j on path (i, S): M9, M5, M5a.
func (w *world) shown(i, j int, s uint) string {
	for k := range j {
		if pair := [2]int{j, k}; w.ahead[i]&(1<<k) != 0 && (w.unmerged[pair] && s&(1<<k) != 0 || w.required[pair] && s&(1<<k) == 0) {
			return stateRed
		}
	}
	if w.ahead[j]&^w.ahead[i] != 0 {
		return ""
	}
	if state := w.outcome(j, s&w.ahead[j]); state != stateGreen || !w.held[j] {
		return state
	}
	return ""
}

func (w *world) marginal(j int) float64 {
	if w.ahead[j] == 0 {
		switch state := w.outcome(j, 0); {
		case state == stateRed:
			return 0
		case state == stateGreen && !w.held[j]:
			return 1
		}
	}
	m := w.p[j]
	for k := range j {
		pair := [2]int{j, k}
		if w.required[pair] {
			m *= w.marginal(k) * (1 - w.conflict[pair])
		} else if w.ahead[j]&(1<<k) != 0 {
			m *= 1 - w.marginal(k)*w.conflict[pair]
		}
	}
	return m
}

// lands is q(j|S) of M8 with M9.
func (w *world) lands(i, j int, s uint) float64 {
	switch w.shown(i, j, s) {
	case stateGreen:
		return 1
	case stateRed:
		return 0
	}
	q := w.p[j]
	for k := range j {
		pair := [2]int{j, k}
		switch inside := w.ahead[i]&(1<<k) != 0; {
		case w.ahead[j]&(1<<k) == 0, inside && w.required[pair]:
		case inside && s&(1<<k) != 0:
			q *= 1 - w.conflict[pair]
		case !inside && w.required[pair]:
			q *= w.marginal(k) * (1 - w.conflict[pair])
		case !inside:
			q *= 1 - w.marginal(k)*w.conflict[pair]
		}
	}
	return q
}

// dead says that a path cannot come about (M9).
func (w *world) dead(i int, s uint) bool {
	for j := range i {
		if shown := w.shown(i, j, s); w.ahead[i]&(1<<j) != 0 && (s&(1<<j) != 0 && shown == stateRed || s&(1<<j) == 0 && shown == stateGreen) {
			return true
		}
	}
	return false
}

func (w *world) over(i int, s uint) bool { return w.outcome(i, s) != "" || w.dead(i, s) }

// finish is when a change is done, seconds from now: M11 with M12.
func (w *world) finish(i int) (mean, variance float64) {
	mean, variance = w.mean[i], w.std[i]*w.std[i]
	elapsed := -1.0
	for _, b := range w.builds {
		if b.change == i && b.state == stateRunning && !w.over(i, b.assumed) {
			elapsed = max(elapsed, b.elapsed)
		}
	}
	if elapsed < 0 {
		return mean, variance
	}
	if w.std[i] == 0 {
		return max(mean, elapsed) - elapsed, 0
	}
	a := (elapsed - mean) / w.std[i]
	var h float64
	if a < 10 {
		h = math.Exp(-a*a/2) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(a/math.Sqrt2))
	} else {
		// Laplace's continued fraction of Mills' ratio.
		tail := a
		for k := 60; k > 0; k-- {
			tail = a + float64(k)/tail
		}
		h = tail
	}
	return max(elapsed, mean+w.std[i]*h) - elapsed, max(0, variance*(1+a*h-h*h))
}

// first is F(i,j) where j is bypassable by i, else 0. What is held is waited for by nobody; what is required
// always is.
func (w *world) first(i, j int) float64 {
	switch {
	case w.bypass < 0 || w.required[[2]int{i, j}]:
		return 0
	case w.held[j]:
		return 1
	case w.mean[i] < 0 || w.mean[j] < 0:
		return 0
	}
	mi, vi := w.finish(i)
	mj, vj := w.finish(j)
	f := 0.5
	switch {
	case vi+vj > 0:
		f = 0.5 * math.Erfc(-(mj-mi)/math.Sqrt(2*(vi+vj)))
	case mi < mj:
		f = 1
	case mi > mj:
		f = 0
	}
	if f < w.bypass {
		return 0
	}
	return f
}

type worldPath struct {
	i             int
	s             uint
	needed, value float64
	over          bool
}

// path is M14, M15.
func (w *world) path(i int, s uint) worldPath {
	p := worldPath{i: i, s: s, needed: 1, over: w.over(i, s)}
	for j := range i {
		if w.ahead[i]&(1<<j) == 0 {
			continue
		}
		o, in := w.lands(i, j, s), s&(1<<j) != 0
		if !in {
			o = 1 - o
		}
		f := w.first(i, j)
		p.needed *= f + (1-f)*o
	}
	p.value = w.benefit[i] * p.needed
	return p
}

func (w *world) eachPath(i int, f func(s uint)) {
	for s := uint(0); ; s = (s - w.ahead[i]) & w.ahead[i] {
		f(s)
		if s == w.ahead[i] {
			return
		}
	}
}

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
		red := false
		for j := range i {
			red = red || w.ahead[i]&s&(1<<j) != 0 && w.shown(i, j, s) == stateRed
		}
		every = every && (red || w.outcome(i, s) == stateRed)
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

// plan is section 6 of the architecture by looking at every path. Of the paths that wait for the same versions
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
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	count := map[string]int{}
	for range 20_000 {
		w := randomWorld(r)
		text := w.snapshot(r)
		q, err := read(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got, want := planner{}.plan(q), w.plan()
		if complaint := differ(got, want, count); complaint != "" {
			g, _ := json.MarshalIndent(got, "", " ")
			x, _ := json.MarshalIndent(want, "", " ")
			t.Fatalf("%s\n%s\ngot %s\nwant %s", complaint, text, g, x)
		}
	}
	t.Log(count)
	for _, what := range []string{"land", "reject", "wait", "bypass", actionStart, actionKeep, actionNone, "abort"} {
		if count[what] < 1000 {
			t.Errorf("only %d times: %s", count[what], what)
		}
	}
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
