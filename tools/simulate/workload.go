package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	recorded "landfall.build/tools/history"
	"landfall.build/tools/simulate/history"
	"landfall.build/tools/simulate/trace"
)

// Names of the workloads that are not files.
const (
	workloadPaper = "paper"
	workloadLRTS  = "lrts"
	workloadLog   = "log"
	workloadGit   = "git"
	workloadMono  = "monorepo"
)

// settings are the cells of the sweep for the workload of that name.
func (f *flags) settings(ctx context.Context, name string, logger *slog.Logger) ([]Setting, error) {
	if f.paper.ByTarget && name != workloadPaper {
		return nil, fmt.Errorf("--minimal-steps needs to know in which targets changes meet, and how their steps end; of %s only whole builds are known. It goes with %s", name, workloadPaper)
	}
	if name != workloadLRTS && f.predictor == predictorTrained {
		return nil, fmt.Errorf("--predictor %s needs builds that were recorded before the changes; it goes with %s", predictorTrained, workloadLRTS)
	}
	switch name {
	case workloadMono:
		return f.drawnRepository()
	case workloadPaper:
		return f.drawn(func(p trace.Paper) (map[string]any, at) {
			described := map[string]any{
				"changes": p.Changes, "failure": p.Failure,
				"median_s": p.Median.Seconds(), "p95_s": p.P95.Seconds(), "shortest_s": p.Shortest.Seconds(), "longest_s": p.Longest.Seconds(),
			}
			if p.ByTarget {
				described["minimal_steps"] = true
			}
			return described, func(rate float64, seed uint64) trace.Trace {
				with := p
				with.Rate, with.Seed = rate, seed
				return with.Start()
			}
		}, name)
	case workloadLRTS:
		return f.builds(ctx)
	case workloadGit:
		return f.commits()
	case workloadLog:
		return f.ownHistory(ctx, logger)
	}
	return f.file(ctx, name)
}

// commits are real ones on the target graph of the module's sources.
func (f *flags) commits() ([]Setting, error) {
	if f.source.Data == "" || f.sources == "" || f.repository == "" {
		return nil, errors.New("the workload git reads commits (--data conflict_commits.csv) of one repository (--repository), and the sources of its module (--sources DIR)")
	}
	list, err := trace.Commits(f.source.Data, f.repository)
	if err != nil {
		return nil, err
	}
	graph, err := trace.Imports(f.sources)
	if err != nil {
		return nil, err
	}
	recorded := trace.OnGraph(list[:min(len(list), f.paper.Changes)], graph, f.paper.Shortest, f.paper.Longest)
	recorded.Failure = f.paper.Failure
	if f.pool {
		if recorded = recorded.InSteps(f.paper); len(recorded.Runs) == 0 {
			return nil, fmt.Errorf("none of the first %d commits of %s affects a target of %s", min(len(list), f.paper.Changes), f.repository, f.sources)
		}
	}
	return f.drawn(func(p trace.Paper) (map[string]any, at) {
		recorded.Rate, recorded.True, recorded.Near = p.Rate, p.True, p.Near
		of := recorded
		described := map[string]any{
			"repository": f.repository, "changes": len(of.Runs), "targets": graph.Targets, "failure": of.Failure,
			"met_of_15_before": of.MeetOf(15), "mean_s": of.Start().Rates().Mean / 1e6,
		}
		if f.pool {
			f.describeSteps(described)
		}
		return described, func(rate float64, seed uint64) trace.Trace {
			with := of
			with.Rate, with.Seed = rate, seed
			return with.Start()
		}
	}, workloadGit)
}

// drawn sweeps what is drawn of pairs of changes, and the rate at which they arrive.
func (f *flags) drawn(of func(p trace.Paper) (map[string]any, at), name string) (list []Setting, err error) {
	for _, arriving := range f.arrivals() {
		for _, potential := range f.potential {
			for _, truly := range f.truly {
				p := f.paper
				p.Rate, p.Potential, p.True = arriving.rate, potential, truly
				if err := p.Validate(); err != nil {
					return nil, err
				}
				described, at := of(p)
				for key, value := range map[string]any{"name": name, "potential_conflicts": potential, "true_conflicts": truly, "near_s": p.Near.Seconds()} {
					described[key] = value
				}
				if name == workloadGit || name == workloadMono {
					delete(described, "potential_conflicts") // follows from the targets
				}
				if arriving.load > 0 {
					described["load"] = arriving.load
					list = append(list, f.machines(described, nil)...)
					for i := range list[len(list)-len(f.workers):] {
						s := &list[len(list)-len(f.workers)+i]
						s.Start = f.loaded(at, arriving.load, s.Workers)
					}
					continue
				}
				described["rate_per_h"] = arriving.rate
				list = append(list, f.machines(described, func(seed uint64) trace.Trace { return at(arriving.rate, seed) })...)
			}
		}
	}
	return list, nil
}

// at gives a workload at a rate of arrivals, for a seed.
type at func(rate float64, seed uint64) trace.Trace

