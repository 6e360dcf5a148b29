package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
)

// opened opens a session of a sandbox, with a step that is to run there.
func opened(t *testing.T, network sandbox.Network) (*Session, Request) {
	t.Helper()
	request := boxed(t)
	request.Sandbox.Network = network
	s, err := Open(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.End() })
	return s, request
}

// answering is a process that stands for a build server: it answers on a pipe until it is ended.
const answering = `mkfifo asked answers; (exec 1>log 2>&1; exec setsid sh -c 'trap "" HUP; while read -r line <asked; do echo "answer to $line" >answers; done') & `

func TestWhatAStepLeavesRunningIsThereForTheNextOfItsSessionAndEndsWithIt(t *testing.T) {
	for _, network := range []sandbox.Network{sandbox.None, sandbox.Host, sandbox.Outbound} {
		t.Run(string(network), func(t *testing.T) {
			if err := Available(t.Context(), network); err != nil {
				t.Skip(err)
			}
			s, request := opened(t, network)
			processes := watchLife(t, request.Worktree)
			run := func(outcome Outcome, script string) string {
				t.Helper()
				request.Commands = []Command{shell(script)}
				var log bytes.Buffer
				request.Log = &log
				result := s.Run(t.Context(), request)
				mustEnd(t, result, outcome, "")
				return log.String()
			}
			if got := run(Passed, openLife+answering+`echo kept >"$HOME/file"; echo one`); got != "one\n" {
				t.Errorf("first output %q", got)
			}
			if got := run(Failed, `echo two >asked; cat answers; exit 3`); got != "answer to two\n" {
				t.Errorf("second output %q", got)
			}
			if got := run(Passed, `echo three >asked; cat answers "$HOME/file"; cat log`); got != "answer to three\nkept\n" {
				t.Errorf("third output %q", got)
			}
			if _, alive := processes.read(t); !alive || !s.Alive() {
				t.Fatal("the server has ended before the session")
			}
			if left := s.End(); left != 0 || s.Alive() {
				t.Errorf("%d left, alive: %v", left, s.Alive())
			}
			processes.mustBeOver(t)
			if _, err := os.Lstat(request.ScratchDir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the scratch directory is still there: %v", err)
			}
			request.Commands = []Command{shell("exit 0")}
			if result := s.Run(t.Context(), request); result.Outcome != CouldNotRun {
				t.Errorf("a step ran after the end: %v", result)
			}
		})
	}
}

func TestTheOutputOfAStepOfASessionIsItsOwn(t *testing.T) {
	s, request := opened(t, sandbox.None)
	request.Commands = []Command{shell(`(trap "" PIPE; while [ ! -e stop ]; do echo late; sleep 0.01; done; touch stopped) & echo first`)}
	if result := s.Run(t.Context(), request); result.Outcome != Passed || !strings.HasPrefix(string(result.Tail), "first\n") && !strings.HasPrefix(string(result.Tail), "late\n") {
		t.Fatalf("%v: %q", result.Outcome, result.Tail)
	}
	request.Commands = []Command{shell(`sleep 0.1; head -c 100000 /dev/zero; touch stop; while [ ! -e stopped ]; do sleep 0.01; done`)}
	result := s.Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if result.OutputBytes != 100000 || bytes.Contains(result.Tail, []byte("late")) {
		t.Errorf("%d bytes: %q", result.OutputBytes, result.Tail[:100])
	}
}

