package view

import "testing"

// TestAStepThatRanOutOfTimeIsToldByWhatItPrintedLast: what came before it had passed.
func TestAStepThatRanOutOfTimeIsToldByWhatItPrintedLast(t *testing.T) {
	lines := []string{"=== RUN   TestOne", "--- PASS: TestOne (0.00s)", "=== RUN   TestTwo"}
	for state, want := range map[string]string{StepTimedOut: "ran longer than its limit of 1m0s: === RUN   TestTwo", StepFailed: "=== RUN   TestOne"} {
		if got := (Step{State: state, Message: "ran longer than its limit of 1m0s.", Lines: lines}).why(); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}