// machines returns the workload with each number of workers, and with the disturbances.
func (f *flags) machines(workload map[string]any, start func(seed uint64) trace.Trace) (list []Setting) {
	for name, value := range map[string]float64{"flakes": f.disturbed.Flakes, "worker_loss_per_h": f.disturbed.Losses, "cancellations": f.disturbed.Cancelled} {
		if value > 0 {
			workload[name] = value
		}
	}
	pool := f.poolOf()
	if pool != nil {
		workload["checkout_s"], workload["overhead_s"] = pool.Checkout.Seconds(), pool.Overhead.Seconds()
	}
	for _, w := range f.workers {
		list = append(list, Setting{Workload: workload, Start: start, Workers: w, Disturbed: f.disturbed, Pool: pool})
	}
	return list
}

// file is a workload in JSON lines, read again for each simulation: it may be too long for the memory.
func (f *flags) file(ctx context.Context, name string) ([]Setting, error) {
	// The second simulation could not read a pipe again, and opening one blocks until somebody writes, ignoring signals.
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that can be read from its beginning for each course, as a folder, a pipe or a device is not", name)
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is neither a workload (%s, %s, %s, %s, %s) nor a file: %w", name, workloadPaper, workloadMono, workloadGit, workloadLRTS, workloadLog, err)
	}
	defer file.Close()
	survey, open := trace.Survey, openTrace
	if f.pool {
		survey, open = trace.SurveyInSteps, openInSteps
	}
	rates, changes, err := survey(interruptible{ctx, file})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	workload := map[string]any{"name": name, "changes": changes, "failure": 1 - rates.Green, "mean_s": rates.Mean / 1e6, "true_conflicts": rates.Conflict}
	return f.machines(workload, func(uint64) trace.Trace { return open(name, rates) }), nil
}

// interruptible ends what is read when ctx does.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (r interruptible) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// ownHistory is a queue's past, from its log or from ClickHouse. Unless flags set them, workers and thresholds are the queue's
// own.
func (f *flags) ownHistory(ctx context.Context, logger *slog.Logger) ([]Setting, error) {
	if f.queue == "" {
		return nil, errors.New("the workload log is the history of one queue; name it with --queue")
	}
	if f.fromClickHouse || f.place.DSN != "" {
		f.place.Data, f.place.Configuration = f.source.Data, f.source.Config
		dsn, err := f.place.Find(recorded.Load(f.source.Load))
		if err != nil {
			return nil, err
		}
		h, err := history.ReadClickHouse(ctx, dsn, f.queue)
		if err != nil {
			return nil, err
		}
		return f.past(h)
	}
	log, done, err := f.source.Open(ctx, logger)
	if err != nil {
		return nil, err
	}
	defer done()
	h, err := history.Read(ctx, log, f.queue)
	if err != nil {
		return nil, err
	}
	return f.past(h)
}

// past returns a history as a workload.
func (f *flags) past(h *history.History) ([]Setting, error) {
	var b bytes.Buffer
	write, survey := h.Write, trace.Survey
	if f.pool {
		write, survey = h.WriteInSteps, trace.SurveyInSteps
	}
	left, err := write(&b)
	if err != nil {
		return nil, fmt.Errorf("queue %s: %w", f.queue, err)
	}
	rates, changes, err := survey(bytes.NewReader(b.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("the history of queue %s: %w", f.queue, err)
	}
	if own := h.Settings; own != nil {
		bypass := noBypass
		if own.BypassThreshold != nil {
			bypass = own.GetBypassThreshold()
		}
		f.workers = withOwn(f, "workers", f.workers, int(own.Workers))
		f.thresholds = withOwn(f, "threshold", f.thresholds, own.Threshold)
		f.bypasses = withOwn(f, "bypass-threshold", f.bypasses, bypass)
	}
	workload := map[string]any{
		"name": "queue " + f.queue, "changes": changes, "undecided_left_out": left.Undecided, "failure": 1 - rates.Green, "mean_s": rates.Mean / 1e6,
	}
	if f.pool {
		workload["without_steps_left_out"] = left.Stepless
	}
	return f.machines(workload, func(uint64) trace.Trace {
		t := trace.NewFile(bytes.NewReader(b.Bytes()), rates)
		if f.pool {
			return t.InSteps()
		}
		return t
	}), nil
}

// noBypass is a bypass threshold that nothing reaches.
const noBypass = 2.0

// withOwn returns the values to try: the queue's own if the flag was not given, and first among those given with
// --against current.
func withOwn[V comparable](f *flags, flag string, given []V, own V) []V {
	switch {
	case !f.given(flag):
		return []V{own}
	case f.against == againstCurrent && !slices.Contains(given, own):
		return append([]V{own}, given...)
	}
	return given
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

func openInSteps(name string, rates trace.Rates) trace.Trace {
	t := openTrace(name, rates)
	if f, is := t.(*fileTrace); is {
		f.InSteps()
	}
	return t
}

func (t *fileTrace) Next() (*trace.Change, error) {
	c, err := t.File.Next()
	if err != nil {
		t.file.Close()
	}
	return c, err
}

// unreadable is the error of a file that was there and is gone.
type unreadable struct {
	rates trace.Rates
	err   error
}

func (u unreadable) Next() (*trace.Change, error)          { return nil, u.err }
func (u unreadable) Meet(ahead, behind *trace.Change) bool { return false }
func (u unreadable) Rates() trace.Rates                    { return u.rates }
