package execution

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
)

// Helpers that take all they can, up to a bound that keeps a failing test from taking the machine with it.
const (
	mostForks  = 3000 // as in bomb
	mostEaten  = 1 << 30
	boundForks = 400
	boundEaten = 200 << 20
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "helper-hide" {
		runtime.LockOSThread() // its main goroutine stays on the main thread
	}
	// helper-hide is helper-eat of a process whose main thread has ended: it looks like one that is over.
	helpers["helper-hide"] = func(arguments []string) {
		go helpers["helper-eat"](arguments)
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	// helper-blind is helper-eat once the supervisor can open no file.
	helpers["helper-blind"] = func(arguments []string) {
		if err := unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil); err != nil {
			panic(err)
		}
		helpers["helper-eat"](arguments)
	}
	// helper-slow tries in each way to have the supervisor run later, and prints what succeeds.
	helpers["helper-slow"] = func([]string) {
		one := unix.CPUSet{}
		one.Set(0)
		const process, idle = 1, 3 << 13 // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_IDLE
		threads, err := os.ReadDir("/proc/1/task")
		if err != nil || len(threads) == 0 {
			fmt.Println("no thread was found:", err)
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, process, uintptr(id), idle)
			for name, err := range map[string]error{
				"policy": unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0), "processors": unix.SchedSetaffinity(id, &one),
				"priority": unix.Setpriority(unix.PRIO_PROCESS, id, 19), "priority of I/O": errnoOf(errno),
			} {
				if err == nil {
					fmt.Printf("the %s of thread %d\n", name, id)
				}
			}
		}
		// Each thread shows the session of its process. The kernel takes one write in a tenth of a second.
		for range 100 {
			for id := range 50 {
				if session, err := unix.Getsid(id + 1); err == nil && session == 1 {
					_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", id+1), []byte("19"), 0)
				}
			}
			for _, thread := range threads {
				_ = os.WriteFile("/proc/"+thread.Name()+"/autogroup", []byte("19"), 0)
			}
			time.Sleep(5 * time.Millisecond)
		}
		// The supervisor sets back what was taken.
		for {
			text, err := os.ReadFile("/proc/1/autogroup")
			if errors.Is(err, os.ErrNotExist) || strings.HasSuffix(string(text), " nice 0\n") {
				break
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println("tried")
	}
	// helper-threads starts threads.
	helpers["helper-threads"] = func([]string) {
		for range mostForks {
			go syscall.Select(0, nil, nil, nil, nil) // each blocks a thread
		}
		time.Sleep(time.Hour)
	}
	// helper-eat takes memory step by step, in PROCESSES processes.
	helpers["helper-eat"] = func(arguments []string) {
		processes, _ := strconv.Atoi(arguments[0])
		for range processes - 1 {
			command := exec.Command("/proc/self/exe", "helper-eat", "1", arguments[1])
			if err := command.Start(); err != nil {
				panic(err)
			}
		}
		most, _ := strconv.Atoi(arguments[1])
		var blocks [][]byte
		for eaten := 0; eaten < most; eaten += 1 << 20 {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			blocks = append(blocks, block)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Hour)
		fmt.Println(len(blocks))
	}
}

// bomb starts itself twice, in sessions of their own. It stops at its bound, which is above that of the step.
const bomb = `echo >>forked
test $(wc -c <forked) -lt 3000 || exec sleep 1000
setsid sh ./bomb & setsid sh ./bomb & wait`

// eachBound runs a test with what this system has to keep limits.
func eachBound(t *testing.T, test func(t *testing.T, request Request)) {
	boxed := func(r Request) Request {
		r.ScratchDir = filepath.Join(t.TempDir(), "scratch")
		r.Sandbox = &sandbox.Spec{Network: sandbox.None}
		return r
	}
	t.Run("counted", func(t *testing.T) { test(t, step(t)) })
	t.Run("counted in a sandbox", func(t *testing.T) {
		if err := Available(t.Context(), sandbox.None); err != nil {
			t.Skip(err)
		}
		test(t, boxed(step(t)))
	})
	t.Run("cgroup", func(t *testing.T) {
		tree, err := bounds.Delegated()
		if err != nil {
			t.Skip(err)
		}
		request := step(t)
		if Available(t.Context(), sandbox.None) == nil {
			request = boxed(request)
		}
		request.Cgroups = tree
		test(t, request)
	})
}