func TestASessionEndsWithAStepThatIsEnded(t *testing.T) {
	for name, end := range map[string]struct {
		script  string
		outcome Outcome
		abort   bool
	}{
		"at its limit":        {openLife + "sleep 1000", TimedOut, false},
		"from outside":        {openLife + "echo; sleep 1000", Aborted, true},
		"by a signal":         {openLife + "kill -SEGV $$", Failed, false},
		"by SIGKILL":          {openLife + "kill -KILL $$", CouldNotRun, false},
		"with its supervisor": {openLife + "kill -TERM 1; sleep 1000", CouldNotRun, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, request := opened(t, sandbox.None)
			processes := watchLife(t, request.Worktree)
			request.Commands = []Command{shell(openLife + "sleep 1000 & exit 0")}
			mustEnd(t, s.Run(t.Context(), request), Passed, "")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			request.Commands = []Command{shell(end.script)}
			if end.outcome == TimedOut {
				request.Commands[0].Timeout = 100 * time.Millisecond
			}
			if end.abort {
				request.Log = writerFunc(func(data []byte) (int, error) { cancel(); return len(data), nil })
			}
			mustEnd(t, s.Run(ctx, request), end.outcome, "")
			if s.Alive() {
				t.Error("the session goes on")
			}
			processes.mustBeOver(t)
		})
	}
}

func TestNothingOfASessionOutlivesItsService(t *testing.T) {
	for _, network := range []sandbox.Network{sandbox.None, sandbox.Outbound} {
		t.Run(string(network), func(t *testing.T) {
			if err := Available(t.Context(), network); err != nil {
				t.Skip(err)
			}
			request := boxed(t, shell(openLife+escapes["ignores SIGTERM"]+escapes["double fork"]+"sleep 1000 & exit 0"))
			request.Sandbox.Network = network
			processes := watchLife(t, request.Worktree)
			encoded, err := json.Marshal(request)
			if err != nil {
				t.Fatal(err)
			}
			runner := exec.Command("/proc/self/exe", "helper-session")
			runner.Stdin, runner.Stderr = bytes.NewReader(encoded), os.Stderr
			output, err := runner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := runner.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = runner.Process.Kill() })
			var result Result
			if err := json.NewDecoder(output).Decode(&result); err != nil { // the step is over, its session is not
				t.Fatal(err)
			}
			mustEnd(t, result, Passed, "")
			processes.awaitStart(t)
			below := bounds.Below(runner.Process.Pid, bounds.Table())
			if len(below) < 3 {
				t.Errorf("only %d processes are in the session", len(below))
			}
			if err := runner.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = runner.Wait()
			processes.awaitEnd(t)
			eventually(t, "all processes to end", func() bool {
				for _, entry := range bounds.Table() { // without zombies, whose parents are others
					for _, p := range below {
						if entry.PID == p.PID {
							return false
						}
					}
				}
				return true
			})
		})
	}
}

func TestASessionTakesNoSecretsImagesOrServices(t *testing.T) {
	request := boxed(t, shell("exit 0"))
	for name, change := range map[string]func(*Request){
		"secret": func(r *Request) {
			r.Secrets = []Secret{{Name: "TOKEN", Value: bytes.Repeat([]byte("x"), SecretMinimum)}}
		},
		"no sandbox": func(r *Request) { r.Sandbox = nil },
		"no scratch": func(r *Request) { r.ScratchDir = "" },
	} {
		bad := request
		change(&bad)
		if s, err := Open(bad); err == nil {
			s.End()
			t.Errorf("%s: a session was opened", name)
		}
	}
	s, err := Open(request)
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	for name, change := range map[string]func(*Request){
		"secret": func(r *Request) {
			r.Secrets = []Secret{{Name: "TOKEN", Value: bytes.Repeat([]byte("x"), SecretMinimum)}}
		},
		"image": func(r *Request) { r.Commands[0].Image = "x" },
		"service": func(r *Request) {
			r.Commands[0].Services = []Service{{Name: "db", Argv: []string{"true"}, PortVariable: "DB"}}
		},
	} {
		bad := request
		bad.Commands = []Command{shell("exit 0")}
		change(&bad)
		if result := s.Run(t.Context(), bad); result.Outcome != CouldNotRun {
			t.Errorf("%s: %v", name, result)
		}
	}
	mustEnd(t, s.Run(t.Context(), request), Passed, "")
	if _, err := os.Lstat(filepath.Join(request.ScratchDir, "home")); err != nil {
		t.Error(err)
	}
}
