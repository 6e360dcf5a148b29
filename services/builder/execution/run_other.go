//go:build unix && !linux

package execution

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// MaybeSupervise does nothing here: only Linux has a supervisor.
func MaybeSupervise() {}

// MemoryKills returns 0: what the kernel ended for want of memory is not known here.
func MemoryKills() int { return 0 }

// drainLimit bounds how long output is read on after the last command.
const drainLimit = time.Second

// runIsolated is the fallback for development on systems other than Linux. A
// command's process group ends with it, and nothing more: daemons that left
// their session stay, and a builder that is killed leaves its steps behind.
// Directories are checked before they are entered, not by descriptor, and
// there is no memory limit.
func runIsolated(ctx context.Context, request Request, output *capture) Result {
	result := Result{Outcome: CouldNotRun, Isolation: ProcessTree}
	if request.Isolation == PIDNamespace || request.Isolation == UserNamespace {
		result.Reason = "Namespaces are available on Linux only."
		return result
	}
	worktree, err := os.OpenRoot(request.Worktree)
	if err != nil {
		result.Reason = "The worker has no worktree to run the step in: " + err.Error() + "."
		return result
	}
	defer worktree.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		result.Reason = "The worker could not make a pipe: " + err.Error() + "."
		return result
	}
	defer reader.Close()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		buffer := make([]byte, 64<<10)
		for {
			n, err := reader.Read(buffer)
			_, _ = output.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-output.failed:
			cancel()
		case <-drained:
		}
	}()
	var stepLimit <-chan time.Time
	if request.Timeout > 0 {
		stepLimit = time.After(request.Timeout)
	}
	result.Outcome = Passed
	for _, command := range request.Commands {
		began := time.Now()
		tried, what := runGroup(ctx, request, worktree, command, writer, stepLimit)
		tried.Name, tried.Duration = command.Name, time.Since(began)
		result.Commands = append(result.Commands, tried)
		if tried.Outcome != Passed {
			result.Outcome, result.FailedCommand, result.Reason = tried.Outcome, command.Name, reasonFor(command.Name, what)
			break
		}
	}
	writer.Close()
	_ = reader.SetReadDeadline(time.Now().Add(drainLimit))
	<-drained
	return result
}

func runGroup(ctx context.Context, request Request, worktree *os.Root, command Command, output *os.File, stepLimit <-chan time.Time) (CommandResult, string) {
	result := CommandResult{ExitCode: -1}
	if len(command.Services) > 0 {
		result.Outcome = CouldNotRun
		return result, "did not start: services run on Linux only"
	}
	process, problem := startGroup(request, worktree, command, output)
	if problem != nil {
		result.Outcome = problem.outcome
		return result, "did not start: " + problem.reason
	}
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	var limit <-chan time.Time
	if command.Timeout > 0 {
		limit = time.After(command.Timeout)
	}
	what := ""
	select {
	case err := <-ended:
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			result.Outcome = CouldNotRun
			return result, "could not be waited for: " + err.Error()
		}
		status, _ := process.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			result.Signal = signalName(status.Signal())
		} else {
			result.ExitCode = status.ExitStatus()
		}
		result.Outcome, what = judgeEnd(status, circumstances{diskFull: fullDisk(request.Worktree, request.ScratchDir)})
		return result, what
	case <-limit:
		result.Outcome, what = TimedOut, limitReason(command.Timeout)
	case <-stepLimit:
		result.Outcome, what = TimedOut, stepLimitReason(request.Timeout)
	case <-ctx.Done():
		result.Outcome, what = Aborted, "was aborted"
	}
	_ = syscall.Kill(-process.Process.Pid, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(request.Grace):
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
	return result, what
}

func startGroup(request Request, worktree *os.Root, command Command, output *os.File) (*exec.Cmd, *fault) {
	directory, problem := openDirectory(worktree, command.Dir)
	if problem != nil {
		return nil, problem
	}
	defer directory.Close()
	found, problem := locateProgram(worktree, command.Dir, command.Argv[0], pathVariable(command.Environment))
	if problem != nil {
		return nil, problem
	}
	process := &exec.Cmd{
		Path: found.path, Args: command.Argv, Env: command.Environment, Dir: directory.Name(),
		Stdout: output, Stderr: output, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := process.Start(); err != nil {
		return nil, startFault(found, err)
	}
	return process, nil
}
