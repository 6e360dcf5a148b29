package main

import (
	"encoding/json"
	"strings"
	"testing"

	"landfall.build/tools/proof"
)

func call(t *testing.T, args ...string) (code int, out, messages string) {
	t.Helper()
	var o, m strings.Builder
	code = run(t.Context(), args, &o, &m)
	return code, o.String(), m.String()
}

// TestTheLastLineIsWhatScriptsRead has the fields that the summary promises, and nothing beside it.
func TestTheLastLineIsWhatScriptsRead(t *testing.T) {
	code, out, messages := call(t, "-schedules", "20", "-seed", "7")
	var line map[string]uint64
	if err := json.Unmarshal([]byte(out), &line); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s\n%s", code, err, out, messages)
	}
	for _, name := range []string{
		"schedules", "seed", "red", "lost", "doubled", "undecided", "wrongly_rejected", "bypasses", "crashes", "stale_writes", "guard_refusals",
	} {
		if _, has := line[name]; !has {
			t.Errorf("the line has no %s: %s", name, out)
		}
		delete(line, name)
	}
	if len(line) > 0 {
		t.Errorf("the line has more than it says: %v", line)
	}
	if strings.Count(out, "\n") != 1 {
		t.Errorf("%q is more than one line", out)
	}
}

// TestABrokenPromiseEndsWithOneAndTellsHowToSeeItAgain also when it is made smaller.
func TestABrokenPromiseEndsWithOneAndTellsHowToSeeItAgain(t *testing.T) {
	code, out, messages := call(t, "-schedules", "20", "-leave", "M21-guard-lands")
	if code != exitBroken || strings.Contains(out, `"red":0`) {
		t.Errorf("exit %d: %s", code, out)
	}
	if !strings.Contains(messages, "make faults SEED=") || !strings.Contains(messages, "LEAVE=M21-guard-lands") {
		t.Errorf("nobody is told how to see it again: %s", messages)
	}
}

// TestWhoFindsNothingWithoutARuleIsToldWhy: nothing broken looks as if the check were dead.
func TestWhoFindsNothingWithoutARuleIsToldWhy(t *testing.T) {
	for args, says := range map[string]string{
		"-schedules 1 -leave M19-land":          "may take 1000 schedules from seed 1",
		"-schedules 1 -leave guard-first":       "latency and cost",
		"-schedules 1":                          "",
		"-schedules 1 -leave read-to-the-claim": "a promise was broken",
	} {
		_, _, messages := call(t, strings.Fields(args)...)
		if !strings.Contains(messages, says) || (says == "" || says == "a promise was broken") && strings.Contains(messages, "left out") {
			t.Errorf("%s: %s", args, messages)
		}
	}
	rule, _ := proof.M19Land.Info()
	if says := unseen(rule, proof.Options{Seed: 1}, proof.FoundWithin); !strings.Contains(says, "dead") {
		t.Errorf("all schedules, and nothing found: %s", says)
	}
	for _, o := range []proof.Options{
		{Seed: 2}, {Seed: 1, Sabotage: proof.SabotageModels}, {Seed: 1, Without: map[string]bool{"races": true}},
	} {
		if says := unseen(rule, o, proof.FoundWithin); strings.Contains(says, "dead") {
			t.Errorf("other schedules, %+v, and nothing found: %s", o, says)
		}
	}
}

// TestTheSameSeedIsTheSameHistory, whichever core goes through it.
func TestTheSameSeedIsTheSameHistory(t *testing.T) {
	_, first, _ := call(t, "-schedules", "30", "-seed", "400")
	if _, second, _ := call(t, "-schedules", "30", "-seed", "400"); first != second {
		t.Errorf("first %s then %s", first, second)
	}
}

// TestWhatMakesNoSenseIsRefused with the names that would.
func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"-sabotage lies", "proposals"}, {"-leave everything", "M21-guard-lands"}, {"-schedules 0", "at least one"},
		{"-without crashes,nonsense", "lost answers"}, {"-without admit", "admit c7"}, {"-seeds 1", "seeds"}, {"please", "flags only"},
	} {
		code, out, messages := call(t, strings.Fields(c.args)...)
		if code != exitNotDone || out != "" || !strings.Contains(messages, c.says) {
			t.Errorf("%s: exit %d, %q, %s", c.args, code, out, messages)
		}
	}
}
