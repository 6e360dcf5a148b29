package lifeline_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"landfall.build/tools/lifeline"
)

// parent names the variable that makes this test's program a parent of one process.
const parent = "LIFELINE_TEST_PARENT"

func TestMain(m *testing.M) {
	switch os.Getenv(parent) {
	case "signals":
		fmt.Println(slices.Contains(lifeline.Signals(), os.Signal(syscall.SIGHUP)))
	case "child":
		child := exec.Command("sleep", "1000")
		done := make(chan error)
		go func() { done <- lifeline.Start(child) }() // on whichever thread: that one may end
		if err := <-done; err != nil {
			panic(err)
		}
		fmt.Println(child.Process.Pid)
		time.Sleep(time.Hour)
	default:
		os.Exit(m.Run())
	}
}

func again(t *testing.T, as string) *exec.Cmd {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), parent+"="+as)
	return cmd
}

// TestAProcessEndsWithItsParentThoughThatIsKilled, and not before.
func TestAProcessEndsWithItsParentThoughThatIsKilled(t *testing.T) {
	cmd := again(t, "child")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if !runs(pid) {
		t.Error("it ended while its parent runs")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for until := time.Now().Add(30 * time.Second); runs(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("it outlives its parent")
		}
	}
}

// runs reports whether a process is there and no zombie, which it is where nobody collects orphans.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestAClosedTerminalEndsACommandUnlessThatIsIgnored, as nohup has it.
func TestAClosedTerminalEndsACommandUnlessThatIsIgnored(t *testing.T) {
	heeds := func() string {
		out, err := again(t, "signals").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("this test runs under nohup")
	}
	if got := heeds(); got != "true" {
		t.Errorf("SIGHUP is heeded: %s", got)
	}
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	if got := heeds(); got != "false" {
		t.Errorf("under nohup SIGHUP is heeded: %s", got)
	}
}
