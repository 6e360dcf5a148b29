package execution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestHowACommandEndsDecidesTheOutcome(t *testing.T) {
	endings := []struct {
		script   string
		outcome  Outcome
		exitCode int
		signal   string
	}{
		{"exit 0", Passed, 0, ""},
		{"exit 3", Failed, 3, ""},
		{"exit 127", Failed, 127, ""},
		{"kill -SEGV $$", Failed, -1, "SIGSEGV"},
		{"kill -ABRT $$", Failed, -1, "SIGABRT"},
		{"kill -KILL $$", CouldNotRun, -1, "SIGKILL"},
		{"kill -TERM $$", CouldNotRun, -1, "SIGTERM"},
		{"sh -c 'kill -KILL $$'; exit $?", CouldNotRun, 137, ""},
	}
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		for _, ending := range endings {
			request := step(t, shell(ending.script))
			request.Isolation = isolation
			result := Run(t.Context(), request)
			mustEnd(t, result, ending.outcome, "")
			got := result.Commands[0]
			if got.ExitCode != ending.exitCode || got.Signal != ending.signal || got.Outcome != ending.outcome {
				t.Errorf("%s: got %+v (%s)", ending.script, got, result.Reason)
			}
			if (result.Outcome == Passed) != (result.Reason == "" && result.FailedCommand == "") {
				t.Errorf("%s: reason %q, failed command %q", ending.script, result.Reason, result.FailedCommand)
			}
		}
	})
}

func TestTheFirstCommandThatDoesNotPassEndsTheStep(t *testing.T) {
	request := step(t, shell("echo one"), Command{Name: "two", Argv: []string{"sh", "-c", "echo two; exit 9"}}, shell("echo three"))
	result := Run(t.Context(), request)
	mustEnd(t, result, Failed, `Command "two" ended with exit code 9.`)
	if result.FailedCommand != "two" || len(result.Commands) != 2 || string(result.Tail) != "one\ntwo\n" {
		t.Fatalf("got %+v with output %q", result, result.Tail)
	}
}

func TestWhatDoesNotStartIsClassifiedByWhoWasToBringIt(t *testing.T) {
	request := step(t)
	tree, outside := request.Worktree, t.TempDir()
	write := func(path, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(tree, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(tree, "plain"), "text", 0o644)
	write(filepath.Join(tree, "headless"), "no program", 0o755)
	write(filepath.Join(tree, "orphan"), "#!/nowhere/interpreter\n", 0o755)
	write(filepath.Join(tree, "sub", "ok.sh"), "#!/bin/sh\npwd -P\n", 0o755)
	write(filepath.Join(outside, "plain"), "text", 0o644)
	link("/nowhere/program", "dangling")
	link("/bin/sh", "shell")
	link("nothing", "inner")
	link(outside, "out")
	link("..", "up")
	link("sub", "in")
	link("loop", "loop")
	cases := []struct {
		name, dir, program string
		outcome            Outcome
		reason             string
	}{
		{"in the tree", "sub", "./ok.sh", Passed, ""},
		{"by a link within the tree", "in", "./ok.sh", Passed, ""},
		{"from its own directory", "sub", "../sub/ok.sh", Passed, ""},
		{"by absolute path in the tree", "", filepath.Join(tree, "sub", "ok.sh"), Passed, ""},
		{"by a link to the worker's", "", "./shell", Passed, ""},
		{"missing on PATH", "", "landfall-no-such-program", CouldNotRun, "not on the worker's PATH"},
		{"missing in the tree", "", "./nothing", Failed, `the repository has no program "nothing"`},
		{"missing by absolute path in the tree", "", filepath.Join(tree, "nothing"), Failed, "no program"},
		{"missing by absolute path outside", "", "/nowhere/program", CouldNotRun, "the worker has no program"},
		{"not executable in the tree", "", "./plain", Failed, "not an executable file"},
		{"a directory in the tree", "", "./sub", Failed, "not an executable file"},
		{"not executable outside", "", filepath.Join(outside, "plain"), CouldNotRun, "not an executable file on the worker"},
		{"not a program", "", "./headless", Failed, "a script needs a #! line"},
		{"without interpreter", "", "./orphan", CouldNotRun, "interpreter"},
		{"a dangling link to the worker's", "", "./dangling", CouldNotRun, "the worker has no program"},
		{"a dangling link within the tree", "", "./inner", Failed, "no program"},
		{"a program above the tree", "", "../program", Failed, "leads out"},
		{"a missing directory", "missing", "sh", Failed, "no directory"},
		{"a file as directory", "plain", "sh", Failed, "not a directory"},
		{"a directory below a file", "plain/sub", "sh", Failed, "no directory"},
		{"a directory above the tree", "..", "sh", Failed, "leads out"},
		{"a directory above the tree, hidden", "sub/../../x", "sh", Failed, "leads out"},
		{"an absolute directory", outside, "sh", Failed, "leads out"},
		{"a link out of the tree", "out", "sh", Failed, "leads out"},
		{"a link above the tree", "up", "sh", Failed, "leads out"},
		{"a link above the tree, in between", "in/../up/x", "sh", Failed, ""},
		{"a link to itself", "loop", "sh", Failed, "no directory"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			request.Commands = []Command{{Argv: []string{test.program}, Dir: test.dir}}
			for _, request.MemoryLimit = range []int64{0, 1 << 30} { // which is another way to start it
				result := Run(t.Context(), request)
				mustEnd(t, result, test.outcome, test.reason)
				if result.Outcome != Passed && result.Commands[0].ExitCode != -1 {
					t.Fatalf("it ran: %+v", result.Commands[0])
				}
			}
		})
	}
}

