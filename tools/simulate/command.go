package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/configuration"
	recorded "landfall.build/tools/history"
	"landfall.build/tools/replay"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// Limits of what the command simulates at a time.
const (
	maxWorkers = 100_000
	maxSeeds   = 1000
)

type flags struct {
	paper                trace.Paper
	disturbed            trace.Disturbances
	source               replay.Source
	repository, sources  string
	report               string
	queue, against       string
	fromClickHouse       bool
	place                recorded.Place
	given                func(flag string) bool
	rates                []float64
	potential, truly     []float64
	workers              []int
	policies             []string
	thresholds, bypasses []float64
	predictor            string
	newest               float64
	successModel         string
	durationModel        string
	seeds, parallel      int
	round                time.Duration
	asJSON, listed       bool
}

// againstCurrent holds other settings against a queue's own.
const againstCurrent = "current"

// Command is `landfall simulate`. load reads a configuration file, for where the log is.
func Command(load func(file string) (*configuration.Configuration, error), logger *slog.Logger) *cobra.Command {
	return (&flags{}).command(load, logger)
}

func (f *flags) command(load func(file string) (*configuration.Configuration, error), logger *slog.Logger) *cobra.Command {
	f.paper, f.source = trace.PinnedPaper(), replay.Source{Load: load}
	c := &cobra.Command{
		Use:   "simulate [paper|git|lrts|log|FILE]",
		Short: "Compare the policies of merge queues on the same changes, in virtual time",
		Long: `Take a workload through the queue's own cores under several policies, in virtual time: who lands when,
with how many builds. Only building and git are simulated. Deciding and landing follow the same rule and
the same guard under every policy, and what lands is checked against the trace.

Workloads: paper is drawn; its defaults are pinned, so that figures can be compared. git has real commits of a Go
repository on the target graph of its sources (--repository, --sources, --data). lrts has the durations
and outcomes of Jenkins builds (--data). log is what a queue went through (--queue), from its log, or from
ClickHouse (--from-clickhouse); where flags do not say otherwise, with its own workers and thresholds. A FILE has one change a line, as JSON, by arrival:
  {"id":"b","arrival_s":7.5,"duration_s":600,"green":true,"meets":["a"],"breaks":["a"]}
where meets are the earlier changes in potential conflict with it, breaks those with which it truly fails.

Values separated by commas are swept; each combination of workload and workers is a table of its own.

The oracle knows every outcome and keeps to the order of the queue; the others are divided by it, seed by
seed. Where more arrives than the workers can build, every turnaround grows with the length of the trace,
the oracle's too: read the ratio together with the throughput.`,
		Example: `  landfall simulate --workers 100,300,500
  landfall simulate --policies landfall,ci-at-scale-2025 --threshold 0.05,0.3 --bypass-threshold 0.9,2 --seeds 5
  landfall simulate log --queue main --data .landfall --policies landfall --threshold 0.01,0.2 --against current
  landfall simulate --changes 500 --json | jq '.results[] | [.policy, .turnaround_s.p95]'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			return f.run(cmd, args, logger)
		},
	}
	s := c.Flags()
	s.IntVar(&f.paper.Changes, "changes", f.paper.Changes, "how many changes arrive")
	s.Float64SliceVar(&f.rates, "rate", []float64{f.paper.Rate}, "how many arrive in an hour")
	s.IntSliceVar(&f.workers, "workers", []int{500}, "how many builds can run at a time")
	s.Uint64Var(&f.paper.Seed, "seed", f.paper.Seed, "the first seed; the same seed gives the same figures")
	s.IntVar(&f.seeds, "seeds", 1, "how many seeds to take the mean over, from --seed on")
	s.StringSliceVar(&f.policies, "policies", policy.Names(), "policies to compare; the oracle is always there")
	s.Float64SliceVar(&f.thresholds, "threshold", nil, "least probability of being needed that is worth a worker (default: each policy's own)")
	s.Float64SliceVar(&f.bypasses, "bypass-threshold", nil, "least probability of finishing first for which a bypass is funded; above 1 none is (default: each policy's own)")
	s.StringVar(&f.predictor, "predictor", forecast.Calibrated, "what is known before a build: perfect, calibrated (97 % right, durations within 6 %), flat (the rates alone) or, for lrts, trained (models, of what was known of each build when it began)")
	s.StringVar(&f.successModel, "success-model", "", "for --predictor trained: a model of landfall train outcome --model (default: one trained on what had ended when the trace begins)")
	s.StringVar(&f.durationModel, "duration-model", "", "for --predictor trained: a model of landfall train duration --model (default: as for success)")
	s.Float64Var(&f.newest, "newest", 1, "for lrts: the share of the recorded builds that is simulated, the newest; the others are there to learn from")
	s.Float64Var(&f.paper.Failure, "failure", f.paper.Failure, "how often a change fails by itself")
	s.DurationVar(&f.paper.Median, "median", f.paper.Median, "median duration of a build")
	s.DurationVar(&f.paper.P95, "p95", f.paper.P95, "95th percentile of the durations of builds")
	s.DurationVar(&f.paper.Shortest, "shortest", f.paper.Shortest, "no build is shorter")
	s.DurationVar(&f.paper.Longest, "longest", f.paper.Longest, "no build is longer")
	s.Float64SliceVar(&f.potential, "potential-conflicts", []float64{f.paper.Potential}, "how likely two changes are in potential conflict")
	s.Float64SliceVar(&f.truly, "true-conflicts", []float64{f.paper.True}, "how likely a pair in potential conflict truly conflicts, if it arrived near each other")
	s.DurationVar(&f.paper.Near, "near", f.paper.Near, "how far apart the changes of a true conflict arrive at most")
	s.BoolVar(&f.paper.ByTarget, "minimal-steps", false, "for paper: changes have ten targets and meet in one to three; what is known is known of a target's version, and only what is not known is built, under every policy")
	s.Float64Var(&f.disturbed.Flakes, "flakes", 0, "how likely a run that passes fails the first time; what fails is then run once more")
	s.Float64Var(&f.disturbed.Losses, "worker-loss", 0, "how often a worker is lost in an hour of its work; what it ran begins anew")
	s.Float64Var(&f.disturbed.Cancelled, "cancellations", 0, "share of the changes whose authors cancel them before anybody can have decided them")
	s.StringVar(&f.source.Data, "data", "", "for log: the data directory of landfall up; for lrts: the folder of the data set; for git: the file of commits")
	s.StringVar(&f.repository, "repository", "", "for git: whose commits of --data to take")
	s.StringVar(&f.sources, "sources", "", "for git: the folder of that module's sources, as go mod download gives it")
	s.StringSliceVar(&f.source.Brokers, "brokers", nil, "for log: host:port of the log's brokers")
	s.StringVar(&f.source.Config, "config", "landfall.config.yaml", "for log: configuration file that says where the log is")
	s.BoolVar(&f.fromClickHouse, "from-clickhouse", false, "for log: read the history in ClickHouse, where --clickhouse, the configuration or the data directory has it, and not the log")
	s.StringVar(&f.place.DSN, "clickhouse", "", "for log: DSN of a history in ClickHouse, which is read instead of the log")
	s.StringVarP(&f.queue, "queue", "q", "", "for log: the queue whose history it is")
	s.StringVar(&f.against, "against", "", "for log: current tries the queue's own settings beside those given")
	f.given = s.Changed
	s.DurationVar(&f.round, "round", 10*time.Second, "how long the queue gathers what happens before it plans")
	s.IntVar(&f.parallel, "parallel", 0, "courses that run at the same time (default: one for each processor)")
	s.BoolVar(&f.asJSON, "json", false, "print one JSON value on standard output and nothing else there")
	s.StringVar(&f.report, "report", "", "also write a page with plots into this folder, as index.html; it needs no network")
	s.BoolVar(&f.listed, "list", false, "list the policies with their sources, and do nothing")
	return c
}

func (f *flags) run(cmd *cobra.Command, args []string, logger *slog.Logger) error {
	out := cmd.OutOrStdout()
	if f.listed {
		return list(out)
	}
	workload := workloadPaper
	if len(args) == 1 {
		workload = args[0]
	}
	study, err := f.study(workload)
	if err != nil {
		return err
	}
	if f.report != "" { // before what may take hours, not after
		if err := os.MkdirAll(f.report, 0o755); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	if study.Settings, err = f.settings(cmd.Context(), workload, logger); err != nil {
		return err
	}
	study.Thresholds, study.Bypasses = f.thresholds, f.bypasses
	meter := newMeter(cmd.ErrOrStderr())
	study.Progress = meter.show
	rows, differ := study.Run(cmd.Context())
	meter.end()
	if rows == nil {
		return differ
	}
	var unreported error // which takes nothing from who reads the figures
	if f.report != "" {
		unreported = Report(f.report, f.common(), rows)
	}
	if !f.asJSON {
		return errors.Join(Write(out, rows), unreported, differ)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return errors.Join(encoder.Encode(f.summary(study, rows)), unreported, differ)
}

// speaksOf names the workloads of which each flag speaks that is not for all of them. One that was given beside another
// would change nothing, and be taken for what was simulated.
var speaksOf = map[string][]string{
	"changes": {workloadPaper, workloadGit, workloadLRTS}, "rate": {workloadPaper, workloadGit, workloadLRTS},
	"true-conflicts": {workloadPaper, workloadGit, workloadLRTS}, "near": {workloadPaper, workloadGit, workloadLRTS},
	"potential-conflicts": {workloadPaper, workloadLRTS}, "failure": {workloadPaper, workloadGit},
	"shortest": {workloadPaper, workloadGit}, "longest": {workloadPaper, workloadGit}, "median": {workloadPaper}, "p95": {workloadPaper},
	"data": {workloadGit, workloadLRTS, workloadLog}, "repository": {workloadGit}, "sources": {workloadGit}, "newest": {workloadLRTS},
	"brokers": {workloadLog}, "from-clickhouse": {workloadLog}, "clickhouse": {workloadLog}, "config": {workloadLog}, "queue": {workloadLog}, "against": {workloadLog},
}

// idle says which flags were given that say nothing of the workload.
func (f *flags) idle(workload string) (errs []error) {
	for _, flag := range slices.Sorted(maps.Keys(speaksOf)) {
		if of := speaksOf[flag]; f.given(flag) && !slices.Contains(of, workload) {
			errs = append(errs, fmt.Errorf("--%s says nothing of %s; it goes with %s", flag, workload, strings.Join(of, ", ")))
		}
	}
	return errs
}

// study puts the flags together, or says everything that is wrong with them for this workload.
func (f *flags) study(workload string) (Study, error) {
	s := Study{Predictor: f.predictor, Thresholds: f.thresholds, Bypasses: f.bypasses, Round: f.round, Parallel: f.parallel}
	errs := f.idle(workload)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range f.policies {
		k, err := policy.Named(name)
		if err != nil {
			errs = append(errs, err)
		}
		s.Policies = append(s.Policies, k)
	}
	if known := []string{forecast.Perfect, forecast.Calibrated, forecast.Flat, predictorTrained}; !slices.Contains(known, f.predictor) {
		bad("--predictor is %q; it is one of %s", f.predictor, strings.Join(known, ", "))
	}
	if f.predictor != predictorTrained && (f.successModel != "" || f.durationModel != "") {
		bad("--success-model and --duration-model go with --predictor %s", predictorTrained)
	}
	if !(f.newest > 0 && f.newest <= 1) {
		bad("--newest is %v; it is a share, above 0 and at most 1", f.newest)
	}
	if err := f.disturbed.Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := f.paper.Validate(); err != nil {
		errs = append(errs, err)
	}
	if f.against != "" && f.against != againstCurrent {
		bad("--against is %q; it can only be %s", f.against, againstCurrent)
	}
	if f.seeds < 1 || f.seeds > maxSeeds {
		bad("--seeds is %d; it is between 1 and %d", f.seeds, maxSeeds)
	}
	if f.parallel < 0 || f.round < 0 {
		bad("--parallel and --round cannot be negative")
	}
	if slices.ContainsFunc(f.thresholds, func(x float64) bool { return !(x >= 0 && x <= 1) }) {
		bad("--threshold is a probability, not %v", f.thresholds)
	}
	if slices.ContainsFunc(f.bypasses, func(x float64) bool { return !(x >= 0) || math.IsInf(x, 0) }) {
		bad("--bypass-threshold is a probability, or a number above 1 for none, not %v", f.bypasses)
	}
	for i := range f.seeds {
		s.Seeds = append(s.Seeds, f.paper.Seed+uint64(i))
	}
	for _, w := range f.workers {
		if w < 1 || w > maxWorkers {
			bad("--workers is %d; it is between 1 and %d", w, maxWorkers)
		}
	}
	return s, errors.Join(errs...)
}

// common is what all settings of a sweep share.
func (f *flags) common() map[string]any {
	return map[string]any{"predictor": f.predictor, "seed": f.paper.Seed, "seeds": f.seeds, "round_s": f.round.Seconds()}
}

// summary is the JSON value: what was simulated, and what came of it. Where a sweep has one workload only,
// the results do not repeat it.
func (f *flags) summary(s Study, rows []Row) any {
	workload := f.common()
	same := !slices.ContainsFunc(s.Settings, func(x Setting) bool { return fmt.Sprint(x.Workload) != fmt.Sprint(s.Settings[0].Workload) })
	if same {
		for name, value := range s.Settings[0].Workload {
			workload[name] = value
		}
		for i := range rows {
			rows[i].Workload = nil
		}
	}
	return struct {
		Workload map[string]any `json:"workload"`
		Results  []Row          `json:"results"`
	}{workload, rows}
}

func list(w io.Writer) error {
	var b strings.Builder
	for _, name := range policy.Names() {
		k, _ := policy.Named(name)
		fmt.Fprintf(&b, "%s: %s\n    %s\n", k.Name, k.Says, k.Source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