// A failing test takes no longer than this.
const boundTimeout = 2 * time.Minute

func mustExceed(t *testing.T, request Request, wanted string) {
	t.Helper()
	request.Timeout = boundTimeout
	result := Run(t.Context(), request)
	mustEnd(t, result, Failed, wanted)
	if result.Leftovers > 0 || result.FailedCommand == "" {
		t.Errorf("it left %d processes; the command that failed is %q", result.Leftovers, result.FailedCommand)
	}
}

func TestAForkBombFailsItsStepAndNoOther(t *testing.T) {
	eachBound(t, func(t *testing.T, request Request) {
		request.Limits.Processes = boundForks
		other := step(t, shell("i=0; while test $i -lt 50; do sh -c 'exit 0' || exit 1; i=$((i+1)); sleep 0.05; done"))
		other.Limits, other.Cgroups = request.Limits, request.Cgroups
		passed := make(chan Result)
		go func() { passed <- Run(t.Context(), other) }()
		before := len(bounds.Table())
		if err := os.WriteFile(filepath.Join(request.Worktree, "bomb"), []byte(bomb), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, argv := range [][]string{{"sh", "./bomb"}, {"./helper", "helper-threads"}} {
			request.Commands = []Command{{Name: "bomb", Argv: argv}}
			mustExceed(t, request, fmt.Sprintf(`Command "bomb" had more than %d processes and threads at once (builder.process_limit).`, boundForks))
		}
		mustEnd(t, <-passed, Passed, "")
		if after := len(bounds.Table()); after > before+boundForks/2 {
			t.Errorf("there were %d processes before and are %d after", before, after)
		}
	})
}

func TestAStepThatEatsMemoryFailsWithItsReason(t *testing.T) {
	eachBound(t, func(t *testing.T, request Request) {
		request.Limits.Memory = boundEaten
		for _, processes := range []int{1, 8} {
			each := strconv.Itoa(mostEaten / processes)
			request.Commands = []Command{{Name: "eat", Argv: []string{"./helper", "helper-eat", strconv.Itoa(processes), each}}}
			mustExceed(t, request, `Command "eat" used more than 200 MiB of memory (builder.memory_limit).`)
		}
		request.Commands = []Command{{Name: "eat", Argv: []string{"./helper", "helper-hide", "1", strconv.Itoa(mostEaten)}}}
		mustExceed(t, request, `Command "eat" used more than 200 MiB of memory (builder.memory_limit).`)
		if request.Sandbox != nil { // the folder is the step's own
			request.Commands = []Command{shell("dd if=/dev/zero of=/dev/shm/x bs=1M count=900; sleep 1000")}
			mustExceed(t, request, "used more than 200 MiB of memory (builder.memory_limit).")
		}
	})
}

// TestAStepThatKeepsItselfFromBeingCountedFails: a step may take from its supervisor what that needs to count.
func TestAStepThatKeepsItselfFromBeingCountedFails(t *testing.T) {
	eachBound(t, func(t *testing.T, request Request) {
		if request.Sandbox == nil || request.Cgroups != nil {
			t.Skip("nothing is counted, or by no process of its own")
		}
		request.Limits.Memory = boundEaten
		request.Commands = []Command{{Name: "eat", Argv: []string{"./helper", "helper-blind", "1", strconv.Itoa(mostEaten)}}}
		mustExceed(t, request, `Command "eat" kept its memory and processes from being counted (builder.memory_limit).`)
	})
}

// What passes in memory to a child and what lies in files is not counted twice, or at all.
func TestAStepWithinItsBoundsPasses(t *testing.T) {
	eachBound(t, func(t *testing.T, request Request) {
		request.Limits = bounds.Limits{Memory: boundEaten, Processes: boundForks}
		request.Timeout = boundTimeout
		file := "true"
		var disk syscall.Statfs_t
		if err := syscall.Statfs(request.Worktree, &disk); err == nil && disk.Type != 0x01021994 { // a file system in memory counts
			file = "dd if=/dev/zero of=big bs=1M count=300; cat big >/dev/null; rm big"
		}
		request.Commands = []Command{shell(file + `
			i=0; while test $i -lt 300; do sleep 0.5 & i=$((i+1)); done; wait`)}
		mustEnd(t, Run(t.Context(), request), Passed, "")
	})
}

// A service counts too, and it is the command beside it that fails.
func TestAServiceThatEatsMemoryFailsItsStep(t *testing.T) {
	eachBound(t, func(t *testing.T, request Request) {
		request.Limits.Memory = boundEaten
		request.Commands = []Command{{Name: "wait", Argv: []string{"sleep", "1000"}, Services: []Service{{
			Name: "eater", Argv: []string{"./helper", "helper-eat", "1", strconv.Itoa(mostEaten)}, PortVariable: "PORT", Probe: []string{"true"},
		}}}}
		mustExceed(t, request, `Command "wait" used more than 200 MiB of memory (builder.memory_limit).`)
	})
}

func TestWhenMemoryIsShortAStepIsEndedFirst(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, shell("cat /proc/self/oom_score_adj"))
		request.Isolation = isolation
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		if string(result.Tail) != "1000\n" {
			t.Errorf("it has %q", result.Tail)
		}
	})
	header, rights := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &rights[0]); err != nil || rights[0].Effective&(1<<unix.CAP_SYS_RESOURCE) == 0 {
		return // whoever lacks that right starts what can take it back
	}
	if err := Available(t.Context(), sandbox.None); err != nil {
		t.Skip(err)
	}
	request := step(t, shell("echo 0 >/proc/self/oom_score_adj; exec cat /proc/self/oom_score_adj"))
	request.ScratchDir, request.Sandbox = filepath.Join(t.TempDir(), "scratch"), &sandbox.Spec{Network: sandbox.None}
	if result := Run(t.Context(), request); !strings.HasSuffix(string(result.Tail), "1000\n") {
		t.Errorf("in the sandbox of root it has %q", result.Tail)
	}
}