func TestALinkMadeByAnEarlierCommandDoesNotLeadOut(t *testing.T) {
	outside := t.TempDir()
	request := step(t,
		shell(fmt.Sprintf("mkdir work; rmdir work; ln -s %s work", outside)),
		Command{Name: "second", Argv: []string{"touch", "escaped"}, Dir: "work"})
	mustEnd(t, Run(t.Context(), request), Failed, "leads out")
	if _, err := os.Stat(filepath.Join(outside, "escaped")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the command ran outside: %v", err)
	}
}

func TestAStepGetsNothingThatItWasNotGiven(t *testing.T) {
	t.Setenv("LANDFALL_TEST_SECRET", "hunter2")
	// A descriptor that is open over exec, as a careless parent leaves it.
	leaked, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leaked)
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, Command{Argv: []string{"env"}},
			shell(`cat; for d in /proc/$$/fd/*; do if test -e "$d"; then echo "fd ${d##*/}"; fi; done; tr '\0' '\n' </proc/$PPID/environ; ulimit -c`))
		request.Isolation = isolation
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		lines := strings.Split(strings.TrimSpace(string(result.Tail)), "\n")
		own := len(request.Environment)
		if len(lines) < own || !slices.Equal(lines[:own], request.Environment) {
			t.Fatalf("environment is not the one given:\n%s", result.Tail)
		}
		if bytes.Contains(result.Tail, []byte("hunter2")) {
			t.Fatalf("the service's environment is visible:\n%s", result.Tail)
		}
		var descriptors []string
		for _, line := range lines[own:] {
			if number, found := strings.CutPrefix(line, "fd "); found {
				descriptors = append(descriptors, number)
			}
		}
		// The shell's own, with which it read the directory, is closed by then.
		if !slices.Equal(descriptors, []string{"0", "1", "2"}) {
			t.Fatalf("descriptors %v", descriptors)
		}
		if lines[len(lines)-1] != "0" {
			t.Fatalf("core dumps are allowed: %s", lines[len(lines)-1])
		}
	})
}

func TestANamespaceHidesTheWorkersProcesses(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t, shell(fmt.Sprintf("kill -0 %d", os.Getpid())))
		request.Isolation = isolation
		result := Run(t.Context(), request)
		if seen := result.Outcome == Passed; seen != (isolation == ProcessTree) {
			t.Fatalf("the builder's process is visible: %v (%s)", seen, result.Reason)
		}
	})
}

