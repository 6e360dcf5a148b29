package builder

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"landfall.build/services/builder/execution"
)

func TestAStepThatCannotBeStartedWaitsUntilItCan(t *testing.T) {
	short := execution.Result{Outcome: execution.CouldNotRun, Short: true, Reason: "There is no process to be had."}
	for name, test := range map[string]struct {
		free time.Duration // when what it takes is there again
		want execution.Outcome
		took time.Duration
	}{
		"at once":                {0, execution.Passed, 0},
		"another step ends soon": {10 * time.Second, execution.Passed, 15 * time.Second},
		"just within the limit":  {29 * time.Minute, execution.Passed, 29*time.Minute + time.Second},
		"never":                  {time.Hour, execution.CouldNotRun, 29*time.Minute + 31*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, said := time.Now(), 0
				result := patiently(t.Context(), 30*time.Minute, func() execution.Result {
					if time.Since(began) < test.free {
						return short
					}
					return execution.Result{Outcome: execution.Passed}
				}, func(string) { said++ })
				if took := time.Since(began); result.Outcome != test.want || took != test.took {
					t.Errorf("%v after %v, want %v after %v", result.Outcome, took, test.want, test.took)
				}
				if want := min(test.free, 1); said != int(want) {
					t.Errorf("it was said %d times", said)
				}
			})
		})
	}
}

func TestAStepThatWaitsToBeStartedIsAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Second, func() { cancel(errors.New("unwanted")) })
		began := time.Now()
		result := patiently(ctx, time.Hour, func() execution.Result {
			if ctx.Err() != nil {
				return execution.Result{Outcome: execution.Aborted}
			}
			return execution.Result{Outcome: execution.CouldNotRun, Short: true}
		}, func(string) {})
		if took := time.Since(began); result.Outcome != execution.Aborted || took != 100*time.Second {
			t.Errorf("%v after %v", result.Outcome, took)
		}
	})
}

// What fails of itself is not waited for.
func TestAStepThatCannotRunForAnotherReasonDoesNotWait(t *testing.T) {
	runs := 0
	result := patiently(t.Context(), time.Hour, func() execution.Result {
		runs++
		return execution.Result{Outcome: execution.CouldNotRun}
	}, func(string) { t.Error("it waits") })
	if runs != 1 || result.Outcome != execution.CouldNotRun {
		t.Errorf("%d runs, %v", runs, result.Outcome)
	}
}
