package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// escapes are ways to get away from whoever started the process.
var escapes = map[string]string{
	"background":        `sleep 1000 & `,
	"double fork":       `(sleep 1000 &) & wait $!; `,
	"new session":       `./helper helper-detach sleep 1000; `,
	"ignores SIGTERM":   `./helper helper-detach sh -c 'trap "" TERM HUP INT; while :; do sleep 1000; done'; `,
	"stopped":           `./helper helper-detach sh -c 'kill -STOP $$'; `,
	"fork in a chain":   `./helper helper-chain; `,
	"closed output":     `sleep 1000 >/dev/null 2>&1 & `,
	"new name in /proc": `cp /bin/sleep '0) S 1 1 ('; './0) S 1 1 (' 1000 & `,
}

func TestNoProcessOutlivesTheStep(t *testing.T) {
	endings := []struct {
		name, script string
		outcome      Outcome
	}{
		{"passes", "exit 0", Passed},
		{"fails", "exit 1", Failed},
		{"times out", "sleep 1000", TimedOut},
		{"is aborted", "echo ready; sleep 1000", Aborted},
	}
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		for escape, script := range escapes {
			for _, ending := range endings {
				t.Run(escape+" "+ending.name, func(t *testing.T) {
					request := step(t, shell(openLife+script+ending.script))
					request.Isolation = isolation
					processes := watchLife(t, request.Worktree)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					switch ending.outcome {
					case TimedOut:
						request.Commands[0].Timeout = 200 * time.Millisecond
					case Aborted:
						request.Log = writerFunc(func(data []byte) (int, error) { cancel(); return len(data), nil })
					}
					mustEnd(t, Run(ctx, request), ending.outcome, "")
					processes.mustBeOver(t)
				})
			}
		}
	})
}

func TestACommandsDaemonServesTheNextCommandAndEndsWithTheStep(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t,
			shell(openLife+`./helper helper-detach sh -c 'mkfifo answers; echo here >answers; sleep 1000'; until test -p answers; do :; done`),
			shell(`read word <answers; test "$word" = here`))
		request.Isolation = isolation
		processes := watchLife(t, request.Worktree)
		mustEnd(t, Run(t.Context(), request), Passed, "")
		processes.mustBeOver(t)
	})
}

func TestAHangWithClosedOutputIsATimeOut(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, shell(openLife+`exec >&- 2>&-; sleep 1000`))
		request.Isolation = isolation
		request.Timeout = 200 * time.Millisecond
		processes := watchLife(t, request.Worktree)
		result := Run(t.Context(), request)
		mustEnd(t, result, TimedOut, "the step's limit of 200ms")
		if result.Isolation != isolation || len(result.Commands) != 1 || result.Commands[0].Outcome != TimedOut {
			t.Fatalf("got %+v", result)
		}
		processes.mustBeOver(t)
	})
}

func TestSIGTERMComesBeforeSIGKILL(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, shell(`trap 'echo polite; exit 0' TERM; echo ready; while :; do sleep 0.01; done`))
		request.Isolation, request.Grace = isolation, patience
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request.Log = writerFunc(func(data []byte) (int, error) { cancel(); return len(data), nil })
		result := Run(ctx, request)
		mustEnd(t, result, Aborted, "was aborted")
		if !bytes.Contains(result.Tail, []byte("polite\n")) {
			t.Fatalf("the command was not asked to end: %q", result.Tail)
		}
	})
}

// TestAStepThatEndsItsSupervisorIsNotAborted: what is aborted uses up no retry, so such a step would be run again for ever.
func TestAStepThatEndsItsSupervisorIsNotAborted(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, shell("kill -TERM $PPID; sleep 1000"))
		request.Isolation = isolation
		result := Run(t.Context(), request)
		mustEnd(t, result, CouldNotRun, "ended by a signal")
		if len(result.Commands) != 1 || result.Commands[0].Outcome != CouldNotRun {
			t.Errorf("its commands: %+v", result.Commands)
		}
	})
}

