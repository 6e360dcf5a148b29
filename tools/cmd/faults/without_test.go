package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/tools/proof"
)

// TestEveryOperationOfASchedulesHistoryCanBeLeftOut: a failure that was made smaller names them.
func TestEveryOperationOfASchedulesHistoryCanBeLeftOut(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(500) {
		for _, name := range proof.Names(proof.Options{Seed: seed}) {
			if !canBeLeftOut(name) {
				t.Fatalf("seed %d has the operation %q", seed, name)
			}
			seen[strings.TrimRight(name, "0123456789")] = true
		}
	}
	for _, name := range []string{"admit c", "push push", "tick", "quarantine", "trust", "retry", "reading"} {
		if !seen[name] {
			t.Errorf("no schedule has %q: %v", name, seen)
		}
	}
}

// TestMakeNamesTheExitCodeOfTheFaultsItFinds in its last line, as the guide says: its own is 2 whatever was wrong.
func TestMakeNamesTheExitCodeOfTheFaultsItFinds(t *testing.T) {
	faults := filepath.Join(t.TempDir(), "faults")
	for code, args := range map[string][]string{
		"Error 1": {"SCHEDULES=20", "LEAVE=M21-guard-lands"}, "Error 2": {"SCHEDULES=1", "WITHOUT=nonsense"},
	} {
		args = append([]string{"-C", "../../..", "faults", "FAULTS=" + faults}, args...)
		out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), code) {
			t.Errorf("%v: %v, no %q in\n%s", args, err, code, out)
		}
	}
}
