package fleet

import (
	"os"
	"strings"
	"testing"
	"time"
)

// starts counts how often a process said that it had started.
func starts(f *Fleet, name string) int {
	text, _ := os.ReadFile(f.LogFile(name))
	return strings.Count(string(text), "started\n")
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("never: %s", what)
		}
	}
}

// newFleet has one process that runs a shell script after it has said that it started.
func newFleet(t *testing.T, script string) *Fleet {
	t.Helper()
	f := New(t.TempDir(), nil)
	t.Cleanup(func() { f.Close() })
	if err := f.Launch("p", "sh", "-c", "echo started; "+script); err != nil {
		t.Fatal(err)
	}
	await(t, "p starts", func() bool { return starts(f, "p") == 1 })
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kill ends a process, and looks whether the fleet says that there was one.
func kill(t *testing.T, end func(string) (bool, error), name string, alive bool) {
	t.Helper()
	killed, err := end(name)
	must(t, err)
	if killed != alive {
		t.Errorf("killed: %v, want %v", killed, alive)
	}
}

// TestWhoeverHasEndedByItselfIsNotKilled, so that it is not counted.
func TestWhoeverHasEndedByItselfIsNotKilled(t *testing.T) {
	f := newFleet(t, "exec sleep 100")
	kill(t, f.Kill, "p", true)
	kill(t, f.Kill, "p", false)
	kill(t, f.Remove, "p", false)
}

func TestWhatIsKilledStaysAwayUntilItIsRevived(t *testing.T) {
	f := newFleet(t, "exec sleep 100")
	kill(t, f.Kill, "p", true)
	if f.Running("p") {
		t.Error("it runs")
	}
	must(t, f.Revive("p"))
	must(t, f.Revive("p"))
	await(t, "p is there again", func() bool { return starts(f, "p") == 2 && f.Running("p") })
	if problems, byItself := f.Problems(); len(problems) != 0 || byItself != 0 {
		t.Errorf("%v, %d", problems, byItself)
	}
	if err := f.Launch("p", "true"); err == nil {
		t.Error("two processes have one name")
	}
	kill(t, f.Remove, "p", true)
	must(t, f.Launch("p", "sleep", "100"))
}

func TestWhatEndsByItselfIsStartedAgainAndAPanicIsAProblem(t *testing.T) {
	f := newFleet(t, "exit 2")
	await(t, "p is there again", func() bool { return starts(f, "p") >= 2 })
	if problems, byItself := f.Problems(); len(problems) == 0 || byItself == 0 || !strings.Contains(problems[0].Error(), f.LogFile("p")) {
		t.Errorf("%v, %d", problems, byItself)
	}
}

func TestAStoppedProcessGoesOnWhereItWas(t *testing.T) {
	f := newFleet(t, "while :; do echo tick; sleep 0.01; done")
	ticks := func() int {
		text, _ := os.ReadFile(f.LogFile("p"))
		return strings.Count(string(text), "tick")
	}
	await(t, "p ticks", func() bool { return ticks() > 0 })
	must(t, f.Stop("p"))
	if f.Running("p") {
		t.Error("it runs")
	}
	// What was under way when the signal came may still be written.
	await(t, "p stands still", func() bool {
		before := ticks()
		time.Sleep(50 * time.Millisecond)
		return ticks() == before
	})
	before := ticks()
	must(t, f.Resume("p"))
	await(t, "p ticks again", func() bool { return ticks() > before })
	if starts(f, "p") != 1 {
		t.Error("it was started again")
	}
}

func TestCalmWakesAndRevives(t *testing.T) {
	f := newFleet(t, "exec sleep 100")
	must(t, f.Launch("q", "sleep", "100"))
	kill(t, f.Kill, "p", true)
	must(t, f.Stop("q"))
	must(t, f.Calm())
	await(t, "both run", func() bool { return f.Running("p") && f.Running("q") })
}

func TestWhatAProcessHasStartedCanBeKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip("only Linux shows children")
	}
	f := newFleet(t, "sleep 100; echo its child has ended; exec sleep 100")
	await(t, "its child is killed", func() bool {
		_, err := f.KillChild("p", 3)
		must(t, err)
		text, _ := os.ReadFile(f.LogFile("p"))
		return strings.Contains(string(text), "its child has ended")
	})
	if _, err := f.KillChild("nobody", 0); err == nil {
		t.Error("nobody has children")
	}
}

func TestClosingEndsWhatIsStoppedToo(t *testing.T) {
	f := newFleet(t, "exec sleep 100")
	must(t, f.Launch("last", "sleep", "100"))
	must(t, f.Stop("p"))
	must(t, f.Close("last"))
	if f.Running("p") || f.Running("last") || f.Revive("p") == nil {
		t.Error("something runs")
	}
}