func TestKillingTheBuilderEndsItsSteps(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, shell(openLife+escapes["ignores SIGTERM"]+escapes["double fork"]+"echo all >&3; sleep 1000"))
		request.Isolation = isolation
		processes := watchLife(t, request.Worktree)
		runner := startRunner(t, request, nil)
		processes.awaitStart(t)
		if err := runner.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = runner.Wait()
		processes.awaitEnd(t)
	})
}

func TestAStepThatKillsItsSupervisorIsNotHeldAgainstTheChange(t *testing.T) {
	request := step(t, shell(openLife+`sleep 1000 & kill -9 $PPID; sleep 1000`))
	request.Isolation = ProcessTree
	processes := watchLife(t, request.Worktree)
	result := Run(t.Context(), request)
	if result.Outcome != CouldNotRun || result.Leftovers == 0 {
		t.Fatalf("got %v with %d left: %s", result.Outcome, result.Leftovers, result.Reason)
	}
	processes.awaitEnd(t)
}

func TestAStepCannotKillTheSupervisorOfANamespace(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		if isolation == ProcessTree {
			return
		}
		request := step(t, shell(`test $PPID = 1 && kill -9 1; kill -STOP 1; trap '' TERM; kill -TERM -1; kill -0 $$ && exit 7`))
		request.Isolation = isolation
		result := Run(t.Context(), request)
		// kill -TERM -1 leaves process 1 out; nothing outside was in reach.
		mustEnd(t, result, Failed, "exit code 7")
	})
}

func TestAStoppedSupervisorIsGivenUp(t *testing.T) {
	request := step(t, shell(openLife+`kill -STOP $PPID; echo ready; sleep 1000`))
	request.Isolation, request.supervisorLimit = ProcessTree, 200*time.Millisecond
	processes := watchLife(t, request.Worktree)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request.Log = writerFunc(func(data []byte) (int, error) { cancel(); return len(data), nil })
	result := Run(ctx, request)
	if result.Outcome != CouldNotRun && result.Outcome != Aborted || result.Leftovers == 0 {
		t.Fatalf("got %v with %d left: %s", result.Outcome, result.Leftovers, result.Reason)
	}
	processes.awaitEnd(t)
}

func TestUsersOtherThanRootCanRunSteps(t *testing.T) {
	request := step(t, shell(openLife+escapes["ignores SIGTERM"]+"touch made; id -u; cat /proc/$$/comm"))
	processes := watchLife(t, request.Worktree)
	var credential *syscall.Credential
	if os.Geteuid() == 0 {
		const nobody = 65534
		credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		for _, path := range []string{request.Worktree, filepath.Join(request.Worktree, "helper"), filepath.Join(request.Worktree, "life")} {
			if err := os.Chown(path, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		// The directories above t.TempDir() are closed to others.
		if err := os.Chmod(filepath.Dir(request.Worktree), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, isolation := range []Isolation{Automatic, ProcessTree} {
		request.Isolation = isolation
		runner := startRunner(t, request, credential)
		if err := runner.Wait(); err != nil {
			t.Fatal(err)
		}
		var result Result
		if err := json.Unmarshal(runner.Stdout.(*bytes.Buffer).Bytes(), &result); err != nil {
			t.Fatal(err)
		}
		mustEnd(t, result, Passed, "")
		t.Logf("%v: %v", isolation, result.Isolation)
		if result.Isolation == PIDNamespace || isolation == ProcessTree && result.Isolation != ProcessTree {
			t.Fatalf("isolation %v", result.Isolation)
		}
		processes.mustBeOver(t)
	}
}

// startRunner runs the request in a process of its own.
func startRunner(t *testing.T, request Request, credential *syscall.Credential) *exec.Cmd {
	t.Helper()
	encoded, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	runner := exec.Command("/proc/self/exe", "helper-runner")
	runner.Stdin, runner.Stdout, runner.Stderr = bytes.NewReader(encoded), new(bytes.Buffer), os.Stderr
	runner.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Process.Kill() })
	return runner
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }
