package simulate

import (
	"math"

	"landfall.build/tools/simulate/course"
)

// Row is one policy in one setting: means over the seeds. Times are in seconds.
type Row struct {
	Policy   string         `json:"policy"`
	Workload map[string]any `json:"workload,omitempty"`
	Workers  int            `json:"workers"`
	// Threshold and Bypass are absent for policies that have none; a bypass above 1 is none.
	Threshold *float64 `json:"threshold,omitempty"`
	Bypass    *float64 `json:"bypass_threshold,omitempty"`

	Turnaround Times `json:"turnaround_s"`
	// Wait is turnaround less the time that the change's own build takes, or on a pool the change alone.
	Wait            Percentiles `json:"wait_s"`
	Throughput      float64     `json:"throughput_per_h"`
	BuildsPerChange float64     `json:"builds_per_change"`
	AbortedShare    float64     `json:"aborted_share"`
	WorkerHours     float64     `json:"worker_hours"`
	BypassRate      float64     `json:"bypass_rate"`
	Landed          float64     `json:"landed"`
	Rejected        float64     `json:"rejected"`
	// Cancelled counts the changes that their authors cancelled; no other figure but those of builds has them.
	Cancelled  float64 `json:"cancelled,omitempty"`
	RedCommits float64 `json:"red_commits"`
	// Refused counts decisions that the land guard did not let take effect.
	Refused float64 `json:"refused"`
	// On a pool: Slowdown is turnaround over that of the change alone, Sizes have it by the number of targets of a change, and
	// Utilisation is the share of the workers that were busy while a step could be started.
	Slowdown      *Slowdown `json:"slowdown,omitempty"`
	WorkerSeconds float64   `json:"worker_seconds"`
	Utilisation   *float64  `json:"utilisation,omitempty"`
	Sizes         []Size    `json:"by_size,omitempty"`
	// OverOracle is the mean, over the seeds, of the ratio to the oracle on the same trace.
	OverOracle OverOracle `json:"over_oracle"`
	// Margin is half the width of the 95 % confidence interval over the seeds; absent for one seed.
	Margin *Margin `json:"confidence_95,omitempty"`
	Seeds  int     `json:"seeds"`
	// ETA measures the estimates; absent for policies that have none.
	ETA *ETA `json:"eta,omitempty"`

	// timeline is that of the first seed.
	timeline []course.Moment
}

// Percentiles of a distribution.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Times have the longest one too.
type Times struct {
	Percentiles
	Max float64 `json:"max"`
}

