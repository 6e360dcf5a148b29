package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	MaybeSupervise()
	if len(os.Args) > 1 {
		if act, found := helpers[os.Args[1]]; found {
			act(os.Args[2:])
			syscall.Exit(0) // os.Exit takes a second under the race detector
		}
	}
	code := m.Run()
	os.RemoveAll(helperFolder)
	os.Exit(code)
}

// helpers are what this test binary does when a test starts it as a program.
var helpers = map[string]func([]string){
	// helper-detach PROGRAM… starts it in a new session and leaves at once.
	"helper-detach": func(arguments []string) {
		command := exec.Command(arguments[0], arguments[1:]...)
		command.Stdout, command.Stderr = os.Stdout, os.Stderr
		command.ExtraFiles = inheritedLife()
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := command.Start(); err != nil {
			panic(err)
		}
	},
	// helper-chain starts its successor in a new session and ends, for ever.
	"helper-chain": func([]string) {
		command := exec.Command("/proc/self/exe", "helper-chain")
		command.ExtraFiles = inheritedLife()
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := command.Start(); err != nil {
			panic(err)
		}
	},
	// helper-allocate takes and touches 1 GiB.
	"helper-allocate": func([]string) {
		block := make([]byte, 1<<30)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		os.Stdout.Write(block[:1])
	},
	// helper-serve VARIABLE DELAY serves HTTP on the port in VARIABLE, after a while; /later answers 503 at first.
	"helper-serve": func(arguments []string) {
		signal.Ignore(syscall.SIGTERM)
		delay, err := time.ParseDuration(arguments[1])
		if err != nil {
			panic(err)
		}
		time.Sleep(delay)
		fmt.Println("serving", os.Getenv("SAYS"))
		asked := 0
		panic(http.ListenAndServe("127.0.0.1:"+os.Getenv(arguments[0]), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; r.URL.Path == "/later" && asked < 4 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprintln(w, arguments[0])
		})))
	},
	// helper-get VARIABLE prints what is served there.
	"helper-get": func(arguments []string) {
		answer, err := http.Get("http://127.0.0.1:" + os.Getenv(arguments[0]))
		if err != nil {
			fmt.Println("nobody answers")
			syscall.Exit(1)
		}
		io.Copy(os.Stdout, answer.Body)
	},
	// helper-connect ADDRESS… prints whether it can be reached by TCP.
	"helper-connect": func(arguments []string) {
		for _, address := range arguments {
			connection, err := net.DialTimeout("tcp", address, patience)
			if err != nil {
				fmt.Println(err)
				continue
			}
			fmt.Println("connected to", address)
			connection.Close()
		}
	},
	// helper-runner runs the request on standard input, prints the result.
	"helper-runner": func([]string) {
		var request Request
		if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
			panic(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(Run(context.Background(), request)); err != nil {
			panic(err)
		}
	},
	// helper-session runs the request on standard input in a session, prints the result, and waits.
	"helper-session": func([]string) {
		var request Request
		if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
			panic(err)
		}
		s, err := Open(request)
		if err != nil {
			panic(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(s.Run(context.Background(), request)); err != nil {
			panic(err)
		}
		time.Sleep(patience)
	},
}

// inheritedLife is descriptor 3 when the parent's script opened it.
func inheritedLife() []*os.File {
	var info syscall.Stat_t
	if syscall.Fstat(3, &info) != nil || info.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil
	}
	return []*os.File{os.NewFile(3, "life")}
}

// helperCopy is a copy of this test binary, made once per process on the file system of the worktrees, which link it.
var helperCopy = sync.OnceValues(func() (path string, err error) {
	if helperFolder, err = os.MkdirTemp("", "helper"); err != nil {
		return "", err
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer self.Close()
	helper, err := os.OpenFile(filepath.Join(helperFolder, "helper"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(helper, self)
	return helper.Name(), errors.Join(err, helper.Close())
})

// helperFolder holds helperCopy's; TestMain removes it.
var helperFolder string

// step is a request in a new worktree that holds this test binary as "helper".
func step(t testing.TB, commands ...Command) Request {
	t.Helper()
	worktree := t.TempDir()
	helper, err := helperCopy()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Link(helper, filepath.Join(worktree, "helper")); err != nil {
		t.Fatal(err)
	}
	home, tmp := ScratchPaths(worktree)
	return Request{
		Worktree: worktree, Commands: commands, Grace: 50 * time.Millisecond, Timeout: patience,
		Environment: Environment("/usr/local/bin:/usr/bin:/bin", home, tmp, nil),
	}
}

func shell(script string) Command {
	return Command{Name: "script", Argv: []string{"sh", "-c", script}}
}

// eachIsolation runs the test once for every isolation that this system has;
// one it always has.
func eachIsolation(t *testing.T, test func(*testing.T, Isolation)) {
	for _, isolation := range []Isolation{PIDNamespace, UserNamespace, ProcessTree} {
		probe := step(t, shell("exit 0"))
		probe.Isolation = isolation
		result := Run(t.Context(), probe)
		if result.Outcome == CouldNotRun && isolation != ProcessTree {
			t.Logf("this system has no %v: %s", isolation, result.Reason)
			continue
		}
		t.Run(strings.ReplaceAll(isolation.String(), " ", "-"), func(t *testing.T) { test(t, isolation) })
	}
}

// life is a FIFO in a worktree. While a process has it open for writing, that
// process lives; scripts open it as descriptor 3, and what they start inherits
// it.
type life struct{ descriptor int }

const openLife = "exec 3>life; echo up >&3; "

func watchLife(t *testing.T, worktree string) life {
	t.Helper()
	path := filepath.Join(worktree, "life")
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Fatal(err)
	}
	descriptor, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(descriptor) })
	return life{descriptor}
}

// read returns what was written, and whether a writer is alive.
func (l life) read(t *testing.T) (data []byte, alive bool) {
	t.Helper()
	buffer := make([]byte, 4096)
	n, err := syscall.Read(l.descriptor, buffer)
	switch {
	case err == syscall.EAGAIN:
		return nil, true
	case err == syscall.EINTR:
		return nil, true
	case err != nil:
		t.Fatal(err)
	}
	return buffer[:n], n > 0
}

func (l life) awaitStart(t *testing.T) {
	t.Helper()
	eventually(t, "the script to start", func() bool {
		data, _ := l.read(t)
		return bytes.Contains(data, []byte("up\n"))
	})
}

func (l life) awaitEnd(t *testing.T) {
	t.Helper()
	eventually(t, "all processes of the step to end", func() bool {
		_, alive := l.read(t)
		return !alive
	})
}

// mustBeOver fails when a process of the step is alive after Run.
func (l life) mustBeOver(t *testing.T) {
	t.Helper()
	for {
		data, alive := l.read(t)
		if !alive {
			return
		}
		if len(data) == 0 {
			t.Fatal("a process of the step is alive after Run")
		}
	}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func mustEnd(t *testing.T, result Result, outcome Outcome, reason string) {
	t.Helper()
	if result.Outcome != outcome || !strings.Contains(result.Reason, reason) {
		t.Fatalf("got %v (%s), want %v with %q\noutput: %s", result.Outcome, result.Reason, outcome, reason, result.Tail)
	}
	if result.Leftovers != 0 {
		t.Fatalf("%d processes are left", result.Leftovers)
	}
}
