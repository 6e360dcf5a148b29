// Command faults goes through random schedules with the production cores and says whether a promise was
// broken: `make faults`. Its last line is one JSON object; everything else goes to standard error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"time"

	"landfall.build/tools/lifeline"
	"landfall.build/tools/proof"
)

// Exit codes: a promise was broken, or the command was called wrongly or interrupted.
const (
	exitBroken  = 1
	exitNotDone = 2
)

const usage = `Go through random schedules with the production cores, in virtual time: crashes, stale instances, records
that arrive late, flakes, direct pushes, and people who change their minds. The last line is one JSON object;
the exit code is 0 if no promise was broken, 1 if one was, 2 if the schedules were not gone through.

  faults -schedules 100000 -seed 1
  faults -schedules 10000 -sabotage analysis
  faults -schedules 300 -leave M21-guard-lands
  faults -schedules 1 -seed 4711 -trace -without crashes,flakes

`

// shrinkFor is how long the first failure is made smaller.
const shrinkFor = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), lifeline.Signals()...)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command. Its exit code is documented in usage.
func run(ctx context.Context, args []string, out, messages io.Writer) int {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.Usage = func() {
		fmt.Fprint(messages, usage)
		flags.PrintDefaults()
	}
	var (
		schedules = flags.Int("schedules", 10_000, "how many schedules")
		seed      = flags.Uint64("seed", 1, "seed of the first schedule; the others follow it")
		sabotage  = flags.String("sabotage", "", fmt.Sprintf("what lies in every schedule: one of %v", proof.AllSabotage()))
		leave     = flags.String("leave", "", "a rule to leave out, to see what is found then; one of "+rules())
		without   = flags.String("without", "", "operations and troubles that the schedules go without, separated by commas")
		trace     = flags.Bool("trace", false, "print the log of the first schedule, and go through no other")
	)
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return exitNotDone
	}
	o := proof.Options{Seed: *seed, Sabotage: proof.Sabotage(*sabotage), Leave: proof.Rule(*leave), Without: map[string]bool{}}
	unknown := ""
	for name := range strings.SplitSeq(*without, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !canBeLeftOut(name) {
			unknown = name
		}
		o.Without[name] = true
	}
	switch {
	case unknown != "":
		fmt.Fprintf(messages, "there is no trouble or operation %q; the troubles are %s, and operations are %s\n",
			unknown, strings.Join(proof.Troubles(), ", "), operationsAre)
		return exitNotDone
	case !o.Sabotage.Known():
		fmt.Fprintf(messages, "there is no sabotage %q; use one of %v\n", *sabotage, proof.AllSabotage())
		return exitNotDone
	case o.Leave != "" && !known(o.Leave):
		fmt.Fprintf(messages, "there is no rule %q; use one of %s\n", *leave, rules())
		return exitNotDone
	case *schedules < 1 || flags.NArg() > 0:
		fmt.Fprintln(messages, "give at least one schedule, and flags only; see faults -help")
		return exitNotDone
	}
	n := *schedules
	if *trace {
		n = 1
		o.Trace = func(line string) { fmt.Fprintln(messages, line) }
	}
	return play(ctx, o, n, out, messages)
}

func known(r proof.Rule) bool {
	_, ok := r.Info()
	return ok
}

// rules names the rules that can be left out.
func rules() string {
	var names []string
	for _, i := range proof.Rules() {
		names = append(names, string(i.Rule))
	}
	return strings.Join(names, ", ")
}

// play goes through the schedules and reports them.
func play(ctx context.Context, o proof.Options, n int, out, messages io.Writer) int {
	// A schedule is gone as a whole: there is little worth collecting while it runs.
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	began := time.Now()
	first := map[proof.Count]uint64{} // seed of a known fault
	tally, failures := proof.Campaign{Options: o, Schedules: n, Each: func(o proof.Options, t proof.Tally) {
		for _, known := range proof.KnownFaults() {
			if seed, had := first[known]; t[known] > 0 && (!had || o.Seed < seed) {
				first[known] = o.Seed
			}
		}
	}, Progress: func(done int, so proof.Tally) {
		left := time.Duration(float64(time.Since(began)) / float64(done) * float64(n-done))
		fmt.Fprintf(messages, "%d of %d schedules, %d promises broken; about %v left\n", done, n, so.Violations(), left.Round(time.Second))
	}}.Run(ctx)
	fmt.Fprintf(messages, "seed %d, %v:%v\n", o.Seed, time.Since(began).Round(time.Second), tally)
	for i, f := range failures {
		if i == 0 && o.Trace == nil {
			fmt.Fprintln(messages, "a promise was broken; looking for a smaller schedule that breaks it")
			f = f.Shrink(time.Now().Add(shrinkFor))
		}
		fmt.Fprintln(messages, f.Report())
	}
	for _, known := range proof.KnownFaults() {
		if n := tally[known]; n > 0 {
			fmt.Fprintf(messages, "known faults: %d %v, first with seed %d; see docs/guides/proof.md\n", n, known, first[known])
		}
	}
	if err := json.NewEncoder(out).Encode(tally.Summary(o.Seed)); err != nil {
		fmt.Fprintln(messages, err)
		return exitNotDone
	}
	switch {
	case len(failures) > 0:
		return exitBroken
	case tally[proof.Schedules] < n:
		fmt.Fprintln(messages, "interrupted")
		return exitNotDone
	}
	if rule, is := o.Leave.Info(); is {
		fmt.Fprintln(messages, unseen(rule, o, n))
	}
	return 0
}

// unseen says why nothing was found broken although a rule was left out.
func unseen(rule proof.RuleInfo, o proof.Options, n int) string {
	switch {
	case len(rule.Breaks) == 0:
		return fmt.Sprintf("%s is there for latency and cost: leaving it out breaks no promise, and shows in the figures; see docs/guides/proof.md", rule.Rule)
	case o.Seed == 1 && n >= proof.FoundWithin && o.Sabotage == "" && len(o.Without) == 0:
		return fmt.Sprintf("%s was left out and nothing was found broken: a check is dead, or something else keeps the promise", rule.Rule)
	}
	return fmt.Sprintf("%s was left out and nothing was found broken: that may take %d schedules from seed 1 with all their troubles", rule.Rule, proof.FoundWithin)
}
