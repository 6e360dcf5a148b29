package simulate

import (
	"errors"
	"fmt"
	"io"
	"os"

	"landfall.build/tools/simulate/trace"
)

// Names of the workloads that are no file.
const (
	workloadPaper = "paper"
	workloadLRTS  = "lrts"
)

// settings are the cells of the sweep for the workload of that name.
func (f *flags) settings(name string) ([]Setting, error) {
	switch name {
	case workloadPaper:
		return f.drawn(func(p trace.Paper) (map[string]any, func(seed uint64) trace.Trace) {
			return map[string]any{
				"changes": p.Changes, "failure": p.Failure,
				"median_s": p.Median.Seconds(), "p95_s": p.P95.Seconds(), "shortest_s": p.Shortest.Seconds(), "longest_s": p.Longest.Seconds(),
			}, func(seed uint64) trace.Trace { p.Seed = seed; return p.Start() }
		}, name)
	case workloadLRTS:
		if f.data == "" {
			return nil, errors.New("the workload lrts reads the folder of that data set; name it with --data")
		}
		runs, err := trace.Jenkins(f.data)
		if err != nil {
			return nil, err
		}
		runs = runs[:min(len(runs), f.paper.Changes)]
		return f.drawn(func(p trace.Paper) (map[string]any, func(seed uint64) trace.Trace) {
			recorded := trace.Recorded{Runs: runs, Rate: p.Rate, Potential: p.Potential, True: p.True, Near: p.Near}
			rates := recorded.Start().Rates()
			return map[string]any{"changes": len(runs), "failure": 1 - rates.Green, "mean_s": rates.Mean / 1e6},
				func(seed uint64) trace.Trace { recorded.Seed = seed; return recorded.Start() }
		}, name)
	}
	return f.file(name)
}

// drawn sweeps what is drawn of pairs of changes, and the rate at which they arrive.
func (f *flags) drawn(of func(p trace.Paper) (map[string]any, func(seed uint64) trace.Trace), name string) (list []Setting, err error) {
	for _, rate := range f.rates {
		for _, potential := range f.potential {
			for _, truly := range f.truly {
				p := f.paper
				p.Rate, p.Potential, p.True = rate, potential, truly
				if err := p.Validate(); err != nil {
					return nil, err
				}
				described, start := of(p)
				for key, value := range map[string]any{"name": name, "rate_per_h": rate, "potential_conflicts": potential, "true_conflicts": truly, "near_s": p.Near.Seconds()} {
					described[key] = value
				}
				list = append(list, f.machines(described, start)...)
			}
		}
	}
	return list, nil
}

// machines is the workload with each number of workers.
func (f *flags) machines(workload map[string]any, start func(seed uint64) trace.Trace) (list []Setting) {
	for _, w := range f.workers {
		list = append(list, Setting{Workload: workload, Start: start, Workers: w})
	}
	return list
}

// file is a workload in JSON lines, read anew for each course: it may be longer than fits into memory.
func (f *flags) file(name string) ([]Setting, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a workload (%s, %s) nor a file: %w", name, workloadPaper, workloadLRTS, err)
	}
	defer file.Close()
	rates, changes, err := trace.Survey(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	workload := map[string]any{"name": name, "changes": changes, "failure": 1 - rates.Green, "mean_s": rates.Mean / 1e6, "true_conflicts": rates.Conflict}
	return f.machines(workload, func(uint64) trace.Trace { return openTrace(name, rates) }), nil
}

// fileTrace closes its file at the end.
type fileTrace struct {
	*trace.File
	file io.Closer
}

func openTrace(name string, rates trace.Rates) trace.Trace {
	file, err := os.Open(name)
	if err != nil {
		return unreadable{rates, err}
	}
	return &fileTrace{trace.NewFile(file, rates), file}
}

func (t *fileTrace) Next() (*trace.Change, error) {
	c, err := t.File.Next()
	if err != nil {
		t.file.Close()
	}
	return c, err
}

// unreadable is a file that was there and is no more.
type unreadable struct {
	rates trace.Rates
	err   error
}

func (u unreadable) Next() (*trace.Change, error)          { return nil, u.err }
func (u unreadable) Meet(ahead, behind *trace.Change) bool { return false }
func (u unreadable) Rates() trace.Rates                    { return u.rates }
