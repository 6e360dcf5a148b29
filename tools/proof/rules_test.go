package proof

import (
	"slices"
	"testing"
)

// TestWithoutARuleAPromiseIsFoundBroken leaves out one rule after the other: a check that finds nothing wrong
// then would prove nothing. It begins where whoever tries it begins: no rule has seeds picked for it.
func TestWithoutARuleAPromiseIsFoundBroken(t *testing.T) {
	for _, rule := range Rules() {
		if len(rule.Breaks) == 0 {
			continue
		}
		t.Run(string(rule.Rule), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= FoundWithin; seed++ {
				broken := func(o Options) (bool, []string) {
					tally, wrong := Run(o)
					return slices.ContainsFunc(rule.Breaks, func(c Count) bool { return tally[c] > 0 }), wrong
				}
				o := Options{Seed: seed, Leave: rule.Rule, Ticks: 6000}
				found, wrong := broken(o)
				if found && slices.Contains(rule.Breaks, Undecided) {
					o.Ticks = 0 // with a little more time it might have been decided
					found, wrong = broken(o)
				}
				if found {
					t.Logf("found in schedule %d: %s", seed, wrong[0])
					return
				}
			}
			t.Errorf("%d schedules in which %s, and no promise of %v is found broken", FoundWithin, rule.Without, rule.Breaks)
		})
	}
}

// TestWhatIsThereForCostIsShownByAFigure: without these rules nothing is broken, and more is done.
func TestWhatIsThereForCostIsShownByAFigure(t *testing.T) {
	const n = 160
	play := func(rule Rule) (total Tally) {
		for seed := range uint64(n) {
			tally, wrong := Run(Options{Seed: seed + 1, Leave: rule, Ticks: 20_000, Without: map[string]bool{"several queues": true}})
			if tally[Red]+tally[Unproven]+tally[Doubled]+tally[Lost] > 0 {
				t.Errorf("seed %d without %q: %v", seed+1, rule, wrong)
			}
			total.Add(tally)
		}
		return total
	}
	with := play("")
	for rule, more := range map[Rule]Count{Lease: RunTwice, EvidencePosition: Refusals, GuardFirst: Refusals} {
		without := play(rule)
		t.Logf("%s: %d %v with it, %d without", rule, with[more], more, without[more])
		if without[more] <= with[more] {
			t.Errorf("without %s there are not more %v: %d, and %d with it", rule, more, without[more], with[more])
		}
	}
}

// TestNobodyBelievesWhatIsSabotaged: what lands does not depend on analysis, models and proposals.
func TestNobodyBelievesWhatIsSabotaged(t *testing.T) {
	for _, sabotage := range AllSabotage() {
		t.Run(string(sabotage), func(t *testing.T) {
			t.Parallel()
			total, failures := Campaign{Options: Options{Seed: 1, Sabotage: sabotage}, Schedules: 60, MaxFailures: 3}.Run(t.Context())
			for _, f := range failures {
				t.Error(f.Report())
			}
			if total[Sabotages] < 200 || total[Refusals] == 0 {
				t.Errorf("there was little to refuse: %v", total)
			}
		})
	}
}
