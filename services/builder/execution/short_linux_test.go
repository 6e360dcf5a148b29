package execution

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox/lookups"
)

// TestAStepThatFindsNoMoreOfSomethingIsShort takes all open files of this process: a supervisor cannot be started without some.
func TestAStepThatFindsNoMoreOfSomethingIsShort(t *testing.T) {
	request := step(t, shell("exit 0"))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	lowered := unix.Rlimit{Cur: uint64(next.Fd()), Max: limit.Max}
	next.Close()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lowered); err != nil {
		t.Fatal(err)
	}
	result := Run(t.Context(), request)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if result.Outcome != CouldNotRun || !result.Short {
		t.Errorf("%v, short: %v: %s", result.Outcome, result.Short, result.Reason)
	}
	mustEnd(t, Run(t.Context(), request), Passed, "")
}

// TestAStepWhoseSupervisorIsEndedBeforeItBeginsIsShort: none of its code has run, which could have ended it.
func TestAStepWhoseSupervisorIsEndedBeforeItBeginsIsShort(t *testing.T) {
	request := step(t, Command{Name: "none", Argv: []string{"true"}})
	supervisor, err := startSupervisor(ProcessTree, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer supervisor.close()
	go supervisor.readReports()
	_ = supervisor.command.Process.Kill()
	finished, unfit := supervisor.await(t.Context(), request, newCapture(nil, 0, nil))
	supervisor.end(Automatic, request.supervisorLimit)
	if unfit.Unfit != "" || finished.Outcome != CouldNotRun || !finished.Short {
		t.Errorf("%+v, %+v", finished, unfit)
	}
}

// TestWhatTheTreeOrTheWorkerLacksIsNotWaitedFor: it is not there later either.
func TestWhatTheTreeOrTheWorkerLacksIsNotWaitedFor(t *testing.T) {
	for name, argv := range map[string][]string{"no such program": {"landfall-test-none"}, "none in the tree": {"./none"}, "killed": {"sh", "-c", "kill -KILL $$"}} {
		for watched, missing := range map[string]*lookups.Missing{"": nil, ", watched": {}} {
			request := boxed(t, Command{Argv: argv})
			request.Missing = missing
			if result := Run(t.Context(), request); result.Short || result.Outcome == Passed {
				t.Errorf("%s%s: %v, short: %v: %s", name, watched, result.Outcome, result.Short, result.Reason)
			}
		}
	}
}