// Slowdown is how much longer changes took than each would have alone.
type Slowdown struct {
	Mean float64 `json:"mean"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
}

// Size is a range of numbers of targets; To is 0 for no end.
type Size struct {
	From          int       `json:"from"`
	To            int       `json:"to,omitempty"`
	Changes       float64   `json:"changes"`
	Turnaround    *Times    `json:"turnaround_s,omitempty"`
	Slowdown      *Slowdown `json:"slowdown,omitempty"`
	WorkerSeconds float64   `json:"worker_seconds"`
}

// OverOracle has turnaround and throughput, divided by the oracle's.
type OverOracle struct {
	Percentiles
	Throughput float64 `json:"throughput"`
}

// Margin has a half-width for the figures that policies are compared by.
type Margin struct {
	Turnaround      Percentiles `json:"turnaround_s"`
	OverOracle      Percentiles `json:"over_oracle"`
	Wait95          float64     `json:"wait_p95_s"`
	BuildsPerChange float64     `json:"builds_per_change"`
}

func (s Study) rows(variants []variant, results [][]*course.Result) (rows []Row) {
	oracles := map[int][]*course.Result{}
	for i, v := range variants {
		if v.Name == "oracle" {
			oracles[v.setting] = results[i]
		}
		setting := s.Settings[v.setting]
		row := newRow(results[i], oracles[v.setting])
		row.Policy, row.Workers, row.Workload = v.Name, setting.Workers, setting.Workload
		if v.Tunes {
			row.Threshold, row.Bypass = &v.Threshold, &v.Bypass
		}
		rows = append(rows, row)
	}
	return rows
}

func newRow(results, oracle []*course.Result) Row {
	mean := func(f func(i int) float64) float64 { m, _ := meanAndMargin(len(results), f); return m }
	margin := func(f func(i int) float64) float64 { _, m := meanAndMargin(len(results), f); return m }
	percentiles := func(how func(f func(i int) float64) float64, of func(i int, p float64) float64) Percentiles {
		at := func(p float64) float64 { return how(func(i int) float64 { return of(i, p) }) }
		return Percentiles{at(50), at(95), at(99)}
	}
	turnaround := func(i int, p float64) float64 { return course.Percentile(results[i].Turnaround, p) }
	wait := func(i int, p float64) float64 { return course.Percentile(results[i].Wait, p) }
	ratio := func(i int, p float64) float64 {
		return course.Percentile(results[i].Turnaround, p) / course.Percentile(oracle[i].Turnaround, p)
	}
	r := Row{
		Turnaround: Times{percentiles(mean, turnaround), mean(func(i int) float64 { return turnaround(i, 100) })}, Wait: percentiles(mean, wait),
		WorkerSeconds:   mean(func(i int) float64 { return results[i].WorkerHours * 3600 }),
		Throughput:      mean(func(i int) float64 { return results[i].Throughput() }),
		BuildsPerChange: mean(func(i int) float64 { return results[i].BuildsPerChange() }),
		AbortedShare:    mean(func(i int) float64 { return results[i].AbortedShare() }),
		WorkerHours:     mean(func(i int) float64 { return results[i].WorkerHours }),
		BypassRate:      mean(func(i int) float64 { return results[i].BypassRate() }),
		Landed:          mean(func(i int) float64 { return float64(results[i].Landed) }),
		Rejected:        mean(func(i int) float64 { return float64(results[i].Rejected) }),
		Cancelled:       mean(func(i int) float64 { return float64(results[i].Cancelled) }),
		RedCommits:      mean(func(i int) float64 { return float64(results[i].RedCommits) }),
		Refused:         mean(func(i int) float64 { return float64(results[i].Refused) }),
		OverOracle: OverOracle{percentiles(mean, ratio), mean(func(i int) float64 {
			return results[i].Throughput() / oracle[i].Throughput()
		})},
		Seeds: len(results), timeline: results[0].Timeline, ETA: newETA(results),
	}
	if results[0].Slowdown != nil {
		r.Slowdown = newSlowdown(len(results), func(i int) []float64 { return results[i].Slowdown })
		utilisation := mean(func(i int) float64 { return results[i].Utilisation })
		r.Utilisation, r.Sizes = &utilisation, newSizes(results)
	}
	if len(results) > 1 {
		r.Margin = &Margin{
			Turnaround: percentiles(margin, turnaround), OverOracle: percentiles(margin, ratio),
			Wait95:          margin(func(i int) float64 { return wait(i, 95) }),
			BuildsPerChange: margin(func(i int) float64 { return results[i].BuildsPerChange() }),
		}
	}
	return r
}

func newSlowdown(n int, of func(i int) []float64) *Slowdown {
	each := func(f func([]float64) float64) float64 {
		m, _ := meanAndMargin(n, func(i int) float64 { return f(of(i)) })
		return m
	}
	return &Slowdown{
		Mean: each(func(list []float64) float64 {
			m, _ := meanAndMargin(len(list), func(i int) float64 { return list[i] })
			return m
		}),
		P95: each(func(list []float64) float64 { return course.Percentile(list, 95) }),
		Max: each(func(list []float64) float64 { return course.Percentile(list, 100) }),
	}
}

// newSizes has the means over the seeds of each range, over those that have changes of it.
func newSizes(results []*course.Result) (sizes []Size) {
	for k, of := range results[0].Sizes {
		size := Size{From: of.From, To: of.To}
		var had []course.Size
		for _, r := range results {
			s := r.Sizes[k]
			size.Changes += float64(len(s.Turnaround)) / float64(len(results))
			size.WorkerSeconds += s.WorkerSeconds / float64(len(results))
			if len(s.Turnaround) > 0 {
				had = append(had, s)
			}
		}
		if len(had) > 0 {
			at := func(p float64) float64 {
				m, _ := meanAndMargin(len(had), func(i int) float64 { return course.Percentile(had[i].Turnaround, p) })
				return m
			}
			size.Turnaround = &Times{Percentiles{at(50), at(95), at(99)}, at(100)}
			size.Slowdown = newSlowdown(len(had), func(i int) []float64 { return had[i].Slowdown })
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// student has the 97.5th percentile of Student's distribution for 1, 2, … degrees of freedom; beyond, the
// normal one's is near enough.
var student = []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131}

const normal975 = 1.96

// meanAndMargin gives the mean of n values and half the width of its 95 % confidence interval.
func meanAndMargin(n int, f func(i int) float64) (mean, margin float64) {
	for i := range n {
		mean += f(i) / float64(n)
	}
	if n < 2 {
		return mean, 0
	}
	var squares float64
	for i := range n {
		squares += (f(i) - mean) * (f(i) - mean)
	}
	t := normal975
	if n-2 < len(student) {
		t = student[n-2]
	}
	return mean, t * math.Sqrt(squares/float64(n-1)/float64(n))
}
