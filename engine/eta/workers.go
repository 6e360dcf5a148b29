package eta

import (
	"cmp"
	"math"
	"slices"

	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
)

// job is a build that asks for workers.
type job struct {
	of, build int // build is its place in Change.Builds, -1 if it waits
	Demand
	waited float64
	comes  []uint64 // a bit for each sample in which its path comes about
}

// headStart is the wait that a new build is credited with (a of M33), in builds of mean work.
const headStart = 16

// queueing is the standard deviation of the logarithm of the time that builds have in the pool. It stands for what the simulation does not
// know: what arrives later, and which steps fit beside which. That keeps all builds, so a sample has one draw for all. With it 90 to 96 of
// 100 intervals of 90 % hold (decision 0122).
const queueing = 0.5

// shareWorkers simulates when builds end whose steps share workers. A build is served after those of a higher index (M33), and takes at
// least as long as its longest step. A build takes no work where its path does not come about: its steps come late, and it is dead by then.
func (x *sampler) shareWorkers() {
	jobs := x.jobs()
	workers := float64(x.q.Workers)
	alone := make([][]float64, len(x.q.Changes))
	for i := range x.q.Changes {
		c := &x.q.Changes[i]
		alone[i] = make([]float64, x.samples)
		for s, work := range x.durations[i] {
			alone[i][s] = max(work/workers, c.Longest)
		}
	}
	x.slotFree = make([][]float64, len(x.q.Changes))
	busy := make([]float64, x.samples) // until when workers are busy with what comes before
	ends := make([]float64, x.samples)
	late := x.lateness()
	for _, j := range jobs {
		for s := range x.samples {
			work := x.durations[j.of][s] * j.Open
			takes := max(work/workers, min(work, x.q.Changes[j.of].Longest))
			ends[s] = (busy[s] + takes) * late[s]
			if j.comes[s/64]&(1<<(s%64)) != 0 {
				busy[s] += work / workers
			}
		}
		switch {
		case j.build >= 0:
			x.setRemaining(j, ends)
		case x.slotFree[j.of] == nil:
			x.slotFree[j.of] = make([]float64, x.samples)
			for s, end := range ends {
				x.slotFree[j.of][s] = end - alone[j.of][s]
			}
		}
	}
	x.durations = alone
}

// mostLate bounds the deviation of the logarithm of a late build's time: what has taken many times as long as was expected is expected to
// take about as long again, and not as many times.
const mostLate = 1

// lateness draws, by sample, how many times as long as simulated builds stay in the pool. It is the same for every queue of as many samples.
func (x *sampler) lateness() []float64 {
	x.late = make([]uint16, x.samples)
	(&splitmix{}).spread(x.late)
	out := make([]float64, x.samples)
	for s, p := range x.late {
		out[s] = math.Exp(queueing * deviationsOf[x.samples][p])
	}
	return out
}

// setRemaining sets how long a running build goes on. ends has when it would end if it began now, by sample; they are taken for a
// LogNormal, truncated at the time that the build has had.
func (x *sampler) setRemaining(j job, ends []float64) {
	if x.remaining[j.of] == nil {
		x.remaining[j.of] = make([][]float64, len(x.q.Changes[j.of].Builds))
	}
	sum, squares := 0.0, 0.0
	for _, end := range ends {
		log := math.Log(max(soonest, end))
		sum += log
		squares += log * log
	}
	mean := sum / float64(len(ends))
	d := distribution{profile.Duration{Mean: mean, Std: math.Sqrt(max(0, squares/float64(len(ends))-mean*mean))}, x.samples, mostLate}
	had := max(soonest, j.waited)
	left := make([]float64, x.samples)
	for s, p := range x.late {
		left[s] = had*math.Exp(d.at(int(p), math.Log(had))) - had
	}
	x.remaining[j.of][j.build] = left
}

// soonest bounds seconds from below, so that their logarithm is finite.
const soonest = 1e-3

// jobs returns all builds that run or wait, in the order in which they are served.
func (x *sampler) jobs() (list []job) {
	work := 0.0
	add := func(of, build int, lands memberset.Set, d Demand, waited float64) {
		list = append(list, job{of, build, d, waited, x.comesAbout(of, lands)})
		work += x.q.Changes[of].Duration.Mean * d.Open
	}
	for i := range x.q.Changes {
		for k, b := range x.q.Changes[i].Builds {
			add(i, k, b.Lands, b.Demand, b.Elapsed)
		}
	}
	for _, w := range x.q.Waiting {
		x.waiting[w.Of] = append(x.waiting[w.Of], w)
		add(w.Of, -1, w.Lands, w.Demand, 0)
	}
	start := headStart * work / float64(max(1, len(list))) / float64(x.q.Workers)
	index := func(j job) float64 {
		return j.Worth * (start + j.waited) / max(soonest, x.q.Changes[j.of].Duration.Mean*j.Open)
	}
	slices.SortStableFunc(list, func(a, b job) int { return cmp.Compare(index(b), index(a)) })
	return list
}
