// Package kills is the proof on real processes, real git and real steps: the demo's changes are landed again and
// again while services, what they start, and brokers are killed with SIGKILL, stalled with SIGSTOP until another
// has taken over, and doubled by instances that believe that everything is theirs. Then every commit of the
// mainline is built again, and what became of each change is held against what has to become of it.
package kills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/tools/demo/sample"
	"landfall.build/tools/proof/kills/verdict"
)

// Broken is the error of a run in which a promise was broken. It has been told when it is returned.
type Broken struct{ Problems int }

func (e Broken) Error() string {
	return fmt.Sprintf("%d things are not as they have to be", e.Problems)
}

// ExitCode is the command's exit code.
func (e Broken) ExitCode() int { return 1 }

// maxKills bounds a run; more is better done in several, with other seeds. fewest is how many changes the scenario needs.
const (
	maxKills = 100_000
	fewest   = 6
)

// run is one call of the command.
type run struct {
	kills int64
	// changes is how many of the sample's changes a round lands, 0 for all.
	changes int
	seed    uint64
	broker  string
	script  string
	keep    string
	binary  string
	version string
	// beside is the command of another release, its version what it calls itself; "" if there is none.
	beside, besideVersion string
	cache                 string
	progress              io.Writer
}

// Command is `landfall kills`. Its error is Broken if a promise was.
func Command(version string) *cobra.Command {
	r := &run{version: version}
	asJSON := false
	c := &cobra.Command{
		Use:   "kills",
		Short: "Kill processes at random while changes land, and prove that nothing was lost: minutes",
		Long: `Land the demo's changes, round after round, with two instances of each service as processes of their own,
until so many processes have been killed with SIGKILL: services, what they have started (steps, git), and
brokers. Others are stopped with SIGSTOP until another has taken over, and then go on; intruders claim what
belongs to others. Then audit every commit. The last line is one JSON object; it says how many commits are red,
how many changes are lost, landed twice, undecided or wrongly rejected (all must be 0), and what was done.

The seed decides what befalls which process and when; how far each is at that moment is up to the machine.
With --broker kafka the log is on three nodes of Apache Kafka (replication 3, min.insync.replicas=2), which
tools/kafka/run fetches; that needs a Java runtime.

With --beside, the command of another release runs in the same deployment. A round begins with all processes of one release; while
changes land and processes are killed, they are replaced by the other's, one by one in a random order, and then back again.

Interrupted, or when its terminal is closed, it ends all processes and prints the last line of the rounds before.

Exit codes: 0 every promise was kept, 1 not so, 3 it could not be run, or was interrupted. It needs git and Go, and Linux to find
what services have started.`,
		Example: "  landfall kills --kills 50 --seed 7\n  landfall kills --broker kafka --keep what-happened\n  landfall kills --beside ./landfall-0.1 --kills 50",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			r.progress = cmd.OutOrStdout()
			if asJSON {
				r.progress = cmd.ErrOrStderr()
			}
			return r.do(cmd.Context(), cmd.OutOrStdout())
		},
	}
	s := c.Flags()
	s.Int64Var(&r.kills, "kills", 200, "how many processes to kill")
	s.Uint64Var(&r.seed, "seed", 1, "decides what befalls which process")
	s.StringVar(&r.broker, "broker", embedded, "embedded, or kafka for three nodes of Apache Kafka")
	s.StringVar(&r.script, "kafka-script", filepath.Join("tools", "kafka", "run"), "what starts a node of Apache Kafka")
	s.StringVar(&r.keep, "keep", "", "keep repositories, logs and data in this folder; otherwise only those of a round that went wrong")
	s.StringVar(&r.beside, "beside", "", "command of another release; processes are replaced by the other release's while changes land")
	s.IntVar(&r.changes, "changes", 0, fmt.Sprintf("how many of the sample's changes a round lands, at least %d; 0: all", fewest))
	s.BoolVar(&asJSON, "json", false, "print nothing but the last line on standard output")
	c.AddCommand(intruderCommand(version))
	return c
}

func (r *run) check(ctx context.Context) (err error) {
	switch {
	case r.changes != 0 && r.changes < fewest:
		return fmt.Errorf("--changes is %d; it is 0 or at least %d", r.changes, fewest)
	case r.kills < 1 || r.kills > maxKills:
		return fmt.Errorf("--kills is %d; it is 1 to %d", r.kills, maxKills)
	case r.broker != embedded && r.broker != apache:
		return fmt.Errorf("--broker is %q; it is %s or %s", r.broker, embedded, apache)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return fmt.Errorf("git 2.38 or newer is needed: install the package git")
	}
	if r.script, err = filepath.Abs(r.script); err != nil {
		return err
	}
	if r.binary, err = os.Executable(); err != nil || r.beside == "" {
		return err
	}
	return r.checkBeside(ctx)
}

