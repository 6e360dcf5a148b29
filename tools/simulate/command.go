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

	"landfall.build/platform/configuration"
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
	workload             string
	pool                 bool
	checkout, overhead   time.Duration
	loads                []float64
	targets              int
	affected             float64
	affected975          float64
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

// againstCurrent compares other settings with a queue's own.
const againstCurrent = "current"

// Command returns `landfall simulate`. load reads a configuration file, which names the place of the log.
func Command(load func(file string) (*configuration.Configuration, error), logger *slog.Logger) *cobra.Command {
	return (&flags{}).command(load, logger)
}

func (f *flags) command(load func(file string) (*configuration.Configuration, error), logger *slog.Logger) *cobra.Command {
	f.paper, f.source = trace.PinnedPaper(), replay.Source{Load: load}
	c := &cobra.Command{
		Use:   "simulate [paper|monorepo|git|lrts|log|FILE]",
		Short: "Compare the policies of merge queues on the same changes, in virtual time",
		Long: `Run a workload through the production cores under several policies, in virtual time: when each change lands,
with how many builds. Only building and git are simulated. Deciding and landing follow the same rule and
the same guard under every policy, and what lands is checked against the trace.

Workloads: paper is drawn; its defaults are pinned, so that figures can be compared. monorepo is a drawn repository whose
changes affect one target or hundreds, on 64 workers that run steps as production's do. git has real commits of a Go
repository on the target graph of its sources (--repository, --sources, --data). lrts has the durations
and outcomes of Jenkins builds (--data). log is a queue's past (--queue), from its log or from
ClickHouse (--from-clickhouse), with its own workers and thresholds unless flags set them. A FILE has one change a line, as JSON, by arrival:
  {"id":"b","arrival_s":7.5,"duration_s":600,"green":true,"meets":["a"],"breaks":["a"]}
where meets are the earlier changes in potential conflict with it, and breaks those with which it truly fails.

With --pool the workers run steps instead of builds: those of git's targets, those in the log, or those of a FILE's
"steps":{"//a":2.5,"//b":10}.

Values separated by commas are swept; each combination of workload and workers is a table of its own.

The oracle knows every outcome and keeps the queue's order; the figures of the others are divided by its own, seed by
seed. If more arrives than the workers can build, every turnaround grows with the length of the trace,
the oracle's too: read the ratio together with the throughput.`,
		Example: `  landfall simulate --workers 100,300,500
  landfall simulate --policies landfall,ci-at-scale-2025 --threshold 0.05,0.3 --bypass-threshold 0.9,2 --seeds 5
  landfall simulate log --queue main --data .landfall --policies landfall --threshold 0.01,0.2 --against current
  landfall simulate monorepo --load 0.7,0.85,0.95 --seeds 5 --policies landfall,landfall-by-build
  landfall simulate --changes 500 --json | jq '.results[] | [.policy, .turnaround_s.p95]'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			return f.run(cmd, args, logger)
		},
	}
	s := c.Flags()
	s.IntVar(&f.paper.Changes, "changes", f.paper.Changes, "number of changes")
	s.Float64SliceVar(&f.rates, "rate", []float64{f.paper.Rate}, "changes an hour")
	s.IntSliceVar(&f.workers, "workers", []int{500}, "builds that can run at a time, or on a pool steps")
	s.Uint64Var(&f.paper.Seed, "seed", f.paper.Seed, "the first seed; the same seed gives the same figures")
	s.IntVar(&f.seeds, "seeds", 1, "number of seeds to average over, from --seed on")
	s.StringSliceVar(&f.policies, "policies", policy.Names(), "policies to compare; the oracle is always included (on a pool those too that differ there alone)")
	s.Float64SliceVar(&f.thresholds, "threshold", nil, "least probability of being needed for a build to start (default: each policy's own)")
	s.Float64SliceVar(&f.bypasses, "bypass-threshold", nil, "least probability of finishing first for which a bypass gets builds; above 1 none does (default: each policy's own)")
	s.StringVar(&f.predictor, "predictor", forecast.Calibrated, "what is known before a build: perfect, calibrated (97 % right, durations within 6 %), flat (the rates alone) or, for lrts, trained (models, from what was known when each build began)")
	s.StringVar(&f.successModel, "success-model", "", "for --predictor trained: a model of landfall train outcome --model (default: one trained on what had ended when the trace begins)")
	s.StringVar(&f.durationModel, "duration-model", "", "for --predictor trained: a model of landfall train duration --model (default: as for success)")
	s.Float64Var(&f.newest, "newest", 1, "for lrts: the newest share of the recorded builds, which is simulated; the older ones are for training")
	s.Float64Var(&f.paper.Failure, "failure", f.paper.Failure, "probability that a change fails by itself")
	s.DurationVar(&f.paper.Median, "median", f.paper.Median, "median duration of a build")
	s.DurationVar(&f.paper.P95, "p95", f.paper.P95, "95th percentile of the durations of builds")
	s.DurationVar(&f.paper.Shortest, "shortest", f.paper.Shortest, "no build is shorter")
	s.DurationVar(&f.paper.Longest, "longest", f.paper.Longest, "no build is longer")
	s.Float64SliceVar(&f.potential, "potential-conflicts", []float64{f.paper.Potential}, "probability that two changes are in potential conflict")
	s.Float64SliceVar(&f.truly, "true-conflicts", []float64{f.paper.True}, "probability that a pair in potential conflict truly conflicts, if both arrived close together (--near)")
	s.DurationVar(&f.paper.Near, "near", f.paper.Near, "longest time between the arrivals of a true conflict")
	s.BoolVar(&f.paper.ByTarget, "minimal-steps", false, "for paper: changes have ten targets and share one to three; evidence is by target version, and only unknown versions are built, under every policy")
	s.Float64Var(&f.disturbed.Flakes, "flakes", 0, "probability that a run that would pass fails the first time; a failure runs once more")
	s.Float64Var(&f.disturbed.Losses, "worker-loss", 0, "how often a worker is lost in an hour of its work; its build starts again")
	s.Float64Var(&f.disturbed.Cancelled, "cancellations", 0, "share of the changes that their authors cancel before they can be decided")
	s.StringVar(&f.source.Data, "data", "", "for log: the data directory of landfall up; for lrts: the folder of the data set; for git: the file of commits")
	s.StringVar(&f.repository, "repository", "", "for git: the repository whose commits of --data to use")
	s.StringVar(&f.sources, "sources", "", "for git: the folder of that module's sources, as go mod download unpacks it")
	s.StringSliceVar(&f.source.Brokers, "brokers", nil, "for log: host:port of the log's brokers")
	s.StringVar(&f.source.Config, "config", "landfall.config.yaml", "for log: configuration file with the place of the log")
	s.BoolVar(&f.fromClickHouse, "from-clickhouse", false, "for log: read the history in ClickHouse (of --clickhouse, the configuration or the data directory) instead of the log")
	s.StringVar(&f.place.DSN, "clickhouse", "", "for log: DSN of a history in ClickHouse to read instead of the log")
	s.StringVarP(&f.queue, "queue", "q", "", "for log: the queue whose history it is")
	s.StringVar(&f.against, "against", "", "for log: current also runs the queue's own settings")
	f.given = s.Changed
	pinned := trace.PinnedMonorepo(f.paper)
	s.BoolVar(&f.pool, "pool", false, "the workers run steps, chosen as production's builder does, instead of a build each; always so for monorepo")
	s.DurationVar(&f.checkout, "checkout", 200*time.Millisecond, "on a pool: how long a worker takes to lay out another tree than that of its last step")
	s.DurationVar(&f.overhead, "overhead", 100*time.Millisecond, "on a pool: what a step takes a worker beside its commands: its lease, its process and its result")
	s.Float64SliceVar(&f.loads, "load", nil, "for monorepo and git on a pool: instead of --rate, the share of the workers that an oracle keeps busy")
	s.IntVar(&f.targets, "targets", pinned.Targets, "for monorepo: targets of the repository")
	s.Float64Var(&f.affected, "affected", pinned.Affected, "for monorepo: median of the targets that a change affects")
	s.Float64Var(&f.affected975, "affected-p975", pinned.Affected975, "for monorepo: their 97.5th percentile")
	s.DurationVar(&f.round, "round", 10*time.Second, "how long the queue collects events before it plans")
	s.IntVar(&f.parallel, "parallel", 0, "simulations at the same time (default: one for each processor)")
	s.BoolVar(&f.asJSON, "json", false, "print one JSON value on standard output and nothing else there")
	s.StringVar(&f.report, "report", "", "also write a page with plots into this folder, as index.html; it needs no network")
	s.BoolVar(&f.listed, "list", false, "list the policies with their sources, and exit")
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
	f.workload = workload
	f.settleDefaults()
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
	var unreported error // the figures are printed all the same
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

// appliesTo has, for each flag that is not for all workloads, those that it is for. Beside another workload it would change
// nothing, and readers would take it for what was simulated.
var appliesTo = map[string][]string{
	"changes": drawnOrRecorded, "rate": drawnOrRecorded, "true-conflicts": drawnOrRecorded, "near": drawnOrRecorded,
	"potential-conflicts": {workloadPaper, workloadLRTS}, "failure": {workloadPaper, workloadMono, workloadGit},
	"shortest": {workloadPaper, workloadMono, workloadGit}, "longest": {workloadPaper, workloadMono, workloadGit},
	"median": {workloadPaper, workloadMono, workloadGit}, "p95": {workloadPaper, workloadMono, workloadGit},
	"data": {workloadGit, workloadLRTS, workloadLog}, "repository": {workloadGit}, "sources": {workloadGit}, "newest": {workloadLRTS},
	"brokers": {workloadLog}, "from-clickhouse": {workloadLog}, "clickhouse": {workloadLog}, "config": {workloadLog}, "queue": {workloadLog}, "against": {workloadLog},
	"load": {workloadMono, workloadGit}, "targets": {workloadMono}, "affected": {workloadMono}, "affected-p975": {workloadMono},
}

// drawnOrRecorded are the workloads whose arrivals and true conflicts are drawn.
var drawnOrRecorded = []string{workloadPaper, workloadMono, workloadGit, workloadLRTS}

// idle returns an error for each flag that was given and does not apply to the workload.
func (f *flags) idle(workload string) (errs []error) {
	for _, flag := range slices.Sorted(maps.Keys(appliesTo)) {
		if of := appliesTo[flag]; f.given(flag) && !slices.Contains(of, workload) {
			errs = append(errs, fmt.Errorf("--%s does not apply to %s; it goes with %s", flag, workload, strings.Join(of, ", ")))
		}
	}
	return errs
}

// study returns what the flags ask for, or all that is wrong with them for this workload.
func (f *flags) study(workload string) (Study, error) {
	s := Study{Predictor: f.predictor, Thresholds: f.thresholds, Bypasses: f.bypasses, Round: f.round, Parallel: f.parallel}
	errs := f.idle(workload)
	if err := f.unsuited(); err != nil {
		errs = append(errs, err)
	}
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

// common returns what all settings of a sweep share.
func (f *flags) common() map[string]any {
	return map[string]any{"predictor": f.predictor, "seed": f.paper.Seed, "seeds": f.seeds, "round_s": f.round.Seconds()}
}

// summary returns the JSON value: what was simulated, and the results. If a sweep has one workload only, the
// results do not repeat it.
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
	for _, name := range policy.PoolNames() {
		k, _ := policy.Named(name)
		fmt.Fprintf(&b, "%s: %s\n    %s\n", k.Name, k.Says, k.Source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