// A session ends with the step that exceeded, and with what goes on after one.
func TestASessionThatEatsMemoryEnds(t *testing.T) {
	if err := Available(t.Context(), sandbox.None); err != nil {
		t.Skip(err)
	}
	request := step(t)
	request.ScratchDir, request.Sandbox = filepath.Join(t.TempDir(), "scratch"), &sandbox.Spec{Network: sandbox.None}
	request.Limits.Memory = boundEaten
	if tree, err := bounds.Delegated(); err == nil {
		request.Cgroups = tree
	}
	eat := "./helper helper-eat 1 " + strconv.Itoa(mostEaten)
	for _, c := range []struct{ script, reason string }{{eat, "used more than 200 MiB"}, {eat + " >/dev/null 2>&1 & exit 0", ""}} {
		s, err := Open(request)
		if err != nil {
			t.Fatal(err)
		}
		request.Commands, request.Timeout = []Command{shell(c.script)}, boundTimeout
		result := s.Run(t.Context(), request)
		if c.reason != "" {
			mustEnd(t, result, Failed, c.reason)
		} else {
			mustEnd(t, result, Passed, "")
		}
		eventually(t, "the session to end", func() bool { return !s.Alive() })
		if leftovers := s.End(); leftovers > 0 {
			t.Errorf("%d processes are left", leftovers)
		}
	}
}

// errnoOf returns an error of a system call, nil for none.
func errnoOf(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// The supervisor of a step runs as its user. One that has the processor only when nothing else wants it counts nothing, and ends nothing.
func TestAStepDoesNotSlowItsSupervisor(t *testing.T) {
	if err := Available(t.Context(), sandbox.None); err != nil {
		t.Skip(err)
	}
	header, rights := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&header, &rights[0]); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && rights[0].Effective&(1<<unix.CAP_SETPCAP) == 0 {
		t.Skip("root without CAP_SETPCAP cannot keep from commands a capability that the supervisor has")
	}
	request := boxed(t, Command{Name: "slow", Argv: []string{"./helper", "helper-slow"}})
	request.Limits.Processes = boundForks
	result := Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if got := string(result.Tail); got != "tried\n" {
		t.Errorf("of its supervisor a step could set:\n%s", got)
	}
}
