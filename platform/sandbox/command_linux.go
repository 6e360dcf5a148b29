package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"landfall.build/platform/bounds"
)

// Wrap makes a command that was not started yet run in the sandbox, as the first process there: what else it has started ends
// with it. Its folder has to be among what the sandbox shows.
func (s Spec) Wrap(cmd *exec.Cmd) error {
	if !called {
		return errNotCalled
	}
	text, err := json.Marshal(entry{Spec: s, Path: cmd.Path, Dir: cmd.Dir, Args: cmd.Args})
	if err != nil {
		return err
	}
	cmd.Path, cmd.Args, cmd.Dir = OwnProgram(), []string{"landfall", enterArgument, string(text)}, "/"
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	s.Attributes(cmd.SysProcAttr)
	return nil
}

// MaybeEnter turns a process that [Spec.Wrap] started into its program; then it does not return. In any other process it does
// nothing. Call it first thing in main, and in TestMain.
func MaybeEnter() {
	called = true
	if len(os.Args) != 3 || os.Args[1] != enterArgument {
		return
	}
	runtime.LockOSThread()
	err := becomeProgram(os.Args[2])
	fmt.Fprintln(os.Stderr, "landfall:", err)
	os.Exit(exitUnavailable)
}

func becomeProgram(text string) error {
	var e entry
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return err
	}
	if err := e.Spec.Enter(); err != nil {
		return err
	}
	if err := bounds.EndFirst(); err != nil {
		return err
	}
	if err := ForbidDumps(); err != nil {
		return err
	}
	if err := Restrict(); err != nil {
		return err
	}
	if err := LimitFilesAndProcesses(); err != nil {
		return err
	}
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep descriptors: %w", err)
	}
	if e.Path == "" {
		os.Exit(0)
	}
	if err := os.Chdir(e.Dir); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", e.Path, unix.Exec(e.Path, e.Args, os.Environ()))
}
