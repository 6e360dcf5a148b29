package bazelgraph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"landfall.build/platform/bounds"
)

// server runs Bazel in one folder. Without a sandbox Bazel's own server goes on between two calls, until end or until it has had
// no call for a while. In a sandbox it ends with each call.
type server struct {
	options *Options
	binary  string
	dir     string // the checkout
	place   string // for what Bazel writes: its output base, a home folder, a temporary one
	box     *box   // nil: there is no sandbox
}

// newServer finds the program.
func newServer(ctx context.Context, o *Options, dir, place string) (*server, error) {
	s := &server{options: o, dir: dir, place: place}
	var err error
	if s.binary, err = lookPath(o.Binary, o.variable("PATH")); err != nil {
		return nil, err
	}
	// Bazel names files by where they really are.
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if o.Sandbox != nil {
		if s.box, err = newBox(ctx, o, place, s.dir, s.binary); err != nil {
			return nil, err
		}
	}
	if s.box != nil {
		s.place = s.box.folder()
		return s, nil
	}
	return s, s.makeFolders()
}

func (s *server) makeFolders() error {
	for _, folder := range []string{s.base(), s.home(), s.temporary()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) base() string      { return filepath.Join(s.place, "base") }
func (s *server) home() string      { return filepath.Join(s.place, "home") }
func (s *server) temporary() string { return filepath.Join(s.place, "tmp") }

// lookPath finds a program in the folders of a PATH, which is not the service's.
func lookPath(name, folders string) (string, error) {
	if filepath.IsAbs(name) {
		folders, name = filepath.Dir(name), filepath.Base(name)
	}
	if strings.ContainsRune(name, '/') {
		return "", fmt.Errorf("%s is a relative path: a change could bring its own Bazel; give a name or an absolute path", name)
	}
	for _, folder := range filepath.SplitList(folders) {
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); filepath.IsAbs(folder) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in %s: install Bazel, or name it in analysis.bazel.binary", name, folders)
}

// startup returns the flags before the command. Those of this package come last and win over those of the queue and of the
// repository's .bazelrc. The home folder has none; the machine's is kept, since packaged versions of Bazel say
// there where they are installed.
func (s *server) startup() []string {
	return append(append([]string{}, s.options.StartupFlags...),
		"--nohome_rc", "--output_user_root="+filepath.Join(s.place, "user"), "--output_base="+s.base(),
		"--max_idle_secs="+strconv.Itoa(max(1, int(s.options.Idle/time.Second))),
		"--host_jvm_args=-Xmx"+strconv.FormatInt(max(s.options.Heap>>20, 64), 10)+"m",
		"--nobatch", "--noblock_for_lock")
}

// queryFlags come last too. A query that goes on past an error gives a truncated graph, which is worse than
// none; one without implicit dependencies, or with selects flattened, one with holes.
var queryFlags = []string{
	"--output=proto", "--nokeep_going", "--implicit_deps", "--tool_deps", "--aspect_deps=conservative",
	"--order_output=auto", "--relative_locations", "--noproto:flatten_selects", "--proto:default_values",
	"--proto:definition_stack", "--noproto:instantiation_stack", "--proto:output_rule_attrs=all",
	"--proto:rule_inputs_and_outputs", "--noproto:include_synthetic_attribute_hash",
	"--noshow_progress", "--color=no", "--curses=no",
}

// Everything of every package below the root, whoever depends on it, whatever its tags.
const everything = "//...:all-targets"

// query asks for all targets.
func (s *server) query(ctx context.Context) (*answer, error) {
	args := append([]string{"query"}, s.options.QueryFlags...)
	args = append(args, queryFlags...)
	var a *answer
	err := s.run(ctx, append(args, "--", everything), func(output io.Reader) (err error) {
		a, err = decode(output)
		return err
	})
	return a, err
}

// release asks which Bazel this is.
func (s *server) release(ctx context.Context) (string, error) {
	var text []byte
	err := s.run(ctx, []string{"info", "--noshow_progress", "--color=no", "--curses=no", "release"}, func(output io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(output, 1000))
		return err
	})
	return strings.TrimSpace(string(text)), err
}

// exit is how Bazel ended when it did not succeed.
type exit struct {
	code    int // -1 for a signal
	signal  string
	message string
}

// exitInternal is Bazel's code for a fault of its own.
const exitInternal = 37

func (e *exit) Error() string {
	how := fmt.Sprintf("exit code %d", e.code)
	switch e.code {
	case -1:
		how = fmt.Sprintf("it was ended by a signal (%s)", e.signal)
	case exitInternal:
		how = fmt.Sprintf("it crashed (%s)", how)
	}
	if message := strings.TrimSpace(e.message); message != "" {
		return how + ": " + message
	}
	return how + ", and it said nothing"
}

