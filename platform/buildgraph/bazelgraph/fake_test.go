package bazelgraph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"landfall.build/engine/targets"
)

// fakeWorld has a Bazel that answers info with a release, and a query as the script says; $OUT is a file with an
// answer.
func fakeWorld(t *testing.T, script string, answer made, options Options) *world {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "answer")
	if err := os.WriteFile(out, answer, 0o644); err != nil {
		t.Fatal(err)
	}
	program := fmt.Sprintf("#!/bin/sh\nOUT=%s\nDIR=%s\necho \"$*\" >>$DIR/asked\ncase \" $* \" in *' info '*) echo release fake; exit;; esac\n%s\n", out, dir, script)
	if err := os.WriteFile(filepath.Join(dir, "bazel"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	options.Binary = filepath.Join(dir, "bazel")
	if options.Build == nil {
		options.Build = []string{"bazel", "build", "{label}"}
	}
	options.Test = []string{"bazel", "test", "{label}"}
	options.Env = append(options.Env, "PATH=/usr/bin:/bin")
	return newWorld(t, options)
}

// onePackage is a workspace with one rule, and the answer to it.
var onePackage = files{"WORKSPACE": "", "p/BUILD": "genrule(name = \"r\")\n", "p/a": "1\n", "p/b": "1\n"}

func loadError(t *testing.T, w *world, all files) error {
	t.Helper()
	_, err := w.loader.Load(t.Context(), w.repo, w.tree(t, all))
	return err
}

// TestWhatIsWrongWithBazelIsNoGraph: the change conflicts with everything (M4), for a reason, in bounded time.
func TestWhatIsWrongWithBazelIsNoGraph(t *testing.T) {
	const hangs = "took too long"
	for _, c := range []struct{ name, script, reason string }{
		{"it is killed", "echo boom >&2; kill -9 $$", "it was ended by a signal (killed): boom"},
		{"it crashes", "echo trace >&2; exit 37", "it crashed (exit code 37): trace"},
		{"it says nothing", "exit 36", "exit code 36, and it said nothing"},
		{"it fails for reasons of its own", "echo 'ERROR: out of memory' >&2; exit 33", "exit code 33"},
		{"it gives a part and says so", "cat $OUT; echo 'ERROR: BUILD:1: x' >&2; exit 3", "exit code 3"},
		{"its answer is cut short", "head -c 20 $OUT", "cut short"},
		{"it prints something else", "echo //p:r", "cannot be decoded"},
		{"it prints without end", "cat /dev/zero", "cannot be decoded"},
		{"it prints too much", "while :; do cat $OUT; done", "too large"},
		{"it hangs", "sleep 1000", hangs},
		{"it hangs and does not want to end", "trap '' INT; sleep 1000 & wait; sleep 1000", hangs},
		{"a child holds its output open", "cat $OUT; setsid sleep 1000 & echo $! >$DIR/child; sleep 1000", hangs},
		{"it says what is wrong in other words each time", "echo $$ >>$OUT.n; if [ $(wc -l <$OUT.n) = 1 ]; then echo \"ERROR: error loading package 'p': x\" >&2; exit 7; fi; exit 8", "otherwise when it was asked again"},
		{"it cannot fetch", "echo \"ERROR: error loading package 'p': no such package '@x//': download failed\" >&2; exit 7", "download failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			limit := time.Hour
			if c.reason == hangs {
				limit = time.Second
			}
			w := fakeWorld(t, c.script, twoTargets(), Options{Limit: limit, Output: 4 << 10})
			t.Cleanup(func() {
				var child int
				if text, err := os.ReadFile(filepath.Join(filepath.Dir(w.loader.options.Binary), "child")); err == nil {
					fmt.Sscan(string(text), &child)
					_ = syscall.Kill(child, syscall.SIGKILL)
				}
			})
			begun := time.Now()
			err := loadError(t, w, onePackage)
			failure, is := errors.AsType[*Failure](err)
			if !is || !strings.Contains(failure.Reason, c.reason) {
				t.Errorf("%T %v, want a failure with %q", err, err, c.reason)
			}
			if took := time.Since(begun); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestWithoutBazelTheReasonSaysWhatToDo(t *testing.T) {
	for _, binary := range []string{"bazel-of-nobody", "/nowhere/bazel", "tools/bazel"} {
		w := newWorld(t, Options{Binary: binary, Env: []string{"PATH=/usr/bin:/bin"}})
		err := loadError(t, w, onePackage)
		if failure, is := errors.AsType[*Failure](err); !is || !strings.Contains(failure.Reason, "Bazel") {
			t.Errorf("%s: %v", binary, err)
		}
	}
}

// TestAfterAFailureOfItsOwnBazelRests, so that not each change waits for the limit; a tree's fault is none of its
// own.
func TestAfterAFailureOfItsOwnBazelRests(t *testing.T) {
	w := fakeWorld(t, "echo x >>$DIR/queries; exit 37", twoTargets(), Options{})
	first := loadError(t, w, onePackage)
	second := loadError(t, w, onePackage.with(files{"p/new": ""}))
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("%v, then %v", first, second)
	}
	queries := filepath.Join(filepath.Dir(w.loader.options.Binary), "queries")
	if text, err := os.ReadFile(queries); err != nil || len(text) != 2 {
		t.Errorf("asked %q, %v", text, err)
	}
	w.loader.failed = w.loader.failed.Add(-resting)
	_ = loadError(t, w, onePackage)
	if text, _ := os.ReadFile(queries); len(text) != 4 {
		t.Errorf("it rests for ever: %q", text)
	}
}

// TestAnAnswerThatLacksAPackageIsKnownToBePartial though it ends between two targets.
func TestAnAnswerThatLacksAPackageIsKnownToBePartial(t *testing.T) {
	for name, c := range map[string]struct {
		answer made
		files  files
		reason string
	}{
		"a folder is missing":    {twoTargets(), onePackage.with(files{"q/BUILD": ""}), "//q has a BUILD file"},
		"nothing at all":         {nil, onePackage, "//p has a BUILD file"},
		"a rule without package": {func() (m made) { m.target(targetRule, ruleOf("//p:r", "genrule", nil)); return }(), onePackage.with(files{"p/BUILD": "-"}).with(files{"x/link": "link:../p"}), "not the BUILD file"},
		"a package with errors": {func() made {
			m, s := twoTargets(), sourceOf("//q:BUILD")
			s.number(sourceError, 1)
			m.target(targetSource, s)
			return m
		}(), onePackage.with(files{"q/BUILD": ""}), "//q as broken"},
		"a rule twice": {append(twoTargets(), twoTargets()...), onePackage, "lists //p:r twice"},
		"the reserved name": {func() made {
			m := twoTargets()
			m.target(targetSource, sourceOf("//:BUILD"))
			m.target(targetRule, ruleOf("//:repository", "genrule", nil))
			return m
		}(), onePackage.with(files{"BUILD": ""}), "stands for the whole repository"},
		"an input of no kind": {func() made {
			var m made
			m.target(targetSource, sourceOf("//p:BUILD"))
			m.target(targetRule, ruleOf("//p:r", "genrule", []string{"what"}))
			return m
		}(), onePackage, "not a label"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fakeWorld(t, "cat $OUT", c.answer, Options{})
			graph, err := w.loader.Load(t.Context(), w.repo, w.tree(t, c.files))
			if err != nil {
				t.Fatal(err)
			}
			if reasons := strings.Join(graph.Unknown(), "\n"); !strings.Contains(reasons, c.reason) {
				t.Errorf("the graph lacks %q, want %q", reasons, c.reason)
			}
			// And nothing of it is remembered.
			if again, err := w.loader.Load(t.Context(), w.repo, w.tree(t, c.files)); err != nil || again == graph {
				t.Errorf("a partial graph is remembered: %v", err)
			}
		})
	}
}

// TestPackagesThatBazelIsToldToLeaveOutAreNotMissing in an answer.
func TestPackagesThatBazelIsToldToLeaveOutAreNotMissing(t *testing.T) {
	for name, edit := range map[string]files{
		"ignored":             {"q/r/BUILD": "", ".bazelignore": "# why\nq\n"},
		"deleted":             {"q/BUILD": "", ".bazelrc": "build --deleted_packages=q\n"},
		"ignored by pattern":  {"q/BUILD": "", "REPO.bazel": "ignore_directories([\"**/q\"])\n"},
		"another workspace":   {"q/WORKSPACE": "", "q/r/BUILD": ""},
		"the reserved folder": {"external/x/BUILD": ""},
	} {
		w := fakeWorld(t, "cat $OUT", twoTargets(), Options{})
		if graph := w.load(t, onePackage.with(edit)); len(graph.Unknown()) > 0 {
			t.Errorf("%s: %v", name, graph.Unknown())
		}
	}
}

// TestWhoeverDropsAnAnalysisEndsTheQuery and nobody waits for another one's.
func TestWhoeverDropsAnAnalysisEndsTheQuery(t *testing.T) {
	w := fakeWorld(t, "echo $$ >$DIR/pid; exec sleep 1000", nil, Options{Limit: time.Hour})
	ctx, cancel := context.WithCancelCause(t.Context())
	dropped := errors.New("dropped")
	tree, other := w.tree(t, onePackage), w.tree(t, onePackage.with(files{"p/c": ""}))
	pidFile := filepath.Join(filepath.Dir(w.loader.options.Binary), "pid")
	done := make(chan error, 2)
	go func() { _, err := w.loader.Load(ctx, w.repo, tree); done <- err }()
	var pid int
	for pid == 0 {
		if text, err := os.ReadFile(pidFile); err == nil {
			fmt.Sscan(string(text), &pid)
		}
		time.Sleep(time.Millisecond)
	}
	go func() { _, err := w.loader.Load(ctx, w.repo, other); done <- err }()
	cancel(dropped)
	for range 2 {
		if err := <-done; !errors.Is(err, dropped) {
			t.Errorf("%v", err)
		}
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("the query runs on")
	}
	if w.loader.failure != "" {
		t.Errorf("Bazel is said to have failed: %s", w.loader.failure)
	}
}

// TestCloseEndsTheServer that is Bazel's, and no other process whose number it may have.
func TestCloseEndsTheServer(t *testing.T) {
	w := fakeWorld(t, "cat $OUT", twoTargets(), Options{})
	w.load(t, onePackage)
	s := w.loader.server
	if err := os.MkdirAll(filepath.Join(s.base(), "server"), 0o755); err != nil {
		t.Fatal(err)
	}
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/bin/sh", append([]string{"-c", "sleep 1000; :"}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
		// The kernel says that a program has begun before it shows its arguments.
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
			if err != nil || strings.Contains(string(words), args[0]) { // There is no /proc elsewhere.
				return cmd
			}
			if time.Now().After(deadline) {
				t.Fatalf("the process shows %q", words)
			}
		}
	}
	write := func(pid int) {
		if err := os.WriteFile(filepath.Join(s.base(), "server", "server.pid.txt"), fmt.Append(nil, pid), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stranger := start("--output_base=/elsewhere")
	write(stranger.Process.Pid)
	s.kill()
	s.end()
	if err := syscall.Kill(stranger.Process.Pid, 0); err != nil {
		t.Fatal("a process of somebody else was ended")
	}
	ours := start("--output_base=" + s.base())
	write(ours.Process.Pid)
	ended := make(chan struct{})
	go func() { _ = ours.Wait(); close(ended) }()
	w.loader.Close()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Error("the server goes on")
	}
	if _, err := w.loader.Load(t.Context(), w.repo, w.tree(t, onePackage.with(files{"z": ""}))); !errors.Is(err, errClosed) {
		t.Errorf("a closed loader: %v", err)
	}
	w.loader.Close()
}

// TestInputsThatNothingDeclares belong to the packages that the options name.
func TestInputsThatNothingDeclares(t *testing.T) {
	w := fakeWorld(t, "cat $OUT", twoTargets(), Options{Inputs: []Input{{Folders: []string{"p/**", "p"}, Files: []string{"testing/*.yaml"}}, {Folders: []string{"q"}, Files: []string{"x"}}}})
	base := w.load(t, onePackage)
	if got := touched(base, w.load(t, onePackage.with(files{"testing/a.yaml": "", "x": ""}))); got != "//p:r" {
		t.Errorf("new inputs touch %q", got)
	}
	for _, wrong := range []Options{
		{Env: []string{"A=1", "A=2"}}, {Env: []string{"A"}}, {Inputs: []Input{{Files: []string{"../x"}}}}, {Inputs: []Input{{}}},
		{Build: []string{"bazel", "build", "//..."}},
	} {
		if _, err := NewLoader(wrong, nil); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}

// TestTheHashHoldsHowBazelIsRun: its release, its flags and the environment.
func TestTheHashHoldsHowBazelIsRun(t *testing.T) {
	seen := map[targets.Hash]string{}
	for name, options := range map[string]Options{
		"plain": {}, "flags": {QueryFlags: []string{"--x"}}, "startup": {StartupFlags: []string{"--x"}}, "environment": {Env: []string{"CC=clang"}},
		"steps": {Build: []string{"bazel", "build", "-k", "{label}"}},
	} {
		w := fakeWorld(t, "cat $OUT", twoTargets(), options)
		target, ok := w.load(t, onePackage).Target("//p:r")
		if earlier, twice := seen[target.Hash]; twice || !ok {
			t.Errorf("%s gives the hash of %s", name, earlier)
		}
		seen[target.Hash] = name
	}
}