func TestOutputIsBoundedAndTheStepGoesOn(t *testing.T) {
	const printed, limit = 64 << 20, 100_000
	request := step(t, shell(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo; echo the error", printed)))
	var log bytes.Buffer
	request.Log, request.OutputLimit = &log, limit
	result := Run(t.Context(), request)
	mustEnd(t, result, Passed, "")
	if want := int64(printed + len("\nthe error\n")); result.OutputBytes != want || !result.Truncated {
		t.Fatalf("%d bytes, truncated %v; want %d", result.OutputBytes, result.Truncated, want)
	}
	if log.Len() > limit+TailLimit+200 || !strings.Contains(log.String(), "bytes left out") || !strings.HasSuffix(log.String(), "x\nthe error\n") {
		t.Fatalf("the log has %d bytes and ends with %q", log.Len(), log.String()[max(0, log.Len()-80):])
	}
	if len(result.Tail) != TailLimit || !bytes.HasSuffix(result.Tail, []byte("the error\n")) {
		t.Fatalf("the tail has %d bytes", len(result.Tail))
	}
}

func TestALogThatFailsIsNotHeldAgainstTheChange(t *testing.T) {
	request := step(t, shell(openLife+"echo something; sleep 1000"))
	processes := watchLife(t, request.Worktree)
	request.Log = writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC })
	mustEnd(t, Run(t.Context(), request), CouldNotRun, "no space left on device")
	processes.mustBeOver(t)
}

func TestTheMemoryLimitEndsWhatExceedsIt(t *testing.T) {
	request := step(t, Command{Name: "allocate", Argv: []string{"./helper", "helper-allocate"}})
	request.MemoryLimit = 256 << 20
	mustEnd(t, Run(t.Context(), request), Failed, "")
	request.Commands = []Command{shell("exit 0")}
	mustEnd(t, Run(t.Context(), request), Passed, "")
}

// A limit that comes after the start is too late for what a quick command has taken or started by then.
func TestTheMemoryLimitIsThereFromTheFirstInstruction(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		request := step(t)
		request.Isolation, request.MemoryLimit = isolation, 256<<20
		for range 20 {
			request.Commands = append(request.Commands, shell("ulimit -S -d; ulimit -H -d"))
		}
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		if want := strings.Repeat("262144\n", 40); string(result.Tail) != want {
			t.Errorf("20 commands had %q", result.Tail)
		}
	})
	request := step(t, shell("exit 0"))
	request.MemoryLimit = 4096 // less than any program needs, the one that sets it among them
	if result := Run(t.Context(), request); result.Outcome != Failed {
		t.Errorf("with a page of memory it ended %v: %s", result.Outcome, result.Reason)
	}
}

func TestACommandHearsEverySignal(t *testing.T) {
	const standard = 1<<31 - 1 // the others are for whoever started all of this
	for _, limit := range []int64{0, 1 << 30} {
		request := step(t, Command{Argv: []string{"grep", "^Sig[IB]", "/proc/self/status"}}, shell("yes | head -n 1"))
		request.MemoryLimit = limit
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		var blocked, ignored uint64
		if _, err := fmt.Sscanf(string(result.Tail), "SigBlk:\t%x\nSigIgn:\t%x\n", &blocked, &ignored); err != nil {
			t.Fatalf("%v: %s", err, result.Tail)
		}
		if want := fmt.Sprintf("SigBlk:\t%016x\nSigIgn:\t%016x\ny\n", blocked, ignored); (blocked|ignored)&standard != 0 || string(result.Tail) != want {
			t.Errorf("with a limit of %d its signals are %q", limit, result.Tail)
		}
	}
}

func TestScratchIsThereForTheStepAndGoneAfterIt(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "scratch")
	home, tmp := ScratchPaths(scratch)
	request := step(t, shell(`touch "$HOME/a" "$TMPDIR/b" && mkdir "$HOME/closed" && touch "$HOME/closed/c" && chmod 0 "$HOME/closed"`))
	request.ScratchDir, request.Environment = scratch, Environment("/usr/bin:/bin", home, tmp, nil)
	mustEnd(t, Run(t.Context(), request), Passed, "")
	for _, path := range []string{home, tmp} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s is still there: %v", path, err)
		}
	}
}

