package execution

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox"
)

func init() {
	// helper-sleepers starts processes, as many as its user may have.
	helpers["helper-sleepers"] = func([]string) {
		var err error
		for err == nil {
			_, err = syscall.ForkExec("/bin/sleep", []string{"sleep", "1000"}, &syscall.ProcAttr{})
		}
		if err := os.WriteFile("full", []byte(err.Error()), 0o666); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	}
}

// TestAStepThatStartsAllProcessesOfItsUserKeepsTheServiceFromNone: a user may have so many processes (ulimit -u), and those of steps are
// the service's user's.
func TestAStepThatStartsAllProcessesOfItsUserKeepsTheServiceFromNone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may set another user's limit, and has none itself")
	}
	if err := Available(t.Context(), sandbox.None); err != nil {
		t.Skip(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 200, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
	const user = 64_999 // of nobody else
	credential := &syscall.Credential{Uid: user, Gid: user}
	greedy := boxed(t, Command{Name: "greedy", Argv: []string{"./helper", "helper-sleepers"}})
	for _, path := range []string{greedy.Worktree, filepath.Join(greedy.Worktree, "helper"), greedy.ScratchDir} {
		if err := os.Chown(path, user, user); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(path), 0o755); err != nil { // those above t.TempDir() are closed to others
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Dir(greedy.ScratchDir), user, user); err != nil {
		t.Fatal(err)
	}
	runner := startRunner(t, greedy, credential)
	defer func() {
		_ = runner.Process.Kill()
		_ = runner.Wait()
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(greedy.Worktree, "full")); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the processes are not started")
		}
	}
	for range 20 { // the service starts git and supervisors, each with threads
		beside := exec.Command("sleep", "1000")
		beside.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
		if err := beside.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = beside.Process.Kill()
			_ = beside.Wait()
		}()
	}
}
