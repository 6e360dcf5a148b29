package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	if w.ruledOut(i, j, s) {
		return stateRed
	}
	if w.ahead[j]&^w.ahead[i] != 0 {
		return ""
	}
	if state := w.outcome(j, s&w.ahead[j]); state != stateGreen || !w.held[j] {
		return state
	}
	return ""
}

// ruledOut reports whether M5 or M5a keep j from landing on a path of i.
func (w *world) ruledOut(i, j int, s uint) bool {
	for k := range j {
		if pair := [2]int{j, k}; w.ahead[i]&(1<<k) != 0 && (w.unmerged[pair] && s&(1<<k) != 0 || w.required[pair] && s&(1<<k) == 0) {
			return true
		}
	}
	return false
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

// dead reports whether a path cannot come about (M9).
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
