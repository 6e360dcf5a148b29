package builder

import (
	"testing"

	"landfall.build/engine/steps"
)

func TestALateStepDoesNotTakeTheWorkersOfAnotherQueue(t *testing.T) {
	step := func(queue, target string, rank steps.Rank) runnableStep {
		return runnableStep{queue, steps.Step{Version: steps.Version{Target: target}, Rank: rank}}
	}
	late := steps.Rank{Ready: true, Late: true, Index: 1, Bid: 3}
	a := []runnableStep{step("a", "late", late), step("a", "next", steps.Rank{Ready: true, Index: 3, Bid: 3}), step("a", "idle", steps.Rank{})}
	b := []runnableStep{step("b", "better", steps.Rank{Ready: true, Index: 4, Bid: 4}), step("b", "worse", steps.Rank{Ready: true, Index: 2, Bid: 2})}
	got := ""
	for _, s := range merge([][]runnableStep{a, b, nil}) {
		got += s.Target + " "
	}
	if want := "better late next worse idle "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