func TestARequestThatCannotBeServedCouldNotRun(t *testing.T) {
	good := step(t, shell("exit 0"))
	worktree := good
	worktree.Worktree = filepath.Join(good.Worktree, "missing")
	mustEnd(t, Run(t.Context(), worktree), CouldNotRun, "no worktree")
	bad := Request{Worktree: "relative", Environment: []string{"A=secret", "A=secret", "B"}, Timeout: -1, Commands: []Command{{}, {Argv: []string{"a\x00b"}}}}
	result := Run(t.Context(), bad)
	for _, part := range []string{"absolute", "names no program", "NUL", `"A"`, `"B"`, "negative"} {
		mustEnd(t, result, CouldNotRun, part)
	}
	if strings.Contains(result.Reason, "secret") {
		t.Fatalf("the reason tells a value: %s", result.Reason)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	mustEnd(t, Run(cancelled, good), Aborted, "before it started")
}

func TestStepsAtTheSameTimeDoNotDisturbEachOther(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		request := step(t, shell(fmt.Sprintf("sleep 1000 & echo step %d; exit %d", i, i)))
		group.Go(func() {
			result := Run(t.Context(), request)
			if result.Commands[0].ExitCode != i || string(result.Tail) != fmt.Sprintf("step %d\n", i) {
				t.Errorf("step %d: %+v with %q", i, result, result.Tail)
			}
		})
	}
	group.Wait()
}

func BenchmarkStepOfOneTrivialCommand(b *testing.B) {
	for _, isolation := range []Isolation{Automatic, ProcessTree} {
		b.Run(strings.ReplaceAll(isolation.String(), " ", "-"), func(b *testing.B) {
			request := step(b, Command{Argv: []string{"true"}})
			request.Isolation, request.Timeout = isolation, time.Minute
			for b.Loop() {
				if result := Run(b.Context(), request); result.Outcome != Passed {
					b.Fatal(result.Reason)
				}
			}
		})
	}
}

func TestACommandMayHaveAnEnvironmentOfItsOwn(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		own := shell(`echo "$A/$PATH"; touch "$TMPDIR/kept"`)
		own.Environment = []string{"A=own", "PATH=/usr/bin:/bin", "TMPDIR=" + t.TempDir()}
		none := Command{Name: "none", Argv: []string{"/usr/bin/env"}, Environment: []string{}}
		request := step(t, own, shell(`echo "$A/$PATH"`), none)
		request.Isolation, request.Environment = isolation, []string{"A=all", "PATH=/bin"}
		result := Run(t.Context(), request)
		mustEnd(t, result, Passed, "")
		if got, want := string(result.Tail), "own//usr/bin:/bin\nall//bin\n"; got != want {
			t.Errorf("output %q, want %q", got, want)
		}
	})
}

func TestASecretIsAFileOfTheOwnersAndNowhereInTheOutput(t *testing.T) {
	eachIsolation(t, func(t *testing.T, isolation Isolation) {
		scratch := t.TempDir()
		file := SecretPath(scratch, "TOKEN")
		script := shell(`stat -c '%a %U' "$FILE" | grep -c "^400 $(id -un)$"; stat -c %a "$(dirname "$FILE")"
			cat "$FILE"; echo; printf "hun"; sleep 0.1; printf "ter2-hunter2\n"; base64 "$FILE"; echo "to stderr: $TOKEN" >&2; tail -c 3 "$FILE"; exit 3`)
		script.Environment = []string{"PATH=/usr/bin:/bin", "FILE=" + file, "TOKEN=hunter2-hunter2"}
		request := step(t, script)
		var log bytes.Buffer
		request.Isolation, request.ScratchDir, request.Log = isolation, scratch, &log
		request.Secrets = []Secret{{Name: "TOKEN", Value: []byte("hunter2-hunter2\n"), File: true}}
		result := Run(t.Context(), request)
		mustEnd(t, result, Failed, "script")
		want := "1\n700\n[secret TOKEN]\n\n[secret TOKEN]\n[secret TOKEN]\nto stderr: [secret TOKEN]\nr2\n"
		got := log.String()
		if i := strings.Index(got, "stderr: [secret TOKEN]\n"); i < 0 || strings.Contains(got, "hunter2") || strings.Contains(got, "aHVudGVy") {
			t.Errorf("the log has %q, want about %q", got, want)
		}
		if !strings.HasPrefix(got, "1\n700\n[secret TOKEN]\n") || !strings.HasSuffix(got, "r2\n") || strings.Count(got, "[secret TOKEN]") != 4 {
			t.Errorf("the log has %q, want about %q", got, want)
		}
		if string(result.Tail) != got {
			t.Errorf("the tail is %q, the log %q", result.Tail, got)
		}
		if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
			t.Errorf("the file is left: %v", err)
		}
	})
}
