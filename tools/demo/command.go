package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/demo/display"
	"landfall.build/tools/demo/sample"
)

// Unexpected is the error of a demo that ended with other results than it must. It is printed before it is returned.
type Unexpected struct{ Problems int }

func (e Unexpected) Error() string {
	return fmt.Sprintf("%d things are not as they have to be", e.Problems)
}

// ExitCode is the command's exit code.
func (e Unexpected) ExitCode() int { return 1 }

type flags struct {
	asJSON, processes bool
	keep              string
	seed              uint64
}

// Command is `landfall demo`. Its error is Unexpected if a commit is not green or an outcome not as expected.
func Command(version string) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Land 40 changes on a sample monorepo, and prove every commit green: about a minute",
		Long: `The main job, from nothing: make a sample monorepo of some 30 targets in Go, serve it from a bare
repository, start everything, and have eight people land some 40 changes at once. Some conflict, some are
wrong, two pairs pass alone and break together, one is large and slow. Then audit the mainline: build every
commit of it again, without the queue's evidence.

Exit codes: 0 every commit is green and every change ended as it has to, 1 not so, 3 it could not be run.
It needs git, and Go for the sample's own steps.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), version)
		},
	}
	s := c.Flags()
	s.BoolVar(&f.asJSON, "json", false, "print one JSON object on standard output and nothing else there")
	s.StringVar(&f.keep, "keep", "", "keep the repository, the data directory and the logs in this folder")
	s.Uint64Var(&f.seed, "seed", 1, "decides in which order people come")
	s.BoolVar(&f.processes, "processes", false, "run each service as a process of its own, and kill one of each with -9 in the middle")
	return c
}

func (f *flags) run(ctx context.Context, out, progress io.Writer, version string) error {
	p, remove, err := newPlace(f.keep)
	if err != nil {
		return err
	}
	logs, err := os.Create(p.log())
	if err != nil {
		return err
	}
	defer logs.Close()
	if !f.asJSON {
		progress = out
	}
	d := &demo{
		place: p, seed: f.seed, processes: f.processes, version: version, progress: progress,
		logger: slog.New(slog.NewTextHandler(logs, nil)), live: display.NewLive(progress),
	}
	begun := time.Now()
	found, err := d.run(ctx)
	d.live.End()
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, sample.ErrNoGo) {
			remove()
			return err
		}
		return fmt.Errorf("%w\nwhat is there is kept for a look in %s", err, p.dir)
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		err = encoder.Encode(found.summary())
		found.tellProblems(progress)
	} else {
		found.printFindings(out, d.sample)
		fmt.Fprintf(out, "\nThe whole demo took %s.\n", time.Since(begun).Round(100*time.Millisecond))
	}
	if !found.good() {
		fmt.Fprintf(progress, "What is there is kept for a look in %s.\n", p.dir)
		return Unexpected{len(found.result.Problems) + len(found.audit.Commits) - found.audit.Green()}
	}
	if f.keep != "" {
		fmt.Fprintf(progress, "Everything is kept in %s; look at it with: landfall up --config %s\n", p.dir, p.configFile())
	}
	remove()
	return err
}

// printFindings prints everything that was found.
func (f *finding) printFindings(w io.Writer, r *sample.Repository) {
	display.Story(w, f.result.Ends)
	p50, p95 := f.turnarounds()
	display.Costs(w, f.tally, p50, p95)
	display.Damage(w, f.damage, f.chain, r)
	fmt.Fprintln(w, "\nAudit:")
	f.audit.Write(w)
	f.tellProblems(w)
}

func (f *finding) tellProblems(w io.Writer) {
	for _, p := range f.result.Problems {
		fmt.Fprintf(w, "NOT AS EXPECTED: %s\n", p)
	}
}

// turnarounds are those of what landed, from the admission of the revision that did: the 50th and the 95th
// percentile.
func (f *finding) turnarounds() (p50, p95 time.Duration) {
	var all []time.Duration
	for _, e := range f.result.Ends {
		if e.Got == sample.Landed {
			all = append(all, e.View.FinishedAt.Sub(e.View.AdmittedAt))
		}
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	rank := func(percent int) time.Duration { return all[(percent*len(all)+99)/100-1] }
	return rank(50), rank(95)
}

// summary is the one JSON object; its fields are fixed.
type summary struct {
	Landed         int `json:"landed"`
	Rejected       int `json:"rejected"`
	Ejected        int `json:"ejected"`
	Cancelled      int `json:"cancelled"`
	Bypassed       int `json:"bypassed"`
	CommitsAudited int `json:"commits_audited"`
	CommitsGreen   int `json:"commits_green"`
	Builds         int `json:"builds"`
	StepsRun       int `json:"steps_run"`
	StepsReused    int `json:"steps_reused"`
	Turnaround     struct {
		P50 int64 `json:"p50"`
		P95 int64 `json:"p95"`
	} `json:"turnaround_ms"`
}

func (f *finding) summary() summary {
	s := summary{
		CommitsAudited: len(f.audit.Commits), CommitsGreen: f.audit.Green(),
		Builds: f.tally.Builds, StepsRun: f.tally.StepsRun, StepsReused: f.tally.StepsReused,
	}
	for _, e := range f.result.Ends {
		switch e.Got.State {
		case view.StateLanded:
			s.Landed++
		case view.StateRejected:
			s.Rejected++
		case view.StateEjected:
			s.Ejected++
		case view.StateCancelled:
			s.Cancelled++
		}
		if e.View.Landing != nil && len(e.View.Landing.Bypassed) > 0 {
			s.Bypassed++
		}
	}
	p50, p95 := f.turnarounds()
	s.Turnaround.P50, s.Turnaround.P95 = p50.Milliseconds(), p95.Milliseconds()
	return s
}