// do plays rounds until enough was killed.
func (r *run) do(ctx context.Context, out io.Writer) (err error) {
	if err := r.check(ctx); err != nil {
		return err
	}
	if r.cache, err = sample.BuildCache(ctx); err != nil {
		return err
	}
	fmt.Fprintln(r.progress, "compiling the sample monorepo once (the first time on a machine, the standard library too: a minute or two)")
	if err := sample.Warm(ctx, r.cache); err != nil {
		return err
	}
	dir, err := r.folder()
	if err != nil {
		return err
	}
	begun := time.Now()
	total := verdict.Line{Seed: r.seed}
	problems := 0
	for number := 1; int64(total.Crashes) < r.kills; number++ {
		line, wrong, err := r.round(ctx, dir, number, r.kills-int64(total.Crashes))
		if err != nil && ctx.Err() != nil {
			return r.interrupted(ctx, out, dir, number, total, problems)
		}
		if err == nil && line.Crashes == 0 {
			err = errors.New("it ended before anything could be killed")
		}
		if err != nil {
			return r.unplayed(out, dir, number, total, problems, err)
		}
		total.Add(line)
		problems += wrong
	}
	fmt.Fprintf(r.progress, "%d rounds took %s\n", total.Schedules, time.Since(begun).Round(time.Second))
	return r.report(out, dir, total, problems)
}

// interrupted reports the rounds before one that somebody ended: nothing is known of that one.
func (r *run) interrupted(ctx context.Context, out io.Writer, dir string, number int, total verdict.Line, problems int) error {
	fmt.Fprintf(r.progress, "interrupted in round %d, which does not count\n", number)
	switch {
	case r.keep != "":
		fmt.Fprintf(r.progress, "what is there is kept in %s\n", dir)
	case problems > 0:
		os.RemoveAll(roundIn(dir, number)) // those that went wrong are kept
	}
	if err := r.report(out, dir, total, problems); err != nil {
		return err
	}
	return ctx.Err()
}

// unplayed reports the rounds before one that could not be played, of which nothing is known; what they broke comes first.
func (r *run) unplayed(out io.Writer, dir string, number int, total verdict.Line, problems int, err error) error {
	err = fmt.Errorf("round %d could not be played, and does not count: %w\nwhat is there is kept in %s", number, err, dir)
	if encoding := json.NewEncoder(out).Encode(total); encoding != nil {
		return errors.Join(err, encoding)
	}
	if problems > 0 || !total.Kept() {
		fmt.Fprintln(r.progress, err)
		return Broken{max(1, problems)}
	}
	return err
}

// report removes what is not to be kept, and prints the last line.
func (r *run) report(out io.Writer, dir string, total verdict.Line, problems int) error {
	if r.keep == "" && problems == 0 {
		os.RemoveAll(dir)
	}
	if err := json.NewEncoder(out).Encode(total); err != nil {
		return err
	}
	if problems > 0 || !total.Kept() {
		return Broken{max(1, problems)}
	}
	return nil
}

// folder is where rounds are played: a kept one must not be there, or be empty.
func (r *run) folder() (string, error) {
	if r.keep == "" {
		return os.MkdirTemp("", "landfall-kills-")
	}
	dir, err := filepath.Abs(r.keep)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty; --keep needs a folder of its own", dir)
	}
	return dir, err
}

func roundIn(dir string, number int) string {
	return filepath.Join(dir, fmt.Sprintf("round-%d", number))
}

// round plays one, and says how much went wrong. What went well is removed, unless it is to be kept.
func (r *run) round(ctx context.Context, dir string, number int, enough int64) (verdict.Line, int, error) {
	p := place{roundIn(dir, number)}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return verdict.Line{}, 0, err
	}
	file, err := os.Create(filepath.Join(p.dir, "kills.log"))
	if err != nil {
		return verdict.Line{}, 0, err
	}
	defer file.Close()
	// Any two rounds of a run differ, and so do those of runs with neighbouring seeds.
	seed := r.seed*1_000_003 + uint64(number)
	this := &round{run: r, number: number, place: p, seed: seed, enough: enough, logger: slog.New(slog.NewTextHandler(file, nil))}
	line, err := this.play(ctx)
	if err != nil {
		return line, 0, err
	}
	for _, problem := range this.problems {
		fmt.Fprintf(r.progress, "NOT AS IT HAS TO BE: %s\n", problem)
	}
	fmt.Fprintf(r.progress, "round %d: %s; %d claims among %d records\n", number, &this.counts, this.log.Claims, this.log.Records)
	if len(this.problems) > 0 || !line.Kept() {
		fmt.Fprintf(r.progress, "what is there is kept for a look in %s\n", p.dir)
		return line, max(1, len(this.problems)), nil
	}
	if r.keep == "" {
		os.RemoveAll(p.dir)
	}
	return line, 0, nil
}
