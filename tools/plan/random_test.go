package plan

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// maxSmall is how many changes most random queues have at most, maxLarge the others: up to 10 ahead.
const maxSmall, maxLarge = 7, 11

func randomWorld(r *rand.Rand) *world { return worldOf(r, 1+r.IntN(maxSmall)) }

func worldOf(r *rand.Rand, n int) *world {
	w := &world{
		conflict: map[[2]int]float64{}, unmerged: map[[2]int]bool{}, required: map[[2]int]bool{},
		threshold: pick(r, 0, 0, 0.05, 0.3), bypass: pick(r, -1, 0, 0.5, 0.9), slots: pick(r, -1, 0, 1, 3, 10),
	}
	// A worthless build that makes versions for others cannot be distinguished from one that others need: no classes
	// then.
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
		one := max(1, 1<<bits.OnesCount(w.ahead[i])>>maxSmall) // one in so many paths may have a build
		for s := uint(0); ; s = (s - w.ahead[i]) & w.ahead[i] {
			if (one == 1 || r.IntN(one) == 0) && (r.IntN(6) == 0 || lucky > 0 && r.IntN(2) == 0) {
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