var (
	errLimit  = errors.New("it took too long")
	errOutput = errors.New("its output is too large")
)

// ending is how long Bazel may take to end once it is asked to.
const ending = 10 * time.Second

// run runs one command of Bazel and gives its output to read, within the limits of time and size. The error is
// *exit if Bazel ended by itself, with another code than 0.
func (s *server) run(parent context.Context, args []string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeoutCause(parent, s.options.Limit, fmt.Errorf("%w: more than %v", errLimit, s.options.Limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, append(s.startup(), args...)...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{
		"HOME=" + s.home(), "TMPDIR=" + s.temporary(), "USER=landfall", "LC_ALL=C.UTF-8", "TZ=UTC",
		"BAZELISK_SKIP_WRAPPER=true", "BAZELISK_HOME=" + s.home(),
	}, s.options.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Asked to end, the client ends the query and leaves the server ready for the next one.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = ending
	var group *bounds.Group
	if s.box != nil {
		if err := s.makeFolders(); err != nil {
			return err
		}
		end, err := s.box.wrap(cmd)
		if err != nil {
			return err
		}
		defer end()
		tree, _ := bounds.Delegated() // without one it is counted
		if group, err = tree.Open(s.options.Limits); err != nil {
			return err
		}
		defer group.Close()
		group.Join(cmd.SysProcAttr)
	}
	complaint := &tail{}
	cmd.Stderr = complaint
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	finished := make(chan struct{})
	if err := cmd.Start(); err != nil {
		return err
	}
	exceeds := make(chan string, 1)
	go func() {
		exceeded := ""
		if s.box != nil {
			exceeded = s.options.Limits.Watch(finished, cmd.Process.Pid, "", group)
		}
		if exceeded != "" {
			_ = cmd.Process.Kill() // the first of its namespace
		}
		exceeds <- exceeded
	}()
	// Whoever does not end when asked to is killed, and whoever still holds the pipe is not waited for.
	var killed atomic.Bool
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(ending, func() {
			killed.Store(true)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = output.Close()
		})
		<-finished
		timer.Stop()
	})
	defer stop()
	limited := &limitedReader{in: output, left: s.options.Output}
	failed := read(limited)
	if failed != nil && !errors.Is(failed, errCutShort) {
		cancel() // Nobody reads on: it must not wait for that.
	}
	_, _ = io.Copy(io.Discard, limited)
	err = cmd.Wait()
	close(finished)
	exceeded := cmp.Or(<-exceeds, group.Exceeded())
	ended, exited := errors.AsType[*exec.ExitError](err)
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // What is left of the client.
		if killed.Load() || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.kill() // It may hang, and then the next query would find it busy.
		}
	}
	switch {
	case parent.Err() != nil:
		return context.Cause(parent)
	case exceeded != "":
		return errors.New("it " + exceeded)
	case errors.Is(context.Cause(ctx), errLimit):
		return context.Cause(ctx)
	case errors.Is(failed, errOutput):
		return failed
	case exited && ctx.Err() == nil:
		e := &exit{code: ended.ExitCode(), message: complaint.String()}
		if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() {
			e.signal = status.Signal().String()
		}
		return e
	case failed != nil:
		return failed
	}
	return err
}

// limitedReader fails where more is read than there may be.
type limitedReader struct {
	in   io.Reader
	left int64
}

func (r *limitedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errOutput
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// tail keeps the first lines of what Bazel says and the last ones.
type tail struct {
	first, last bytes.Buffer
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if room := tailBytes - t.first.Len(); room > 0 {
		t.first.Write(p[:min(room, len(p))])
		p = p[min(room, len(p)):]
	}
	t.last.Write(p)
	if excess := t.last.Len() - tailBytes; excess > tailBytes {
		t.last.Next(excess)
	}
	return n, nil
}

func (t *tail) String() string {
	if t.last.Len() > tailBytes {
		t.last.Next(t.last.Len() - tailBytes)
		return t.first.String() + "\n…\n" + t.last.String()
	}
	return t.first.String() + t.last.String()
}

// process returns the server's process; 0 if it is not the server that this package started: a number alone may be another's by now.
func (s *server) process() int {
	text, err := os.ReadFile(filepath.Join(s.base(), "server", "server.pid.txt"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return 0
	}
	words, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		words, err = exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	}
	if err != nil || !bytes.Contains(words, []byte(s.base())) {
		return 0
	}
	return pid
}

// kill ends the server at once.
func (s *server) kill() {
	if pid := s.process(); pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// end ends the server, in its own way if it can.
func (s *server) end() {
	pid := s.process()
	if pid == 0 {
		return
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for until := time.Now().Add(ending / 2); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if s.process() == 0 {
			return
		}
	}
	s.kill()
}
